"""A client that costs little: its frames are made beforehand, and answers are only counted.

A closed loop: on each connection a fixed number of calls is outstanding.
"""

import select
import socket
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import Message

from deploy.local.cluster.errors import LocalClusterError
from ha.conf.own_user import own_user
from ha.conf.topology import HostPort
from ha.rpc.java_names import CLIENT_PROTOCOL
from ha.rpc.packets import PREAMBLE, CallKey, decode_answer, encode_call, encode_context

OUTSTANDING: Final = 64
"""In all, over however many connections."""
STALL_SECONDS: Final = 60.0
_LENGTH: Final = 4
_READ_BYTES: Final = 1 << 18


@dataclass(slots=True)
class Driven:
    """What some calls took, in seconds of time and of CPU."""

    calls: int
    seconds: float
    server_cpu: float
    client_cpu: float
    answers: list[bytes]
    """Each call's, in the order of the calls; empty where they were not asked for."""

    @property
    def rate(self) -> float:
        return self.calls / self.seconds


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    frames: Sequence[bytes] = ()
    sent: int = 0
    received: bytes = b""
    answers: list[bytes] = field(default_factory=list)

    def send(self, count: int) -> None:
        some = self.frames[self.sent : self.sent + count]
        self.sent += len(some)
        if some:
            self.socket.sendall(b"".join(some))

    def take(self, *, keep: bool) -> int:
        """Read what has come; return how many answers that completes.

        Raises:
            LocalClusterError: an answer is a failure, or the NameNode has hung up.
        """
        came = self.socket.recv(_READ_BYTES)
        if not came:
            raise LocalClusterError("a NameNode hung up on the cheap client")
        data, at, found = self.received + came, 0, 0
        while len(data) - at >= _LENGTH:
            end = at + _LENGTH + int.from_bytes(data[at : at + _LENGTH])
            if end > len(data):
                break
            if _failed(data, at + _LENGTH):
                raise LocalClusterError(f"a call failed: {decode_answer(data[at + _LENGTH : end])}")
            if keep:
                self.answers.append(data[at + _LENGTH : end])
            at, found = end, found + 1
        self.received = data[at:]
        return found


def _failed(data: bytes, at: int) -> bool:
    """Return whether the status of the answer that begins there is not SUCCESS.

    RpcHeader.proto: the header's length, then field 1, the call's id, then field 2, the status.
    """
    at += 2
    while data[at] >= 0x80:
        at += 1
    return data[at + 2] != 0


class CheapClient:
    """Some connections of the superuser to one NameNode; close it afterwards."""

    def __init__(
        self, address: HostPort, connections: int, server_cpu: Callable[[], float]
    ) -> None:
        """Open them; ask ``server_cpu`` for the CPU seconds of the NameNode until now."""
        self._server_cpu = server_cpu
        self._id, self._called = uuid.uuid4().bytes, 0
        self._connections = []
        for _ in range(connections):
            made = socket.create_connection((address.host, address.port), STALL_SECONDS)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.sendall(PREAMBLE + encode_context(self._id, CLIENT_PROTOCOL, own_user(), None))
            self._connections.append(_Connection(made))

    def close(self) -> None:
        for one in self._connections:
            one.socket.close()

    def drive(self, method: str, requests: Sequence[Message], *, keep: bool = False) -> Driven:
        """Make these calls, the first on the first connection, and so on in turn.

        Raises:
            LocalClusterError: one has failed, or no answer came for long.
        """
        frames = []
        for request in requests:
            key = CallKey(self._id, self._called, 0)
            frames.append(encode_call(key, CLIENT_PROTOCOL, method, request.SerializeToString()))
            self._called += 1
        lanes, many = self._connections, len(self._connections)
        for number, lane in enumerate(lanes):
            lane.frames, lane.sent, lane.answers = frames[number::many], 0, []
        cpu, mine, began = self._server_cpu(), time.process_time(), time.monotonic()
        self._until_all(len(frames), keep=keep)
        seconds = time.monotonic() - began
        mine, cpu = time.process_time() - mine, self._server_cpu() - cpu
        # Hadoop's handlers answer the calls of one connection in any order.
        came = [answer for lane in lanes for answer in lane.answers]
        answers = sorted(came, key=lambda answer: decode_answer(answer).call_id)
        return Driven(len(frames), seconds, cpu, mine, answers)

    def _until_all(self, left: int, *, keep: bool) -> None:
        lanes = {lane.socket.fileno(): lane for lane in self._connections}
        with select.epoll() as readable:
            for number, lane in lanes.items():
                readable.register(number, select.EPOLLIN)
                lane.send(OUTSTANDING // len(lanes))
            while left:
                ready = readable.poll(STALL_SECONDS)
                if not ready:
                    raise LocalClusterError(f"no answer for {STALL_SECONDS:g} s; {left} are open")
                for number, _ in ready:
                    found = lanes[number].take(keep=keep)
                    left -= found
                    lanes[number].send(found)
