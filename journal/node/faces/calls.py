"""The unary calls of ``journal.proto``: each row decodes, asks the journal's owner, and encodes.

They are served over gRPC and over Hadoop RPC.  ``Write``, a stream, is in ``grpc_face``.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any, Final, Generic, TypeVar

from google.protobuf.message import Message

from ha.daemon.facts import own_facts
from ha.record import dataclass, replace
from journal.core import replies, requests
from journal.core.replies import Manifest
from journal.core.requests import GetEditLogManifest, LearnDigest
from journal.lane import Offer
from journal.messages import namespace_message
from journal.model import LAYOUT_VERSION, Epoch, TxId
from journal.node.faces import grpc_codec as codec
from journal.node.faces.grpc_codec import namespace, segment, stamp, txid
from journal.node.node import JournalNode
from journal.node.owner.owner import JournalOwner
from journal.proto import journal_pb2 as pb
from journal.storage.incarnation import random_id

Q = TypeVar("Q", bound=Message)
R = TypeVar("R")


NO_LANES: Final = Offer(0, b"")


@dataclass(frozen=True, slots=True)
class Row:
    """One call: the class of its request, and the function that answers or raises JournalError.

    ``in_thread``, if any, does the same in the calling thread, and blocks.
    """

    request: type[Message]
    handle: Callable[[JournalNode, Any], Awaitable[Message]]
    in_thread: Callable[[JournalNode, Any], Message] | None = None


@dataclass(frozen=True, slots=True)
class Answered(Generic[R]):
    """The owner's reply, and the other data that a message to the caller may contain."""

    reply: R
    owner: JournalOwner
    http_port: int
    lanes: Offer


def _owner_of(node: JournalNode, message: Any) -> JournalOwner:  # noqa: ANN401 - any request
    """Return the journal that a request names, in its RequestInfo or in a field of its own."""
    return node.owner_of(getattr(message, "info", message).journal_id)


def _offer(node: JournalNode) -> Offer:
    return NO_LANES if node.lanes is None else node.lanes.offer


def _order(request: type[Q], convert: Callable[[Q], requests.Request]) -> Row:
    """Make the row of a call whose answer is Done."""

    async def handle(node: JournalNode, message: Q) -> Message:
        await _owner_of(node, message).ask(convert(message))
        return pb.Done()

    return Row(request, handle)


def _question(
    request: type[Q],
    convert: Callable[[Q], requests.Request],
    reply: type[R],
    answer: Callable[[Answered[R]], Message],
) -> Row:
    """Make the row of a call whose answer contains data."""

    async def handle(node: JournalNode, message: Q) -> Message:
        owner = _owner_of(node, message)
        told = await owner.ask(convert(message))
        assert isinstance(told, reply)
        return answer(Answered(told, owner, node.http_port, _offer(node)))

    return Row(request, handle)


def _reading(
    request: type[Q],
    convert: Callable[[Q], requests.GetJournalState | requests.GetEditLogManifest],
    reply: type[R],
    answer: Callable[[Answered[R]], Message],
) -> Row:
    """Make the row of a read, which does not wait for the requests in the inbox."""

    async def handle(node: JournalNode, message: Q) -> Message:
        owner = _owner_of(node, message)
        told = owner.read(convert(message))
        assert isinstance(told, reply)
        return answer(Answered(told, owner, node.http_port, _offer(node)))

    return Row(request, handle)


async def _is_formatted(node: JournalNode, message: pb.JournalRequest) -> Message:
    owner = node.find(message.journal_id)
    if owner is None or owner.state.namespace is None:
        return pb.IsFormattedReply(is_formatted=False)
    info = namespace_message(owner.state.namespace)
    return pb.IsFormattedReply(is_formatted=True, namespace_info=info)


async def _format(node: JournalNode, message: pb.FormatRequest) -> Message:
    asked = requests.Format(
        namespace(message.namespace_info),
        force=message.force,
        founding=message.founding,
        incarnation=random_id(),
        seen_promised=codec.seen_promised(message),
        seen_namespace_id=message.seen_namespace_id
        if message.HasField("seen_namespace_id")
        else None,
    )
    await node.format(message.journal_id, message.nameservice_id, asked)
    return pb.Done()


async def _accept(node: JournalNode, message: pb.AcceptRecoveryRequest) -> Message:
    asked = requests.AcceptRecovery(stamp(message.info), segment(message.segment))
    await node.accept(_owner_of(node, message), asked, tuple(message.source_urls))
    return pb.Done()


async def _catch_up(node: JournalNode, message: pb.CatchUpRequest) -> Message:
    owner = _owner_of(node, message)
    layout = message.layout_version or LAYOUT_VERSION
    asked = requests.CatchUp(stamp(message.info), segment(message.segment), layout)
    next_txid = await node.catch_up(owner, asked, tuple(message.source_urls))
    return codec.resumed(next_txid, owner.state, _offer(node))


async def _journaled_edits(node: JournalNode, message: pb.GetJournaledEditsRequest) -> Message:
    owner = _owner_of(node, message)
    found = owner.journaled_edits(txid(message.since_txid), message.max_txns)
    return codec.journaled_edits(found, owner.state.committed)


async def _peer_manifest(node: JournalNode, message: pb.GetEditLogManifestRequest) -> Message:
    reply = await peer_manifest(_owner_of(node, message), txid(message.since_txid))
    return codec.manifest(reply, node.http_port)


def _journal_state(promised: Epoch, http_port: int, owner: JournalOwner) -> Message:
    ago, stamp = owner.writer_heard_seconds_ago(), owner.heard
    return pb.GetJournalStateReply(
        last_promised_epoch=promised,
        http_port=http_port,
        heard_epoch=0 if stamp is None else stamp.epoch,
        heard_micros_ago=int(ago * 1e6),
        heard_read_lease_micros=0 if stamp is None else stamp.read_lease_micros,
    )


async def _status(node: JournalNode, message: pb.JournalRequest) -> Message:
    owner, facts = _owner_of(node, message), own_facts()
    return codec.status(
        owner.state,
        daemon=None if facts is None else pb.Daemon(**asdict(facts.about())),
        http_port=node.http_port,
        disk=node.disk_bytes(owner.journal_id),
        failed_because=owner.failed_because,
        disk_warning=node.disk_warning(owner.journal_id),
        write_lanes=0 if node.lanes is None else node.lanes.open_to(owner.journal_id),
    )


def action_of(name: str, request: Message) -> str:
    """Return a call's name in the table of rights, where a forced call has a row of its own."""
    return f"{name} force" if getattr(request, "force", False) else name


CALLS: Final[Mapping[str, Row]] = {
    "IsFormatted": Row(pb.JournalRequest, _is_formatted),
    "Format": Row(pb.FormatRequest, _format),
    "GetStatus": Row(pb.JournalRequest, _status),
    "GetJournalState": _reading(
        pb.JournalRequest,
        lambda _: requests.GetJournalState(),
        replies.JournalStateReply,
        lambda a: _journal_state(a.reply.promised, a.http_port, a.owner),
    ),
    "NewEpoch": _question(
        pb.NewEpochRequest,
        codec.new_epoch,
        replies.Promised,
        lambda a: pb.NewEpochReply(
            last_segment_txid=a.reply.last_segment_first,
            incarnation=a.owner.state.incarnation,
            previous_writer_heard_micros_ago=int(a.owner.writer_heard_seconds_ago() * 1e6),
            previous_read_lease_micros=a.owner.state.read_lease_micros,
            lane_port=a.lanes.port,
            lane_key=a.lanes.key,
        ),
    ),
    "PrepareRecovery": _question(
        pb.PrepareRecoveryRequest,
        lambda m: requests.PrepareRecovery(stamp(m.info), txid(m.segment_first_txid)),
        replies.Prepared,
        lambda a: codec.prepared(a.reply, a.http_port),
    ),
    "PeekRecovery": _question(
        pb.PeekRecoveryRequest,
        lambda m: requests.PeekRecovery(txid(m.segment_first_txid) or None),
        replies.Prepared,
        lambda a: codec.prepared(a.reply, a.http_port),
    ),
    "AcceptRecovery": Row(pb.AcceptRecoveryRequest, _accept),
    "StartLogSegment": _order(
        pb.StartLogSegmentRequest,
        # A request without a layout version means the one that this release writes.
        lambda m: requests.StartLogSegment(
            stamp(m.info), txid(m.first_txid), m.layout_version or LAYOUT_VERSION
        ),
    ),
    "ResumeSegment": _question(
        pb.ResumeSegmentRequest,
        lambda m: requests.ResumeSegment(
            stamp(m.info), txid(m.first_txid), m.layout_version or LAYOUT_VERSION
        ),
        replies.Resumed,
        lambda a: codec.resumed(a.reply.next_txid, a.owner.state, a.lanes),
    ),
    "CatchUp": Row(pb.CatchUpRequest, _catch_up),
    "FinalizeLogSegment": _order(
        pb.FinalizeLogSegmentRequest,
        lambda m: requests.FinalizeLogSegment(
            stamp(m.info), txid(m.first_txid), txid(m.last_txid), m.digest
        ),
    ),
    "GetEditLogManifest": _reading(
        pb.GetEditLogManifestRequest,
        lambda m: requests.GetEditLogManifest(txid(m.since_txid), m.in_progress_ok),
        replies.Manifest,
        lambda a: codec.manifest(a.reply, a.http_port),
    ),
    "GetPeerManifest": Row(pb.GetEditLogManifestRequest, _peer_manifest),
    "GetJournaledEdits": Row(pb.GetJournaledEditsRequest, _journaled_edits),
    "Admit": _order(pb.AdmitRequest, codec.admit),
    "PurgeLogs": _order(
        pb.PurgeLogsRequest,
        lambda m: requests.PurgeLogs(stamp(m.info), txid(m.min_txid_to_keep)),
    ),
    "PreUpgrade": _order(pb.WriterRequest, lambda m: requests.PreUpgrade(stamp(m.info))),
    "Upgrade": _order(
        pb.UpgradeRequest,
        lambda m: requests.Upgrade(stamp(m.info), namespace(m.namespace_info)),
    ),
    "FinalizeUpgrade": _order(pb.WriterRequest, lambda m: requests.FinalizeUpgrade(stamp(m.info))),
    "RollBack": _order(pb.WriterRequest, lambda m: requests.RollBack(stamp(m.info))),
    "DiscardSegments": _order(
        pb.DiscardSegmentsRequest,
        lambda m: requests.DiscardSegments(stamp(m.info), txid(m.first_txid)),
    ),
    "CanRollBack": _question(
        pb.CanRollBackRequest,
        lambda m: requests.CanRollBack(namespace(m.namespace_info), m.target_layout_version),
        replies.RollBackAnswer,
        lambda a: pb.CanRollBackReply(can_roll_back=a.reply.possible),
    ),
    "GetJournalCTime": _question(
        pb.JournalRequest,
        lambda _: requests.GetJournalCTime(),
        replies.CTime,
        lambda a: pb.GetJournalCTimeReply(ctime=a.reply.value),
    ),
}


MAX_DIGESTS_PER_CALL: Final = 8


async def peer_manifest(owner: JournalOwner, since: TxId) -> Manifest:
    """Return this node's finalized segments from ``since`` on, each with its digest.

    Unknown digests, as of files that Hadoop wrote, are computed, ``MAX_DIGESTS_PER_CALL`` in each
    call; segments whose digest is still unknown are left out until a later call.
    """
    listed = _list_segments(owner, since)
    for listed_one in [one for one in listed.segments if not one.digest][:MAX_DIGESTS_PER_CALL]:
        await owner.ask(LearnDigest(listed_one.first))
    listed = _list_segments(owner, since)
    known = tuple(one for one in listed.segments if one.finalized and one.digest)
    return replace(listed, segments=known)


def _list_segments(owner: JournalOwner, since: TxId) -> Manifest:
    listed = owner.read(GetEditLogManifest(since))
    assert isinstance(listed, Manifest)
    return listed
