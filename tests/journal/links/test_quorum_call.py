"""One question to all nodes: when it ends, what it says, and what our own pauses cost."""

import asyncio
import time

import grpc
import pytest
from prometheus_client import REGISTRY

from journal import errors
from journal.errors import StorageFailed
from journal.links import metrics
from journal.links.codec import rpc_error
from journal.links.quorum_call import QuorumCall, ask_once, failed, good
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.model import Epoch, JournalId, NodeName, TxId
from journal.proto import journal_pb2 as pb
from journal.refusals import KINDS, REFUSAL_KEY, kind_of, refusal
from tests.journal.links.test_peer import Answering

A, B, C = NodeName("a:1"), NodeName("b:1"), NodeName("c:1")


def asked(timeout_seconds: float = 5.0) -> QuorumCall[int]:
    return QuorumCall("counting", [A, B, C], timeout_seconds=timeout_seconds)


async def test_it_ends_with_the_majority() -> None:
    call = asked()
    call.succeed(A, 1)
    call.fail(B, errors.Unavailable("down"))
    call.succeed(C, 3)
    assert await call.outcome() == {A: 1, C: 3}


async def test_late_answers_change_nothing() -> None:
    call = asked()
    call.succeed(A, 1)
    call.succeed(C, 3)
    call.succeed(B, 2)
    assert await call.outcome() == {A: 1, C: 3}
    call.fail(B, errors.Unavailable("down"))


async def test_a_lost_call_says_who_and_why() -> None:
    call = asked()
    call.fail(C, errors.Unavailable("connection refused"))
    call.fail(A, errors.Fenced("a newer writer", promised=Epoch(7)))
    with pytest.raises(errors.QuorumLost) as lost:
        await call.outcome()
    assert str(lost.value) == (
        "counting needs 2 of 3 JournalNodes; none agreed; failed:"
        " a:1: a newer writer; c:1: connection refused"
    )
    assert lost.value.fenced_by == 7


@pytest.mark.row("8.5 QuorumCall.FailsWithoutResponse")
async def test_fails_without_response_and_names_who_was_silent() -> None:
    call = asked(0.05)
    call.succeed(B, 2)
    with pytest.raises(errors.QuorumLost) as lost:
        await call.outcome()
    assert "agreed: b:1; failed: a:1: no answer within 0.05 s; c:1: no" in str(lost.value)


async def test_one_broken_invariant_outweighs_a_quorum_to_come() -> None:
    call = asked()
    call.succeed(A, 1)
    call.fail(B, errors.InvariantBroken("would discard a committed edit"))
    with pytest.raises(errors.InvariantBroken, match="counting: b:1: would discard"):
        await call.outcome()


@pytest.mark.row("8.5 QuorumCall.SucceedsWithLongPause", "X20")
async def test_x20_succeeds_with_long_pause_of_our_own() -> None:
    """Stop the process for longer than the deadline, with answers on their way to us."""
    call = asked(0.2)
    loop = asyncio.get_running_loop()

    def arrive(hops: int) -> None:
        if hops:
            loop.call_soon(arrive, hops - 1)
        else:
            call.succeed(A, 1)
            call.succeed(B, 2)

    loop.call_soon(time.sleep, 0.5)
    loop.call_soon(arrive, 20)
    assert await call.outcome() == {A: 1, B: 2}


async def test_each_node_is_asked_and_let_go_whatever_it_says() -> None:
    async def ask(remote: RemoteNode) -> str:
        if remote.name == "a:1":
            raise errors.Unavailable("down")
        return remote.name

    async def break_off(remote: RemoteNode) -> str:
        raise KeyError(remote.name)

    link, nodes = Answering({}), [("a", 1), ("b", 1)]
    journal = JournalAddress(JournalId("ns1"), "", link)
    answers = await ask_once(nodes, journal, ask)
    assert (good(answers), [*failed(answers)], link.closed) == ({B: B}, [A], 2)
    with pytest.raises(KeyError):
        await ask_once(nodes, journal, break_off)
    assert link.closed == 4


def test_a_writers_gauges_go_with_it_and_stay_with_its_successor() -> None:
    first, second = object(), object()
    labels = {"jn": str(A)}
    for owner in (first, second):
        metrics.watch(A, owner, lag=lambda: 7, in_sync=lambda: True, queued_bytes=lambda: 8)
    metrics.forget(A, first)
    assert REGISTRY.get_sample_value("nnha_journal_writer_lag_transactions", labels) == 7
    metrics.forget(A, second)
    for name in ("writer_lag_transactions", "node_in_sync", "queued_bytes"):
        assert REGISTRY.get_sample_value(f"nnha_journal_{name}", labels) is None


def test_a_typed_refusal_survives_the_wire() -> None:
    refusal = pb.Refusal(kind=pb.Refusal.OUT_OF_SYNC, message="a gap", expected_txid=4)
    metadata: list[tuple[str, str | bytes]] = [
        ("other", "x"),
        (REFUSAL_KEY, refusal.SerializeToString()),
    ]
    error = rpc_error(grpc.StatusCode.FAILED_PRECONDITION, "a gap", metadata)
    assert isinstance(error, errors.OutOfSync)
    assert error.expected_txid == 4


def test_a_silence_is_told_in_few_words() -> None:
    history = (
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:9: Failed to"
        " connect to remote host: connect: Connection refused (111)"
    )
    error = rpc_error(grpc.StatusCode.UNAVAILABLE, history, None)
    assert str(error) == "Connection refused (111) [UNAVAILABLE]"
    assert isinstance(error, errors.Unavailable)
    assert str(rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, "x", ())) == "no answer in time"
    hangs = "ipv4:127.0.0.1:9: connection attempt timed out before receiving SETTINGS frame"
    assert str(rpc_error(grpc.StatusCode.UNAVAILABLE, hangs, None)) == "no answer in time"


REFUSED = [kind.error for kind in KINDS]


def a_refusal(kind: type[errors.JournalError]) -> errors.JournalError:
    if kind is errors.Fenced:
        return errors.Fenced("superseded", promised=Epoch(7))
    return (
        errors.OutOfSync("a gap", expected_txid=TxId(4))
        if kind is errors.OutOfSync
        else kind("why not")
    )


@pytest.mark.parametrize("kind", REFUSED, ids=[kind.__name__ for kind in REFUSED])
def test_every_no_of_a_node_is_understood(kind: type[errors.JournalError]) -> None:
    """Give each refusal a kind: without one it was a reason that this version does not know."""
    said = a_refusal(kind)
    code, message = kind_of(said).status, refusal(said)
    heard = rpc_error(code, str(said), [(REFUSAL_KEY, message.SerializeToString())])
    assert (type(heard), str(heard)) == (kind, str(said))
    assert vars(heard) == vars(said)


def test_what_nodes_say_no_with_has_a_kind() -> None:
    """Include nodes that are clients of another one, and are not answered."""
    assert {StorageFailed, errors.Unavailable, *errors.Rejected.__subclasses__()} <= {*REFUSED}


def test_a_no_of_a_later_version_is_a_silence() -> None:
    """Show a kind that this version does not know as it stands, as kinds are added."""
    later = pb.Refusal(message="the moon is in the way")
    later.MergeFromString(bytes((1 << 3, 99)))
    heard = rpc_error(grpc.StatusCode.ABORTED, "", [(REFUSAL_KEY, later.SerializeToString())])
    assert isinstance(heard, errors.Unavailable)
    assert "the moon is in the way" in str(heard)
