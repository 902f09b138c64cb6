"""Another JournalNode as a JournalNode asks it: one of ours, or one of Hadoop's."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, Protocol, TypeVar

from google.protobuf.message import Message

from ha.conf.keys.units import HostPort
from ha.record import dataclass
from ha.rpc.client import RpcConnection
from ha.rpc.errors import ConnectFailed, RemoteFault, RpcError
from journal import model
from journal.errors import NotAdmitted, Unavailable
from journal.links.grpc_link import GrpcLink
from journal.links.hadoop_link import HadoopLink
from journal.links.link import LinkFactory
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.messages import namespace_of, segment_of
from journal.proto import hadoop_qjournal_pb2 as hp

M = TypeVar("M", bound=Message)

QJOURNAL: Final = "org.apache.hadoop.hdfs.qjournal.protocol.QJournalProtocol"
_I64: Final = 1 << 63
_PROBE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class PeerReport:
    """What a node that has a vote says of its edits.

    ``segments`` are finalized, and those of Hadoop's nodes have no digest; ``last_written`` is the
    highest edit of all, NO_TXID where there is none; ``identity`` differs for different disks;
    ``namespace`` is None where the node does not report it.
    """

    identity: str
    namespace: model.NamespaceInfo | None
    http_port: int
    segments: tuple[model.Segment, ...]
    last_written: model.TxId
    purged: model.TxId = model.NO_TXID


@dataclass(frozen=True, slots=True)
class Listed:
    """Finalized segments, and where they are served."""

    http_port: int
    segments: tuple[model.Segment, ...]


class Peer(Protocol):
    """The questions that a JournalNode asks another; each raises JournalError."""

    @property
    def host(self) -> str:
        """Where it serves segments."""

    @property
    def name(self) -> model.NodeName:
        """The node's name in the configuration."""

    async def promised(self, timeout_seconds: float) -> model.Epoch:
        """Return the newest epoch that the node has promised; a learner refuses."""

    async def http_port(self, timeout_seconds: float) -> int:
        """Return the port on which the node serves segments; a learner refuses."""

    async def listed(self, since: model.TxId, timeout_seconds: float) -> Listed:
        """Return the segments that the node has finalized from a txid on; a learner refuses."""

    async def held(self, since: model.TxId, timeout_seconds: float) -> PeerReport:
        """Return all that the node holds from a txid on; a learner refuses."""

    async def close(self) -> None:
        """Drop the connection."""


class OwnPeer:
    """A node of ours."""

    def __init__(
        self, host: str, port: int, journal_id: model.JournalId, link: LinkFactory = GrpcLink
    ) -> None:
        self._remote = RemoteNode(host, port, JournalAddress(journal_id, "", link))
        self.host = host
        self.name = self._remote.name

    async def promised(self, timeout_seconds: float) -> model.Epoch:
        return model.Epoch((await self._remote.journal_state(timeout_seconds)).last_promised_epoch)

    async def http_port(self, timeout_seconds: float) -> int:
        return (await self._remote.journal_state(timeout_seconds)).http_port

    async def held(self, since: model.TxId, timeout_seconds: float) -> PeerReport:
        listed = await self._remote.peer_manifest(since, timeout_seconds)
        # Asked behind the list, so that it has everything that the list has.
        status = await self._remote.status(timeout_seconds)
        if status.is_learner:
            raise NotAdmitted(f"{self.name} has no vote any more")
        return PeerReport(
            identity=status.incarnation,
            namespace=namespace_of(status.namespace_info),
            http_port=listed.http_port,
            segments=tuple(segment_of(one) for one in listed.segments),
            last_written=model.TxId(status.last_written_txid)
            if status.HasField("last_written_txid")
            else model.NO_TXID,
            purged=model.TxId(listed.purged_txid)
            if listed.HasField("purged_txid")
            else model.NO_TXID,
        )

    async def listed(self, since: model.TxId, timeout_seconds: float) -> Listed:
        reply = await self._remote.peer_manifest(since, timeout_seconds)
        return Listed(reply.http_port, tuple(segment_of(one) for one in reply.segments))

    async def close(self) -> None:
        await self._remote.close()


class HadoopPeer:
    """A JournalNode of Hadoop's, by QJournalProtocol."""

    def __init__(self, host: str, port: int, journal_id: model.JournalId) -> None:
        self.host = host
        self.name = model.NodeName(str(HostPort(host, port)))
        self._port = port
        self._id = hp.JournalIdProto(identifier=journal_id)
        self._connection: RpcConnection | None = None

    async def promised(self, timeout_seconds: float) -> model.Epoch:
        return model.Epoch((await self._state(timeout_seconds)).lastPromisedEpoch)

    async def http_port(self, timeout_seconds: float) -> int:
        return (await self._state(timeout_seconds)).httpPort

    async def held(self, since: model.TxId, timeout_seconds: float) -> PeerReport:
        asked = hp.GetEditLogManifestRequestProto(jid=self._id, sinceTxId=since, inProgressOk=True)
        reply = await self._call(
            "getEditLogManifest", asked, hp.GetEditLogManifestResponseProto, timeout_seconds
        )
        logs = [log for log in reply.manifest.logs if 0 < log.startTxId < _I64]
        return PeerReport(
            identity=self.name,
            namespace=None,
            http_port=reply.httpPort,
            segments=tuple(
                model.Segment(model.TxId(log.startTxId), model.TxId(log.endTxId), finalized=True)
                for log in logs
                if not log.isInProgress and log.startTxId <= log.endTxId < _I64
            ),
            # Hadoop's node gives the open segment the highest edit that it has as its end.
            last_written=model.TxId(
                max((log.endTxId for log in logs if log.endTxId < _I64), default=model.NO_TXID)
            ),
        )

    async def listed(self, since: model.TxId, timeout_seconds: float) -> Listed:
        held = await self.held(since, timeout_seconds)
        return Listed(held.http_port, held.segments)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _state(self, timeout_seconds: float) -> hp.GetJournalStateResponseProto:
        asked = hp.GetJournalStateRequestProto(jid=self._id)
        return await self._call(
            "getJournalState", asked, hp.GetJournalStateResponseProto, timeout_seconds
        )

    async def _call(
        self, method: str, request: Message, reply: type[M], timeout_seconds: float
    ) -> M:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = await RpcConnection.open(
                    self.host, self._port, protocol=QJOURNAL, deadline_seconds=timeout_seconds
                )
            return await self._connection.call(
                method, request, reply, deadline_seconds=timeout_seconds
            )
        except (ConnectFailed, RemoteFault, RpcError) as failure:
            raise Unavailable(str(failure)) from None


class Peers:
    """The other nodes of a journal, each asked over the protocol that it last answered.

    With a ``hadoop_port`` other than 0 they may be Hadoop's, and whichever port is configured.
    """

    def __init__(self, journal_id: model.JournalId, hadoop_port: int) -> None:
        self._journal_id = journal_id
        self._hadoop_port = hadoop_port
        self._known: dict[tuple[str, int], int] = {}

    @asynccontextmanager
    async def reached(self, host: str, port: int, timeout_seconds: float) -> AsyncIterator[Peer]:
        """Yield the node at that address, whichever kind it is.

        Raises:
            JournalError: there is no answer; or what a node of ours that answers says against it.
        """
        kinds = self._kinds(port)
        known = 0 if len(kinds) == 1 else self._known.get((host, port))
        if known is None:
            known = await self._find(host, port, kinds, min(timeout_seconds, _PROBE_SECONDS))
        peer = kinds[known](host)
        try:
            yield peer
        except Unavailable:
            self._known.pop((host, port), None)  # it may come back as another kind
            raise
        finally:
            await peer.close()

    async def _find(
        self, host: str, port: int, kinds: Sequence[Callable[[str], Peer]], timeout_seconds: float
    ) -> int:
        failures: list[Unavailable] = []
        for number, kind in enumerate(kinds):
            peer = kind(host)
            try:
                await peer.promised(timeout_seconds)
            except Unavailable as failure:
                failures.append(failure)
            else:
                self._known[host, port] = number
                return number
            finally:
                await peer.close()
        raise failures[0]

    def _kinds(self, port: int) -> Sequence[Callable[[str], Peer]]:
        journal = self._journal_id
        ports = dict.fromkeys((port, self._hadoop_port)) if self._hadoop_port else {}
        return (
            lambda host: OwnPeer(host, port, journal),
            *(partial(_over_hadoop_rpc, port=each, journal_id=journal) for each in ports),
            *(partial(HadoopPeer, port=each, journal_id=journal) for each in ports),
        )


def _over_hadoop_rpc(host: str, port: int, journal_id: model.JournalId) -> Peer:
    return OwnPeer(host, port, journal_id, HadoopLink)
