"""A client that asks for a file's status all the time; as a process: until its input ends.

It prints ``ready`` after its first answer, and at the end its longest call and how many there were.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ha.conf.topology import HostPort
from hadoop.proto import client_namenode_pb2 as calls
from tests.campaigns.bench.namenode_calls import ask, connected

PAUSE_SECONDS: Final = 0.002


@dataclass(slots=True)
class Probe:
    """What the client saw, once it has ended."""

    longest_seconds: float = 0.0
    calls: int = 0


@contextmanager
def asking(address: HostPort, path: str) -> Iterator[Probe]:
    command = [sys.executable, "-m", __name__, address.host, str(address.port), path]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError("the client of getFileInfo did not start; its error is above")
        probe = Probe()
        try:
            yield probe
        finally:
            process.stdin.close()
            longest, count = process.stdout.readline().split()
            probe.longest_seconds, probe.calls = float(longest), int(count)


async def _ask(host: str, port: int, path: str) -> None:
    connection = await connected(HostPort(host, port))
    request = calls.GetFileInfoRequestProto(src=path)
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    longest, count = 0.0, 0
    while not ended.done():
        began = time.monotonic()
        answer = await ask(connection, "getFileInfo", request, calls.GetFileInfoResponseProto)
        took = time.monotonic() - began
        if not answer.HasField("fs"):
            raise RuntimeError(f"{path} is not there")
        count += 1
        if count == 1:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
        else:
            longest = max(longest, took)
        await asyncio.sleep(PAUSE_SECONDS)
    sys.stdout.write(f"{longest} {count}\n")


if __name__ == "__main__":
    asyncio.run(_ask(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
