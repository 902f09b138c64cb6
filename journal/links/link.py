"""How a client reaches one JournalNode: the seam between its calls and a transport.

The messages are those of ``journal.proto`` on every transport, so that no rule of the journal
depends on which one is used.  A link gives an answer or raises a JournalError; nothing is sent
twice behind the caller's back, for a repeated newEpoch would be refused.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import urlencode

import grpc
from google.protobuf.message import Message

from ha.record import dataclass
from ha.security.own_tls import segment_scheme
from journal.model import Epoch, JournalId, NamespaceInfo, TxId
from journal.proto import journal_pb2 as pb

M = TypeVar("M", bound=Message)

MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
"""Hadoop's ipc.maximum.data.length."""
MAX_BATCH_BYTES: Final = MAX_MESSAGE_BYTES - 64 * 1024
"""The edits of one message; the rest is for what every call carries."""


@dataclass(frozen=True, slots=True)
class WriterMessage:
    """A batch, or with a ``count`` of 0 a heartbeat, before it is known what carries it."""

    serial: int
    epoch: Epoch
    committed: TxId | None
    read_lease_micros: int
    segment_first: TxId = TxId(0)
    first: TxId = TxId(0)
    count: int = 0
    records: bytes = b""

    def stream_request(self, info: pb.RequestInfo) -> pb.WriteRequest:
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


class WriteStream(Protocol):
    """A stream of batches and heartbeats, as far as a channel uses it.

    Its end is reported as gRPC reports it; a link without gRPC raises JournalError from ``write``
    and ``read`` instead, and then has nothing to add.
    """

    async def write(self, request: pb.WriteRequest) -> None:
        """Send one request."""

    async def read(self) -> object:
        """Return the reply to the oldest request that has none yet, or grpc.aio.EOF."""

    def done(self) -> bool:
        """Return whether the stream has ended."""

    def cancel(self) -> bool:
        """End it."""

    async def code(self) -> grpc.StatusCode:
        """Return the status code with which the stream ended."""

    async def details(self) -> str | None:
        """Return why the stream ended."""

    async def trailing_metadata(self) -> Any:  # noqa: ANN401 - gRPC's own type
        """Return what the node sent last."""


class Link(Protocol):
    """A connection to one node, made when it is first used and again when it has broken."""

    async def call(
        self, method: str, request: Message, reply: type[M], timeout_seconds: float
    ) -> M:
        """Call a method of ``JournalNode``.

        Raises:
            Rejected, StorageFailed, InvariantBroken: the node's no, by kind.
            Unavailable: no answer in time, or no connection; whether the node acted is unknown.
        """

    def open_write_stream(self) -> WriteStream:
        """Open a new stream for batches and heartbeats."""

    async def wait_until_reconnected(self) -> None:
        """Return when a connection that is broken now is made again; else wait for ever."""

    async def close(self) -> None:
        """Drop the connection and whatever is under way on it."""


LinkFactory = Callable[[str, int], Link]
"""From a node's host and port."""


def segment_url(
    host: str,
    port: int,
    *,
    journal_id: JournalId,
    first: TxId,
    namespace: NamespaceInfo | None,
    in_progress: bool,
    damaged_ok: bool = False,
) -> str:
    """Return the URL of the segment that starts at ``first``, with Hadoop's path and names.

    With ``damaged_ok`` a node whose copy is damaged gives what stands before the damage.
    """
    query = {"jid": journal_id, "segmentTxId": str(first)}
    if namespace is not None:
        query["storageInfo"] = namespace.storage_info()
    query["inProgressOk"] = "true" if in_progress else "false"
    if damaged_ok:
        query["damagedOk"] = "true"
    at = f"[{host}]" if ":" in host else host
    return f"{segment_scheme()}://{at}:{port}/getJournal?{urlencode(query)}"
