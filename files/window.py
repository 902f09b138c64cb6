"""The packets of a block that not all DataNodes have acknowledged, and whose fault an error is.

Pure.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from ha.record import dataclass, field
from hadoop.proto.data_transfer_pb2 import Status
from hadoop.wire.errors import MalformedTransfer

_SUCCESS: Final = Status.SUCCESS  # looked up once: protobuf's enums take long
OUT_OF_BAND: Final = -2
"""The number of an acknowledgement that is of no packet: a DataNode says that it restarts."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A packet as it is sent, and sent again to a pipeline that goes on; it ends at ``end``."""

    seqno: int
    end: int
    raw: bytes


@dataclass(slots=True)
class Window:
    """The bytes of one block: all DataNodes have ``acked`` of them, some may have ``sent``."""

    acked: int
    sent: int
    waiting: deque[Sent] = field(default_factory=deque)

    def add(self, packet: Sent) -> None:
        """Remember a packet until it is acknowledged."""
        self.waiting.append(packet)
        self.sent = max(self.sent, packet.end)

    def acknowledge(self, seqno: int) -> None:
        """Forget the oldest packet.

        Raises:
            MalformedTransfer: if it does not have this number.
        """
        if not self.waiting or self.waiting[0].seqno != seqno:
            raise MalformedTransfer(f"packet {seqno} is acknowledged, which is not the next one")
        self.acked = self.waiting.popleft().end


def failed_node(replies: Sequence[int]) -> int | None:
    """Return the place in the pipeline of the DataNode that an acknowledgement accuses, or None.

    It is the last that does not confirm: the one before it only passes on what it has not heard.
    """
    bad = [place for place, reply in enumerate(replies) if reply != _SUCCESS]
    return bad[-1] if bad else None
