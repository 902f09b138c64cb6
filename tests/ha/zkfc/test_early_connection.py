"""A hand-over connects to the likely holder of the lock while ZooKeeper is asked who it is."""

import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest

from ha.conf.topology import HostPort
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo
from ha.rpc.client import Connection
from ha.rpc.errors import ConnectFailed
from ha.rpc.java_names import ZKFC_PROTOCOL
from ha.service.errors import ServiceFailed
from ha.zkfc.handover.early_connection import EarlyConnection
from ha.zkfc.handover.graceful_failover import HandOver, Situation
from ha.zkfc.record.attempts import Attempts
from ha.zkfc.record.takeover_record import Asked
from ha.zkfc.surroundings.surroundings import Surroundings
from tests.ha.zkfc.test_victims import settings

NN2 = HostPort("127.0.0.1", 8019)
NN3 = HostPort("127.0.0.1", 8020)


@dataclass
class Line:
    """A connection that only remembers whether it is open."""

    peer: HostPort
    open: bool = True

    async def close(self) -> None:
        self.open = False


@dataclass
class Exchange:
    """Makes such connections, or none."""

    made: list[Line] = field(default_factory=list)
    refuses: bool = False
    called: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, host: str, port: int, **_: object) -> Connection:
        self.called.set()
        if self.refuses:
            raise ConnectFailed("nobody is there")
        self.made.append(Line(HostPort(host, port)))
        return cast(Connection, self.made[-1])

    def connected_to(self) -> list[HostPort]:
        return [line.peer for line in self.made]


async def asked_for(early: EarlyConnection, peer: HostPort) -> Line:
    given = await early(peer.host, peer.port, protocol=ZKFC_PROTOCOL, deadline_seconds=1.0)
    return cast(Line, given)


async def test_who_asks_for_the_peer_gets_what_was_begun_once() -> None:
    """The one who has it closes it, so that a second one needs one of its own."""
    exchange = Exchange()
    early = EarlyConnection(exchange, NN2)
    await exchange.called.wait()
    first, second = await asked_for(early, NN2), await asked_for(early, NN2)
    assert exchange.connected_to() == [NN2, NN2]
    assert [first, second] == exchange.made
    await early.close()
    assert all(line.open for line in exchange.made)


async def test_what_was_begun_in_vain_is_hung_up() -> None:
    exchange = Exchange()
    early = EarlyConnection(exchange, NN2)
    await exchange.called.wait()
    assert await asked_for(early, NN3) is exchange.made[1]
    await early.close()
    assert [(line.peer, line.open) for line in exchange.made] == [(NN2, False), (NN3, True)]


async def test_a_peer_that_cannot_be_reached_is_told_to_who_asks_and_to_nobody_else() -> None:
    asked = EarlyConnection(Exchange(refuses=True), NN2)
    with pytest.raises(ConnectFailed, match="nobody is there"):
        await asked_for(asked, NN2)
    await asked.close()
    exchange = Exchange(refuses=True)
    in_vain = EarlyConnection(exchange, NN2)
    await exchange.called.wait()
    await in_vain.close()


HOLDERS = {"nn2": [HostPort("127.0.0.1", 0)], "nn1": [], "nn9": [], "": []}
"""By whom the notices call the lock's holder: to whom nn1's hand-over connects before it knows."""


@pytest.mark.parametrize("holder", HOLDERS)
async def test_a_hand_over_connects_while_it_asks_who_is_active(holder: str) -> None:
    exchange, wanted = Exchange(), HOLDERS[holder]

    async def nobody() -> ActiveNodeInfo | None:
        if wanted:
            await exchange.called.wait()  # it would hang, did it only connect after the answer
        return None

    hand_over = HandOver(
        settings(1, nn2=2),
        Attempts(),
        read_active=nobody,
        situation=lambda: Situation(unfit=None, serving=False, lock_holder=holder),
        come_back=lambda: None,
        around=Surroundings(connect=exchange),
    )
    async with asyncio.timeout(30.0):
        with pytest.raises(ServiceFailed, match="nobody holds the lock"):
            await hand_over.to_us(Asked("ann", "h"))
    assert exchange.connected_to() == wanted
    assert not any(line.open for line in exchange.made)
