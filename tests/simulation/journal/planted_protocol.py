"""Planted bugs of the protocol: which copy wins, who must agree, who may speak, what is sent."""

from dataclasses import replace
from typing import Any, Final

from journal import quorum, recovery
from journal.core import admission, machine, segments
from journal.core import recovery as core_recovery
from journal.core.effects import PersistPromise, Step
from journal.core.state import NO_SERIAL, JournalState
from journal.errors import JournalError
from journal.links import quorum_call as client_call
from journal.messages import segment_of
from journal.model import Segment
from journal.quorum import Tally, majority_of
from journal.reader import reader
from journal.writer import channel as client_channel
from journal.writer import window
from journal.writer.writer import QuorumWriter
from tests.simulation.engine.mutants import Planted, Planting, all_of, replacing

_SIM: Final = "tests/simulation/journal/test_"
_CORE: Final = "tests/journal/core/test_"
_TABLES: Final = _SIM + "tables.py::test_2_10"
_CHECKS: Final = _CORE + "rules.py::test_the_first_failing_check_answers"
bug: Final = Planted()

# ---- which copy wins, and who must agree ----


@bug.killed_by(_TABLES + "[2.10.6_stage_B-jn1+jn2]")
@bug.replacing("longest before newest", recovery, "_rank", 1500)
def longest_first(answer: Any) -> tuple[bool, int, int]:
    standing = max(answer.accepted_in, answer.segment.writer)
    return (answer.segment.finalized, answer.segment.last, standing)


# Four writers in one order, of which the third dies between two of its calls; the worlds show
# it at one in 1,500 of those about short lives (segments know their writers by now, so that
# most older copies lose anyway).
@bug.killed_by(_TABLES + "[2.10.7-jn1+jn2]")
@bug.replacing("accepted epoch ignored", recovery, "_rank", 5000)
def accepted_ignored(answer: Any) -> tuple[bool, int, int]:
    return (answer.segment.finalized, answer.segment.writer, answer.segment.last)


@bug.killed_by(_TABLES + "[2.10.6_stage_B-jn1+jn2]")
@bug("writer epoch ignored", 1500)
def writer_epoch_ignored() -> Planting:
    def rank(answer: Any) -> tuple[bool, int, int]:
        return (answer.segment.finalized, answer.accepted_in, answer.segment.last)

    return all_of(
        replacing(recovery, "_rank", rank),
        replacing(recovery, "_ensure_equals_agree", lambda held: None),
    )


bug.add("majority off by one", replacing(quorum, "majority", lambda members: members // 2))


def one_is_enough(*operations: str) -> Planting:
    """Let the first node that agrees win calls of these kinds."""
    init = client_call.QuorumCall.__init__

    def lenient(self: Any, operation: str, nodes: Any, *, timeout_seconds: float) -> None:
        init(self, operation, nodes, timeout_seconds=timeout_seconds)
        if operation.startswith(operations):
            self._tally = Tally(majority_of(nodes).nodes, 1)

    return replacing(client_call.QuorumCall, "__init__", lenient)


@bug("one node's write is an ack")
def one_write_is_enough() -> Planting:
    init = window.Window.__init__

    def lenient(self: Any, nodes: Any, **more: Any) -> None:
        init(self, nodes, **more)
        self._needed = 1

    return replacing(window.Window, "__init__", lenient)


# ---- the right to speak ----


@bug("stale epoch accepted")
def stale_epoch_accepted() -> Planting:
    admit = admission.admit

    def lenient(state: JournalState, stamp: Any, **more: bool) -> Any:
        epoch = max(stamp.epoch, state.promised)
        serial = stamp.serial if epoch == stamp.epoch else max(state.serial, NO_SERIAL) + 1
        return admit(state, replace(stamp, epoch=epoch, serial=serial), promises=more["promises"])

    return replacing(machine, "admit", lenient)


@bug.replacing("serial unchecked: repeats count", machine, "admit", 1500)
def serial_unchecked(really: Any, state: JournalState, stamp: Any, *, promises: bool) -> Any:
    return really(replace(state, serial=NO_SERIAL), stamp, promises=promises)


@bug.replacing("equal epoch promised", core_recovery, "new_epoch", 500)
def equal_epoch_promised(really: Any, state: JournalState, request: Any) -> Any:
    if request.epoch == state.promised:
        state = replace(state, promised=type(state.promised)(state.promised - 1))
    return really(state, request)


@bug("promise leaves the segment open")
def promise_leaves_segment_open() -> Planting:
    def promise(state: JournalState, epoch: Any) -> Any:
        promised = replace(state, promised=epoch, serial=NO_SERIAL)
        return admission.Admitted(promised, (PersistPromise(epoch),))

    return all_of(
        replacing(admission, "promise", promise), replacing(core_recovery, "promise", promise)
    )


@bug.replacing("adopts for a superseded writer", core_recovery, "adopt", 1500)
def adopts_for_a_superseded_writer(really: Any, state: JournalState, request: Any) -> Any:
    return really(state, replace(request, epoch=max(request.epoch, state.promised)))


# ---- what is compared ----


@bug.killed_by(_TABLES + "[2.10.6_prime-jn1+jn2]")
@bug("digest ignored", 3000)
def digest_ignored() -> Planting:
    why_not = segments._finalize_obstacle

    def same_length(ours: Segment | None, decided: Segment) -> bool:
        return ours is not None and ours.last == decided.last

    def lenient(ours: Segment | None, request: Any, *, written_now: bool) -> JournalError | None:
        if ours is not None:
            ours = replace(ours, digest=request.digest)
        return why_not(ours, request, written_now=written_now)

    return all_of(
        replacing(core_recovery, "_same_edits", same_length),
        replacing(segments, "_finalize_obstacle", lenient),
    )


# A node must miss the acceptance, and get the finalization that follows: rare in worlds.
@bug.killed_by(_CHECKS)
@bug.replacing("finalizes any length", segments, "_finalize_obstacle", 1500)
def finalizes_any_length(
    really: Any, ours: Segment | None, request: Any, *, written_now: bool
) -> Any:
    if ours is not None and not ours.finalized:
        return None
    return really(ours, request, written_now=written_now)


# ---- the writer and the reader ----


@bug("holes accepted", 1500)
def holes_accepted() -> Planting:
    journal = segments.journal

    def lenient(state: JournalState, request: Any) -> Step:
        if state.open is not None and request.first > state.open.next_txid:
            state = replace(state, open=replace(state.open, next_txid=request.first))
        return journal(state, request)

    def go_on(self: Any, error: JournalError) -> None:
        self._note(error)
        if self._writing and self._window.holds(self._seq):
            missed = self._window.message(self._seq, self._next, 1)
            self._seq, self._next = missed.seq, missed.last + 1
            self._window.failed(self.name, error)
            self._window.takes_part(self.name, missed.seq)

    return all_of(
        replacing(client_channel.NodeChannel, "_lose", go_on),
        replacing(segments, "journal", lenient),
    )


@bug("recovery skipped")
def recovery_skipped() -> Planting:
    async def skip(self: Any, first: Any) -> Any:
        return first - 1

    return replacing(QuorumWriter, "_recover", skip)


@bug.replacing("accept skipped", QuorumWriter, "_ask")
async def accept_skipped(
    really: Any, self: Any, operation: str, request: Any, timeout: float, **more: Any
) -> Any:
    if operation.startswith("accepting"):
        return {}
    return await really(self, operation, request, timeout, **more)


@bug("reads unfinished edits", 500)
def reads_unfinished() -> Planting:
    def everything(reply: Any) -> list[Segment]:
        return [replace(segment_of(s), finalized=True) for s in reply.segments]

    manifest = machine.manifest
    return all_of(
        replacing(reader, "_finalized_segments", everything),
        replacing(
            machine,
            "manifest",
            lambda state, request: manifest(state, replace(request, in_progress_ok=True)),
        ),
    )


bug.add("epoch from one node", one_is_enough("claiming"))
bug.add("prepare from one node", one_is_enough("preparing"))
bug.add("accept at one node", one_is_enough("accepting"))
bug.add("finalize at one node", one_is_enough("finalizing"))
