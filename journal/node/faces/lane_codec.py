"""Decodes the messages of a write lane, with the same checks as gRPC's, and encodes answers."""

from hmac import compare_digest
from typing import Final

from journal import lane
from journal.core.requests import Heartbeat, Journal, Stamp
from journal.errors import BadRequest, JournalError
from journal.lane import ANSWER, HEADER, NONE, SERIAL_BYTES, Hello, NoLane, Offer
from journal.model import Epoch, TxId
from journal.node.faces.grpc_codec import MAX_TXID
from journal.node.node import JournalNode
from journal.node.owner.owner import JournalOwner
from journal.refusals import refusal

_MAX_NAMESPACE_ID: Final = 2**32


class LaneFace:
    """Serves the messages of one lane, which writes to one journal of one file system."""

    def __init__(
        self, owner: JournalOwner, namespace_id: int | None, *, max_message_bytes: int
    ) -> None:
        self.owner = owner
        self._namespace_id = namespace_id
        self._max_message_bytes = max_message_bytes

    def answered(self, head: bytes, records: bytes) -> bytes:
        """Carry out a message in the calling thread, which may block, and return the answer."""
        _, serial, epoch, committed, lease, segment, first, count = HEADER.unpack(head)
        try:
            if not 0 < epoch <= MAX_TXID or serial < 0 or lease < 0:
                raise BadRequest(f"not a writer's: epoch {epoch}, serial {serial}, lease {lease}")
            stamp = Stamp(
                Epoch(epoch), serial, _decode_committed(committed), lease, self._namespace_id
            )
            self.owner.serve_here(self._request(stamp, segment, first, count, records))
        except JournalError as no:
            said = refusal(no).SerializeToString()
            return ANSWER.pack(SERIAL_BYTES + len(said), serial) + said
        return ANSWER.pack(SERIAL_BYTES, serial)

    def _request(
        self, stamp: Stamp, segment: int, first: int, count: int, records: bytes
    ) -> Journal | Heartbeat:
        size = len(records)
        if count == 0:
            if size:
                raise BadRequest(f"a heartbeat with {size} bytes of edits")
            return Heartbeat(stamp)
        if size > self._max_message_bytes:
            most = self._max_message_bytes
            raise BadRequest(f"a batch of {size} bytes; this node takes at most {most}")
        return Journal(stamp, _txid(segment), _txid(first), count, records)


def face_of(node: JournalNode, offer: Offer, hello: Hello) -> LaneFace:
    """Return the LaneFace of the journal that a hello names.

    Raises:
        NoLane: its key is not from this process, or its namespace id is not valid.
        NotFormatted: this node has no such journal.
    """
    if not compare_digest(hello.key, offer.key):
        raise NoLane("it means an earlier process of this node, or another node")
    space = hello.namespace_id
    if space is not None and not 0 <= space < _MAX_NAMESPACE_ID:
        raise NoLane(f"{space} is not a file system's id")
    owner = node.owner_of(hello.journal_id)
    return LaneFace(owner, space, max_message_bytes=node.settings.max_message_bytes)


def most_bytes(node: JournalNode) -> int:
    """Return the length in bytes of the longest message that is read, without its length field.

    A batch slightly above the limit is read, and then refused with BadRequest as over gRPC.
    """
    return node.settings.max_frame_bytes + lane.LEAST_LENGTH


def _decode_committed(value: int) -> TxId | None:
    return None if value == NONE else _txid(value)


def _txid(value: int) -> TxId:
    if not 0 <= value <= MAX_TXID:
        raise BadRequest(f"{value} is not a transaction id")
    return TxId(value)
