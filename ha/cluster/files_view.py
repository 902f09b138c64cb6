"""What the active NameNode says of blocks and DataNodes, as a part of one look.  Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Final

from ha.notices.codec import entry
from ha.record import dataclass

MOST_NAMED: Final = 3
"""How many silent or failing DataNodes a problem names."""
_HADOOP: Final = {
    "live_datanodes": "NumLiveDataNodes",
    "stale_datanodes": "StaleDataNodes",
    "dead_datanodes": "NumDeadDataNodes",
    "capacity_bytes": "CapacityTotal",
    "used_bytes": "CapacityUsed",
    "remaining_bytes": "CapacityRemaining",
    "blocks": "BlocksTotal",
    "under_replicated": "UnderReplicatedBlocks",
    "missing": "MissingBlocks",
    "corrupt": "CorruptBlocks",
    "failed_volumes": "VolumeFailuresTotal",
}
"""What the bean FSNamesystem of Hadoop's NameNode calls the counts."""


_OF_OLDER: Final = {"service": "in service"}
"""What the page of an older NameNode does not say of a DataNode."""


@dataclass(frozen=True, slots=True)
class VolumeView:
    """One volume of a DataNode: its room in bytes, and how many replicas are on it."""

    uuid: str
    type: str
    failed: bool
    capacity_bytes: int
    used_bytes: int
    remaining_bytes: int
    blocks: int


@dataclass(frozen=True, slots=True)
class DatanodeView:
    """One DataNode; ``state`` is live, stale or dead.

    ``service`` says whether it leaves, ``blocks_left`` how many blocks it is still needed for, None
    before they were looked at.
    """

    uuid: str
    host: str
    address: str
    state: str
    last_contact_seconds: float
    blocks: int
    failed_volumes: int
    volumes: tuple[VolumeView, ...]
    rack: str | None = None
    service: str = "in service"
    blocks_left: int | None = None
    version: str | None = None
    """Of its software; None: an older NameNode does not report it."""

    @property
    def capacity_bytes(self) -> int:
        return sum(volume.capacity_bytes for volume in self.volumes)

    @property
    def used_bytes(self) -> int:
        return sum(volume.used_bytes for volume in self.volumes)

    @property
    def well(self) -> bool:
        """Whether it is live, serves, and has no failed volume."""
        return self.state == "live" and not self.failed_volumes and self.service == "in service"

    @property
    def fill(self) -> float | None:
        """Which share of its room is used; None: it has reported no room."""
        return self.used_bytes / self.capacity_bytes if self.capacity_bytes > 0 else None


@dataclass(frozen=True, slots=True)
class FilesView:
    """Counts of DataNodes and blocks, and sizes in bytes.

    ``safe_mode`` is what safe mode waits for, None where it is off.  ``missing`` blocks have no
    usable replica on a DataNode that is heard, ``under_replicated`` ones too few.  ``datanodes``
    are the worst 500.  ``retired`` ones are dead, and were decommissioned or in maintenance.
    ``undrained`` DataNodes may still carry out
    deletions that the former active ordered; an older NameNode does not report them.
    """

    safe_mode: str | None
    live_datanodes: int
    stale_datanodes: int
    dead_datanodes: int
    capacity_bytes: int
    used_bytes: int
    remaining_bytes: int
    blocks: int
    under_replicated: int
    missing: int
    corrupt: int
    undrained_datanodes: int = 0
    failed_volumes: int = 0
    retired_datanodes: int = 0
    datanodes: tuple[DatanodeView, ...] = ()

    @property
    def not_listed(self) -> int:
        """How many DataNodes there are beyond those in ``datanodes``; none of them is worse."""
        known = self.live_datanodes + self.dead_datanodes + self.retired_datanodes
        return max(0, known - len(self.datanodes))

    @property
    def heard_datanodes(self) -> int:
        """The live ones that are not stale."""
        return self.live_datanodes - self.stale_datanodes

    @property
    def unreadable(self) -> bool:
        """Whether there are blocks that no DataNode that is heard has."""
        return self.missing > 0 or (self.blocks > 0 and not self.heard_datanodes)


def files_view(found: object) -> FilesView | None:
    """Read the entry ``files`` of a NameNode's status page; return None if it is not valid."""
    if not isinstance(found, Mapping):
        return None
    numbers = {field.name: found.get(field.name, field.default) for field in fields(FilesView)}
    safe_mode, listed = numbers.pop("safe_mode"), numbers.pop("datanodes")
    if not all(isinstance(number, int) for number in numbers.values()):
        return None
    known = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else ()
    nodes = (entry(DatanodeView, {**_OF_OLDER, **one}) for one in known)
    return FilesView(
        safe_mode if isinstance(safe_mode, str) else None,
        **numbers,
        datanodes=tuple(node for node in nodes if node is not None),
    )


def files_of_hadoop(bean: Mapping[str, object], safe_mode: str | None) -> FilesView | None:
    """Read the bean FSNamesystem of Hadoop's NameNode; return None if it is not valid."""
    return files_view(
        {name: bean.get(theirs) for name, theirs in _HADOOP.items()} | {"safe_mode": safe_mode}
    )


def problems_of_files(files: FilesView) -> Iterator[str]:
    """Yield what is wrong with blocks and DataNodes, the worst first."""
    if files.missing:
        yield f"{blocks_text(files.missing)} no usable replica: their files cannot be read whole"
    if not files.heard_datanodes and (files.blocks or files.stale_datanodes):
        yield "no DataNode is heard: no data can be read or written  → start the DataNodes"
    if files.safe_mode is not None:
        yield f"safe mode is on: {' '.join(files.safe_mode.split())}"
    if files.dead_datanodes:
        yield f"{_count(files.dead_datanodes, 'DataNode')} dead: not heard of for too long"
    if files.stale_datanodes:
        silent = [
            f"{one.host} for {one.last_contact_seconds:.0f} s"
            for one in files.datanodes
            if one.state == "stale"
        ]
        named = f": {', '.join(silent[:MOST_NAMED])}" if silent else ""
        yield f"{_count(files.stale_datanodes, 'DataNode')} silent{named}  → nnha datanodes"
    if files.corrupt:
        yield f"{blocks_text(files.corrupt)} damaged replicas"
    if files.under_replicated:
        copied = "" if files.stale_datanodes else "; they are being copied"
        yield f"{blocks_text(files.under_replicated)} too few replicas{copied}"
    if files.failed_volumes:
        failing = [one.host for one in files.datanodes if one.failed_volumes][:MOST_NAMED]
        where = f" on {', '.join(failing)}" if failing else ""
        noun = "volume has" if files.failed_volumes == 1 else "volumes have"
        yield f"{files.failed_volumes} {noun} failed{where}  → nnha datanodes"


def lines_of_files(files: FilesView) -> Iterator[str]:
    """Yield the lines about DataNodes and blocks for people."""
    nodes = f"{files.live_datanodes} live"
    if files.stale_datanodes:
        nodes += f" ({files.stale_datanodes} stale)"
    if files.dead_datanodes:
        nodes += f", {files.dead_datanodes} dead"
    if files.retired_datanodes:
        nodes += f", {files.retired_datanodes} away"
    if files.undrained_datanodes:
        nodes += f", {files.undrained_datanodes} not drained"
    room = (
        f"{size_text(files.used_bytes)} used of {size_text(files.capacity_bytes)}, "
        f"{size_text(files.remaining_bytes)} left"
    )
    yield f"DataNodes {nodes}   {room}"
    yield (
        f"Blocks {files.blocks:,}, under-replicated {files.under_replicated:,}, missing "
        f"{files.missing:,}, corrupt {files.corrupt:,}   safe mode "
        f"{'off' if files.safe_mode is None else 'ON'}"
    )


def size_text(number: int) -> str:
    """Bytes in the largest unit that leaves at least one."""
    size = float(number)
    for unit in ("B", "K", "M", "G", "T"):
        if size < 1024:
            return f"{size:.0f}{unit}"
        size /= 1024
    return f"{size:.0f}P"


def _count(number: int, what: str) -> str:
    return f"{number} {what} is" if number == 1 else f"{number} {what}s are"


def blocks_text(number: int) -> str:
    return "1 block has" if number == 1 else f"{number:,} blocks have"
