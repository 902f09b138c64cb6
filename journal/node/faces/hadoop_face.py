"""QJournalProtocol over Hadoop RPC: the face of a JournalNode that Java NameNodes write to.

It gives the same requests to the same owners as the gRPC face.  What Hadoop's messages lack is made
up for here and in the core, never waived (docs/reference/journal-node.md#java-writers-and-readers):
see ``hadoop_source`` for the digest of a recovery, and ``core.writing.finalize`` for the end of a
segment.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from google.protobuf.message import Message

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import UNSUPPORTED_OPERATION
from ha.rpc.limits import RpcLimits
from ha.rpc.protocol import Call, Method, RpcProtocol
from ha.rpc.server import RpcServer
from journal.core import replies, requests
from journal.core.state import JournalState
from journal.errors import BadRequest, Fenced, JournalError, NotFormatted
from journal.model import NamespaceInfo, Segment, TxId
from journal.node.faces import hadoop_codec as wire
from journal.node.faces.grpc_face import JournalService
from journal.node.faces.hadoop_source import digest_of_source
from journal.node.faces.own_face import own_protocol
from journal.node.node import JournalNode
from journal.node.owner import JournalOwner
from journal.node.settings import NodeSettings
from journal.proto import hadoop_qjournal_pb2 as hp
from journal.storage.incarnation import random_id

Q = TypeVar("Q", bound=Message)


class QJournalFace:
    """The methods of QJournalProtocol and InterQJournalProtocol; each raises JournalError."""

    def __init__(self, node: JournalNode) -> None:
        self._node = node

    async def is_formatted(self, request: hp.IsFormattedRequestProto) -> Message:
        """Whether the journal has storage here; asking creates none."""
        owner = self._node.find(request.jid.identifier)
        formatted = owner is not None and owner.state.namespace is not None
        return hp.IsFormattedResponseProto(isFormatted=formatted)

    async def get_journal_ctime(self, request: hp.GetJournalCTimeRequestProto) -> Message:
        """When the file system was created or last upgraded."""
        return hp.GetJournalCTimeResponseProto(
            resultCTime=self._namespace(request.jid.identifier).ctime
        )

    async def get_journal_state(self, request: hp.GetJournalStateRequestProto) -> Message:
        """What was promised, and where segments are served."""
        reply = self._node.owner_of(request.jid.identifier).read(requests.GetJournalState())
        assert isinstance(reply, replies.JournalStateReply)
        return hp.GetJournalStateResponseProto(
            lastPromisedEpoch=reply.promised,
            httpPort=self._node.http_port,
            fromURL=self._http_url(),
        )

    async def format(self, request: hp.FormatRequestProto) -> Message:
        """Make an empty journal."""
        # Java formats all nodes of a journal together, and knows of no learners.
        asked = requests.Format(
            wire.namespace(request.nsInfo), force=request.force, incarnation=random_id()
        )
        await self._node.format(request.jid.identifier, request.nameServiceId, asked)
        return hp.FormatResponseProto()

    async def new_epoch(self, request: hp.NewEpochRequestProto) -> Message:
        """Promise an epoch."""
        reply = await self._node.owner_of(request.jid.identifier).ask(wire.new_epoch(request))
        assert isinstance(reply, replies.Promised)
        return hp.NewEpochResponseProto(lastSegmentTxId=reply.last_segment_first)

    async def journal(self, request: hp.JournalRequestProto) -> Message:
        """Write a batch."""
        # Nothing is awaited before the request is in the inbox: batches keep their order.
        await self._owner_of(request.reqInfo).ask(wire.journal(request))
        return hp.JournalResponseProto()

    async def heartbeat(self, request: hp.HeartbeatRequestProto) -> Message:
        """Hear the committed txid."""
        asked = requests.Heartbeat(wire.stamp(request.reqInfo))
        await self._owner_of(request.reqInfo).ask(asked)
        return hp.HeartbeatResponseProto()

    async def start_log_segment(self, request: hp.StartLogSegmentRequestProto) -> Message:
        """Begin a segment."""
        await self._owner_of(request.reqInfo).ask(wire.start_segment(request))
        return hp.StartLogSegmentResponseProto()

    async def finalize_log_segment(self, request: hp.FinalizeLogSegmentRequestProto) -> Message:
        """Close a segment for good."""
        await self._owner_of(request.reqInfo).ask(wire.finalize(request))
        return hp.FinalizeLogSegmentResponseProto()

    async def get_edit_log_manifest(self, request: hp.GetEditLogManifestRequestProto) -> Message:
        """Which segments can be read."""
        since = TxId(max(0, wire.signed_64(request.sinceTxId)))
        asked = requests.GetEditLogManifest(since, request.inProgressOk)
        reply = self._node.owner_of(request.jid.identifier).read(asked)
        assert isinstance(reply, replies.Manifest)
        return hp.GetEditLogManifestResponseProto(
            manifest=wire.manifest(reply), httpPort=self._node.http_port, fromURL=self._http_url()
        )

    async def prepare_recovery(self, request: hp.PrepareRecoveryRequestProto) -> Message:
        """Say what is here of a segment."""
        reply = await self._owner_of(request.reqInfo).ask(wire.prepare(request))
        assert isinstance(reply, replies.Prepared)
        return wire.prepared(reply)

    async def accept_recovery(self, request: hp.AcceptRecoveryRequestProto) -> Message:
        """Hold exactly what the source holds."""
        owner = self._owner_of(request.reqInfo)
        stamp = wire.stamp(request.reqInfo)
        state = request.stateToAccept
        first, last = wire.txid(state.startTxId), wire.txid(state.endTxId)
        if first <= 0 or last < first:
            raise BadRequest(f"bad recovery state for segment {first}: end {last}")
        if stamp.epoch < owner.state.promised:
            promised = owner.state.promised
            raise Fenced(
                f"the request's epoch {stamp.epoch} is less than the last promised epoch "
                f"{promised}",
                promised=promised,
            )
        # Java compares ends only, and leaves other bytes under the same txids as they are
        # (docs/reference/quorum-journal.md#equal-length-is-not-equal-content).  We look at what the
        # source has, and then decide as for our own writers.
        digest = await digest_of_source(request.fromURL, first, last, self._node.settings)
        decided = Segment(first, last, finalized=not state.isInProgress, digest=digest)
        asked = requests.AcceptRecovery(stamp, decided)
        await self._node.accept(owner, asked, (request.fromURL,))
        return hp.AcceptRecoveryResponseProto()

    async def get_storage_info(self, request: hp.GetStorageInfoRequestProto) -> Message:
        """Which file system the journal belongs to, for another node."""
        return wire.storage_info(self._namespace(request.jid.identifier))

    async def get_journaled_edits(self, request: hp.GetJournaledEditsRequestProto) -> Message:
        """The newest edits from memory, as far as none of them can vanish any more.

        Java's reader counts how many edits a majority has and takes them from any of these nodes,
        whoever wrote them.  It can do so safely where each node gives only what is certain.  That
        ends at the committed txid, which a Java writer tells with its next batch.

        See docs/reference/quorum-journal.md#durable-reads.
        """
        owner = self._node.owner_of(request.jid.identifier)
        since = wire.txid(request.sinceTxId)
        room = certain_until(owner.state, since) - since + 1
        wanted = min(wire.signed_32(request.maxTxns), room)
        if wanted <= 0:
            owner.read(requests.GetJournalState())  # or it is not formatted
            return hp.GetJournaledEditsResponseProto(txnCount=0)
        return wire.journaled_edits(owner.journaled_edits(since, wanted))

    async def purge_logs(self, request: hp.PurgeLogsRequestProto) -> Message:
        """Drop old segments."""
        await self._owner_of(request.reqInfo).ask(wire.purge(request))
        return hp.PurgeLogsResponseProto()

    async def unfenced(self, _request: Message) -> Message:
        """The upgrade family: Hadoop's calls do not say which writer asks."""
        raise _unsupported("a call that changes a journal must name its writer's epoch; use nnha")

    def _http_url(self) -> str:
        # Java takes scheme and port of it, and the host from its own configuration.
        host = self._node.settings.http_host
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self._node.http_port}"

    def _namespace(self, journal_id: str) -> NamespaceInfo:
        namespace = self._node.owner_of(journal_id).state.namespace
        if namespace is None:
            raise NotFormatted("the journal is not formatted on this node")
        return namespace

    def _owner_of(self, info: hp.RequestInfoProto) -> JournalOwner:
        return self._node.owner_of(info.journalId.identifier)


def hadoop_protocols(node: JournalNode) -> tuple[RpcProtocol, RpcProtocol]:
    """What a node's Hadoop RPC port serves."""
    face = QJournalFace(node)
    methods = {
        "isFormatted": _method(hp.IsFormattedRequestProto, face.is_formatted),
        "getJournalCTime": _method(hp.GetJournalCTimeRequestProto, face.get_journal_ctime),
        "getJournalState": _method(hp.GetJournalStateRequestProto, face.get_journal_state),
        "format": _method(hp.FormatRequestProto, face.format),
        "newEpoch": _method(hp.NewEpochRequestProto, face.new_epoch),
        "journal": _method(hp.JournalRequestProto, face.journal),
        "heartbeat": _method(hp.HeartbeatRequestProto, face.heartbeat),
        "startLogSegment": _method(hp.StartLogSegmentRequestProto, face.start_log_segment),
        "finalizeLogSegment": _method(hp.FinalizeLogSegmentRequestProto, face.finalize_log_segment),
        "getEditLogManifest": _method(
            hp.GetEditLogManifestRequestProto, face.get_edit_log_manifest
        ),
        "getJournaledEdits": _method(hp.GetJournaledEditsRequestProto, face.get_journaled_edits),
        "prepareRecovery": _method(hp.PrepareRecoveryRequestProto, face.prepare_recovery),
        "acceptRecovery": _method(hp.AcceptRecoveryRequestProto, face.accept_recovery),
        "purgeLogs": _method(hp.PurgeLogsRequestProto, face.purge_logs),
        "doPreUpgrade": _method(hp.DoPreUpgradeRequestProto, face.unfenced),
        "doUpgrade": _method(hp.DoUpgradeRequestProto, face.unfenced),
        "doFinalize": _method(hp.DoFinalizeRequestProto, face.unfenced),
        "canRollBack": _method(hp.CanRollBackRequestProto, face.unfenced),
        "doRollback": _method(hp.DoRollbackRequestProto, face.unfenced),
        "discardSegments": _method(hp.DiscardSegmentsRequestProto, face.unfenced),
    }
    inter = {
        "getEditLogManifestFromJournal": methods["getEditLogManifest"],
        "getStorageInfo": _method(hp.GetStorageInfoRequestProto, face.get_storage_info),
    }
    return (
        RpcProtocol(wire.QJOURNAL_PROTOCOL, methods),
        RpcProtocol(wire.INTER_QJOURNAL_PROTOCOL, inter),
    )


def build_hadoop_server(node: JournalNode) -> RpcServer:
    """A Hadoop RPC server for a node, not yet listening."""
    protocols = (*hadoop_protocols(node), own_protocol(JournalService(node)))
    return RpcServer(protocols, limits=_limits(node.settings))


def _limits(settings: NodeSettings) -> RpcLimits:
    """Few peers, each with few calls: a NameNode has one connection and one batch under way."""
    return RpcLimits(
        max_frame_bytes=settings.max_message_bytes,
        max_connections=64,
        max_calls_per_connection=64,
        max_calls=settings.max_concurrent_calls,
        stop_seconds=settings.stop_grace_seconds,
    )


def _method(request: type[Q], handle: Callable[[Q], Awaitable[Message]]) -> Method:
    async def answer(_call: Call, message: Any) -> Message:  # noqa: ANN401 - of type ``request``
        try:
            return await handle(message)
        except JournalError as error:
            raise wire.fault(error) from error

    return Method(request, answer)


def certain_until(state: JournalState, since: TxId) -> TxId:
    """The last edit from ``since`` on, without a gap, that is final or known to be on a quorum.

    Finalized bytes are what a quorum decided on.  Those of the open segment are its writer's, who
    is the one that we hear the committed txid from; an abandoned segment's may be anybody's.
    """
    until = TxId(since - 1)
    for segment in state.segments.values():
        if segment.finalized and segment.holds(TxId(until + 1)):
            until = segment.last
    if state.open is not None and state.open.first <= until + 1 < state.open.next_txid:
        until = max(until, TxId(min(state.open.next_txid - 1, state.committed)))
    return until


def _unsupported(why: str) -> RemoteFault:
    return RemoteFault(UNSUPPORTED_OPERATION, why)
