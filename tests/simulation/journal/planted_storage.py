"""Planted bugs of a node's storage: what is durable, and when."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from journal.core.effects import Effect, ForgetDecision, MoveAside, PersistDecision, PersistWriter
from journal.model import NO_EPOCH
from journal.node.owner.owner import JournalOwner
from journal.storage import disk, layout, load
from journal.storage.download import Download
from journal.storage.files import Files, with_contents
from journal.storage.records import record_of
from journal.storage.segment_file import SegmentCheck
from tests.simulation.engine.mutants import Planted, Planting, all_of, replacing
from tests.simulation.journal.platter import SimulatedFiles

_SIM: Final = "tests/simulation/journal/test_"
_CORE: Final = "tests/journal/core/test_"
_X14: Final = _SIM + "writers.py::test_x14_a_crash_in_a_start_over_an_older_edit"
bug: Final = Planted()


def _effects(change: Callable[[Sequence[Effect]], Sequence[Effect]]) -> Planting:
    run = disk.Disk.run
    return replacing(disk.Disk, "run", lambda self, effects: run(self, change(effects)))


def without(kind: type) -> Planting:
    return _effects(lambda effects: [each for each in effects if not isinstance(each, kind)])


bug.add("segment's writer not recorded", replacing(disk.Disk, "_record", lambda self, record: None))


@bug.replacing("segment's record not durable", disk.Disk, "_write")
def record_not_durable(really: Any, self: Any, name: str, data: bytes) -> None:
    if not name.startswith(f"{layout.SEGMENTS}/"):
        really(self, name, data)
        return
    path = self._current / name
    unfinished = path.with_name(path.name + ".tmp")
    with_contents(self._files, unfinished, data)
    self._files.rename(unfinished, path)


@bug.killed_by(_CORE + "rejoin.py::test_power_loss_between_the_effects_loses_nothing")
@bug.replacing("record after the adopted name", disk.Disk, "_adopt", 100)
def record_after_adoption(self: Any, segment: Any, epoch: Any) -> None:
    download = self._current / layout.download_name(segment.first, epoch)
    self._ends[segment.first] = self._files.size(download)
    self._files.rename(download, self._current / segment.name())
    self._files.sync_folder(self._current)
    self._record(record_of(segment, self._ends[segment.first]))
    self._forget(download)


@bug("no sync before the answer")
def no_sync_before_ack() -> Planting:
    def pretend(self: Any) -> None:
        writing_now = self._writing
        if writing_now is not None and writing_now.dirty:
            writing_now.dirty = False
            writing_now.end = self._ends[writing_now.first]

    return replacing(disk.Disk, "_sync", pretend)


@bug.replacing("promise not durable", disk.Disk, "_write")
def promise_not_durable(really: Any, self: Any, name: str, data: bytes) -> None:
    if name != layout.PROMISE:
        really(self, name, data)
        return
    with_contents(self._files, self._current / (name + ".tmp"), data)
    self._files.rename(self._current / (name + ".tmp"), self._current / name)


@bug.replacing("small files not synced", disk, "write_durably")
def contents_not_synced(files: Files, path: Path, data: bytes) -> None:
    unfinished = path.with_name(path.name + ".tmp")
    files.create(unfinished).append(data)
    files.rename(unfinished, path)
    files.sync_folder(path.parent)


bug.add("folders not synced", replacing(SimulatedFiles, "sync_folder", lambda self, folder: None))


@bug.replacing("finalize not synced", disk.Disk, "_finalize")
def finalize_not_synced(self: Any, segment: Any) -> None:
    path = self._current / layout.in_progress_name(segment.first)
    self._files.rename(path, self._current / segment.name())


bug.add("download not synced", replacing(Download, "finish", lambda self: self._file.close()))

bug.add("download not verified", replacing(SegmentCheck, "finish", lambda self: None))


@bug("promise forgotten at restart")
def promise_forgotten() -> Planting:
    epoch = load._epoch

    def forgetful(files: Files, path: Path) -> Any:
        return NO_EPOCH if path.name == layout.PROMISE else epoch(files, path)

    return replacing(load, "_epoch", forgetful)


@bug.killed_by(_CORE + "purge.py::test_purge_logs_takes_decisions_with_them")
@bug("decisions forgotten at restart", 1500)
def decisions_forgotten() -> Planting:
    return replacing(load, "_load_decisions", lambda files, paxos: {})


@bug.replacing("decision not rolled forward", load, "_settle_download", 1500)
def no_roll_forward(files: Files, current: Path, download: Any, *_: Any) -> bool:
    files.remove(current / layout.download_name(download.first, download.epoch))
    return False


bug.add(
    "load believes the page cache",
    replacing(SimulatedFiles, "sync_file", lambda self, path: None),
    5000,
)


@bug("answers before it is done")
def answers_before_it_is_done() -> Planting:
    async def lazy(self: Any, effects: Sequence[Effect]) -> None:
        later = asyncio.get_running_loop().run_in_executor(
            self._thread, lambda: self.disk.run(tuple(effects))
        )
        later.add_done_callback(lambda done: done.cancelled() or done.exception())

    return all_of(
        replacing(JournalOwner, "_carry_out", lazy),
        replacing(JournalOwner, "_served_at_once", lambda self, waiting: False),
    )


bug.add("decision not persisted", without(PersistDecision))
bug.add(
    "decision not forgotten",
    without(ForgetDecision),
    500,
    killer=_CORE + "syncing.py::test_the_decision_about_a_segment_ends_with_its_finalization",
)
bug.add("writer epoch not persisted", without(PersistWriter))
bug.add("older file left in the way", without(MoveAside), 5000, killer=_X14 + "[killed]")
