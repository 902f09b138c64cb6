"""Planted bugs of write lanes: what gRPC's way checks, and a lane might not."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from journal.core.state import NO_SERIAL
from journal.node.faces import lane_codec
from journal.node.owner.owner import JournalOwner
from journal.node.owner.turn import FairLock
from journal.storage.disk import Disk
from journal.writer.batch_stream import BatchSender
from tests.simulation.engine.mutants import Planting, replacing

_serve_here = JournalOwner.serve_here


def _lane_serves(change: Any) -> Planting:  # noqa: ANN401 - owner and request to request
    """Change a lane's request before the journal's owner judges it."""

    def lenient(self: JournalOwner, request: Any) -> None:  # noqa: ANN401
        _serve_here(self, change(self, request))

    return replacing(JournalOwner, "serve_here", lenient)


def any_epoch() -> Planting:
    """Take the owner of any lane for the newest writer."""

    def change(owner: JournalOwner, request: Any) -> Any:  # noqa: ANN401
        state, stamp = owner.state, request.stamp
        if stamp.epoch >= state.promised:
            return request
        newest = replace(stamp, epoch=state.promised, serial=max(state.serial, NO_SERIAL) + 1)
        return replace(request, stamp=newest)

    return _lane_serves(change)


def any_serial() -> Planting:
    def change(owner: JournalOwner, request: Any) -> Any:  # noqa: ANN401
        serial = max(owner.state.serial, NO_SERIAL) + 1
        return replace(request, stamp=replace(request.stamp, serial=serial))

    return _lane_serves(change)


def any_file_system() -> Planting:
    return _lane_serves(
        lambda _, request: replace(request, stamp=replace(request.stamp, namespace_id=None))
    )


def any_lease() -> Planting:
    """Make the limit one of the face, not of the core."""

    def unlimited(self: JournalOwner, request: Any) -> None:  # noqa: ANN401
        limit, self._max_lease_micros = self._max_lease_micros, 1 << 62
        try:
            _serve_here(self, request)
        finally:
            self._max_lease_micros = limit

    return replacing(JournalOwner, "serve_here", unlimited)


def answers_before_the_flush() -> Planting:
    """Write the edits, and answer the writer before they are on the disk."""
    sync = Disk._sync

    def eager(self: JournalOwner, request: Any) -> None:  # noqa: ANN401
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


def any_key() -> Planting:
    """Take a lane to an earlier process of the node for one to this process."""
    return replacing(lane_codec, "compare_digest", lambda _theirs, _ours: True)


def without_its_turn() -> Planting:
    """Let a lane's thread not wait while another user is at the journal."""
    return replacing(FairLock, "take_in_thread", lambda self: None)


def both_ways_at_once() -> Planting:
    """Use the stream although a lane is open."""
    usable = BatchSender._usable_lane

    async def beside(self: BatchSender) -> Any:  # noqa: ANN401
        had = self._lane is not None
        lane = await usable(self)
        return None if had else lane

    return replacing(BatchSender, "_usable_lane", beside)
