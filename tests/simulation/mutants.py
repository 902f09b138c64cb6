"""Planted bugs: each takes the place of one rule of the product, and the checkers must see it.

They prove the simulator: a bug that survives its seeds shows a blind spot.  Nothing of the product
is edited; the rule is replaced for the length of a run.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from journal import quorum, recovery
from journal.client import call as client_call
from journal.client import channel as client_channel
from journal.client import reader, window, wire
from journal.client.writer import QuorumWriter
from journal.core import admission, machine, recovering, rejoining, writing
from journal.core.effects import (
    ForgetDecision,
    MoveAside,
    PersistDecision,
    PersistPromise,
    PersistWriter,
    Step,
)
from journal.core.state import NO_SERIAL, JournalState
from journal.errors import JournalError
from journal.model import Segment
from journal.quorum import Tally, majority_of
from tests.simulation import planted_storage as storage
from tests.simulation.planting import Planting, all_of, replacing


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug.  Seed ``found`` finds it today; it may survive at most ``seeds`` runs."""

    name: str
    plant: Planting
    found: int = 1
    seeds: int = 100


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """The product with this bug in it."""
    with ExitStack() as stack:
        mutant.plant(stack)
        yield


# ---- which copy wins, and who must agree ----


def _longest_first() -> Planting:
    def rank(answer: Any) -> tuple[bool, int, int]:  # noqa: ANN401
        standing = max(answer.accepted_in, answer.segment.writer)
        return (answer.segment.finalized, answer.segment.last, standing)

    return replacing(recovery, "_rank", rank)


def _accepted_ignored() -> Planting:
    def rank(answer: Any) -> tuple[bool, int, int]:  # noqa: ANN401
        return (answer.segment.finalized, answer.segment.writer, answer.segment.last)

    return replacing(recovery, "_rank", rank)


def _writer_epoch_ignored() -> Planting:
    def rank(answer: Any) -> tuple[bool, int, int]:  # noqa: ANN401
        return (answer.segment.finalized, answer.accepted_in, answer.segment.last)

    return all_of(
        replacing(recovery, "_rank", rank),
        replacing(recovery, "_ensure_equals_agree", lambda held: None),
    )


def _majority_off_by_one() -> Planting:
    return replacing(quorum, "majority", lambda members: members // 2)


def _one_is_enough(*operations: str) -> Planting:
    """Calls of these kinds are won by the first node that agrees."""
    init = client_call.QuorumCall.__init__

    def lenient(self: Any, operation: str, nodes: Any, *, timeout_seconds: float) -> None:  # noqa: ANN401
        init(self, operation, nodes, timeout_seconds=timeout_seconds)
        if operation.startswith(operations):
            self._tally = Tally(majority_of(nodes).nodes, 1)

    return replacing(client_call.QuorumCall, "__init__", lenient)


def _one_write_is_enough() -> Planting:
    """A batch is committed as soon as one node has it."""
    init = window.Window.__init__

    def lenient(self: Any, nodes: Any, **more: Any) -> None:  # noqa: ANN401
        init(self, nodes, **more)
        self._needed = 1

    return replacing(window.Window, "__init__", lenient)


# ---- who may speak ----


def _stale_epoch_accepted() -> Planting:
    admit = admission.admit

    def lenient(state: JournalState, stamp: Any) -> Any:  # noqa: ANN401
        epoch = max(stamp.epoch, state.promised)
        serial = stamp.serial if epoch == stamp.epoch else state.serial + 1
        return admit(state, replace(stamp, epoch=epoch, serial=serial))

    return replacing(machine, "admit", lenient)


def _serial_unchecked() -> Planting:
    admit = admission.admit

    def lenient(state: JournalState, stamp: Any) -> Any:  # noqa: ANN401
        return admit(replace(state, serial=NO_SERIAL), stamp)

    return replacing(machine, "admit", lenient)


def _equal_epoch_promised() -> Planting:
    new_epoch = recovering.new_epoch

    def lenient(state: JournalState, request: Any) -> Step:  # noqa: ANN401
        if request.epoch == state.promised:
            state = replace(state, promised=type(state.promised)(state.promised - 1))
        return new_epoch(state, request)

    return replacing(recovering, "new_epoch", lenient)


def _promise_leaves_segment_open() -> Planting:
    def promise(state: JournalState, epoch: Any) -> Any:  # noqa: ANN401
        promised = replace(state, promised=epoch, serial=NO_SERIAL)
        return admission.Admitted(promised, (PersistPromise(epoch),))

    return all_of(
        replacing(admission, "promise", promise), replacing(recovering, "promise", promise)
    )


def _adopts_for_a_superseded_writer() -> Planting:
    adopt = recovering.adopt

    def lenient(state: JournalState, request: Any) -> Step:  # noqa: ANN401
        return adopt(state, replace(request, epoch=max(request.epoch, state.promised)))

    return replacing(recovering, "adopt", lenient)


# ---- what is compared ----


def _digest_ignored() -> Planting:
    """Hadoop's finding 1: equal lengths pass for equal contents."""
    why_not = writing._why_not_finalize

    def same_length(ours: Segment | None, decided: Segment) -> bool:
        return ours is not None and ours.last == decided.last

    def lenient(ours: Segment | None, request: Any, *, written_now: bool) -> JournalError | None:  # noqa: ANN401
        if ours is not None:
            ours = replace(ours, digest=request.digest)
        return why_not(ours, request, written_now=written_now)

    return all_of(
        replacing(recovering, "_same_edits", same_length),
        replacing(writing, "_why_not_finalize", lenient),
    )


def _finalizes_any_length() -> Planting:
    why_not = writing._why_not_finalize

    def lenient(ours: Segment | None, request: Any, *, written_now: bool) -> JournalError | None:  # noqa: ANN401
        if ours is not None and not ours.finalized:
            return None
        return why_not(ours, request, written_now=written_now)

    return replacing(writing, "_why_not_finalize", lenient)


def _resume_begins_anew() -> Planting:
    """A node that comes back throws away the sound edits that it has of the open segment."""
    open_again = rejoining._open

    def lenient(state: JournalState, first: Any, epoch: Any, layout: int) -> Step:  # noqa: ANN401
        ours = rejoining._held(state, first)
        if ours is not None and ours.writer == epoch:
            older = replace(ours, writer=type(epoch)(epoch - 1))
            state = replace(state, segments={**state.segments, first: older})
        return open_again(state, first, epoch, layout)

    return replacing(rejoining, "_open", lenient)


# ---- the writer and the reader ----


def _holes_accepted() -> Planting:
    """A node that missed a batch is sent the next one, and takes it."""
    journal = writing.journal

    def lenient(state: JournalState, request: Any) -> Step:  # noqa: ANN401
        if state.open is not None and request.first > state.open.next_txid:
            state = replace(state, open=replace(state.open, next_txid=request.first))
        return journal(state, request)

    def go_on(self: Any, error: JournalError) -> None:  # noqa: ANN401
        self._note(error)
        if self._writing and self._window.holds(self._seq):
            missed = self._window.message(self._seq, self._next, 1)
            self._seq, self._next = missed.seq, missed.last + 1
            self._window.failed(self.name, error)
            self._window.takes_part(self.name, missed.seq)

    return all_of(
        replacing(client_channel.NodeChannel, "_lose", go_on),
        replacing(writing, "journal", lenient),
    )


def _recovery_skipped() -> Planting:
    async def skip(self: Any, first: Any) -> Any:  # noqa: ANN401
        return first - 1

    return replacing(QuorumWriter, "_recover", skip)


def _accept_skipped() -> Planting:
    """Finalize is sent right after prepare."""
    ask = QuorumWriter._ask

    async def lenient(self: Any, operation: str, request: Any, timeout: float, **more: Any) -> Any:  # noqa: ANN401
        if operation.startswith("accepting"):
            return {}
        return await ask(self, operation, request, timeout, **more)

    return replacing(QuorumWriter, "_ask", lenient)


def _reads_unfinished() -> Planting:
    def everything(reply: Any) -> list[Segment]:  # noqa: ANN401
        return [replace(wire.segment_from_wire(s), finalized=True) for s in reply.segments]

    manifest = machine.manifest
    return all_of(
        replacing(reader, "_finalized", everything),
        replacing(
            machine,
            "manifest",
            lambda state, request: manifest(state, replace(request, in_progress_ok=True)),
        ),
    )


MUTANTS: Final = (
    Mutant("longest before newest", _longest_first(), 154, 1500),
    Mutant("accepted epoch ignored", _accepted_ignored(), 279, 1500),
    Mutant("writer epoch ignored", _writer_epoch_ignored(), 154, 1500),
    Mutant("majority off by one", _majority_off_by_one(), 1, 100),
    Mutant("one node's write is an ack", _one_write_is_enough(), 1, 100),
    Mutant("epoch from one node", _one_is_enough("claiming"), 1, 100),
    Mutant("prepare from one node", _one_is_enough("preparing"), 1, 100),
    Mutant("accept at one node", _one_is_enough("accepting"), 9, 100),
    Mutant("finalize at one node", _one_is_enough("finalizing"), 6, 100),
    Mutant("stale epoch accepted", _stale_epoch_accepted(), 1, 100),
    Mutant("serial unchecked: repeats count", _serial_unchecked(), 204, 1500),
    Mutant("equal epoch promised", _equal_epoch_promised(), 58, 500),
    Mutant("promise leaves the segment open", _promise_leaves_segment_open(), 1, 100),
    Mutant("adopts for a superseded writer", _adopts_for_a_superseded_writer(), 349, 1500),
    Mutant("digest ignored", _digest_ignored(), 623, 3000),
    Mutant("finalizes any length", _finalizes_any_length(), 42, 500),
    Mutant("decision not persisted", storage.without(PersistDecision), 1, 100),
    Mutant("decision not forgotten", storage.without(ForgetDecision), 129, 500),
    Mutant("writer epoch not persisted", storage.without(PersistWriter), 1, 100),
    Mutant("older file left in the way", storage.without(MoveAside), 2929, 5000),
    Mutant("segment's writer not recorded", storage.record_not_written(), 1, 100),
    Mutant("no sync before the answer", storage.no_sync_before_ack(), 1, 100),
    Mutant("promise not durable", storage.promise_not_durable(), 1, 100),
    Mutant("small files not synced", storage.contents_not_synced(), 1, 100),
    Mutant("folders not synced", storage.folder_not_synced(), 1, 100),
    Mutant("finalize not synced", storage.finalize_not_synced(), 1, 100),
    Mutant("download not synced", storage.download_not_synced(), 1, 100),
    Mutant("download not verified", storage.download_not_verified(), 9, 100),
    Mutant("promise forgotten at restart", storage.promise_forgotten(), 3, 100),
    Mutant("decisions forgotten at restart", storage.decisions_forgotten(), 129, 500),
    Mutant("decision not rolled forward", storage.no_roll_forward(), 186, 1500),
    Mutant("load believes the page cache", storage.load_does_not_sync(), 2905, 5000),
    Mutant("answers before it is done", storage.answers_before_it_is_done(), 19, 100),
    Mutant("resume begins anew", _resume_begins_anew(), 133, 1500),
    Mutant("holes accepted", _holes_accepted(), 255, 1500),
    Mutant("recovery skipped", _recovery_skipped(), 1, 100),
    Mutant("accept skipped", _accept_skipped(), 9, 100),
    Mutant("reads unfinished edits", _reads_unfinished(), 23, 500),
)
