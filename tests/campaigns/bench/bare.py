"""The peer of a quorum write: a bare gRPC stream per node, append and fdatasync, nothing else.

It has no epochs, no checks of frames or numbers, no digests, no metrics and no recovery.  What the
journal costs beyond it is the price of these.
"""

import asyncio
import os
import sys
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path
from typing import Any, Final, cast

import grpc.aio

from journal.proto import journal_pb2 as pb
from journal.proto import journal_pb2_grpc
from tests.campaigns.bench.daemon_loop import run

MERGED_BYTES: Final = 512 * 1024
_OPTIONS: Final = (("grpc.max_receive_message_length", 64 * 1024 * 1024),)


class _BareNode(journal_pb2_grpc.JournalNodeServicer):
    """Appends each batch to one file and syncs it, in the event loop."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    async def Write(
        self, stream: AsyncIterable[pb.WriteRequest], _context: object
    ) -> AsyncIterator[pb.WriteReply]:
        """Answer a batch once it is durable."""
        async for message in stream:
            os.write(self._descriptor, message.batch.records)
            os.fdatasync(self._descriptor)
            yield pb.WriteReply(serial=message.info.serial)


async def serve(path: Path) -> None:
    """Listen on a free port, print it, and serve for ever."""
    server = grpc.aio.server(options=_OPTIONS)
    add = cast(Any, journal_pb2_grpc.add_JournalNodeServicer_to_server)
    add(_BareNode(path), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await server.wait_for_termination()


class BareQuorum:
    """Writes to a majority of bare nodes; one message is under way to each."""

    def __init__(self, ports: list[int]) -> None:
        self._channels = [
            grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=_OPTIONS) for port in ports
        ]
        self._majority = len(ports) // 2 + 1
        self._queues: list[deque[tuple[bytes, asyncio.Future[None], list[int]]]] = [
            deque() for _ in ports
        ]
        self._wake = [asyncio.Event() for _ in ports]
        self._pumps = [asyncio.create_task(self._pump(index)) for index in range(len(ports))]

    async def write(self, _first: int, _count: int, records: bytes) -> None:
        """Return when a majority has the batch on disk."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        tally = [0]
        for queue, wake in zip(self._queues, self._wake, strict=True):
            queue.append((records, done, tally))
            wake.set()
        await done

    async def close(self) -> None:
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        for channel in self._channels:
            await channel.close()

    async def _pump(self, index: int) -> None:
        queue, wake, serial = self._queues[index], self._wake[index], 0
        stream = cast(Any, journal_pb2_grpc.JournalNodeStub)(self._channels[index]).Write()
        while True:
            while not queue:
                wake.clear()
                await wake.wait()
            batches, size = [queue.popleft()], 0
            size = len(batches[0][0])
            while queue and size + len(queue[0][0]) <= MERGED_BYTES:
                size += len(queue[0][0])
                batches.append(queue.popleft())
            records = batches[0][0] if len(batches) == 1 else b"".join(b[0] for b in batches)
            serial += 1
            await stream.write(
                pb.WriteRequest(
                    info=pb.RequestInfo(journal_id="bench", epoch=1, serial=serial),
                    batch=pb.Batch(records=records),
                )
            )
            await stream.read()
            for _, done, tally in batches:
                tally[0] += 1
                if tally[0] == self._majority and not done.done():
                    done.set_result(None)


if __name__ == "__main__":
    run(serve(Path(sys.argv[1])))
