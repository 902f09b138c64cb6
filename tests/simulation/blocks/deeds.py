"""What a simulated client does, one thing after another."""

import asyncio
from contextlib import suppress
from random import Random

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from tests.simulation.blocks.client import Client, GaveUp
from tests.simulation.blocks.namenode import BLOCK_SIZE
from tests.simulation.blocks.nemesis import Swarm
from tests.simulation.blocks.pipeline import BadLink
from tests.simulation.engine.trace import Trace

PATHS = 5
LONGEST = 3 * BLOCK_SIZE
APPENDING = (0, 0, 3, 3, 3, 3, 5, 7, 9, 9)
"""What is done where files are appended to and recovered more than they are written."""


class Deeds:
    """Draws what to do, and does it."""

    def __init__(self, client: Client, swarm: Swarm, trace: Trace) -> None:
        self._client, self._replication, self._trace = client, swarm.replication, trace
        self._usual, self._pause_seconds = not swarm.appending, swarm.pause_seconds
        self._random: Random = client.random

    async def until(self, ends: float) -> None:
        """Go on until then."""
        client = self._client
        while client.loop.time() < ends:
            try:
                await self._one()
            except (RemoteFault, GaveUp, BadLink) as failure:
                self._trace.add(client.name, f"fails: {failure}"[:200])
            await asyncio.sleep(self._random.random() * self._pause_seconds)

    async def _one(self) -> None:
        client, random = self._client, self._random
        path = f"/f{random.randrange(PATHS)}"
        match random.randrange(12) if self._usual else random.choice(APPENDING):
            case 0 | 1 | 2:
                length = random.randrange(LONGEST)
                self._trace.add(client.name, f"writes {length} bytes to {path}")
                await client.write(path, length, self._replication)
            case 3 | 4:
                length = random.randrange(BLOCK_SIZE)
                self._trace.add(client.name, f"appends {length} bytes to {path}")
                await client.append(path, length)
            case 5 | 6:
                await client.read(path)
            case 7 | 8:
                await self._change(path)
            case 9:
                self._trace.add(client.name, f"recovers {path}")
                await client.ask(
                    "recoverLease",
                    calls.RecoverLeaseRequestProto(src=path, clientName=client.name),
                    calls.RecoverLeaseResponseProto,
                )
            case 10:
                self._trace.add(client.name, f"deletes {path}")
                await client.ask(
                    "delete",
                    calls.DeleteRequestProto(src=path, recursive=True),
                    calls.DeleteResponseProto,
                )
            case _:
                to = f"/f{random.randrange(PATHS)}"
                await client.ask(
                    "rename",
                    calls.RenameRequestProto(src=path, dst=to),
                    calls.RenameResponseProto,
                )

    async def _change(self, path: str) -> None:
        new = self._random.randrange(1, 4)
        self._trace.add(self._client.name, f"setrep {new} {path}")
        await self._client.ask(
            "setReplication",
            calls.SetReplicationRequestProto(src=path, replication=new),
            calls.SetReplicationResponseProto,
        )


async def write_all(client: Client, replication: int) -> None:
    """Have whole files at all paths."""
    for number in range(PATHS):
        await client.write(f"/f{number}", BLOCK_SIZE // 2, replication)


async def shrink_all(client: Client, *, at_once: bool = False) -> None:
    """Have every file want one replica only, one after another or all at once."""
    if at_once:
        await asyncio.gather(*(_shrink(client, number) for number in range(PATHS)))
        return
    for number in range(PATHS):
        await _shrink(client, number)


async def _shrink(client: Client, number: int) -> None:
    request = calls.SetReplicationRequestProto(src=f"/f{number}", replication=1)
    with suppress(RemoteFault, GaveUp):
        await client.ask("setReplication", request, calls.SetReplicationResponseProto)
