"""A gRPC call whose request does not end, in HTTP/2 by hand: its library would send it whole."""

import asyncio
import ssl
from types import TracebackType
from typing import Final, Self

from tests.campaigns.soak.fuzz_journal_doors import PREFACE, call_headers, http2_frame

DATA, HEADERS, RESET, SETTINGS, PING, AWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
ACKNOWLEDGED: Final = 1
LAST: Final = 1
INITIAL_WINDOW: Final = 4
STREAM: Final = 1
FRAME_BYTES: Final = 16 * 1024


class HalfCall:
    """One call on a connection of its own, which keeps to the windows that it is given."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._of_connection = self._of_stream = self._initial = 65_535
        self._more = asyncio.Event()
        self.sent = 0
        self.closed = asyncio.Event()
        """The server has ended it."""
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def begun(
        cls,
        port: int,
        path: str,
        size: int,
        *,
        host: str = "127.0.0.1",
        secured: ssl.SSLContext | None = None,
    ) -> "HalfCall":
        reader, writer = await asyncio.open_connection(host, port, ssl=secured)
        writer.write(PREFACE + http2_frame(HEADERS, 4, STREAM, call_headers(path.encode(), b"1H")))
        call = cls(reader, writer)
        call._say(b"\0" + size.to_bytes(4, "big"))
        return call

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        self._writer.close()

    async def push(self, size: int) -> None:
        """Send ``size`` bytes of the request as the windows allow, or until the server ends it."""
        while self.sent < size and not self.closed.is_set():
            room = min(self._of_connection, self._of_stream, FRAME_BYTES, size - self.sent)
            if room <= 0:
                self._more.clear()
                await self._more.wait()
                continue
            self._say(bytes(room))
            self.sent += room
            try:
                await self._writer.drain()
            except OSError:
                self.closed.set()

    def _say(self, data: bytes) -> None:
        self._of_connection -= len(data)
        self._of_stream -= len(data)
        self._writer.write(http2_frame(DATA, 0, STREAM, data))

    async def _listen(self) -> None:
        try:
            while True:
                head = await self._reader.readexactly(9)
                payload = await self._reader.readexactly(int.from_bytes(head[:3], "big"))
                self._hear(head[3], head[4], int.from_bytes(head[5:], "big"), payload)
                self._more.set()
        except (OSError, asyncio.IncompleteReadError):
            self.closed.set()
            self._more.set()

    def _hear(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind in (SETTINGS, PING) and not flags & ACKNOWLEDGED:
            answer = payload if kind == PING else b""
            self._writer.write(http2_frame(kind, ACKNOWLEDGED, 0, answer))
            for at in range(0, len(payload) if kind == SETTINGS else 0, 6):
                if int.from_bytes(payload[at : at + 2], "big") == INITIAL_WINDOW:
                    initial = int.from_bytes(payload[at + 2 : at + 6], "big")
                    self._of_stream += initial - self._initial
                    self._initial = initial
        elif kind == WINDOW and stream == STREAM:
            self._of_stream += int.from_bytes(payload, "big")
        elif kind == WINDOW:
            self._of_connection += int.from_bytes(payload, "big")
        elif kind in (RESET, AWAY) or (kind == HEADERS and flags & LAST):
            self.closed.set()
