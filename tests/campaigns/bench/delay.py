"""A TCP proxy that holds every byte back for 50 ms on its way in, and keeps their order."""

import asyncio
import sys
from collections import deque

DELAY_SECONDS = 0.05
_PIECE = 65536


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter, wait: float) -> None:
    """Pass bytes on; each piece as late as the first, however many follow it."""
    loop = asyncio.get_running_loop()
    late: deque[bytes] = deque()
    while piece := await source.read(_PIECE):
        if wait == 0:
            target.write(piece)
            continue
        late.append(piece)
        loop.call_later(wait, lambda: target.write(late.popleft()))
    loop.call_later(wait, target.close)


async def serve(port: int) -> None:
    """Listen on a free port, print it, and serve for ever."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(
            _copy(reader, inner_writer, DELAY_SECONDS),
            _copy(inner_reader, writer, 0),
            return_exceptions=True,
        )

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
