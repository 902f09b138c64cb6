"""A controller is stopped, or killed: what becomes of its active NameNode."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ha.elector.model import Role
from ha.elector.zookeeper.znodes import connected, read_active
from ha.notices.model import FailoverKind, Pause
from ha.notices.store import clear_pause, read_history, write_pause
from ha.service.model import ServiceState
from tests.ha.zkfc.zkfc_world import Node, World, Worlds

pytestmark = pytest.mark.zookeeper


async def knows_a_successor(here: World) -> None:
    """Wait until the first controller has read in ZooKeeper that the second could take over."""

    def known() -> bool:
        notices = here.nodes[0].zkfc.candidacy.standing.notices
        members = () if notices is None else notices.members
        return any(one.in_election and one.ready and one.state == "standby" for one in members)

    await here.until(known, "a fit member is known")


def _knows_of_a_pause(node: Node) -> bool:
    notices = node.zkfc.candidacy.standing.notices
    return notices is not None and notices.pause is not None


@pytest.mark.row("8.13 10", "W14")
async def test_w14_8_13_10_sigterm_hands_over_first(here: World) -> None:
    """Play the schedule: the active's controller is stopped for an upgrade.

    Hadoop's lets its lock expire: for a session timeout there is no failover, then the peer fences.
    """
    one, two = here.nodes
    await knows_a_successor(here)
    await one.terminate()
    await here.active(two)
    assert one.namenode.state is ServiceState.STANDBY
    assert here.fenced() == []
    assert two.namenode.told_gone == [True]
    async with connected(here.zookeeper, deadline_seconds=10.0) as session:
        async with asyncio.timeout(30):
            while not (found := await read_history(session, here.zookeeper, 1))[0].record or (
                found[0].record.namenode != "nn2"
            ):
                await asyncio.sleep(0.02)
    record = found[0].record
    assert record.kind is FailoverKind.SWITCHOVER
    assert record.cause.endswith("the zkfc of nn1 is being stopped")
    # A controller that is started again is a standby, and may take over when asked.
    await here.start(one)
    await here.standby(one)


@pytest.mark.row("W14")
async def test_w14_sigterm_of_a_standby_moves_nothing(here: World) -> None:
    one, two = here.nodes
    await two.zkfc.cede(60.0)  # it is to look again once that is over
    await two.terminate()
    assert one.namenode.active_transitions == 1
    assert one.zkfc.elector.state.role is Role.ACTIVE


@pytest.mark.row("W14")
async def test_w14_with_nobody_fit_the_namenode_stays_active(here: World) -> None:
    one, two = here.nodes
    two.namenode.healthy = False
    await here.until(lambda: not two.zkfc.candidacy.joined, "nn2 out")
    await one.terminate()
    assert one.namenode.state is ServiceState.ACTIVE
    assert await read_active(here.zookeeper, deadline_seconds=10.0) is None
    assert two.namenode.active_transitions == 0


@pytest.mark.row("W14")
async def test_w14_the_key_switches_it_off(worlds: Worlds) -> None:
    async with worlds() as here:
        here.settings_hook = lambda settings: replace(settings, hand_over_on_stop=False)
        one, two = await here.add("nn1"), await here.add("nn2")
        await here.start(one)
        await here.active(one)
        await here.start(two)
        await here.standby(two)
        await knows_a_successor(here)
        await one.zkfc.hand_over_before_stop()
        assert one.namenode.state is ServiceState.ACTIVE
        assert one.zkfc.elector.state.role is Role.ACTIVE
        # Then the lock is free, and the peer takes over politely.
        await one.stop()
        await here.active(two)
        assert here.fenced() == []


@pytest.mark.row("W14")
async def test_w14_a_successor_that_hangs_costs_no_more_than_the_limit(worlds: Worlds) -> None:
    async with worlds() as here:
        here.settings_hook = lambda settings: replace(settings, stop_timeout_seconds=0.5)
        one, two = await here.add("nn1"), await here.add("nn2")
        await here.start(one)
        await here.active(one)
        await here.start(two)
        await here.standby(two)
        await knows_a_successor(here)
        two.namenode.hold_promotion = asyncio.Event()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await one.zkfc.hand_over_before_stop()
        assert 0.4 < loop.time() - begun < 4.0
        two.namenode.hold_promotion.set()
        await one.stop()
        await here.active(two)


@pytest.mark.row("W14", "W19")
async def test_w14_w19_in_a_pause_a_controller_is_restarted_without_failover(here: World) -> None:
    """Hadoop has no way to restart the active's controller without a failover."""
    one, two = here.nodes
    await knows_a_successor(here)
    pause = Pause(owner="ann@h", reason="upgrade", since=datetime.now(UTC), until=None)
    async with connected(here.zookeeper, deadline_seconds=10.0) as session:
        await write_pause(session, here.zookeeper, pause)
        await here.until(lambda: all(map(_knows_of_a_pause, here.nodes)), "the pause is known")
        await one.terminate()
        assert one.namenode.state is ServiceState.ACTIVE
        await here.start(one)
        await here.active(one)
        assert "standby by ZKFC" not in one.namenode.seen
        assert two.namenode.active_transitions == 0
        await clear_pause(session, here.zookeeper)
    await here.standby(two)
    assert await here.one_active() is one


async def test_sigterm_while_taking_over_by_request_lets_the_others_go(worlds: Worlds) -> None:
    """Play the schedule: nn2's controller has made the others stand back, and is stopped itself.

    They must not stay out for as long as they were asked to: no other candidate would come.
    """
    async with worlds() as here:
        here.settings_hook = lambda settings: replace(settings, graceful_fence_timeout_seconds=30.0)
        for name in ("nn1", "nn2", "nn3"):
            await here.add(name)
        one, two, _ = here.nodes
        for node in here.nodes:
            await here.start(node)
            await (here.active if node is one else here.standby)(node)
        two.namenode.hold_promotion = asyncio.Event()
        client = await two.rpc()
        asking = asyncio.create_task(client.graceful_failover(deadline_seconds=90.0))
        await here.until(lambda: two.namenode.active_transitions == 1, "promotion under way")
        begun = asyncio.get_running_loop().time()
        await two.stop()
        two.namenode.hold_promotion.set()
        await asyncio.wait({asking})
        assert asking.exception() is not None
        await client.close()
        here.nodes.remove(two)
        try:
            await here.one_active()
        finally:
            here.nodes.append(two)
        assert asyncio.get_running_loop().time() - begun < 55  # asked to stand back for 60 s


async def test_the_active_stays_active_when_the_session_of_its_killed_controller_ends(
    here: World,
) -> None:
    """Play the schedule: both controllers see the lock disappear, and the standby's is quicker."""
    one, two = here.nodes
    expire = one.gate.kill()
    await one.stop()
    await here.start(one)
    await here.until(lambda: one.zkfc.lock_of_earlier_process, "nn1's old lock is recognized")
    await here.until(lambda: not two.zkfc.candidacy.joined, "nn2 leaves the lock to nn1")
    one.gate.holds_creates = True
    await asyncio.to_thread(expire)
    await here.until(lambda: one.gate.holds_something, "nn1 asks for the lock")
    one.gate.open()
    await here.active(one)
    await here.until(lambda: two.zkfc.candidacy.joined, "nn2 stands again")
    assert two.namenode.active_transitions == 0
    assert "standby by ZKFC" not in one.namenode.seen
    assert here.fenced() == []


@pytest.mark.row("W14")
@pytest.mark.parametrize("winner", ["nn1", "nn2"])
async def test_w14_a_killed_controller_that_is_back_spares_its_active(
    here: World, winner: str
) -> None:
    """Play the schedule: the active's controller is killed, and back while its old session lives.

    The lock is not the new session's.  Hadoop's controller makes its healthy NameNode standby, and
    there is no active until the old session is over.
    """
    one, two = here.nodes
    expire = one.gate.kill()
    await one.stop()
    await here.start(one)
    await here.until(
        lambda: one.zkfc._own_stale_lock.skipped_demotion, "nn1's old lock is recognized"
    )
    assert one.namenode.state is ServiceState.ACTIVE
    assert "standby by ZKFC" not in one.namenode.seen
    loser = two if winner == "nn1" else one
    loser.gate.holds_creates = True
    await asyncio.to_thread(expire)
    await here.active(one if winner == "nn1" else two)
    loser.gate.open()
    active = await here.one_active()
    assert active.name == winner
    assert here.fenced() == []
    if winner == "nn1":
        assert two.namenode.active_transitions == 0
    else:
        await here.standby(one)
        assert one.namenode.seen[-1] == "standby by ZKFC"
