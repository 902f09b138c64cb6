"""What a JournalNode believes of another one: of ours only a voter, of Hadoop's what it reports."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.protobuf.message import Message

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import IO_EXCEPTION
from ha.rpc.server import Call, Method, RpcProtocol, RpcServer
from journal.errors import NotAdmitted, Unavailable
from journal.links.hadoop_link import PROTOCOL
from journal.links.link import WriteStream
from journal.links.peer import QJOURNAL, HadoopPeer, OwnPeer, Peer, PeerReport, Peers
from journal.messages import namespace_message
from journal.model import NO_TXID, JournalId, NodeName, Segment, TxId
from journal.proto import hadoop_qjournal_pb2 as hp
from journal.proto import journal_pb2 as pb
from journal.refusals import own_fault
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.journal.writer.journal_cluster import JOURNAL, NAMESPACE

HOST = "127.0.0.1"
SECONDS = 30.0
DIGEST = b"d" * 32
INVALID_TXID = 2**64 - 12345
"""Hadoop's HdfsServerConstants.INVALID_TXID in an unsigned field."""


class Answering:
    """A link to a node that says just this, and a list of what it was asked."""

    def __init__(self, replies: Mapping[str, Message]) -> None:
        self.replies = replies
        self.asked: list[str] = []
        self.closed = 0

    def __call__(self, _host: str, _port: int) -> "Answering":
        return self

    async def call(
        self, method: str, _request: Message, _reply: type[Any], _timeout_seconds: float
    ) -> Any:  # noqa: ANN401 - as in Link
        self.asked.append(method)
        return self.replies[method]

    def open_write_stream(self) -> WriteStream:
        raise NotImplementedError

    async def wait_until_reconnected(self) -> None: ...

    async def close(self) -> None:
        self.closed += 1


def told(
    last_written: int | None, purged: int | None, *, learner: bool = False
) -> Mapping[str, Message]:
    closed = pb.SegmentState(first_txid=4, last_txid=6, digest=DIGEST)
    return {
        "GetPeerManifest": pb.GetEditLogManifestReply(
            segments=[closed], http_port=8480, purged_txid=purged
        ),
        "GetStatus": pb.JournalStatus(
            incarnation="disk-1",
            namespace_info=namespace_message(NAMESPACE),
            last_written_txid=last_written,
            is_learner=learner,
        ),
    }


@pytest.mark.parametrize(
    ("last_written", "purged", "found"),
    [(9, 4, (9, 4)), (None, None, (NO_TXID, NO_TXID)), (0, 0, (0, 0))],
    ids=["edits, and some let go of", "neither", "zero is a number"],
)
async def test_what_a_voter_of_ours_holds(
    last_written: int | None, purged: int | None, found: tuple[int, int]
) -> None:
    link = Answering(told(last_written, purged))
    held = await OwnPeer(HOST, 8485, JOURNAL, link).held(TxId(1), SECONDS)
    segment = Segment(TxId(4), TxId(6), finalized=True, digest=DIGEST)
    assert held == PeerReport("disk-1", NAMESPACE, 8480, (segment,), *map(TxId, found))
    assert link.asked == ["GetPeerManifest", "GetStatus"], "its edits at least as new as its list"


async def test_who_has_become_a_learner_since_it_told_its_list_vouches_for_nothing() -> None:
    """Wiped and formatted between the two answers, it would count for edits that it has not."""
    peer = OwnPeer(HOST, 8485, JOURNAL, Answering(told(9, None, learner=True)))
    with pytest.raises(NotAdmitted, match=f"{HOST}:8485 has no vote any more"):
        await peer.held(TxId(1), SECONDS)


class Hadoops:
    """A JournalNode of Hadoop's that has these logs: first, last, and whether it is open."""

    def __init__(self, logs: Sequence[tuple[int, int, bool]]) -> None:
        self.logs = logs
        self.asked: list[tuple[int, bool]] = []
        self.states = 0
        self.refuses = False

    async def manifest(
        self, _call: Call, request: hp.GetEditLogManifestRequestProto
    ) -> hp.GetEditLogManifestResponseProto:
        if self.refuses:
            raise RemoteFault(IO_EXCEPTION, "the disk is gone")
        self.asked.append((request.sinceTxId, request.inProgressOk))
        logs = [
            hp.RemoteEditLogProto(startTxId=first, endTxId=last, isInProgress=is_open)
            for first, last, is_open in self.logs
            if request.inProgressOk or not is_open
        ]
        return hp.GetEditLogManifestResponseProto(
            manifest=hp.RemoteEditLogManifestProto(logs=logs), httpPort=8480
        )

    async def state(
        self, _call: Call, _request: hp.GetJournalStateRequestProto
    ) -> hp.GetJournalStateResponseProto:
        self.states += 1
        return hp.GetJournalStateResponseProto(lastPromisedEpoch=7, httpPort=8480)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[tuple[HadoopPeer, RpcServer]]:
        manifest = Method(hp.GetEditLogManifestRequestProto, self.manifest)
        state = Method(hp.GetJournalStateRequestProto, self.state)
        methods: Mapping[str, Method] = {"getEditLogManifest": manifest, "getJournalState": state}
        server = RpcServer([RpcProtocol(QJOURNAL, methods)])
        peer = HadoopPeer(HOST, await server.start(HOST, 0), JournalId("ns1"))
        try:
            yield peer, server
        finally:
            await peer.close()
            await server.stop()


@pytest.mark.parametrize(
    ("logs", "segments", "last_written"),
    {
        "nothing": ([], [], NO_TXID),
        "an open segment goes on from what is finalized": (
            [(1, 3, False), (4, 9, True)], [(1, 3)], 9,
        ),
        "the open segment has no edit yet": ([(1, 3, False), (4, 3, True)], [(1, 3)], 3),
        "nor has any other": ([(1, INVALID_TXID, True)], [], NO_TXID),
        "what cannot be is left out": (
            [(0, 3, False), (INVALID_TXID, 3, False), (4, 3, False), (5, INVALID_TXID, False),
             (6, 6, False)], [(6, 6)], 6,
        ),
    }.values(),
    ids=["nothing", "open", "open without edits", "no edit at all", "what cannot be"],
)  # fmt: skip
async def test_what_a_node_of_hadoops_holds(
    logs: list[tuple[int, int, bool]], segments: list[tuple[int, int]], last_written: int
) -> None:
    node = Hadoops(logs)
    async with node.served() as (peer, _):
        held = await peer.held(TxId(1), SECONDS)
        assert await peer.promised(SECONDS) == 7
        assert await peer.http_port(SECONDS) == 8480
    assert node.asked == [(1, True)], "an open segment is asked for, too"
    found = tuple(Segment(TxId(a), TxId(b), finalized=True) for a, b in segments)
    assert held == PeerReport(NodeName(peer.name), None, 8480, found, TxId(last_written))


async def test_hadoops_no_is_no_answer_and_the_next_question_connects_again() -> None:
    node = Hadoops([(1, 3, False)])
    async with node.served() as (peer, server):
        node.refuses = True
        with pytest.raises(Unavailable, match="the disk is gone"):
            await peer.listed(TxId(1), SECONDS)
        node.refuses = False
        server.abort_connections()
        with pytest.raises(Unavailable):
            await peer.listed(TxId(1), SECONDS)
        listed = await peer.listed(TxId(2), SECONDS)
        assert [(one.first, one.last) for one in listed.segments] == [(1, 3)]
        await server.stop()
        with pytest.raises(Unavailable):
            await peer.listed(TxId(1), SECONDS)


async def test_an_error_of_ours_is_no_silence_of_hadoops_node() -> None:
    async with Hadoops([(1, 3, False)]).served() as (served, _):
        port = int(served.name.rpartition(":")[2])

        async def life() -> None:
            peer = HadoopPeer(HOST, port, JournalId("ns1"))
            try:
                assert await peer.promised(SECONDS) == 7
            finally:
                await peer.close()

        async def after(_: int) -> None:
            pass

        assert await awaits.cut_at_each_await(Cuts(life, Fault.BREAK), after) >= 1


class Learner:
    """A node of ours on the port of Hadoop RPC, which has no vote."""

    async def state(self, _call: Call, _request: pb.JournalRequest) -> pb.GetJournalStateReply:
        raise own_fault(NotAdmitted("it is a learner"))

    @asynccontextmanager
    async def served(self, port: int) -> AsyncIterator[None]:
        methods = {"GetJournalState": Method(pb.JournalRequest, self.state)}
        server = RpcServer([RpcProtocol(PROTOCOL, methods)])
        await server.start(HOST, port)
        try:
            yield
        finally:
            await server.stop()


async def kind_of(peers: Peers, port: int) -> type[Peer]:
    async with peers.reached(HOST, port, SECONDS) as peer:
        return type(peer)


async def test_a_node_is_asked_as_what_it_was_until_it_answers_no_more() -> None:
    node = Hadoops([(1, 3, False)])
    async with node.served() as (peer, server):
        port = int(peer.name.rpartition(":")[2])
        peers = Peers(JournalId("ns1"), port)
        assert [await kind_of(peers, port) for _ in range(3)] == [HadoopPeer] * 3
        assert node.states == 1, "it is found once"
        with pytest.raises(KeyError):
            async with peers.reached(HOST, port, SECONDS):
                raise KeyError("a fault of the caller")
        assert [await kind_of(peers, port), node.states] == [HadoopPeer, 1], "which is no silence"
        node.refuses = True
        with pytest.raises(Unavailable):
            async with peers.reached(HOST, port, SECONDS) as found:
                await found.listed(TxId(1), SECONDS)
        assert await kind_of(peers, port) is HadoopPeer
        assert node.states == 2, "it might have come back as another kind"
        with pytest.raises(Unavailable):
            async with peers.reached(HOST, port, SECONDS) as found:
                await found.listed(TxId(1), SECONDS)
        await server.stop()
        async with Learner().served(port):
            with pytest.raises(NotAdmitted, match="it is a learner"):
                await kind_of(peers, port)
        with pytest.raises(Unavailable):
            await kind_of(peers, port)


async def test_where_no_port_of_hadoops_is_known_a_node_is_one_of_ours() -> None:
    assert await kind_of(Peers(JournalId("ns1"), 0), 1) is OwnPeer
