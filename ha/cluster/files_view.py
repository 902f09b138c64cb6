"""What the active NameNode says of blocks and DataNodes, as a part of one look.  Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class FilesView:
    """Counts of DataNodes and blocks, and sizes in bytes.

    ``safe_mode`` is what safe mode waits for, None where it is off.  ``missing`` blocks have no
    usable replica, ``under_replicated`` ones too few.  ``undrained`` DataNodes may still carry out
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


def files_view(found: object) -> FilesView | None:
    """Read the entry ``files`` of a NameNode's status page; return None if it is not valid."""
    if not isinstance(found, Mapping):
        return None
    numbers = {field.name: found.get(field.name, field.default) for field in fields(FilesView)}
    safe_mode = numbers.pop("safe_mode")
    if not all(isinstance(number, int) for number in numbers.values()):
        return None
    return FilesView(safe_mode if isinstance(safe_mode, str) else None, **numbers)


def problems_of_files(files: FilesView) -> Iterator[str]:
    """Yield what is wrong with blocks and DataNodes, the worst first."""
    if files.missing:
        yield f"{files.missing:,} blocks have no usable replica: their files cannot be read whole"
    if files.safe_mode is not None:
        yield f"safe mode is on: {' '.join(files.safe_mode.split())}"
    if files.dead_datanodes:
        yield f"{_count(files.dead_datanodes, 'DataNode')} dead: not heard of for too long"
    if files.under_replicated:
        yield f"{files.under_replicated:,} blocks have too few replicas; they are being copied"


def lines_of_files(files: FilesView) -> Iterator[str]:
    """Yield the lines about DataNodes and blocks for people."""
    nodes = f"{files.live_datanodes} live"
    if files.stale_datanodes:
        nodes += f" ({files.stale_datanodes} stale)"
    if files.dead_datanodes:
        nodes += f", {files.dead_datanodes} dead"
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
