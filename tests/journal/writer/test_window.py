"""The writer's window: which node has what, what is certain, what is kept."""

import asyncio
import time

import pytest

from journal.errors import BadRequest, Fenced, InvariantBroken, QuorumLost, Unavailable
from journal.links.countdown import Countdown
from journal.links.link import MAX_BATCH_BYTES
from journal.model import LAYOUT_VERSION, Epoch, NodeName, TxId
from journal.writer.window import Window, awaitable
from tests.journal.writer.journal_cluster import edit, edits
from tests.log_lines import captured
from tests.simulation.engine.clock import VirtualLoop

A, B, C = NodeName("a:1"), NodeName("b:1"), NodeName("c:1")
DOWN = Unavailable("down")


def opened(limit_bytes: int = 1000, timeout_seconds: float = 5.0, first: int = 1) -> Window:
    window = Window([A, B, C], limit_bytes=limit_bytes, timeout_seconds=timeout_seconds)
    window.next = TxId(first)
    window.open(TxId(first), LAYOUT_VERSION)
    return window


def write(window: Window, count: int = 1) -> "asyncio.Future[None]":
    first, (done, ended) = window.next, awaitable()
    window.append(count, edits(first, first + count - 1), ended)
    return done


def ack(window: Window, node: NodeName, last: int) -> None:
    window.acked(node, TxId(last), window.seq_at(TxId(last + 1)))


async def test_a_batch_is_committed_when_a_majority_has_it_and_not_before() -> None:
    window = opened()
    first, second = write(window, 3), write(window)
    ack(window, A, 4)
    assert not first.done()
    ack(window, C, 3)
    assert first.done()
    assert not second.done()
    assert window.committed == 3
    ack(window, B, 4)
    assert second.done()
    assert sorted(window.holders(TxId(4))) == [A, B]
    await asyncio.gather(first, second)


async def test_a_batch_of_which_a_node_has_a_part_is_not_on_that_node() -> None:
    window = opened()
    write(window, 2)
    written = write(window, 3)
    for node in (A, C):
        ack(window, node, 4)
    assert window.committed == 4
    assert not written.done()
    for node in (A, C):
        window.failed(node, DOWN)
    assert written.done()
    with pytest.raises(
        QuorumLost, match=r"transactions 3-5 .*none agreed; failed: a:1: down; c:1: down"
    ):
        await written


@pytest.mark.row("X5")
async def test_x5_two_failures_of_three_are_told_at_once() -> None:
    """Fail batch by batch: the one that a lost node has acknowledged may still be committed."""
    window = opened()
    first, second = write(window), write(window)
    ack(window, A, 1)
    window.failed(A, Unavailable("connection refused"))
    assert not second.done()
    window.failed(C, Fenced("a newer writer", promised=Epoch(7)))
    with pytest.raises(QuorumLost) as lost:
        await second
    assert str(lost.value) == (
        "writing transactions 2-2 needs 2 of 3 JournalNodes; none agreed; failed:"
        " a:1: connection refused; c:1: a newer writer"
    )
    assert lost.value.fenced_by == 7
    ack(window, B, 1)
    await first
    with pytest.raises(
        QuorumLost, match=r"writing transactions 3-3 needs 2 of 3 .*connection refused"
    ):
        await write(window)


async def test_a_node_that_comes_back_counts_again_from_its_acknowledgement_on() -> None:
    window = opened()
    written = write(window)
    window.failed(A, DOWN)
    window.takes_part(A, window.seq_at(TxId(1)))
    window.failed(B, DOWN)
    assert not written.done()
    ack(window, A, 1)
    ack(window, C, 1)
    await written


async def test_a_learner_is_fed_and_counts_nowhere() -> None:
    window = opened()
    written = write(window)
    window.takes_part(A, 0, learner=DOWN)
    ack(window, A, 1)
    ack(window, B, 1)
    assert not written.done()
    assert window.queued_bytes(A) == 0
    window.failed(C, DOWN)
    with pytest.raises(QuorumLost, match=r"agreed: b:1; failed: a:1: down; c:1: down"):
        await written


async def test_a_node_that_comes_back_wiped_has_acknowledged_nothing() -> None:
    """Count no acknowledgement of a batch that went with the node's disk.

    With another's acknowledgement there would be two of three, of which one has lost it.
    """
    window = opened()
    written = write(window)
    ack(window, A, 1)
    window.failed(A, DOWN)
    window.takes_part(A, 0, learner=DOWN)
    assert window.holders(TxId(1)) == []
    ack(window, B, 1)
    assert not written.done()
    ack(window, A, 1)
    assert not written.done(), "what a learner has counts nowhere"
    window.admitted(A, TxId(1))
    assert sorted(window.holders(TxId(1))) == [A, B]
    await written


async def test_a_learner_that_was_lost_before_it_hears_of_its_vote_is_expected_to_do_nothing() -> (
    None
):
    window = opened()
    first, second = write(window), write(window)
    window.takes_part(A, 0, learner=DOWN)
    window.failed(A, DOWN)
    window.admitted(A, TxId(1))
    ack(window, B, 1)
    await first
    window.failed(C, DOWN)
    with pytest.raises(QuorumLost, match=r"a:1: down; c:1: down"):
        await second


async def test_what_a_learner_that_is_lost_acknowledges_late_counts_nowhere_either() -> None:
    """Lose it as too far behind; then the answer comes that was on its way."""
    window = opened()
    written = write(window)
    window.takes_part(A, 0, learner=DOWN)
    window.failed(A, DOWN)
    ack(window, A, 1)
    ack(window, B, 1)
    assert not written.done()
    assert window.holders(TxId(1)) == [B]
    window.takes_part(A, 0)
    ack(window, A, 1)
    await written


async def test_who_waits_for_a_mark_hears_of_the_end() -> None:
    window = opened()
    write(window)
    waiting = asyncio.create_task(window.committed_mark())
    await asyncio.sleep(0)
    window.close()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, 30)


async def test_one_broken_invariant_outweighs_a_quorum_to_come() -> None:
    window = opened()
    written = write(window)
    window.failed(B, InvariantBroken("would discard a committed edit"))
    with pytest.raises(InvariantBroken, match="writing transactions 1-1: b:1: would discard"):
        await written


async def test_silence_is_named_when_patience_ends() -> None:
    window = opened(timeout_seconds=0.05)
    written = write(window)
    ack(window, B, 1)
    with pytest.raises(QuorumLost, match=r"agreed: b:1; failed: a:1: no answer within 0\.05 s"):
        await written


@pytest.mark.row("X20")
async def test_x20_our_own_pause_is_not_the_nodes_fault() -> None:
    """Stop the process for longer than the deadline, with answers on their way to us."""
    window = opened(timeout_seconds=0.2)
    loop = asyncio.get_running_loop()
    written = write(window)

    def arrive(hops: int) -> None:
        if hops:
            loop.call_soon(arrive, hops - 1)
        else:
            ack(window, A, 1)
            ack(window, B, 1)

    loop.call_soon(time.sleep, 0.5)
    loop.call_soon(arrive, 20)
    await written


async def test_what_is_kept_is_bounded_and_what_is_needed_is_kept() -> None:
    size = len(edit(10))
    window = opened(limit_bytes=5 * size, first=10)
    for txid in range(10, 30):
        write(window)
        ack(window, A, txid)
        ack(window, B, txid)
        assert window.too_far_behind(C, size) == (txid - 9 > 5)
    assert window.covers(TxId(10)), "C takes part, and needs it"
    assert window.queued_bytes(C) == 20 * size
    window.failed(C, DOWN)
    write(window)
    assert not window.covers(TxId(20))
    assert window.covers(TxId(27))
    assert window.covers(TxId(31))
    assert not window.covers(TxId(32))
    window.close()


async def test_a_message_may_begin_inside_a_batch_and_ends_with_its_segment() -> None:
    window = opened()
    write(window, 3)
    write(window, 2)
    window.next, window.segment_first = TxId(6), None
    window.open(TxId(6), LAYOUT_VERSION)
    write(window)
    message = window.message(window.seq_at(TxId(2)), TxId(2), 1000)
    assert (message.first, message.last, message.records) == (2, 5, edits(2, 5))
    assert window.message(message.seq, TxId(6), 1000).records == edit(6)
    assert window.message(0, TxId(1), 1).records == edits(1, 3), "one batch is always sent whole"
    window.close()


@pytest.mark.parametrize("first", range(1, 7))
async def test_a_message_may_begin_with_any_edit_of_any_batch(first: int) -> None:
    window = opened()
    write(window, 3)
    write(window, 3)
    message = window.message(window.seq_at(TxId(first)), TxId(first), 1000)
    assert (message.segment_first, message.first, message.last) == (1, first, 6)
    assert message.records == edits(first, 6)
    window.close()


async def test_what_cannot_be_taken_is_refused_and_nothing_is_lost_by_it() -> None:
    window, (_, ended) = opened(), awaitable()
    with pytest.raises(BadRequest, match="more than the 67043328 that one write may have"):
        window.append(1, bytes(MAX_BATCH_BYTES + 1), ended)
    written = write(window)
    for node in (A, B):
        ack(window, node, 1)
    await written
    window.finish()
    with pytest.raises(InvariantBroken, match="transaction 2 is written, and no segment is open"):
        window.append(1, edit(2), ended)
    with pytest.raises(Unavailable, match="was closed meanwhile"):
        await window.committed_mark()


def test_each_batch_has_its_own_time_and_half_of_it_is_warned_of() -> None:
    """Use virtual time: the timeout's twenty steps are of a second each."""

    async def play() -> None:
        window = opened(timeout_seconds=20.0)
        kept = write(window, 100)
        await asyncio.sleep(3.5)
        lost = write(window, 3)
        for node, last in ((A, 100), (B, 103), (C, 102)):
            ack(window, node, last)
        assert kept.done()
        window.failed(A, DOWN)
        await asyncio.sleep(6.0)
        later = write(window)
        await asyncio.sleep(3.0)
        assert not logs
        await asyncio.sleep(1.0)
        assert [(one["event"], one["operation"]) for one in logs] == [
            ("journal.quorum_slow", "writing transactions 101-103")
        ]
        assert (logs[0]["silent"], logs[0]["failed"]) == ([A, C], {A: "down"})
        with pytest.raises(
            QuorumLost, match=r"; agreed: b:1; failed: a:1: down; c:1: no answer within 20 s"
        ):
            await lost
        assert loop.time() == pytest.approx(24.0)  # more than twenty steps
        with pytest.raises(QuorumLost, match=r"transactions 104-104 .* none agreed"):
            await later
        assert loop.time() == pytest.approx(30.0)
        assert len(logs) == 1
        steps = loop.steps
        await asyncio.sleep(1000.0)
        assert loop.steps < steps + 10, "nothing is counted where nothing waits"

    loop = VirtualLoop(lambda _process: 0.0)
    with captured("journal.") as logs:
        try:
            loop.run_until_complete(play())
        finally:
            loop.close()


async def test_the_countdown_goes_on_after_everything_that_waited_has_ended() -> None:
    """Give what comes then its own time, whether the end was a silence or answers."""
    broken = list[dict[str, object]]()
    asyncio.get_running_loop().set_exception_handler(lambda _loop, what: broken.append(what))
    window = opened(timeout_seconds=0.2)
    for _ in range(2):
        silent = write(window)
        with pytest.raises(QuorumLost, match="no answer within"):
            await asyncio.wait_for(silent, 30)
    answered = write(window)
    for node in (A, B):
        ack(window, node, 3)
    await answered
    later = asyncio.Event()

    def reached() -> bool:
        later.set()
        return False

    Countdown(0.4, reached).start()  # behind the window's next step
    await asyncio.wait_for(later.wait(), 30)
    assert not broken
