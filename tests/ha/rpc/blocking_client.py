"""A client on a blocking socket, for tests in which the event loop must not help it."""

import socket
from types import TracebackType
from typing import Self

from ha.rpc.frames import FrameSplitter
from ha.rpc.packets import CallAnswer, decode_answer

DEADLINE_SECONDS = 30.0


class BlockingClient:
    """Sends what it is given, and reads answers; ``with`` closes it."""

    def __init__(self, port: int, greeting: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS)
        self.socket.sendall(greeting)
        self._splitter = FrameSplitter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def ask(self, *frames: bytes) -> list[CallAnswer]:
        self.socket.sendall(b"".join(frames))
        return [self.answer() for _ in frames]

    def answer(self) -> CallAnswer:
        while (frame := self._splitter.take_frame(1 << 30)) is None:
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                raise EOFError("the server has closed")
            self._splitter.feed(data)
        return decode_answer(frame)

    def closed(self) -> bool:
        try:
            self.answer()
        except EOFError:
            return True
        return False
