"""Planted bugs of write lanes: what gRPC's way checks, and a lane might not."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

from journal.core.state import NO_SERIAL
from journal.node.faces import lane_codec
from journal.node.owner.owner import JournalOwner
from journal.node.owner.turn import FairLock
from journal.storage.disk import Disk
from journal.writer.batch_stream import BatchSender
from tests.simulation.engine.mutants import Planted, Planting, replacing

_SIM: Final = "tests/simulation/journal/test_"
_LANE: Final = "tests/journal/node/test_lane.py::test_"
_HONEST_LANE: Final = "who writes on a lane there is a writer of ours; strangers come by gRPC"
bug: Final = Planted()

_serve_here = JournalOwner.serve_here


def _lane_serves(change: Any) -> Planting:
    """Change a lane's request before the journal's owner judges it."""

    def lenient(self: JournalOwner, request: Any) -> None:
        _serve_here(self, change(self, request))

    return replacing(JournalOwner, "serve_here", lenient)


@bug.killed_by(_LANE + "a_fenced_writer_is_told_so_by_kind")
@bug("lane takes any epoch", 1500)
def any_epoch() -> Planting:
    def change(owner: JournalOwner, request: Any) -> Any:
        state, stamp = owner.state, request.stamp
        if stamp.epoch >= state.promised:
            return request
        newest = replace(stamp, epoch=state.promised, serial=max(state.serial, NO_SERIAL) + 1)
        return replace(request, stamp=newest)

    return _lane_serves(change)


@bug.killed_by(_LANE + "what_grpc_refuses_a_lane_refuses", why=_HONEST_LANE)
@bug("lane takes any serial", 0)
def any_serial() -> Planting:
    def change(owner: JournalOwner, request: Any) -> Any:
        serial = max(owner.state.serial, NO_SERIAL) + 1
        return replace(request, stamp=replace(request.stamp, serial=serial))

    return _lane_serves(change)


@bug.killed_by(_LANE + "a_lane_of_another_file_system_writes_nothing", why=_HONEST_LANE)
@bug("lane takes any file system", 0)
def any_file_system() -> Planting:
    return _lane_serves(
        lambda _, request: replace(request, stamp=replace(request.stamp, namespace_id=None))
    )


@bug.killed_by(_LANE + "what_grpc_refuses_a_lane_refuses", why=_HONEST_LANE)
@bug.replacing("lane takes any lease", JournalOwner, "serve_here", 0)
def any_lease(self: JournalOwner, request: Any) -> None:
    limit, self._max_lease_micros = self._max_lease_micros, 1 << 62
    try:
        _serve_here(self, request)
    finally:
        self._max_lease_micros = limit


@bug.killed_by(_SIM + "lanes.py::test_what_a_lane_has_acknowledged_survives_a_power_cut")
@bug("lane answers before the flush", 1500)
def answers_before_the_flush() -> Planting:
    sync = Disk._sync

    def eager(self: JournalOwner, request: Any) -> None:
        with ExitStack() as stack:
            replacing(Disk, "_sync", lazy)(stack)
            _serve_here(self, request)

    def lazy(self: Disk) -> None:
        writing = self._writing
        if writing is None or not writing.dirty:
            sync(self)
            return
        writing.dirty, writing.end = False, self._ends[writing.first]

    return replacing(JournalOwner, "serve_here", eager)


@bug.killed_by(
    _LANE + "a_key_of_an_older_process_opens_nothing",
    why="it takes a lane that is opened to a process with what an older one has told",
)
@bug("lane takes an older process's key", 0)
def any_key() -> Planting:
    return replacing(lane_codec, "compare_digest", lambda _theirs, _ours: True)


@bug.killed_by("tests/journal/node/test_turn.py::test_a_thread_waits_while_the_loop_has_it")
@bug("lane does not wait for its turn", 100)
def without_its_turn() -> Planting:
    return replacing(FairLock, "take_in_thread", lambda self: None)


@bug.killed_by(_SIM + "lanes.py::test_a_stream_carries_nothing_while_a_lane_is_open")
@bug.replacing("lane and stream at once", BatchSender, "_usable_lane", 1500)
async def both_ways_at_once(really: Any, self: BatchSender) -> Any:
    had = self._lane is not None
    lane = await really(self)
    return None if had else lane
