"""How long a call is held back, and that nothing a NameNode waits for outlives the wait."""

import asyncio

import pytest

from namenode_sim.term import gate as gate_module
from namenode_sim.term.gate import Gate
from namenode_sim.term.role import Role
from tests.namenode_sim.term.test_gate import Others, gate, refused


class SilentPeers:
    """NameNodes that are asked and never answer."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def any_active(self) -> bool:
        self.asked.set()
        return await asyncio.Event().wait()


def gate_beside(peers: SilentPeers) -> Gate:
    return Gate(any_peer_active=peers.any_active, park_timeout_seconds=30.0)


async def nothing_else_runs() -> bool:
    await asyncio.sleep(0)  # what was cancelled has its turn
    return asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_active_that_is_told_so_again_looks_for_no_successor() -> None:
    a_gate = gate_beside(SilentPeers())
    a_gate.role_changed(Role.ACTIVE)
    a_gate.role_changed(Role.ACTIVE)
    assert await nothing_else_runs()


async def test_a_gate_closes_although_its_peers_are_silent() -> None:
    peers = SilentPeers()
    a_gate = gate_beside(peers)
    a_gate.role_changed(Role.ACTIVE)
    a_gate.role_changed(Role.STANDBY)
    await asyncio.wait_for(peers.asked.wait(), 30)
    await asyncio.wait_for(a_gate.close(), 30)
    assert await nothing_else_runs()


async def test_who_was_just_demoted_asks_nobody_before_it_refuses() -> None:
    peers = SilentPeers()
    a_gate = gate_beside(peers)
    a_gate.role_changed(Role.ACTIVE)
    a_gate.role_changed(Role.STANDBY)
    await refused(a_gate)
    assert not peers.asked.is_set()
    await a_gate.close()


async def test_who_was_demoted_long_ago_holds_calls_like_any_standby(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gate_module, "JUST_DEMOTED_SECONDS", 0.0)
    peers = SilentPeers()
    a_gate = gate_beside(peers)
    a_gate.role_changed(Role.ACTIVE)
    a_gate.role_changed(Role.STANDBY)
    held = asyncio.create_task(a_gate.admit("mkdirs", writes=True))
    await asyncio.wait_for(peers.asked.wait(), 30)
    a_gate.role_changed(Role.ACTIVE)
    await asyncio.wait_for(held, 30)
    assert await nothing_else_runs()


async def test_who_is_sent_away_leaves_nobody_waiting_for_a_change() -> None:
    await refused(gate(Others(active=True)))
    assert await nothing_else_runs()
