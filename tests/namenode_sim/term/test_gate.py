"""Which calls a NameNode serves, holds back, or sends elsewhere."""

import asyncio

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import STANDBY_EXCEPTION
from namenode_sim.term.gate import Gate
from namenode_sim.term.role import Role


class Others:
    """What the other NameNodes would say."""

    def __init__(self, *, active: bool) -> None:
        self.active = active
        self.asked = 0

    async def any_active(self) -> bool:
        self.asked += 1
        return self.active


def gate(others: Others, park_timeout_seconds: float = 30.0) -> Gate:
    return Gate(any_peer_active=others.any_active, park_timeout_seconds=park_timeout_seconds)


async def refused(a_gate: Gate) -> None:
    with pytest.raises(RemoteFault) as refusal:
        await asyncio.wait_for(a_gate.admit("mkdirs", writes=True), 30)
    assert refusal.value.java_class == STANDBY_EXCEPTION


async def test_an_active_serves_at_once_without_asking_anybody() -> None:
    others = Others(active=False)
    a_gate = gate(others)
    a_gate.role_changed(Role.ACTIVE)
    await a_gate.admit("mkdirs", writes=True)
    assert others.asked == 0


async def test_a_standby_refuses_at_once_while_a_peer_is_active() -> None:
    await refused(gate(Others(active=True)))


async def test_a_call_is_held_until_the_takeover_is_done() -> None:
    a_gate = gate(Others(active=False))
    held = asyncio.create_task(a_gate.admit("mkdirs", writes=True))
    done, _ = await asyncio.wait({held}, timeout=0.1)
    assert not done
    a_gate.role_changed(Role.RECOVERING)
    a_gate.role_changed(Role.ACTIVE)
    await asyncio.wait_for(held, 30)


async def test_a_held_call_waits_for_no_word_of_a_silent_peer() -> None:
    silent = asyncio.Event()

    async def ask() -> bool:
        return await silent.wait()

    a_gate = Gate(any_peer_active=ask, park_timeout_seconds=30.0)
    held = asyncio.create_task(a_gate.admit("mkdirs", writes=True))
    done, _ = await asyncio.wait({held}, timeout=0.1)
    assert not done
    a_gate.role_changed(Role.RECOVERING)
    a_gate.role_changed(Role.ACTIVE)
    await asyncio.wait_for(held, 30)


async def test_a_held_call_is_sent_away_when_a_peer_becomes_active() -> None:
    others = Others(active=False)
    a_gate = gate(others)
    held = asyncio.create_task(refused(a_gate))
    done, _ = await asyncio.wait({held}, timeout=0.1)
    assert not done
    others.active = True
    await asyncio.wait_for(held, 30)


async def test_a_demoted_namenode_refuses_at_once() -> None:
    others = Others(active=False)
    a_gate = gate(others)
    a_gate.role_changed(Role.ACTIVE)
    a_gate.role_changed(Role.CLOSING)
    await refused(a_gate)
    await a_gate.close()


async def test_a_demoted_namenode_holds_calls_again_once_it_has_seen_its_successor() -> None:
    others = Others(active=False)
    a_gate = gate(others)
    a_gate.role_changed(Role.ACTIVE)
    a_gate.role_changed(Role.CLOSING)
    a_gate.role_changed(Role.STANDBY)
    others.active = True
    async with asyncio.timeout(30):
        while others.asked == 0:
            await asyncio.sleep(0.01)
    others.active = False  # the successor is demoted in its turn: we are the next
    held = asyncio.create_task(a_gate.admit("mkdirs", writes=True))
    done, _ = await asyncio.wait({held}, timeout=0.2)
    assert not done
    a_gate.role_changed(Role.ACTIVE)
    await asyncio.wait_for(held, 30)
    await a_gate.close()


async def test_a_call_is_not_held_longer_than_the_limit() -> None:
    await refused(gate(Others(active=False), park_timeout_seconds=0.05))


async def test_every_namenode_tells_its_state() -> None:
    await gate(Others(active=True)).admit("getHAServiceState", writes=False)
