"""Serves QJournalProtocol over Hadoop RPC to Java NameNodes.

It passes the same requests to the same owners as gRPC.  Java's messages lack the digests: for a
recovery this node reads the digest from the source (``digest_of_source``), and for the end of a
segment it computes its own; see docs/reference/journal-node.md#java-writers-and-readers.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import UNSUPPORTED_OPERATION
from ha.rpc.limits import RpcLimits
from ha.rpc.protocol import Call, Method, RpcProtocol
from ha.rpc.server import RpcServer
from ha.security.access_control import AccessControl
from journal.core import replies, requests
from journal.errors import BadRequest, Fenced, JournalError, NotFormatted
from journal.model import NamespaceInfo, Segment, TxId
from journal.node.faces import hadoop_codec as codec
from journal.node.faces.calls import CALLS, Row, action_of
from journal.node.faces.grpc_face import JournalService
from journal.node.node import JournalNode
from journal.node.owner.owner import JournalOwner
from journal.node.repair.segment_fetch import digest_of_source
from journal.node.repair.sources import require_peers
from journal.node.settings import NodeSettings
from journal.proto import hadoop_qjournal_pb2 as hp
from journal.proto import journal_pb2 as pb
from journal.refusals import java_fault, own_fault
from journal.storage.incarnation import random_id

Q = TypeVar("Q", bound=Message)


def _owner_of(node: JournalNode, message: Any) -> JournalOwner:  # noqa: ANN401 - any with a ``jid``
    return node.owner_of(message.jid.identifier)


def _of_writer(node: JournalNode, message: Any) -> JournalOwner:  # noqa: ANN401 - any with ``reqInfo``
    return node.owner_of(message.reqInfo.journalId.identifier)


def _order(request: type[Q], convert: Callable[[Q], requests.Request], done: type[Message]) -> Row:
    """Make the row of a writer's call whose answer is an empty message."""

    async def handle(node: JournalNode, message: Q) -> Message:
        # No await before the request is in the inbox: batches keep their order.
        await _of_writer(node, message).ask(convert(message))
        return done()

    return Row(request, handle)


def _write_row(
    request: type[Q],
    convert: Callable[[Q], requests.Journal | requests.Heartbeat],
    done: type[Message],
) -> Row:
    """Make the row of a batch or heartbeat, which the connection's thread can carry out itself.

    Like those of a lane, Java's batches then need neither the event loop nor a task.
    """

    def in_thread(node: JournalNode, message: Q) -> Message:
        _of_writer(node, message).serve_here(convert(message))
        return done()

    return replace(_order(request, convert, done), in_thread=in_thread)


async def _is_formatted(node: JournalNode, request: hp.IsFormattedRequestProto) -> Message:
    owner = node.find(request.jid.identifier)
    formatted = owner is not None and owner.state.namespace is not None
    return hp.IsFormattedResponseProto(isFormatted=formatted)


async def _journal_ctime(node: JournalNode, request: hp.GetJournalCTimeRequestProto) -> Message:
    return hp.GetJournalCTimeResponseProto(resultCTime=_namespace(node, request).ctime)


async def _storage_info(node: JournalNode, request: hp.GetStorageInfoRequestProto) -> Message:
    return codec.storage_info(_namespace(node, request))


async def _journal_state(node: JournalNode, request: hp.GetJournalStateRequestProto) -> Message:
    reply = _owner_of(node, request).read(requests.GetJournalState())
    assert isinstance(reply, replies.JournalStateReply)
    return hp.GetJournalStateResponseProto(
        lastPromisedEpoch=reply.promised, httpPort=node.http_port, fromURL=_http_url(node)
    )


async def _format(node: JournalNode, request: hp.FormatRequestProto) -> Message:
    # Java formats all nodes of a journal together, and has no learners.  Its request does not say
    # which promise it has seen, so only the namespace id of a forced format is compared.
    space = codec.namespace(request.nsInfo)
    owner = node.find(request.jid.identifier)
    asked = requests.Format(
        space,
        force=request.force,
        incarnation=random_id(),
        seen_promised=None if owner is None else owner.state.promised,
        seen_namespace_id=space.namespace_id,
    )
    await node.format(request.jid.identifier, request.nameServiceId, asked)
    return hp.FormatResponseProto()


async def _new_epoch(node: JournalNode, request: hp.NewEpochRequestProto) -> Message:
    asked = requests.NewEpoch(codec.namespace(request.nsInfo), codec.epoch(request.epoch))
    reply = await _owner_of(node, request).ask(asked)
    assert isinstance(reply, replies.Promised)
    return hp.NewEpochResponseProto(lastSegmentTxId=reply.last_segment_first)


async def _manifest(node: JournalNode, request: hp.GetEditLogManifestRequestProto) -> Message:
    since = TxId(max(0, codec.signed_64(request.sinceTxId)))
    reply = _owner_of(node, request).read(requests.GetEditLogManifest(since, request.inProgressOk))
    assert isinstance(reply, replies.Manifest)
    return hp.GetEditLogManifestResponseProto(
        manifest=codec.manifest(reply), httpPort=node.http_port, fromURL=_http_url(node)
    )


async def _prepare(node: JournalNode, request: hp.PrepareRecoveryRequestProto) -> Message:
    asked = requests.PrepareRecovery(codec.stamp(request.reqInfo), codec.txid(request.segmentTxId))
    reply = await _of_writer(node, request).ask(asked)
    assert isinstance(reply, replies.Prepared)
    return codec.prepared(reply)


async def _accept(node: JournalNode, request: hp.AcceptRecoveryRequestProto) -> Message:
    """Accept a recovery with the digest of the source's edits."""
    owner = _of_writer(node, request)
    stamp = codec.stamp(request.reqInfo)
    state = request.stateToAccept
    first, last = codec.txid(state.startTxId), codec.txid(state.endTxId)
    if first <= 0 or last < first:
        raise BadRequest(f"bad recovery state for segment {first}: end {last}")
    promised = owner.state.promised
    if stamp.epoch < promised:
        raise Fenced(
            f"the request's epoch {stamp.epoch} is less than the last promised epoch {promised}",
            promised=promised,
        )
    # Hadoop's JournalNode compares only the last txids, and keeps its copy even if its bytes differ
    # (docs/reference/quorum-journal.md#equal-length-is-not-equal-content).  This node reads the
    # source's digest first, and then decides as for nnha's writers.
    await require_peers(owner.journal_id, (request.fromURL,), node.settings)
    digest = await digest_of_source(request.fromURL, first, last, node.settings)
    decided = Segment(first, last, finalized=not state.isInProgress, digest=digest)
    await node.accept(owner, requests.AcceptRecovery(stamp, decided), (request.fromURL,))
    return hp.AcceptRecoveryResponseProto()


async def _journaled_edits(node: JournalNode, request: hp.GetJournaledEditsRequestProto) -> Message:
    """Return the newest edits from memory, also above the committed txid, as Hadoop's node does.

    Java's reader itself finds the edits that a majority has.  A Java writer sends the committed
    txid only with its next batch: if this node stopped there, an idle cluster's newest edit would
    not be read.  A node that lacks ``sinceTxId`` refuses, as an empty answer counts as a vote.

    See docs/reference/journal-node.md#java-writers-and-readers.
    """
    owner, most = _owner_of(node, request), codec.signed_32(request.maxTxns)
    return codec.journaled_edits(owner.journaled_edits(codec.txid(request.sinceTxId), most))


async def _refuse_unfenced(_node: JournalNode, _request: Message) -> Message:
    """Refuse Hadoop's upgrade calls, as they lack the writer's epoch."""
    why = "a call that changes a journal must name its writer's epoch; use nnha"
    raise RemoteFault(UNSUPPORTED_OPERATION, why)


def _http_url(node: JournalNode) -> str:
    # Java uses the scheme and port of this URL, and the host of its own configuration.
    host = node.settings.http_host
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if node.settings.https else 'http'}://{shown}:{node.http_port}"


def _namespace(node: JournalNode, message: Message) -> NamespaceInfo:
    namespace = _owner_of(node, message).state.namespace
    if namespace is None:
        raise NotFormatted("the journal is not formatted on this node")
    return namespace


_QJOURNAL_CALLS: Final[Mapping[str, Row]] = {
    "isFormatted": Row(hp.IsFormattedRequestProto, _is_formatted),
    "getJournalCTime": Row(hp.GetJournalCTimeRequestProto, _journal_ctime),
    "getJournalState": Row(hp.GetJournalStateRequestProto, _journal_state),
    "format": Row(hp.FormatRequestProto, _format),
    "newEpoch": Row(hp.NewEpochRequestProto, _new_epoch),
    "journal": _write_row(hp.JournalRequestProto, codec.journal, hp.JournalResponseProto),
    "heartbeat": _write_row(
        hp.HeartbeatRequestProto,
        lambda m: requests.Heartbeat(codec.stamp(m.reqInfo)),
        hp.HeartbeatResponseProto,
    ),
    "startLogSegment": _order(
        hp.StartLogSegmentRequestProto, codec.start_segment, hp.StartLogSegmentResponseProto
    ),
    "finalizeLogSegment": _order(
        hp.FinalizeLogSegmentRequestProto, codec.finalize, hp.FinalizeLogSegmentResponseProto
    ),
    "getEditLogManifest": Row(hp.GetEditLogManifestRequestProto, _manifest),
    "getJournaledEdits": Row(hp.GetJournaledEditsRequestProto, _journaled_edits),
    "prepareRecovery": Row(hp.PrepareRecoveryRequestProto, _prepare),
    "acceptRecovery": Row(hp.AcceptRecoveryRequestProto, _accept),
    "purgeLogs": _order(
        hp.PurgeLogsRequestProto,
        lambda m: requests.PurgeLogs(codec.stamp(m.reqInfo), codec.txid(m.minTxIdToKeep)),
        hp.PurgeLogsResponseProto,
    ),
    "doPreUpgrade": Row(hp.DoPreUpgradeRequestProto, _refuse_unfenced),
    "doUpgrade": Row(hp.DoUpgradeRequestProto, _refuse_unfenced),
    "doFinalize": Row(hp.DoFinalizeRequestProto, _refuse_unfenced),
    "canRollBack": Row(hp.CanRollBackRequestProto, _refuse_unfenced),
    "doRollback": Row(hp.DoRollbackRequestProto, _refuse_unfenced),
    "discardSegments": Row(hp.DiscardSegmentsRequestProto, _refuse_unfenced),
}
_INTER_CALLS: Final[Mapping[str, Row]] = {
    "getEditLogManifestFromJournal": _QJOURNAL_CALLS["getEditLogManifest"],
    "getStorageInfo": Row(hp.GetStorageInfoRequestProto, _storage_info),
}


def build_hadoop_server(node: JournalNode, access: AccessControl | None = None) -> RpcServer:
    """Make a Hadoop RPC server for a node, which does not listen yet.

    It serves nnha's own calls, too, with a call for each batch.  The batches of a connection keep
    their order: its calls are begun in that order, and each puts its batch into the owner's inbox
    before its first await.
    """
    service = JournalService(node)
    own = _methods(node, CALLS, own_fault)
    own["Write"] = Method(pb.WriteRequest, lambda _call, message: service.write_one(message))
    ours = RpcProtocol(pb.DESCRIPTOR.services_by_name["JournalNode"].full_name, own)
    return RpcServer((*hadoop_protocols(node), ours), limits=_limits(node.settings), access=access)


def hadoop_protocols(node: JournalNode) -> tuple[RpcProtocol, ...]:
    """Return the protocols that Hadoop's JournalNode serves."""
    return (
        RpcProtocol(codec.QJOURNAL_PROTOCOL, _methods(node, _QJOURNAL_CALLS, java_fault)),
        RpcProtocol(codec.INTER_QJOURNAL_PROTOCOL, _methods(node, _INTER_CALLS, java_fault)),
    )


def _limits(settings: NodeSettings) -> RpcLimits:
    """Return limits for few clients: a NameNode has one connection, and sends one batch at once."""
    return RpcLimits(
        max_frame_bytes=settings.max_message_bytes,
        max_connections=64,
        max_calls_per_connection=64,
        max_calls=settings.max_concurrent_calls,
        stop_seconds=settings.stop_grace_seconds,
    )


def _methods(
    node: JournalNode, rows: Mapping[str, Row], fault: Callable[[JournalError], RemoteFault]
) -> dict[str, Method]:
    def method(name: str, row: Row) -> Method:
        async def answer(_call: Call, message: Any) -> Message:  # noqa: ANN401 - row.request
            try:
                return await row.handle(node, message)
            except JournalError as error:
                raise fault(error) from error

        on_the_spot = row.in_thread
        if on_the_spot is None:
            forced = "force" in row.request.DESCRIPTOR.fields_by_name
            action = partial(action_of, name) if forced else None
            return Method(row.request, answer, action=action)

        def answer_here(message: Any) -> Message:  # noqa: ANN401 - row.request
            try:
                return on_the_spot(node, message)
            except JournalError as error:
                raise fault(error) from error

        return Method(row.request, answer, in_thread=answer_here)

    return {name: method(name, row) for name, row in rows.items()}
