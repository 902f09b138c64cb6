"""What a writer sends again and again: batches and heartbeats."""

from dataclasses import dataclass
from typing import Protocol

from journal.model import Epoch, TxId
from journal.proto import journal_pb2 as pb


class Edits(Protocol):
    """Consecutive framed edits of one segment."""

    @property
    def segment_first(self) -> TxId:
        """The first txid of the segment."""

    @property
    def first(self) -> TxId:
        """The first txid of these edits."""

    @property
    def last(self) -> TxId:
        """The last txid of these edits."""

    @property
    def records(self) -> bytes:
        """The edits as they stand in the segment file."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A batch, or with a ``count`` of 0 a heartbeat, before it is known what carries it."""

    serial: int
    epoch: Epoch
    committed: TxId | None
    read_lease_micros: int
    segment_first: TxId = TxId(0)
    first: TxId = TxId(0)
    count: int = 0
    records: bytes = b""

    @classmethod
    def of(
        cls,
        serial: int,
        epoch: Epoch,
        committed: TxId | None,
        lease_micros: int,
        edits: Edits | None,
    ) -> "Outgoing":
        """Build a batch of these edits or, without edits, a heartbeat."""
        if edits is None:
            return cls(serial, epoch, committed, lease_micros)
        first, count = edits.first, edits.last - edits.first + 1
        segment, records = edits.segment_first, edits.records
        return cls(serial, epoch, committed, lease_micros, segment, first, count, records)

    def on_a_stream(self, info: pb.RequestInfo) -> pb.WriteRequest:
        """Return it as a request of the write stream, behind the header that every call carries."""
        if not self.count:
            return pb.WriteRequest(info=info, heartbeat=pb.Heartbeat())
        batch = pb.Batch(
            segment_first_txid=self.segment_first,
            first_txid=self.first,
            count=self.count,
            records=self.records,
        )
        return pb.WriteRequest(info=info, batch=batch)
