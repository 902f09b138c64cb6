"""One JournalNode over some transport: its calls with deadlines, its errors translated."""

from collections.abc import Sequence
from typing import TypedDict, TypeVar

from google.protobuf.message import Message

from ha.conf.keys.units import HostPort
from ha.record import dataclass
from journal.lane import KEY_BYTES, Hello, Offer
from journal.links.grpc_link import GrpcLink
from journal.links.lane_client import Lane
from journal.links.link import LinkFactory, WriteStream, segment_url
from journal.messages import namespace_message, namespace_of, segment_message
from journal.model import NO_EPOCH, Epoch, JournalId, NamespaceInfo, NodeName, Segment, TxId
from journal.proto import journal_pb2 as pb

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JournalAddress:
    """Which journal on a node is meant, and how the node is reached."""

    journal_id: JournalId
    nameservice_id: str
    link: LinkFactory = GrpcLink
    read_lease_micros: int = 0
    """For how long its writer serves reads on the strength of what the node has accepted."""
    namespace_id: int | None = None
    """Its writer's file system."""


class _Names(TypedDict):
    journal_id: JournalId
    nameservice_id: str


class RemoteNode:
    """The calls that one node answers.  Each raises a JournalError, and nothing else."""

    def __init__(self, host: str, port: int, journal: JournalAddress) -> None:
        self.host = host
        self.name = NodeName(str(HostPort(host, port)))
        self._journal = journal
        self.read_lease_micros = journal.read_lease_micros
        self._names: _Names = {
            "journal_id": journal.journal_id,
            "nameservice_id": journal.nameservice_id,
        }
        self._link = journal.link(host, port)
        self.learner: str | None = None
        """The incarnation of a node that said it is a learner when it last took up a segment."""
        self.lanes: Offer | None = None
        """Where the node takes lanes, as it last reported; each report makes another object."""

    async def close(self) -> None:
        """Drop the connection and whatever is under way on it."""
        await self._link.close()

    async def wait_until_reconnected(self) -> None:
        """Return when a connection that is broken now is made again; else wait for ever."""
        await self._link.wait_until_reconnected()

    def segment_url(
        self, http_port: int, first: TxId, namespace: NamespaceInfo, *, in_progress: bool
    ) -> str:
        """Return the URL at which this node serves the segment that starts there."""
        return segment_url(
            self.host,
            http_port,
            journal_id=self._journal.journal_id,
            first=first,
            namespace=namespace,
            in_progress=in_progress,
        )

    def open_write_stream(self) -> WriteStream:
        """Open a new stream for batches and heartbeats."""
        return self._link.open_write_stream()

    async def open_lane(self, offer: Offer, deadline_seconds: float) -> Lane:
        """Open a lane to the process that has offered it; raises Unavailable."""
        journal = self._journal
        hello = Hello(offer.key, journal.journal_id, journal.namespace_id)
        return await Lane.open(self.host, offer.port, hello, deadline_seconds)

    def request_info(self, epoch: Epoch, serial: int, committed: TxId | None) -> pb.RequestInfo:
        """Return the header that each call of a writer carries."""
        return pb.RequestInfo(
            **self._names,
            epoch=epoch,
            serial=serial,
            committed_txid=committed,
            read_lease_micros=self.read_lease_micros,
            namespace_id=self._journal.namespace_id,
        )

    async def is_formatted(self, timeout_seconds: float) -> bool:
        """Return whether the journal has storage on this node."""
        return await self.namespace(timeout_seconds) is not None

    async def namespace(self, timeout_seconds: float) -> NamespaceInfo | None:
        """Return the file system of the node's journal, or None where it has no storage."""
        reply = await self._link.call(
            "IsFormatted", pb.JournalRequest(**self._names), pb.IsFormattedReply, timeout_seconds
        )
        return namespace_of(reply.namespace_info) if reply.is_formatted else None

    async def format(
        self,
        namespace: NamespaceInfo,
        *,
        force: bool,
        timeout_seconds: float,
        founding: bool = False,
        seen_promised: Epoch | None = None,
        seen_namespace_id: int | None = None,
    ) -> None:
        """Create the journal's storage; refused when there is some, unless forced.

        ``founding`` says that all nodes are formatted together; one alone has no vote.  By force
        the node refuses if it has promised a newer writer than ``seen_promised`` since, or keeps
        another file system's journal than the one that was seen.
        """
        request = pb.FormatRequest(
            **self._names,
            namespace_info=namespace_message(namespace),
            force=force,
            founding=founding,
            seen_promised_epoch=seen_promised,
            seen_namespace_id=seen_namespace_id,
        )
        await self._order("Format", request, timeout_seconds)

    async def journal_state(self, timeout_seconds: float) -> pb.GetJournalStateReply:
        return await self._link.call(
            "GetJournalState",
            pb.JournalRequest(**self._names),
            pb.GetJournalStateReply,
            timeout_seconds,
        )

    async def status(self, timeout_seconds: float) -> pb.JournalStatus:
        """Return everything that the node reports about the journal."""
        return await self._link.call(
            "GetStatus", pb.JournalRequest(**self._names), pb.JournalStatus, timeout_seconds
        )

    async def new_epoch(
        self, namespace: NamespaceInfo, epoch: Epoch, timeout_seconds: float
    ) -> pb.NewEpochReply:
        """Have the node promise an epoch; its newest segment, and when it heard a writer."""
        request = pb.NewEpochRequest(
            **self._names,
            namespace_info=namespace_message(namespace),
            epoch=epoch,
        )
        reply = await self._link.call("NewEpoch", request, pb.NewEpochReply, timeout_seconds)
        self._offered(reply)
        return reply

    async def start_segment(
        self, info: pb.RequestInfo, first: TxId, layout_version: int, timeout_seconds: float
    ) -> None:
        request = pb.StartLogSegmentRequest(
            info=info, first_txid=first, layout_version=layout_version
        )
        await self._order("StartLogSegment", request, timeout_seconds)

    async def finalize_segment(
        self, info: pb.RequestInfo, segment: Segment, timeout_seconds: float
    ) -> None:
        """Close a segment; refused by a node whose bytes have another digest."""
        request = pb.FinalizeLogSegmentRequest(
            info=info, first_txid=segment.first, last_txid=segment.last, digest=segment.digest
        )
        await self._order("FinalizeLogSegment", request, timeout_seconds)

    async def prepare_recovery(
        self, info: pb.RequestInfo, first: TxId, timeout_seconds: float
    ) -> pb.PrepareRecoveryReply:
        """Ask what the node has of a segment."""
        request = pb.PrepareRecoveryRequest(info=info, segment_first_txid=first)
        return await self._link.call(
            "PrepareRecovery", request, pb.PrepareRecoveryReply, timeout_seconds
        )

    async def peek_recovery(
        self, first: TxId | None, timeout_seconds: float
    ) -> pb.PrepareRecoveryReply:
        """Return what the node would answer to PrepareRecovery; nothing changes there."""
        request = pb.PeekRecoveryRequest(
            **self._names,
            segment_first_txid=first or 0,
        )
        return await self._link.call(
            "PeekRecovery", request, pb.PrepareRecoveryReply, timeout_seconds
        )

    async def accept_recovery(
        self,
        info: pb.RequestInfo,
        segment: Segment,
        source_urls: Sequence[str],
        timeout_seconds: float,
    ) -> None:
        """Have the node hold exactly this segment, from one of these places if it must."""
        request = pb.AcceptRecoveryRequest(
            info=info, segment=segment_message(segment), source_urls=source_urls
        )
        await self._order("AcceptRecovery", request, timeout_seconds)

    async def peer_manifest(
        self, since: TxId, timeout_seconds: float
    ) -> pb.GetEditLogManifestReply:
        """Return the finalized segments and their digests, as one node asks another for them."""
        request = pb.GetEditLogManifestRequest(
            **self._names,
            since_txid=since,
        )
        return await self._link.call(
            "GetPeerManifest", request, pb.GetEditLogManifestReply, timeout_seconds
        )

    async def admit(
        self,
        info: pb.RequestInfo,
        incarnation: str,
        required: Sequence[Segment],
        committed: TxId,
        timeout_seconds: float,
        *,
        purged: TxId | None = None,
    ) -> None:
        """Give a learner its vote; OutOfSync names the first edit that it lacks.

        ``purged`` is the voters' highest purge point, if they have any.
        """
        request = pb.AdmitRequest(
            info=info,
            incarnation=incarnation,
            required=[segment_message(segment) for segment in required],
            committed_txid=committed,
            purged_txid=purged,
        )
        await self._order("Admit", request, timeout_seconds)

    async def admit_founding(self, incarnation: str, timeout_seconds: float) -> None:
        """Give a node of an imported journal its vote, by an operator's word."""
        info = self.request_info(NO_EPOCH, 0, None)
        request = pb.AdmitRequest(info=info, incarnation=incarnation, founding=True)
        await self._order("Admit", request, timeout_seconds)

    async def pre_upgrade(self, info: pb.RequestInfo, timeout_seconds: float) -> None:
        """Keep what there is; an upgrade follows."""
        await self._order("PreUpgrade", pb.WriterRequest(info=info), timeout_seconds)

    async def upgrade(
        self, info: pb.RequestInfo, namespace: NamespaceInfo, timeout_seconds: float
    ) -> None:
        """Adopt a layout version and a creation time."""
        request = pb.UpgradeRequest(info=info, namespace_info=namespace_message(namespace))
        await self._order("Upgrade", request, timeout_seconds)

    async def finalize_upgrade(self, info: pb.RequestInfo, timeout_seconds: float) -> None:
        await self._order("FinalizeUpgrade", pb.WriterRequest(info=info), timeout_seconds)

    async def roll_back(self, info: pb.RequestInfo, timeout_seconds: float) -> None:
        """Go back to the state before the upgrade."""
        await self._order("RollBack", pb.WriterRequest(info=info), timeout_seconds)

    async def discard_segments(
        self, info: pb.RequestInfo, first: TxId, timeout_seconds: float
    ) -> None:
        """Put every segment from ``first`` on out of the way."""
        request = pb.DiscardSegmentsRequest(info=info, first_txid=first)
        await self._order("DiscardSegments", request, timeout_seconds)

    async def can_roll_back(
        self, namespace: NamespaceInfo, target_layout_version: int, timeout_seconds: float
    ) -> bool:
        """Return whether the node has an earlier state that a program of that layout reads."""
        request = pb.CanRollBackRequest(
            **self._names,
            namespace_info=namespace_message(namespace),
            target_layout_version=target_layout_version,
        )
        reply = await self._link.call("CanRollBack", request, pb.CanRollBackReply, timeout_seconds)
        return reply.can_roll_back

    async def journal_ctime(self, timeout_seconds: float) -> int:
        """Return when the journal was last upgraded."""
        reply = await self._link.call(
            "GetJournalCTime",
            pb.JournalRequest(**self._names),
            pb.GetJournalCTimeReply,
            timeout_seconds,
        )
        return reply.ctime

    async def purge_logs(self, info: pb.RequestInfo, minimum: TxId, timeout_seconds: float) -> None:
        """Let the node remove the segments that end before ``minimum``."""
        request = pb.PurgeLogsRequest(info=info, min_txid_to_keep=minimum)
        await self._order("PurgeLogs", request, timeout_seconds)

    async def resume_segment(
        self, info: pb.RequestInfo, first: TxId, layout_version: int, timeout_seconds: float
    ) -> TxId:
        """Have the node go on with the segment of this writer; the txid that it takes next."""
        request = pb.ResumeSegmentRequest(
            info=info, first_txid=first, layout_version=layout_version
        )
        reply = await self._link.call(
            "ResumeSegment", request, pb.ResumeSegmentReply, timeout_seconds
        )
        return self._read_resume_reply(reply)

    async def catch_up(
        self,
        info: pb.RequestInfo,
        segment: Segment,
        layout_version: int,
        source_urls: Sequence[str],
        timeout_seconds: float,
    ) -> TxId:
        """Have the node fetch these edits of the open segment; the txid that it takes next."""
        request = pb.CatchUpRequest(
            info=info,
            segment=segment_message(segment),
            layout_version=layout_version,
            source_urls=source_urls,
        )
        reply = await self._link.call("CatchUp", request, pb.ResumeSegmentReply, timeout_seconds)
        return self._read_resume_reply(reply)

    def _read_resume_reply(self, reply: pb.ResumeSegmentReply) -> TxId:
        self.learner = reply.incarnation if reply.is_learner else None
        self._offered(reply)
        return TxId(reply.next_txid)

    def _offered(self, reply: pb.NewEpochReply | pb.ResumeSegmentReply) -> None:
        # A node of an earlier version says nothing; one of any other key length is no node of ours.
        usable = reply.lane_port and len(reply.lane_key) == KEY_BYTES
        self.lanes = Offer(reply.lane_port, reply.lane_key) if usable else None

    async def manifest(
        self, since: TxId, *, in_progress: bool, timeout_seconds: float
    ) -> pb.GetEditLogManifestReply:
        """Return the segments that hold ``since`` or anything later."""
        request = pb.GetEditLogManifestRequest(
            **self._names,
            since_txid=since,
            in_progress_ok=in_progress,
        )
        return await self._link.call(
            "GetEditLogManifest", request, pb.GetEditLogManifestReply, timeout_seconds
        )

    async def journaled_edits(
        self, since: TxId, max_txns: int, timeout_seconds: float
    ) -> pb.GetJournaledEditsReply:
        """Return the newest edits, out of the node's memory."""
        request = pb.GetJournaledEditsRequest(
            **self._names,
            since_txid=since,
            max_txns=max_txns,
        )
        return await self._link.call(
            "GetJournaledEdits", request, pb.GetJournaledEditsReply, timeout_seconds
        )

    async def _order(self, method: str, request: Message, timeout_seconds: float) -> None:
        await self._link.call(method, request, pb.Done, timeout_seconds)
