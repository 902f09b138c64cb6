"""The oracle's own reading of a disk after a power cut, written from
docs/reference/journal-node.md.
"""

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from pathlib import PurePath
from typing import Final

from journal.proto import journal_pb2 as pb
from tests.simulation.engine.verdict import Violated
from tests.simulation.journal.platter import Inode
from tests.simulation.journal.tags import Run, Tag, read_run

_FINAL: Final = re.compile(r"edits_(\d+)-(\d+)\Z")
_LIVE: Final = re.compile(r"edits_inprogress_(\d+)()\Z")
_DOWNLOAD: Final = re.compile(r"edits_inprogress_(\d+)\.epoch=(\d+)\Z")


class _Kind(Enum):
    """What a name in a journal's folder means."""

    FINALIZED = auto()
    LIVE = auto()
    DOWNLOAD = auto()
    INCARNATION = auto()
    DECISION = auto()
    RECORD = auto()
    PROMISE = auto()
    WRITER = auto()
    NOTHING = auto()


@lru_cache(maxsize=50_000)  # every world has the same names, and they are looked at all the time
def _meaning(path: PurePath) -> tuple[_Kind, int, int]:
    """Return the kind, the first txid, and of a segment its last one or of a download its epoch."""
    folder, name = path.parts[-2], path.name
    if "current" not in path.parts:  # a download of the syncer, or what an upgrade keeps
        return _Kind.NOTHING, 0, 0
    for pattern, kind in _SEGMENTS.items():
        if found := pattern.match(name):
            return kind, int(found[1]), int(found[2] or 0)
    if folder in _BY_TXID:
        return (_BY_TXID[folder], int(name), 0) if name.isdecimal() else (_Kind.NOTHING, 0, 0)
    return _BY_NAME.get(name, _Kind.NOTHING), 0, 0


_SEGMENTS: Final = {
    _FINAL: _Kind.FINALIZED,
    _LIVE: _Kind.LIVE,
    _DOWNLOAD: _Kind.DOWNLOAD,
}
_BY_TXID: Final = {"paxos": _Kind.DECISION, "segments": _Kind.RECORD}
_BY_NAME: Final = {
    "incarnation": _Kind.INCARNATION,
    "last-promised-epoch": _Kind.PROMISE,
    "last-writer-epoch": _Kind.WRITER,
}


@dataclass(frozen=True, slots=True)
class Accepted:
    """A recovery's decision as it lies on a disk."""

    epoch: int
    last: int
    finalized: bool
    digest: bytes
    writer: int = 0


@dataclass(slots=True)
class View:
    """One node's durable journal."""

    promised: int = 0
    writer: int = 0
    learner: bool = True
    """It has no vote: nothing on this very disk says that it was ever admitted."""
    writers: dict[int, int] = field(default_factory=dict)
    finalized: dict[int, Run] = field(default_factory=dict)
    live: dict[int, Run] = field(default_factory=dict)
    accepted: dict[int, Accepted] = field(default_factory=dict)
    files: dict[int, int] = field(default_factory=dict)
    """Which file a live segment lies in: one that is put in place whole is another one."""

    @property
    def newest(self) -> int | None:
        """Where the newest segment with a transaction starts."""
        return max((*self.finalized, *self.live), default=None)

    def run(self, first: int) -> Run | None:
        return self.finalized.get(first) or self.live.get(first)

    def tags(self) -> dict[int, Tag]:
        """Everything held, by txid; finalized segments first."""
        held: dict[int, Tag] = {}
        for runs in (self.live, self.finalized):
            for run in runs.values():
                held.update(zip(range(run.first, run.last + 1), run.tags, strict=True))
        return held


class FileReader:
    """Reads files, each only once after each change."""

    def __init__(self, node: str) -> None:
        self.node = node
        self._runs: dict[tuple[Inode, int, int | None], tuple[int, Run]] = {}

    def view(  # noqa: C901, PLR0912 - one case per kind of file
        self, names: Mapping[PurePath, Inode], *, cached: bool = False
    ) -> View:
        """Return the journal that these names show; ``cached`` for what a live process sees."""
        view = View()
        live: dict[int, Inode] = {}
        downloads: list[tuple[int, int, Inode]] = []
        for path, inode in names.items():
            kind, first, second = _meaning(path)
            if kind is _Kind.FINALIZED:
                run = self._run(inode, first, second, cached)
                if run.last != second:
                    raise Violated("I14", f"{self.node}: {path.name} ends at {run.last}")
                view.finalized[first] = run
            elif kind is _Kind.LIVE:
                live[first] = inode
            elif kind is _Kind.DOWNLOAD:
                downloads.append((first, second, inode))
            elif kind is _Kind.INCARNATION:
                data = (bytes(inode.cached) if cached else inode.durable).decode()
                own = f"inode={inode.number}\n" in data
                view.learner = not own or "admitted=no\n" in data
            elif kind is not _Kind.NOTHING:
                _small_file(view, kind, first, bytes(inode.cached) if cached else inode.durable)
        for first, epoch, inode in downloads:
            if self._rolls_forward(view.accepted.get(first), first, epoch, inode, cached):
                live[first] = inode
                view.writers[first] = view.accepted[first].writer
        for first in sorted(live):
            if first in view.finalized:
                # The syncer lets the finalized file have its name first, and a start mends it.
                if cached:
                    raise Violated("I14", f"{self.node}: {first} is both finalized and in progress")
                continue
            run = self._run(live[first], first, None, cached)
            if run.tags:
                view.live[first], view.files[first] = run, live[first].number
        view.finalized = dict(sorted(view.finalized.items()))
        for first in view.live.keys() - view.writers.keys():
            raise Violated("I14", f"{self.node}: nobody recorded who wrote {first}")
        return view

    def rotten(self, names: Mapping[PurePath, Inode]) -> set[int]:
        """Return which live segments' files have bytes that are not what was written."""
        found = [(_FINAL.match(path.name) or _LIVE.match(path.name), inode)
                 for path, inode in names.items()
                 if inode.flips and path.parts[-2] == "current"]  # fmt: skip
        return {int(match[1]) for match, _ in found if match is not None}

    def _rolls_forward(
        self, decision: Accepted | None, first: int, epoch: int, inode: Inode, cached: bool
    ) -> bool:
        """Return whether the next start puts a download in place."""
        if decision is None or decision.epoch != epoch:
            return False
        run = self._run(inode, first, decision.last, cached)
        return run.last == decision.last and digest(run) == decision.digest

    def _run(self, inode: Inode, first: int, last: int | None, cached: bool) -> Run:
        if cached:
            return read_run(inode.as_written(bytes(inode.cached)), first, last=last)
        key = (inode, first, last)
        known = self._runs.get(key)
        if known is None or known[0] != inode.changes:
            known = self._runs[key] = (
                inode.changes,
                read_run(inode.as_written(inode.durable), first, last=last),
            )
        return known[1]


def digest(run: Run) -> bytes:
    return hashlib.sha256(run.records).digest()


def _small_file(view: View, kind: _Kind, first: int, data: bytes) -> None:
    if kind is _Kind.DECISION:
        view.accepted[first] = _decision(first, data)
    elif kind is _Kind.RECORD:
        record = pb.SegmentRecord.FromString(data[1 : 1 + data[0]])
        view.writers[first] = record.writer_epoch
    elif kind is _Kind.PROMISE:
        view.promised = int(data)
    elif kind is _Kind.WRITER:
        view.writer = int(data)


def _decision(first: int, data: bytes) -> Accepted:
    length, position = data[0], 1
    if length > 0x7F:
        length, position = length & 0x7F | data[1] << 7, 2
    record = pb.AcceptedRecovery.FromString(data[position : position + length])
    if record.segment.first_txid != first:
        raise Violated("I18", f"the decision about {first} is about {record.segment.first_txid}")
    return Accepted(
        record.accepted_in_epoch,
        record.segment.last_txid,
        not record.segment.is_in_progress,
        record.segment.digest,
        record.segment.writer_epoch,
    )


def holds(run: Run, view: View) -> bool:
    held = view.run(run.first)
    return held is not None and held.tags[: len(run.tags)] == run.tags


def holds_final(first: int, view: View) -> bool:
    return first in view.finalized


def closed_at(first: int, last: int, view: View) -> bool:
    """Return whether the segment is finalized there, with this end."""
    run = view.finalized.get(first)
    return run is not None and run.last == last


def noted_committed(names: Mapping[PurePath, Inode]) -> int:
    """Return what a node has noted to be on a quorum; 0 if nothing."""
    for path, inode in names.items():
        if path.name == "committed-txid" and len(inode.cached) == 8:
            return int.from_bytes(bytes(inode.cached), signed=True)
    return 0


Segments = Mapping[int, tuple[int, bool]]
"""By its first txid: where a segment ends, and whether it is final."""


def as_loaded(
    view: View, rotten: Collection[int], committed: int, told: Segments
) -> tuple[Segments, Segments]:
    """Return the segments that a start finds there, and those that it reported, without rotten.

    A torn write below what is known to be committed is damage, which is not voted with: such a file
    may be left out of what is reported.
    """
    found = {first: (run.last, False) for first, run in view.live.items()}
    found |= {first: (run.last, True) for first, run in view.finalized.items()}
    ours = {
        first: (last, final)
        for first, (last, final) in found.items()
        if first not in rotten and (final or first in told or last >= committed)
    }
    return ours, {first: what for first, what in told.items() if first not in rotten}
