"""Planted bugs of the protocol: which copy wins, who must agree, who may speak, what is sent."""

from dataclasses import replace
from typing import Any

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
from tests.simulation.engine.mutants import Planting, all_of, replacing

# ---- which copy wins, and who must agree ----


def longest_first() -> Planting:
    def rank(answer: Any) -> tuple[bool, int, int]:  # noqa: ANN401
        standing = max(answer.accepted_in, answer.segment.writer)
        return (answer.segment.finalized, answer.segment.last, standing)

    return replacing(recovery, "_rank", rank)


def accepted_ignored() -> Planting:
    def rank(answer: Any) -> tuple[bool, int, int]:  # noqa: ANN401
        return (answer.segment.finalized, answer.segment.writer, answer.segment.last)

    return replacing(recovery, "_rank", rank)


def writer_epoch_ignored() -> Planting:
    def rank(answer: Any) -> tuple[bool, int, int]:  # noqa: ANN401
        return (answer.segment.finalized, answer.accepted_in, answer.segment.last)

    return all_of(
        replacing(recovery, "_rank", rank),
        replacing(recovery, "_ensure_equals_agree", lambda held: None),
    )


def majority_off_by_one() -> Planting:
    return replacing(quorum, "majority", lambda members: members // 2)


def one_is_enough(*operations: str) -> Planting:
    """Let the first node that agrees win calls of these kinds."""
    init = client_call.QuorumCall.__init__

    def lenient(self: Any, operation: str, nodes: Any, *, timeout_seconds: float) -> None:  # noqa: ANN401
        init(self, operation, nodes, timeout_seconds=timeout_seconds)
        if operation.startswith(operations):
            self._tally = Tally(majority_of(nodes).nodes, 1)

    return replacing(client_call.QuorumCall, "__init__", lenient)


def one_write_is_enough() -> Planting:
    """Commit a batch as soon as one node has it."""
    init = window.Window.__init__

    def lenient(self: Any, nodes: Any, **more: Any) -> None:  # noqa: ANN401
        init(self, nodes, **more)
        self._needed = 1

    return replacing(window.Window, "__init__", lenient)


# ---- the right to speak ----


def stale_epoch_accepted() -> Planting:
    admit = admission.admit

    def lenient(state: JournalState, stamp: Any, **more: bool) -> Any:  # noqa: ANN401
        epoch = max(stamp.epoch, state.promised)
        serial = stamp.serial if epoch == stamp.epoch else max(state.serial, NO_SERIAL) + 1
        return admit(state, replace(stamp, epoch=epoch, serial=serial), promises=more["promises"])

    return replacing(machine, "admit", lenient)


def serial_unchecked() -> Planting:
    admit = admission.admit

    def lenient(state: JournalState, stamp: Any, *, promises: bool) -> Any:  # noqa: ANN401
        return admit(replace(state, serial=NO_SERIAL), stamp, promises=promises)

    return replacing(machine, "admit", lenient)


def equal_epoch_promised() -> Planting:
    new_epoch = core_recovery.new_epoch

    def lenient(state: JournalState, request: Any) -> Step:  # noqa: ANN401
        if request.epoch == state.promised:
            state = replace(state, promised=type(state.promised)(state.promised - 1))
        return new_epoch(state, request)

    return replacing(core_recovery, "new_epoch", lenient)


def promise_leaves_segment_open() -> Planting:
    def promise(state: JournalState, epoch: Any) -> Any:  # noqa: ANN401
        promised = replace(state, promised=epoch, serial=NO_SERIAL)
        return admission.Admitted(promised, (PersistPromise(epoch),))

    return all_of(
        replacing(admission, "promise", promise), replacing(core_recovery, "promise", promise)
    )


def adopts_for_a_superseded_writer() -> Planting:
    adopt = core_recovery.adopt

    def lenient(state: JournalState, request: Any) -> Step:  # noqa: ANN401
        return adopt(state, replace(request, epoch=max(request.epoch, state.promised)))

    return replacing(core_recovery, "adopt", lenient)


# ---- what is compared ----


def digest_ignored() -> Planting:
    """Let equal lengths pass for equal contents: Hadoop's finding 1."""
    why_not = segments._why_not_finalize

    def same_length(ours: Segment | None, decided: Segment) -> bool:
        return ours is not None and ours.last == decided.last

    def lenient(ours: Segment | None, request: Any, *, written_now: bool) -> JournalError | None:  # noqa: ANN401
        if ours is not None:
            ours = replace(ours, digest=request.digest)
        return why_not(ours, request, written_now=written_now)

    return all_of(
        replacing(core_recovery, "_same_edits", same_length),
        replacing(segments, "_why_not_finalize", lenient),
    )


def finalizes_any_length() -> Planting:
    why_not = segments._why_not_finalize

    def lenient(ours: Segment | None, request: Any, *, written_now: bool) -> JournalError | None:  # noqa: ANN401
        if ours is not None and not ours.finalized:
            return None
        return why_not(ours, request, written_now=written_now)

    return replacing(segments, "_why_not_finalize", lenient)


# ---- the writer and the reader ----


def holes_accepted() -> Planting:
    """Send a node that missed a batch the next one, and let it take it."""
    journal = segments.journal

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
        replacing(segments, "journal", lenient),
    )


def recovery_skipped() -> Planting:
    async def skip(self: Any, first: Any) -> Any:  # noqa: ANN401
        return first - 1

    return replacing(QuorumWriter, "_recover", skip)


def accept_skipped() -> Planting:
    """Send finalize right after prepare."""
    ask = QuorumWriter._ask

    async def lenient(self: Any, operation: str, request: Any, timeout: float, **more: Any) -> Any:  # noqa: ANN401
        if operation.startswith("accepting"):
            return {}
        return await ask(self, operation, request, timeout, **more)

    return replacing(QuorumWriter, "_ask", lenient)


def reads_unfinished() -> Planting:
    def everything(reply: Any) -> list[Segment]:  # noqa: ANN401
        return [replace(segment_of(s), finalized=True) for s in reply.segments]

    manifest = machine.manifest
    return all_of(
        replacing(reader, "_finalized", everything),
        replacing(
            machine,
            "manifest",
            lambda state, request: manifest(state, replace(request, in_progress_ok=True)),
        ),
    )
