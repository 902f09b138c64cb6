"""A client of HDFS that keeps trying, as Hadoop's does, and knows what it does not know.

Hadoop's client repeats an unanswered call at the next NameNode.  For calls that the NameNode
remembers (AtMostOnce) it repeats it under the same number, and so do we.  Of those that it does not
remember (Idempotent) a repeated write could take effect twice, with another client's write between:
here they are not repeated but reported as unanswered.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import Message

from ha.conf.topology import HostPort
from ha.rpc import packets
from ha.rpc.errors import MalformedFrame
from ha.rpc.frames import FrameSplitter
from ha.rpc.java_names import CLIENT_PROTOCOL, RETRIABLE, SAFE_MODE_EXCEPTION, STANDBY_EXCEPTION
from ha.security.caller import Role
from ha.security.own_tls import context_for

CONNECT_SECONDS: Final = 1.0
ATTEMPT_SECONDS: Final = 3.0
CALL_SECONDS: Final = 10.0
"""After this time a call counts as unanswered; it is not begun at another NameNode then."""
ROUND_PAUSE_SECONDS: Final = 0.1
MAX_FRAME_BYTES: Final = 1 << 20
USER: Final = "root"

_NOT_CARRIED_OUT: Final = (STANDBY_EXCEPTION, RETRIABLE, SAFE_MODE_EXCEPTION)
"""With these a NameNode says that it has not begun the call."""


class NoAnswer(Exception):
    """Whether the call was carried out is unknown; the message says what was tried."""


class NotSent(Exception):
    """The NameNode was not reached, so that it cannot have carried out the call."""


@dataclass(slots=True)
class _Line:
    """One connection; it is dropped after any trouble."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    splitter: FrameSplitter


class Caller:
    """One client, with a call under way at most, and with a connection to each NameNode."""

    def __init__(self, client_id: bytes, servers: Sequence[tuple[str, HostPort]]) -> None:
        self._client_id = client_id
        self._servers = servers
        self._lines: dict[str, _Line] = {}
        self._at = 0
        self._next_call_id = 0

    async def call(
        self, method: str, request: Message, *, again: bool
    ) -> tuple[packets.CallAnswer, str]:
        """Return the answer, maybe a refusal, and the name of the NameNode that gave it.

        ``again``: it may be sent again after an attempt without an answer.

        Raises:
            NoAnswer: there was none in time, or no other attempt may follow.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + CALL_SECONDS
        number, self._next_call_id = self._next_call_id, self._next_call_id + 1
        attempt = -1
        perhaps = False
        while loop.time() < deadline:
            name, where = self._servers[self._at]
            attempt += 1
            key = packets.CallKey(self._client_id, number, attempt)
            frame = packets.encode_call(key, CLIENT_PROTOCOL, method, request.SerializeToString())
            try:
                answer = await self._attempt(name, where, number, frame)
            except NotSent:
                pass
            except NoAnswer:
                perhaps = True
                if not again:
                    self._turn_to_next()
                    raise
            else:
                if answer.java_class not in _NOT_CARRIED_OUT:
                    return answer, name
            self._turn_to_next()
            if self._at == 0:
                await asyncio.sleep(ROUND_PAUSE_SECONDS)
        said = "one of them may have" if perhaps else "none of them has"
        raise NoAnswer(f"{method}: {attempt + 1} attempts; {said} been carried out")

    def close(self) -> None:
        for name in list(self._lines):
            self._hang_up(name)

    def _turn_to_next(self) -> None:
        self._at = (self._at + 1) % len(self._servers)

    async def _attempt(
        self, name: str, where: HostPort, number: int, frame: bytes
    ) -> packets.CallAnswer:
        line = self._lines.get(name)
        if line is None or line.reader.at_eof() or line.writer.is_closing():
            line = await self._connect(name, where)
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                line.writer.write(frame)
                await line.writer.drain()
                while True:
                    answer = await _answer(line)
                    if answer.call_id == number:
                        return answer
        except (OSError, TimeoutError, MalformedFrame) as trouble:
            self._hang_up(name)
            raise NoAnswer(f"{name}: {trouble!r}") from trouble

    async def _connect(self, name: str, where: HostPort) -> _Line:
        self._hang_up(name)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    where.host, where.port, ssl=context_for(Role.NAMENODE)
                )
        except (OSError, TimeoutError) as trouble:
            raise NotSent(f"{name}: {trouble!r}") from trouble
        writer.write(
            packets.PREAMBLE + packets.encode_context(self._client_id, CLIENT_PROTOCOL, USER, None)
        )
        self._lines[name] = line = _Line(reader, writer, FrameSplitter())
        return line

    def _hang_up(self, name: str) -> None:
        line = self._lines.pop(name, None)
        if line is not None:
            with suppress(OSError):
                line.writer.transport.abort()


async def _answer(line: _Line) -> packets.CallAnswer:
    while (frame := line.splitter.take_frame(MAX_FRAME_BYTES)) is None:
        data = await line.reader.read(1 << 16)
        if not data:
            raise ConnectionResetError("closed by the peer")
        line.splitter.feed(data)
    return packets.decode_answer(frame)
