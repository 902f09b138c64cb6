"""What fuzzing feeds of the words between processes: znodes, journal requests, lanes, blocks."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from google.protobuf.message import Message

from datanode.transfers.write_plan import write_plan
from ha.daemon.http.proof_cookie import ProofCookies
from ha.elector.model import Term
from ha.elector.term import TermRecord, decode_term, encode_term
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo
from ha.elector.zookeeper.breadcrumb import decode as decode_breadcrumb
from ha.elector.zookeeper.breadcrumb import encode as encode_breadcrumb
from ha.elector.zookeeper.errors import BadBreadcrumb
from ha.elector.zookeeper.session_ticket import SessionTicket, decode_ticket, encode_ticket
from ha.notices.codec import BadNotice, Codec
from ha.notices.model import DRAIN, MEMBER, PAUSE, RECORD
from ha.rpc.errors import MalformedFrame, RemoteFault
from ha.rpc.packets import parse_request
from ha.security.sasl.mechanism import SaslFailure
from ha.security.sasl.negotiate_header import header, token_answered, token_shown
from hadoop.blocks import PoolId
from hadoop.proto import data_transfer_pb2 as dt
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import checked_block
from hadoop.wire.errors import DataNodeError
from hadoop.wire.packets import (
    LENGTHS,
    OP_HEAD,
    PacketHeader,
    decode_op,
    decode_packet,
    encode_packet,
    parse_message,
    rest_of_packet,
)
from journal.errors import JournalError
from journal.lane import HELLO_BYTES, Hello, NoLane, hello_bytes, hello_of, rest_of_hello
from journal.messages import namespace_message, segment_message
from journal.model import Epoch, Segment, TxId
from journal.node.faces import grpc_codec, hadoop_codec
from journal.proto import hadoop_qjournal_pb2 as hp
from journal.proto import journal_pb2 as pb
from journal.refusals import REFUSAL, error_of, error_of_fault
from tests.campaigns.soak.fuzz_target import Target
from tests.hostile.shapes import Shape
from tests.journal.core.requests_of import NAMESPACE
from tests.journal.node.faces.java_writer import java_namespace

POOL: Final = PoolId("BP-1")
JID: Final = "ns1"
NOTICES: Final[Sequence[Codec[Any]]] = (PAUSE, DRAIN, MEMBER, RECORD)


def _breadcrumb(data: bytes) -> None:
    info = decode_breadcrumb(data)
    if decode_breadcrumb(encode_breadcrumb(info)) != info:
        raise AssertionError("a breadcrumb does not read back as it was written")


def _breadcrumbs() -> list[bytes]:
    return [encode_breadcrumb(ActiveNodeInfo("ns1", "nn1", "host1.example", 8020, 8019))]


def _notice(data: bytes) -> None:
    """Read each kind from the same bytes: a znode says what it is by its path alone."""
    for codec in NOTICES:
        with suppress(BadNotice):
            notice = codec.decode(data)
            codec.encode(notice)
            str(notice)


def _notices() -> list[bytes]:
    now = datetime(2026, 1, 31, tzinfo=UTC).isoformat()
    return [
        f'{{"owner": "a@h", "reason": "why", "since": "{now}", "until": null}}'.encode(),
        f'{{"owner": "a@h", "reason": "why", "since": "{now}", "namenode": "nn1"}}'.encode(),
        f'{{"namenode": "nn1", "zkfc_http": "h:1", "zkfc_rpc": "h:2", "pid": 1, "started": "{now}",'
        ' "health": "SERVICE_HEALTHY", "state": "active", "ready": true, "addresses": ["h:1"]}'
        .encode(),
        f'{{"at": "{now}", "namenode": "nn1", "cause": "c", "actor": null, "kind": "failover",'
        ' "result": "success", "failure": null, "phases": [{"name": "fence", "seconds": 1.5}],'
        ' "epoch": 3}'.encode(),
    ]  # fmt: skip


def _term(data: bytes) -> None:
    decode_term(7, data)
    decode_ticket(data)


def _terms() -> list[bytes]:
    return [encode_term(TermRecord(7, term, "nn1")) for term in Term] + [
        encode_ticket(SessionTicket(5, b"secret"))
    ]


def _lane(data: bytes) -> None:
    head = data[:HELLO_BYTES].ljust(HELLO_BYTES, b"\0")
    hello_of(head, data[HELLO_BYTES:][: rest_of_hello(head)])


def _lanes() -> list[bytes]:
    return [hello_bytes(Hello(bytes(16), JID, space)) for space in (None, 7)]


Row = tuple[Message, Callable[[Any], object]]
"""A sound message, and what is made of such a one."""

_INFO: Final = pb.RequestInfo(journal_id=JID, epoch=1, serial=1, committed_txid=3)
_SEGMENT: Final = segment_message(
    Segment(TxId(1), TxId(3), finalized=True, digest=bytes(16), writer=Epoch(1), layout_version=-65)
)
_SPACE: Final = namespace_message(NAMESPACE)

OWN_ROWS: Final[Sequence[Row]] = (
    (pb.NewEpochRequest(journal_id=JID, namespace_info=_SPACE, epoch=2), grpc_codec.new_epoch),
    (
        pb.WriteRequest(
            info=_INFO,
            batch=pb.Batch(segment_first_txid=1, first_txid=1, count=1, records=b"abc"),
        ),
        grpc_codec.write,
    ),
    (
        pb.AdmitRequest(info=_INFO, incarnation="i", required=[_SEGMENT], committed_txid=3),
        grpc_codec.admit,
    ),
    (
        pb.FormatRequest(
            journal_id=JID, namespace_info=_SPACE, force=True, seen_promised_epoch=1,
            seen_namespace_id=5,
        ),
        lambda m: (grpc_codec.seen_promised(m), grpc_codec.namespace(m.namespace_info)),
    ),
    (
        pb.AcceptRecoveryRequest(info=_INFO, segment=_SEGMENT, source_urls=["http://a/getJournal"]),
        lambda message: (grpc_codec.stamp(message.info), grpc_codec.segment(message.segment)),
    ),
    (pb.Refusal(kind=pb.Refusal.FENCED, message="no", promised_epoch=3), error_of),
)  # fmt: skip

_JAVA_INFO: Final = hp.RequestInfoProto(
    journalId=hp.JournalIdProto(identifier=JID), epoch=1, ipcSerialNumber=1, committedTxId=3
)
JAVA_ROWS: Final[Sequence[Row]] = (
    (
        hp.JournalRequestProto(
            reqInfo=_JAVA_INFO, firstTxnId=1, numTxns=1, records=b"abc", segmentTxnId=1
        ),
        hadoop_codec.journal,
    ),
    (
        hp.StartLogSegmentRequestProto(reqInfo=_JAVA_INFO, txid=1, layoutVersion=-65),
        hadoop_codec.start_segment,
    ),
    (
        hp.FinalizeLogSegmentRequestProto(reqInfo=_JAVA_INFO, startTxId=1, endTxId=3),
        hadoop_codec.finalize,
    ),
    (java_namespace(), hadoop_codec.namespace),
)


def _row(rows: Sequence[Row]) -> Callable[[bytes], None]:
    """Choose by the first byte which message the rest is."""

    def run(data: bytes) -> None:
        message, convert = rows[data[0] % len(rows) if data else 0]
        str(convert(parse_request(type(message), data[1:])))

    return run


def _seeds(rows: Sequence[Row]) -> Callable[[], Sequence[bytes]]:
    return lambda: [
        bytes((number,)) + message.SerializeToString() for number, (message, _) in enumerate(rows)
    ]


def _refusal_text(data: bytes) -> None:
    str(error_of_fault(RemoteFault(REFUSAL, data.decode("latin-1"))))


_HEADER: Final = dt.ClientOperationHeaderProto(
    baseHeader=dt.BaseHeaderProto(
        block=hdfs.ExtendedBlockProto(poolId=POOL, blockId=1, generationStamp=1001, numBytes=5)
    ),
    clientName="c",
)
_TARGET: Final = hdfs.DatanodeInfoProto(
    id=hdfs.DatanodeIDProto(
        ipAddr="127.0.0.1", hostName="h", datanodeUuid="u", xferPort=1, infoPort=0, ipcPort=0
    )
)


def _written(request: dt.OpWriteBlockProto) -> object:
    plan = write_plan(request, POOL)
    return str(plan.block), plan.checksum


TRANSFERS: Final[Mapping[int, Row]] = {
    80: (
        dt.OpWriteBlockProto(
            header=_HEADER, targets=[_TARGET, _TARGET],
            stage=dt.OpWriteBlockProto.PIPELINE_SETUP_CREATE, pipelineSize=2, minBytesRcvd=0,
            maxBytesRcvd=0, latestGenerationStamp=1001,
            requestedChecksum=dt.ChecksumProto(type=hdfs.CHECKSUM_CRC32C, bytesPerChecksum=512),
        ),
        _written,
    ),
    81: (
        dt.OpReadBlockProto(header=_HEADER, offset=0, len=5),
        lambda message: checked_block(message.header.baseHeader.block, POOL),
    ),
    85: (
        dt.OpBlockChecksumProto(header=_HEADER.baseHeader),
        lambda message: checked_block(message.header.block, POOL),
    ),
    86: (
        dt.OpTransferBlockProto(header=_HEADER, targets=[_TARGET]),
        lambda message: checked_block(message.header.baseHeader.block, POOL),
    ),
}  # fmt: skip


def _transfer(data: bytes) -> None:
    op = decode_op(data[: OP_HEAD.size].ljust(OP_HEAD.size, b"\0"))
    if op in TRANSFERS:
        message, convert = TRANSFERS[op]
        str(convert(parse_message(type(message), data[OP_HEAD.size :])))


def _transfers() -> list[bytes]:
    return [OP_HEAD.pack(28, op) + row[0].SerializeToString() for op, row in TRANSFERS.items()]


def _packet(data: bytes) -> None:
    head = data[: LENGTHS.size].ljust(LENGTHS.size, b"\0")
    size = rest_of_packet(head)
    packet = decode_packet(head + data[LENGTHS.size :][:size].ljust(size, b"\0"))
    if len(packet.data) != packet.header.length:
        raise AssertionError("a packet has other data than it says")


def _packets() -> list[bytes]:
    return [
        encode_packet(PacketHeader(0, 0, last=False, length=100), bytes(4), bytes(100)),
        encode_packet(PacketHeader(100, 1, last=True, length=0, sync=True), b"", b""),
    ]


_COOKIES: Final = ProofCookies(b"of the target", lambda: 1.0)


def _negotiate(data: bytes) -> None:
    """Read the lines as headers of a request with Negotiate, of its answer, and of a cookie."""
    lines = data.decode("latin-1").split("\n")
    for line in lines:
        if _COOKIES.principal_in(line, "10.0.0.1") not in (None, "nn/h@R"):
            raise AssertionError("a cookie that was never made is believed")
    answered = token_answered(lines)
    if answered is not None and token_answered([header(answered)]) != answered:
        raise AssertionError("a token does not read back as it was written")
    shown = token_shown(lines)
    if shown is not None and token_shown([header(shown)]) != shown:
        raise AssertionError("a token does not read back as it was written")


def _negotiations() -> list[bytes]:
    cookie = (_COOKIES.made("nn", "nn/h@R", "10.0.0.1") or "").partition(";")[0]
    whole = header(bytes(range(200)))
    return [
        whole.encode(), header(b"\x60\x06\x06\x04").encode(), f"Basic YTpi, {whole}".encode(),
        cookie.encode(), f"a=b; {cookie}".encode(),
    ]  # fmt: skip


WIRE_TARGETS: Final = (
    Target("negotiate", _negotiate, (SaslFailure,), _negotiations, Shape.LINES),
    Target("breadcrumb", _breadcrumb, (BadBreadcrumb,), _breadcrumbs, Shape.MESSAGE),
    Target("notices", _notice, (), _notices, Shape.JSON),
    Target("term", _term, (), _terms, Shape.JSON),
    Target("lane-hello", _lane, (NoLane,), _lanes),
    Target("journal-requests", _row(OWN_ROWS), (JournalError, MalformedFrame), _seeds(OWN_ROWS),
           Shape.MESSAGE, 1),
    Target("java-journal-requests", _row(JAVA_ROWS), (JournalError, MalformedFrame),
           _seeds(JAVA_ROWS), Shape.MESSAGE, 1),
    Target("refusal", _refusal_text, (), lambda: [b"CAESAm5v"]),
    Target("transfer", _transfer, (DataNodeError,), _transfers, Shape.MESSAGE, OP_HEAD.size),
    Target("packet", _packet, (DataNodeError,), _packets),
)  # fmt: skip
