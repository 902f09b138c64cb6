"""A writer's end of a lane on a blocking socket, for tests that say what no writer of ours says."""

import socket
from dataclasses import replace

from journal import lane as journal_lane
from journal.core.requests import Heartbeat, Journal
from journal.lane import LEAST_LENGTH as LEAST
from journal.proto import journal_pb2 as pb
from tests.journal.core.requests_of import NAMESPACE
from tests.journal.node.process import DEADLINE_SECONDS, JID

SPACE = NAMESPACE.namespace_id


def hello(
    key: bytes, journal_id: str = JID, namespace_id: int | None = SPACE
) -> journal_lane.Hello:
    return journal_lane.Hello(key, journal_id, namespace_id)


def message(request: Journal | Heartbeat) -> bytes:
    stamp = request.stamp
    committed = journal_lane.NONE if stamp.committed is None else stamp.committed
    segment = first = count = 0
    records = b""
    if isinstance(request, Journal):
        segment, first, count = request.segment_first, request.first, request.count
        records = request.records
    head = journal_lane.HEADER.pack(
        LEAST + len(records),
        stamp.serial,
        stamp.epoch,
        committed,
        stamp.read_lease_micros,
        segment,
        first,
        count,
    )
    return head + records


def of_no_writer(request: Journal, **changed: int) -> Journal:
    """Change fields of a batch's stamp."""
    return replace(request, stamp=replace(request.stamp, **changed))  # type: ignore[arg-type]


class RawLane:
    """Sends what the test gives it, and reads the answers."""

    def __init__(self, port: int, said: bytes) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS)
        self.connection.sendall(said)

    @classmethod
    def begun(cls, port: int, said: journal_lane.Hello) -> "RawLane":
        lane = cls(port, journal_lane.hello_bytes(said))
        assert lane.connection.recv(1) == journal_lane.WELCOME
        return lane

    @property
    def refused(self) -> bool:
        try:
            return self.connection.recv(1) == b""
        except ConnectionResetError:
            return True

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def answer(self) -> tuple[int, pb.Refusal | None]:
        length, serial = journal_lane.ANSWER.unpack(self._exactly(journal_lane.ANSWER_BYTES))
        said = self._exactly(journal_lane.LENGTH_BYTES + length - journal_lane.ANSWER_BYTES)
        return serial, pb.Refusal.FromString(said) if said else None

    def ask(self, request: Journal | Heartbeat) -> pb.Refusal | None:
        self.send(message(request))
        serial, refusal = self.answer()
        assert serial == request.stamp.serial
        return refusal

    def close(self) -> None:
        self.connection.close()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.connection.recv(size - len(data))
            assert more, "the node has closed the lane"
            data += more
        return data
