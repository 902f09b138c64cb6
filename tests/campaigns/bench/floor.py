"""The floor of a quorum write: raw TCP and fdatasync, with nothing else around them.

``serve`` runs as a process of its own: it appends each length-prefixed batch to a file, flushes
it and answers one byte.  ``FloorWriter`` sends every batch to all of them and returns when a
majority has answered.
"""

import asyncio
import os
import struct
import sys
from pathlib import Path

from tests.campaigns.bench.daemon_loop import run

_LENGTH = struct.Struct(">I")


async def serve(path: Path) -> None:
    """Listen on a free port, print it, and serve for ever."""
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
                os.write(descriptor, await reader.readexactly(size))
                os.fdatasync(descriptor)
                writer.write(b"\0")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


class FloorWriter:
    """Writes batches to a majority of floor servers."""

    def __init__(self, streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> None:
        self._writers = [writer for _, writer in streams]
        self._majority = len(streams) // 2 + 1
        self._acknowledged = [0] * len(streams)
        self._sent = 0
        self._won: asyncio.Future[None] | None = None
        self._readers = [
            asyncio.create_task(self._read(index, reader))
            for index, (reader, _) in enumerate(streams)
        ]

    @classmethod
    async def connect(cls, ports: list[int]) -> "FloorWriter":
        return cls([await asyncio.open_connection("127.0.0.1", port) for port in ports])

    async def write(self, records: bytes) -> None:
        """Return when a majority has the batch on disk."""
        self._sent += 1
        self._won = asyncio.get_running_loop().create_future()
        for writer in self._writers:
            writer.write(_LENGTH.pack(len(records)) + records)
        await self._won

    async def close(self) -> None:
        for task in self._readers:
            task.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        for writer in self._writers:
            writer.close()

    async def _read(self, index: int, reader: asyncio.StreamReader) -> None:
        while answers := await reader.read(4096):
            self._acknowledged[index] += len(answers)
            have = sum(count >= self._sent for count in self._acknowledged)
            if have >= self._majority and self._won is not None and not self._won.done():
                self._won.set_result(None)


if __name__ == "__main__":
    run(serve(Path(sys.argv[1])))
