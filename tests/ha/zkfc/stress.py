"""Hadoop's TestZKFailoverControllerStress: chaos for a while, then one active.

Each answers how often it struck.  ``world`` checks at its end that no two were active at once and
that no controller died; a seed makes the strikes the same, though not their moments.
"""

import asyncio
import random
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from tests.ha.zkfc.toy_namenode import HOST
from tests.ha.zkfc.zkfc_world import Node, World, world
from tests.stand_in import stand_in


async def expire_back_and_forth(hosts: str, folder: Path, *, seconds: float, seed: int) -> int:
    """End the owner's session; the other becomes active; then the other way round."""
    del seed  # nothing is left to chance
    loop = asyncio.get_running_loop()
    strikes = 0
    async with world(hosts, folder, "nn1", "nn2") as here:
        one, two = here.nodes
        end = loop.time() + seconds
        while loop.time() < end or strikes == 0:
            await here.move_by_expiry(one, two)
            await here.move_by_expiry(two, one)
            strikes += 2
    return strikes


async def random_expirations(hosts: str, folder: Path, *, seconds: float, seed: int) -> int:
    """End a random session every 0 to 300 ms."""
    dice = random.Random(seed)
    loop = asyncio.get_running_loop()
    strikes = 0
    async with world(hosts, folder, "nn1", "nn2") as here:
        end = loop.time() + seconds
        while loop.time() < end:
            # The chaos itself is timed; nothing waits here for something to happen.
            await asyncio.sleep(dice.uniform(0.0, 0.3))
            strikes += await _expire_if_connected(here, dice.choice(here.nodes))
        await here.one_active()
    return strikes


async def random_health_and_disconnects(
    hosts: str, folder: Path, *, seconds: float, seed: int
) -> int:
    """Fail every second check of health, and cut all connections to ZooKeeper every 50 ms."""
    dice = random.Random(seed)
    loop = asyncio.get_running_loop()
    strikes = 0
    proxy = Proxy(hosts)
    await proxy.start()
    try:
        async with world(f"{HOST}:{proxy.port}", folder, "nn1", "nn2") as here:
            for node in here.nodes:
                node.namenode.whims = dice
            end = loop.time() + seconds
            while loop.time() < end:
                await asyncio.sleep(0.05)
                strikes += proxy.cut()
            for node in here.nodes:
                node.namenode.whims = None
            await here.one_active()
    finally:
        await proxy.stop()
    return strikes


async def _expire_if_connected(here: World, node: Node) -> int:
    """End the session, unless it is just ending or beginning, which cannot be done from outside."""
    if not node.keeper._sessions:
        return 0
    session = node.keeper._sessions[max(node.keeper._sessions)]
    if session._client.client_id is None or not session._client.client_id[0]:
        return 0
    with suppress(Exception):
        # It may have ended on its own account before our strike: as good as a hit.
        await here.expire(node)
    return 1


class Proxy:
    """Stands before one ZooKeeper server and can cut all connections at once."""

    def __init__(self, target: str) -> None:
        host, _, port = target.partition(":")
        self._target = (host, int(port))
        self._writers: set[asyncio.StreamWriter] = set()
        self._listening = AsyncExitStack()
        self.port = 0

    async def start(self) -> None:
        self.port = await self._listening.enter_async_context(stand_in(self._serve))

    async def stop(self) -> None:
        await self._listening.aclose()
        self.cut()

    def cut(self) -> int:
        """Reset every connection; answers how many there were."""
        writers, self._writers = self._writers, set()
        for writer in writers:
            writer.transport.abort()
        return len(writers)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        self._writers -= {writer, far_writer}


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.close()
