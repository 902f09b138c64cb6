"""One connection to a server is open before it is needed; its taker closes it, as any other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from ha.conf.topology import HostPort
from ha.rpc.errors import ConnectFailed, ConnectionLost
from ha.rpc.java_names import HA_SERVICE_PROTOCOL
from ha.rpc.spare_connection import SpareConnection, SpareConnections

HERE = HostPort("127.0.0.1", 8020)
THERE = HostPort("127.0.0.1", 8021)
PATIENCE_SECONDS = 20.0


@dataclass(eq=False)
class Line:
    """A connection that only remembers whether it is gone."""

    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError("nobody asks anything here")

    async def wait_closed(self) -> Exception:
        await self.gone.wait()
        return ConnectionLost("gone")

    async def close(self) -> None:
        self.gone.set()


@dataclass
class Exchange:
    """Makes such connections, the first tries in vain if the test wants that."""

    in_vain: int = 0
    meant: HostPort | None = HERE
    made: list[Line] = field(default_factory=list)
    tried: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def __call__(self, *_: object, **__: object) -> Line:
        async with self.tried:
            self.tried.notify_all()
            if self.in_vain:
                self.in_vain -= 1
                raise ConnectFailed("nobody is there")
            self.made.append(Line())
            return self.made[-1]

    async def has_made(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), self.tried:
            await self.tried.wait_for(lambda: len(self.made) >= count)
        await asyncio.sleep(0)  # the taker goes on


@asynccontextmanager
async def kept(exchange: Exchange) -> AsyncIterator[SpareConnection]:
    spare = SpareConnection(lambda: exchange.meant, HA_SERVICE_PROTOCOL, connect=exchange)
    running = asyncio.create_task(spare.run())
    try:
        yield spare
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1, "it waits for no end any more, given away or not"


async def test_what_is_ready_is_given_once_and_another_is_ready_when_that_one_is_closed() -> None:
    exchange = Exchange()
    async with kept(exchange) as spare:
        await exchange.has_made(1)
        first = spare.take(HERE)
        assert first is exchange.made[0]
        assert spare.take(HERE) is None
        await first.close()
        await exchange.has_made(2)
        assert spare.take(HERE) is exchange.made[1]


async def test_what_is_lost_is_not_given() -> None:
    exchange = Exchange()
    async with kept(exchange) as spare:
        await exchange.has_made(1)
        exchange.made[0].gone.set()
        for _ in range(3):  # turns of the loop until who waits for its end has heard of it
            await asyncio.sleep(0)
        assert spare.take(HERE) is None


async def test_a_server_that_is_not_there_is_tried_again() -> None:
    exchange = Exchange(in_vain=1)
    async with kept(exchange) as spare:
        await exchange.has_made(1)
        assert spare.take(HERE) is exchange.made[0]


async def test_where_another_server_is_meant_that_one_is_connected_to() -> None:
    exchange = Exchange()
    async with kept(exchange) as spare:
        await exchange.has_made(1)
        assert spare.take(THERE) is None
        exchange.meant = THERE
        await exchange.has_made(2)
        assert exchange.made[0].gone.is_set()
        assert spare.take(HERE) is None
        assert spare.take(THERE) is exchange.made[1]


async def test_while_none_is_meant_none_is_kept() -> None:
    exchange = Exchange(meant=None)
    async with kept(exchange):
        await asyncio.sleep(0)
        assert not exchange.made
        exchange.meant = HERE
        await exchange.has_made(1)


async def test_nothing_stays_open_at_the_end() -> None:
    exchange = Exchange()
    async with kept(exchange):
        await exchange.has_made(1)
    assert exchange.made[0].gone.is_set()


async def test_of_several_the_one_for_the_server_gives_what_is_ready() -> None:
    here, there = Exchange(), Exchange()
    spares = SpareConnections(
        SpareConnection(lambda: HERE, HA_SERVICE_PROTOCOL, connect=here),
        SpareConnection(lambda: THERE, HA_SERVICE_PROTOCOL, connect=there),
    )
    running = asyncio.create_task(spares.run())
    await here.has_made(1)
    await there.has_made(1)
    assert spares.take(THERE) is there.made[0]
    assert spares.take(THERE) is None
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert here.made[0].gone.is_set()
