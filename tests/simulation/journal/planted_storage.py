"""Planted bugs of a node's storage: what is durable, and when."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from journal.core.effects import Effect
from journal.model import NO_EPOCH
from journal.node.owner.owner import JournalOwner
from journal.storage import disk, layout, load
from journal.storage.download import Download
from journal.storage.files import Files, with_contents
from journal.storage.records import record_of
from journal.storage.segment_file import SegmentCheck
from tests.simulation.engine.mutants import Planting, all_of, replacing
from tests.simulation.journal.platter import SimulatedFiles


def _effects(change: Callable[[Sequence[Effect]], Sequence[Effect]]) -> Planting:
    run = disk.Disk.run
    return replacing(disk.Disk, "run", lambda self, effects: run(self, change(effects)))


def without(kind: type) -> Planting:
    return _effects(lambda effects: [each for each in effects if not isinstance(each, kind)])


def record_not_written() -> Planting:
    return replacing(disk.Disk, "_record", lambda self, record: None)


def record_not_durable() -> Planting:
    """Name and fill a segment's file while a power cut may still take the record."""
    write = disk.Disk._write

    def lazy(self: Any, name: str, data: bytes) -> None:  # noqa: ANN401
        if not name.startswith(f"{layout.SEGMENTS}/"):
            write(self, name, data)
            return
        path = self._current / name
        unfinished = path.with_name(path.name + ".tmp")
        with_contents(self._files, unfinished, data)
        self._files.rename(unfinished, path)

    return replacing(disk.Disk, "_write", lazy)


def record_after_adoption() -> Planting:
    """Let newer bytes lie under the record of an older writer for a moment."""

    def late(self: Any, segment: Any, epoch: Any) -> None:  # noqa: ANN401
        download = self._current / layout.download_name(segment.first, epoch)
        self._ends[segment.first] = self._files.size(download)
        self._files.rename(download, self._current / segment.name())
        self._files.sync_folder(self._current)
        self._record(record_of(segment, self._ends[segment.first]))
        self._downloading.discard(download)

    return replacing(disk.Disk, "_adopt", late)


def no_sync_before_ack() -> Planting:
    def pretend(self: Any) -> None:  # noqa: ANN401
        writing_now = self._writing
        if writing_now is not None and writing_now.dirty:
            writing_now.dirty = False
            writing_now.end = self._ends[writing_now.first]

    return replacing(disk.Disk, "_sync", pretend)


def promise_not_durable() -> Planting:
    write = disk.Disk._write

    def lazy(self: Any, name: str, data: bytes) -> None:  # noqa: ANN401
        if name != layout.PROMISE:
            write(self, name, data)
            return
        with_contents(self._files, self._current / (name + ".tmp"), data)
        self._files.rename(self._current / (name + ".tmp"), self._current / name)

    return replacing(disk.Disk, "_write", lazy)


def contents_not_synced() -> Planting:
    def lazy(files: Files, path: Path, data: bytes) -> None:
        unfinished = path.with_name(path.name + ".tmp")
        files.create(unfinished).append(data)
        files.rename(unfinished, path)
        files.sync_folder(path.parent)

    return replacing(disk, "write_durably", lazy)


def folder_not_synced() -> Planting:
    return replacing(SimulatedFiles, "sync_folder", lambda self, folder: None)


def finalize_not_synced() -> Planting:
    def lazy(self: Any, segment: Any) -> None:  # noqa: ANN401
        path = self._current / layout.in_progress_name(segment.first)
        self._files.rename(path, self._current / segment.name())

    return replacing(disk.Disk, "_finalize", lazy)


def download_not_synced() -> Planting:
    return replacing(Download, "finish", lambda self: self._file.close())


def download_not_verified() -> Planting:
    return replacing(SegmentCheck, "finish", lambda self: None)


def promise_forgotten() -> Planting:
    epoch = load._epoch

    def forgetful(files: Files, path: Path) -> Any:  # noqa: ANN401
        return NO_EPOCH if path.name == layout.PROMISE else epoch(files, path)

    return replacing(load, "_epoch", forgetful)


def decisions_forgotten() -> Planting:
    return replacing(load, "_load_decisions", lambda files, paxos: {})


def no_roll_forward() -> Planting:
    def drop(files: Files, current: Path, download: Any, *_: Any) -> bool:  # noqa: ANN401
        files.remove(current / layout.download_name(download.first, download.epoch))
        return False

    return replacing(load, "_settle_download", drop)


def load_does_not_sync() -> Planting:
    return replacing(SimulatedFiles, "sync_file", lambda self, path: None)


def answers_before_it_is_done() -> Planting:
    """Carry out the node's effects only after the answer, as if by a lazy thread."""

    async def lazy(self: Any, effects: Sequence[Effect]) -> None:  # noqa: ANN401
        later = asyncio.get_running_loop().run_in_executor(
            self._thread, lambda: self.disk.run(tuple(effects))
        )
        later.add_done_callback(lambda done: done.cancelled() or done.exception())

    return all_of(
        replacing(JournalOwner, "_carry_out", lazy),
        replacing(JournalOwner, "_served_at_once", lambda self, waiting: False),
    )
