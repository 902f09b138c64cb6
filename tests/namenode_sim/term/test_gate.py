"""Which calls a NameNode serves, holds back, or sends elsewhere."""

import asyncio

import pytest
from prometheus_client import REGISTRY

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
    a_gate = gate(Others(active=False))
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


def told(outcome: str) -> float:
    """Return how many held calls have ended so in this process."""
    return REGISTRY.get_sample_value("nnha_parked_calls_total", {"outcome": outcome}) or 0.0


async def test_a_demotion_sends_away_the_calls_that_are_held() -> None:
    """Be active for a moment: a call that came before is not kept for the whole time."""
    a_gate = gate(Others(active=False))
    held = asyncio.create_task(refused(a_gate))
    done, _ = await asyncio.wait({held}, timeout=0.1)
    assert not done
    for role in (Role.ACTIVE, Role.CLOSING):
        a_gate.role_changed(role)
    await asyncio.wait_for(held, 20)
    await a_gate.close()


async def test_a_namenode_that_stops_sends_away_the_calls_that_are_held() -> None:
    a_gate = gate(Others(active=False))
    held = asyncio.create_task(refused(a_gate))
    done, _ = await asyncio.wait({held}, timeout=0.1)
    assert not done
    a_gate.role_changed(Role.STOPPED)
    await asyncio.wait_for(held, 20)


async def test_one_that_was_never_active_was_not_demoted() -> None:
    a_gate = gate(Others(active=False), park_timeout_seconds=0.3)
    for role in (Role.RECOVERING, Role.STANDBY):
        a_gate.role_changed(role)
    before = told("timed out")
    await refused(a_gate)
    assert told("timed out") == before + 1


async def test_one_that_takes_over_again_holds_calls_and_asks_nobody() -> None:
    """Demote it; now it is the one that clients wait for."""
    others = Others(active=False)
    a_gate = gate(others)
    for role in (Role.ACTIVE, Role.CLOSING, Role.STANDBY, Role.RECOVERING):
        a_gate.role_changed(role)
    others.active = True  # as a peer says that does not know yet
    await a_gate.close()
    asked, served = others.asked, told("served")
    held = asyncio.create_task(a_gate.admit("mkdirs", writes=True))
    done, _ = await asyncio.wait({held}, timeout=0.2)
    assert not done
    assert others.asked == asked
    a_gate.role_changed(Role.ACTIVE)
    await asyncio.wait_for(held, 30)
    assert told("served") == served + 1


async def test_a_held_call_asks_the_peers_now_and_then_and_not_all_the_time() -> None:
    others = Others(active=False)
    before = told("timed out")
    await refused(gate(others, park_timeout_seconds=0.5))
    assert 0 < others.asked <= 12
    assert told("timed out") == before + 1


async def test_nobody_looks_for_a_successor_when_the_gate_is_closed() -> None:
    others = Others(active=False)
    a_gate = gate(others)
    for role in (Role.ACTIVE, Role.CLOSING):
        a_gate.role_changed(role)
    before = asyncio.all_tasks()
    await a_gate.close()
    assert len(asyncio.all_tasks()) == len(before) - 1
    await gate(others).close()  # it has never looked


@pytest.mark.parametrize("writes", [True, False])
async def test_a_refusal_says_what_kind_of_call_it_was(*, writes: bool) -> None:
    with pytest.raises(RemoteFault, match="WRITE" if writes else "READ"):
        await gate(Others(active=True)).admit("mkdirs", writes=writes)


async def test_peers_are_told_apart_in_the_count_of_held_calls() -> None:
    before = told("another is active")
    await refused(gate(Others(active=True)))
    assert told("another is active") == before + 1
