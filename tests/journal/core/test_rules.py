"""The journal's rules request by request, in the order in which they are checked."""

from dataclasses import replace

import pytest

from journal.core import effects, recovery, requests
from journal.core.machine import step
from journal.core.replies import Done, Fetch, Manifest, Prepared, Promised
from journal.core.state import Decision, JournalState, OpenSegment
from journal.errors import (
    BadRequest,
    Fenced,
    InvariantBroken,
    JournalError,
    NotFormatted,
    OutOfSync,
    StorageFailed,
    WrongNamespace,
)
from journal.model import LAYOUT_VERSION, Epoch, NamespaceInfo, Segment, TxId
from tests.journal.core import requests_of
from tests.journal.core.requests_of import LIFE, NAMESPACE, Writer, record, records, segment

FRESH = JournalState(namespace=NAMESPACE)


def holding(*segments: Segment, promised: int = 1, writer: int = 1, **more: object) -> JournalState:
    state = replace(FRESH, promised=Epoch(promised), writer=Epoch(writer), **more)  # type: ignore[arg-type]
    for held in segments:
        state = state.with_segment(held)
    return state


def writing(first: int, last: int, epoch: int = 1, *closed: Segment) -> JournalState:
    """Make a state with an open segment that holds first..last (last = first - 1: nothing)."""
    content = requests_of.digest(first, last, epoch) if last >= first else b""
    opened = OpenSegment(TxId(first), TxId(last + 1), content, Epoch(epoch), LAYOUT_VERSION)
    return replace(holding(*closed, promised=epoch, writer=epoch), open=opened)


def refusal(state: JournalState, request: requests.Request) -> JournalError:
    found = requests_of.outcome(state, request)
    reply = found.reply if isinstance(found, effects.Step) else found
    assert isinstance(reply, JournalError), f"not refused: {found}"
    return reply


W1, W2, W3 = (Writer(epoch) for epoch in (1, 2, 3))
OTHER = NamespaceInfo(-65, 99, "mycluster", 0)
OTHER_CLUSTER = NamespaceInfo(-65, 12345, "other", 0)
S = requests.Stamp

ORDER = {
    # what is wrong with the request, from the first check to the last: the first one answers
    "unformatted beats everything": (
        JournalState(),
        requests.Heartbeat(S(Epoch(1), 0)),
        NotFormatted,
    ),
    "a stale epoch beats a stale serial": (
        replace(holding(promised=5), serial=9),
        requests.Heartbeat(S(Epoch(4), 0, TxId(-1))),
        Fenced,
    ),
    "a stale serial beats a backward committed txid": (
        replace(holding(), serial=9, committed=TxId(5)),
        requests.Heartbeat(S(Epoch(1), 9, TxId(4))),
        OutOfSync,
    ),
    "a backward committed txid beats the request itself": (
        replace(holding(), committed=TxId(5)),
        requests.Journal(S(Epoch(1), 0, TxId(4)), TxId(1), TxId(1), 1, b""),
        BadRequest,
    ),
    "the writer's epoch beats the missing segment": (
        holding(promised=2, writer=1),
        Writer(2).batch(1, 1, 1),
        OutOfSync,
    ),
    "no segment is open": (holding(), Writer(1).batch(1, 1, 1), OutOfSync),
    "another segment is open": (writing(1, 3), Writer(1).batch(4, 4, 4), OutOfSync),
    "a gap": (writing(1, 3), Writer(1).batch(1, 5, 5), OutOfSync),
    "a repetition": (writing(1, 3), Writer(1).batch(1, 3, 3), OutOfSync),
    "namespace id before cluster id": (FRESH, W1.new_epoch(OTHER), WrongNamespace),
    "cluster id before epoch": (holding(promised=9), W1.new_epoch(OTHER_CLUSTER), WrongNamespace),
    "an epoch once promised": (holding(promised=3), W3.new_epoch(), Fenced),
    "format needs an id": (
        JournalState(),
        requests.Format(replace(NAMESPACE, namespace_id=0), incarnation=LIFE),
        BadRequest,
    ),
    "format twice": (FRESH, requests.Format(NAMESPACE, incarnation=LIFE), BadRequest),
    "format over foreign files": (
        JournalState(occupied=True),
        requests.Format(NAMESPACE, incarnation=LIFE),
        BadRequest,
    ),
    "a finalized segment begins there": (
        holding(segment(1, 3, finalized=True)),
        Writer(1).start(1),
        OutOfSync,
    ),
    "edits lie there": (holding(segment(1, 3)), Writer(1).start(1), OutOfSync),
    "inside a finalized segment": (
        holding(segment(1, 3, finalized=True)),
        Writer(1).start(2),
        OutOfSync,
    ),
    "a layout without frames": (holding(), Writer(1).start(1, layout=-7), BadRequest),
    "nothing to finalize": (holding(), Writer(1).finalize(1000, 1001), OutOfSync),
    "finalize a longer one": (holding(segment(1, 3)), Writer(1).finalize(1, 6), OutOfSync),
    "finalize a shorter one": (holding(segment(1, 3)), Writer(1).finalize(1, 2), OutOfSync),
    "finalize other edits": (holding(segment(1, 3)), Writer(1).finalize(1, 3, 2), OutOfSync),
    "re-finalize at another end": (
        holding(segment(1, 3, finalized=True)),
        Writer(1).finalize(1, 2),
        BadRequest,
    ),
    "re-finalize other edits": (
        holding(segment(1, 3, finalized=True)),
        Writer(1).finalize(1, 3, 2),
        OutOfSync,
    ),
    "manifest of nothing": (JournalState(), requests.GetEditLogManifest(TxId(1)), NotFormatted),
    "state of nothing": (JournalState(), requests.GetJournalState(), NotFormatted),
    "an accepted recovery whose bytes are gone": (
        holding(decisions={TxId(1): Decision(segment(1, 3), Epoch(1))}),
        requests.PrepareRecovery(Writer(1).stamp(), TxId(1)),
        StorageFailed,
    ),
    "a recovery that ends before it begins": (
        holding(),
        requests.AcceptRecovery(Writer(1).stamp(), Segment(TxId(5), TxId(4), False, b"d" * 32)),
        BadRequest,
    ),
    "a recovery without a digest": (
        holding(),
        requests.AcceptRecovery(Writer(1).stamp(), Segment(TxId(5), TxId(5), False)),
        BadRequest,
    ),
    "a recovery that drops a committed edit": (
        replace(holding(segment(1, 5)), committed=TxId(4)),
        requests.AcceptRecovery(Writer(1).stamp(), segment(1, 3)),
        InvariantBroken,
    ),
    "a recovery over a finalized segment of another end": (
        holding(segment(1, 5, finalized=True)),
        requests.AcceptRecovery(Writer(1).stamp(), segment(1, 6)),
        InvariantBroken,
    ),
    "a recovery over a finalized segment of other edits": (
        holding(segment(1, 5, finalized=True)),
        requests.AcceptRecovery(Writer(1).stamp(), segment(1, 5, writer=2)),
        InvariantBroken,
    ),
    "a recovery that overlaps a finalized segment": (
        holding(segment(4, 9, finalized=True)),
        requests.AcceptRecovery(Writer(1).stamp(), segment(1, 5)),
        InvariantBroken,
    ),
    "an older recovery than the accepted one": (
        holding(segment(1, 3), promised=2, decisions={TxId(1): Decision(segment(1, 3), Epoch(3))}),
        requests.AcceptRecovery(Writer(2).stamp(), segment(1, 3)),
        InvariantBroken,
    ),
    "a download overtaken by a newer writer": (
        holding(promised=3),
        requests.AdoptRecovery(Epoch(2), segment(1, 3)),
        Fenced,
    ),
}


@pytest.mark.parametrize(("state", "request_", "expected"), ORDER.values(), ids=list(ORDER))
def test_the_first_failing_check_answers(
    state: JournalState, request_: requests.Request, expected: type[JournalError]
) -> None:
    assert type(refusal(state, request_)) is expected


def test_fenced_and_gap_carry_facts() -> None:
    fenced = refusal(holding(promised=7), W3.new_epoch())
    assert isinstance(fenced, Fenced)
    assert fenced.promised == 7
    gap = refusal(writing(1, 3), Writer(1).batch(1, 6, 6))
    assert isinstance(gap, OutOfSync)
    assert gap.expected_txid == 4


def test_a_newer_epoch_is_promised_and_ends_the_older_segment() -> None:
    done = step(writing(1, 3), requests.PrepareRecovery(S(Epoch(2), 0), TxId(1)))
    assert done.effects == (
        effects.PersistPromise(Epoch(2)),
        effects.AbandonSegment(TxId(1), empty=False),
    )
    assert (done.state.promised, done.state.open) == (2, None)
    assert done.state.segments == {1: segment(1, 3)}
    assert isinstance(refusal(done.state, Writer(1).batch(1, 4, 4)), Fenced)


def test_a_refused_request_of_a_newer_epoch_still_counts_as_its_promise() -> None:
    found = step(writing(1, 3), Writer(2).start(1))
    assert isinstance(found.reply, OutOfSync)
    assert found.effects[0] == effects.PersistPromise(Epoch(2))
    assert found.state.promised == 2


def test_a_serial_is_used_up_by_a_refused_request() -> None:
    request = Writer(1).batch(1, 6, 6)
    found = step(writing(1, 3), request)
    assert isinstance(found.reply, OutOfSync)
    again = step(found.state, replace(Writer(1).batch(1, 4, 4), stamp=request.stamp))
    assert isinstance(again.reply, OutOfSync)
    assert not again.effects


def test_new_epoch_names_the_newest_segment_with_an_edit() -> None:
    done = step(writing(4, 3, 1, segment(1, 3, finalized=True)), W2.new_epoch())
    assert done.reply == Promised(TxId(1))
    assert done.effects[-1] == effects.AbandonSegment(TxId(4), empty=True)
    assert step(FRESH, W1.new_epoch()).reply == Promised(None)


def test_the_older_file_is_gone_before_the_new_one_and_its_writer_are_recorded() -> None:
    done = step(holding(segment(4, 4), promised=2, writer=1), Writer(2).start(4))
    assert done.effects == (
        effects.MoveAside(TxId(4)),
        effects.CreateSegment(TxId(4), -65, Epoch(2)),
        effects.PersistWriter(Epoch(2)),
    )
    assert done.state.find(TxId(4)) is None


def test_starting_anew_forgets_an_accepted_recovery() -> None:
    decided = {TxId(4): Decision(segment(4, 4), Epoch(1))}
    state = holding(segment(4, 4), decisions=decided, promised=2, writer=1)
    done = step(state, Writer(2).start(4))
    assert done.effects[0] == effects.ForgetDecision(TxId(4))
    assert not done.state.decisions


def test_a_batch_is_appended_and_the_committed_txid_kept() -> None:
    writer = Writer(1, committed=3)
    done = step(writing(1, 3), writer.batch(1, 4, 6))
    assert done.effects == (
        effects.RememberCommitted(TxId(3)),
        effects.AppendEdits(TxId(1), 3, records(4, 6)),
    )
    assert done.state.open == OpenSegment(
        TxId(1), TxId(7), writer=Epoch(1), layout_version=LAYOUT_VERSION
    )
    assert done.state.committed == 3
    empty = requests.Journal(writer.stamp(), TxId(1), TxId(9), 0, b"")
    assert step(holding(), replace(empty, stamp=Writer(1).stamp())).reply == Done()


DAMAGED = {
    "a flipped bit": records(4, 5)[:-7] + b"\x01" + records(4, 5)[-6:],
    "a frame cut short": records(4, 5)[:-1],
    "a hole": record(4) + record(6),
    "another first txid": records(5, 6),
    "fewer than announced": record(4),
    "more than announced": records(4, 6),
    "padding": records(4, 5) + b"\xff" * 8,
    "nothing": b"",
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=list(DAMAGED))
def test_a_damaged_batch_is_refused_before_it_is_written(data: bytes) -> None:
    request = requests.Journal(Writer(1).stamp(), TxId(1), TxId(4), 2, data)
    found = step(writing(1, 3), request)
    assert isinstance(found.reply, BadRequest)
    assert not found.effects
    assert found.state.open == writing(1, 3).open


def test_a_batch_for_another_segment_closes_the_open_one() -> None:
    found = step(writing(1, 3), Writer(1).batch(9, 9, 9))
    assert isinstance(found.reply, OutOfSync)
    assert found.effects == (effects.AbandonSegment(TxId(1), empty=False),)


def test_finalizing_what_was_written_needs_no_scan_and_is_idempotent() -> None:
    done = step(writing(1, 3), Writer(1).finalize(1, 3))
    assert done.effects == (
        effects.AbandonSegment(TxId(1), empty=False),
        effects.FinalizeSegment(segment(1, 3, finalized=True)),
    )
    assert done.state.segments == {1: segment(1, 3, finalized=True)}
    again = step(replace(done.state, serial=-1), Writer(1).finalize(1, 3))
    assert (again.reply, again.effects) == (Done(), ())


def test_a_failed_finalize_closes_the_segment_all_the_same() -> None:
    found = step(writing(1, 3), Writer(1).finalize(1, 6))
    assert "but only written up to txid 3" in str(found.reply)
    assert found.state.open is None
    later = step(replace(found.state, serial=-1), Writer(1).finalize(1, 6))
    assert "disk only contains up to txid 3" in str(later.reply)


@pytest.mark.parametrize("key", recovery.FATE, ids=str)
def test_every_row_of_the_fate_table(key: tuple[bool, bool, bool]) -> None:
    have, same, finalized = key
    state = holding(segment(1, 3, 1 if same else 2, finalized=finalized)) if have else holding()
    request = requests.AcceptRecovery(Writer(1).stamp(), segment(1, 3))
    match recovery.FATE[key]:
        case recovery.Fate.KEEP:
            decision = Decision(segment(1, 3), Epoch(1))
            done = step(state, request)
            assert (done.reply, done.effects) == (Done(), (effects.PersistDecision(decision),))
        case recovery.Fate.FETCH:
            assert step(state, request).reply == Fetch(segment(1, 3), Epoch(1))
        case recovery.Fate.REFUSE:
            assert isinstance(refusal(state, request), InvariantBroken)


def test_impossible_rows_are_left_out_of_the_fate_table() -> None:
    every = {(h, s, f) for h in (0, 1) for s in (0, 1) for f in (0, 1)}
    impossible = every - {tuple(map(int, key)) for key in recovery.FATE}
    assert impossible == {(0, 0, 1), (0, 1, 0), (0, 1, 1)}


def test_prepare_answers_the_disk_or_the_decision() -> None:
    stamp = Writer(2).stamp()
    bare = step(holding(segment(1, 3), promised=2), requests.PrepareRecovery(stamp, TxId(1)))
    assert bare.reply == Prepared(segment(1, 3), None, Epoch(1), FRESH.committed)
    decided = Decision(segment(1, 3, finalized=True), Epoch(1))
    state = holding(segment(1, 3), promised=2, decisions={TxId(1): decided})
    answer = step(state, requests.PrepareRecovery(stamp, TxId(1))).reply
    assert answer == Prepared(decided.segment, decided, Epoch(1), FRESH.committed)
    none = step(holding(promised=2), requests.PrepareRecovery(stamp, TxId(1))).reply
    assert none == Prepared(None, None, Epoch(1), FRESH.committed)


def test_a_peek_at_an_empty_journal_tells_who_wrote_here_last() -> None:
    state = holding(promised=2, writer=1, committed=TxId(3))
    assert step(state, requests.PeekRecovery(None)).reply == Prepared(None, None, Epoch(1), TxId(3))


def test_the_manifest_lists_what_readers_may_have() -> None:
    state = holding(segment(1, 3, finalized=True), segment(4, 6), segment(7, 9, finalized=True))

    def listed(since: int, state: JournalState, *, in_progress: bool = False) -> list[int]:
        reply = step(state, requests.GetEditLogManifest(TxId(since), in_progress)).reply
        assert isinstance(reply, Manifest)
        return [held.first for held in reply.segments]

    assert listed(1, state) == [1, 7]
    assert listed(3, state) == [1, 7]
    assert listed(4, state, in_progress=True) == [7]  # an abandoned 4 was recovered without us
    assert listed(1, writing(10, 12, 1, segment(7, 9, finalized=True)), in_progress=True) == [7, 10]
    assert listed(1, writing(10, 9), in_progress=True) == []
    assert listed(12, writing(10, 12), in_progress=True) == [10]
    assert listed(13, writing(10, 12), in_progress=True) == []
