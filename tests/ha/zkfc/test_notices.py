"""Pause, drain, rank and observers on a real ZooKeeper."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ha.elector.model import Role
from ha.elector.zookeeper.errors import ZooKeeperUnavailable
from ha.elector.zookeeper.outcome import Done
from ha.elector.zookeeper.znodes import connected
from ha.health.core import Health
from ha.notices.model import Drain, Pause
from ha.notices.store import clear_drain, clear_pause, write_drain, write_pause
from ha.service.errors import ServiceFailed
from ha.service.model import ServiceState
from ha.zkfc.candidacy.eligibility import Rank
from ha.zkfc.settings.settings import ZkfcSettings
from tests.ha.zkfc.zkfc_world import DEADLINE_SECONDS, Node, World, Worlds, is_active

pytestmark = pytest.mark.zookeeper

PAUSE = Pause(owner="ann@ops1", reason="switch", since=datetime.now(UTC), until=None)
DRAIN = Drain(owner="bob@ops1", reason="disk", since=datetime.now(UTC), until=None)


def ranked(ranks: Mapping[str, Rank]) -> Callable[[ZkfcSettings], ZkfcSettings]:
    """Return settings with these ranks, by NameNode; the others keep the default."""

    def ranked_settings(settings: ZkfcSettings) -> ZkfcSettings:
        return replace(settings, rank=ranks.get(settings.own.namenode, settings.rank))

    return ranked_settings


async def pause(here: World, *nodes: Node, until: datetime | None = None) -> None:
    """Pause, and wait until these controllers have seen it."""
    async with connected(here.zookeeper, deadline_seconds=10.0) as session:
        await write_pause(
            session, here.zookeeper, replace(PAUSE, since=datetime.now(UTC), until=until)
        )
    for node in nodes:
        await here.until(lambda: _page(node)["pause"], f"{node.name} sees it")  # noqa: B023


async def resume(here: World) -> None:
    async with connected(here.zookeeper, deadline_seconds=10.0) as session:
        assert await clear_pause(session, here.zookeeper)


async def drain(here: World, node: Node) -> None:
    async with connected(here.zookeeper, deadline_seconds=10.0) as session:
        await write_drain(session, here.zookeeper, node.name, DRAIN)


async def undrain(here: World, node: Node) -> None:
    async with connected(here.zookeeper, deadline_seconds=10.0) as session:
        assert await clear_drain(session, here.zookeeper, node.name)


async def lock_is_free(here: World) -> bool:
    async with connected(here.zookeeper, deadline_seconds=10.0) as session:
        looked = await session.look(here.zookeeper.lock)
    assert isinstance(looked, Done)
    return looked.value is None


async def until_lock_is_free(here: World) -> None:
    """Wait for the release by a controller that has just left the election."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not await lock_is_free(here):
            pass


def _page(node: Node) -> Mapping[str, object]:
    zkfc = node.zkfc
    return zkfc.observer.status(
        zkfc.monitor.state, zkfc.elector.state, zkfc.candidacy, zkfc.elector.keeper
    )


async def ask_to_take_over(node: Node) -> None:
    """gracefulFailover, as haadmin sends it."""
    client = await node.rpc()
    try:
        await client.graceful_failover(deadline_seconds=30.0)
    finally:
        await client.close()


async def out(here: World, node: Node, because: str) -> None:
    await here.until(
        lambda: not node.zkfc.candidacy.joined and because in node.zkfc.candidacy.out_because,
        f"{node.name} out: {because}",
    )


@pytest.mark.row("W19")
async def test_w19_in_a_pause_a_dead_active_is_not_replaced_until_the_pause_ends(
    here: World,
) -> None:
    one, other = here.nodes
    await pause(here, one, other)
    await out(here, other, "paused by ann@ops1: switch")
    assert is_active(one)
    await one.namenode.die()
    await here.until(lambda: one.zkfc.candidacy.health is Health.NOT_RESPONDING, "noticed")
    assert "paused by ann" in str(_page(one)["kept_because"])
    assert not await lock_is_free(here)
    assert other.namenode.active_transitions == 0
    await resume(here)
    await here.active(other)
    assert here.fenced() == ["nn1"]


@pytest.mark.row("W19")
async def test_w19_an_active_may_be_restarted_in_a_pause_and_is_replaced_only_after_it(
    here: World,
) -> None:
    one, other = here.nodes
    await pause(here, one, other)
    await one.namenode.die()
    await here.until(lambda: one.zkfc.candidacy.health is Health.NOT_RESPONDING, "gone")
    await one.namenode.start()
    await here.until(
        lambda: "says that it is standby, not active" in str(_page(one)["kept_because"]),
        "back as a standby, and left so",
    )
    assert not await lock_is_free(here)
    assert one.namenode.active_transitions == 1
    await resume(here)
    await here.one_active()


@pytest.mark.row("W19")
async def test_w19_in_a_pause_nobody_takes_a_free_lock_but_the_active_takes_its_own_again(
    here: World,
) -> None:
    one, other = here.nodes
    await pause(here, one, other)
    await out(here, other, "paused")
    one.gate.shut()
    await here.expire(one)
    await here.until(lambda: _page(other)["lock_holder"] == "", "free")
    assert one.namenode.state is ServiceState.ACTIVE
    assert other.zkfc.elector.state.role is Role.INIT
    one.gate.open()
    await here.active(one)
    assert other.namenode.active_transitions == 0


@pytest.mark.row("W19")
async def test_w19_an_operator_may_hand_over_in_a_pause(here: World) -> None:
    one, other = here.nodes
    await pause(here, one, other)
    await ask_to_take_over(other)
    assert is_active(other)
    await out(here, one, "paused")
    assert one.namenode.state is ServiceState.STANDBY
    other.namenode.fail_to_become_standby = False
    one.namenode.fail_to_become_active = True
    with pytest.raises(ServiceFailed):
        await ask_to_take_over(one)
    # It came to nothing: the one that gave the lock away has it again, pause or not.
    await here.active(other)
    await out(here, one, "paused")


async def test_the_failure_of_one_operator_s_hand_over_is_not_the_end_of_the_next_one_s(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard the second: it would have had the active cede, and have stayed out of the election."""
    one, other = here.nodes
    await pause(here, one, other)
    hand_over, fail = other.zkfc.hand_over, asyncio.Event()
    really = hand_over._read_active

    async def cannot_tell() -> None:
        monkeypatch.setattr(hand_over, "_read_active", really)
        await fail.wait()
        raise ZooKeeperUnavailable("away for a moment")

    monkeypatch.setattr(hand_over, "_read_active", cannot_tell)
    first = asyncio.create_task(ask_to_take_over(other))
    await here.until(lambda: hand_over.request, "the first under way")
    second = asyncio.create_task(ask_to_take_over(other))
    await here.until(lambda: other.zkfc.candidacy.standing.hand_overs == 2, "the second waits")
    fail.set()
    with pytest.raises(ServiceFailed, match="away for a moment"):
        await first
    await second
    assert is_active(other)


async def test_a_pause_ends_by_its_time(here: World) -> None:
    one, other = here.nodes
    await pause(here, one, other, until=datetime.now(UTC) + timedelta(seconds=3))
    await one.namenode.die()
    await here.active(other)


async def test_a_controller_that_starts_in_a_pause_does_not_stand(here: World) -> None:
    one, other = here.nodes
    await pause(here, one, other)
    await other.stop()
    await here.start(other)
    await out(here, other, "paused by ann@ops1: switch")
    await one.stop()
    await here.start(one)
    await here.active(one)  # its NameNode says that it is active: no role changes


async def test_a_drained_standby_leaves_and_comes_back(here: World) -> None:
    one, other = here.nodes
    await drain(here, other)
    await out(here, other, "drained by bob@ops1: disk")
    with pytest.raises(ServiceFailed, match="it is drained by bob"):
        await ask_to_take_over(other)
    one.namenode.healthy = False
    await here.until(lambda: not one.zkfc.candidacy.joined, "nn1 out")
    await until_lock_is_free(here)
    await undrain(here, other)
    await here.active(other)


async def test_a_drained_active_hands_over_first(here: World) -> None:
    one, other = here.nodes
    await drain(here, one)
    await here.active(other)
    await out(here, one, "drained by bob@ops1: disk")
    assert here.fenced() == []
    assert one.namenode.state is ServiceState.STANDBY
    await undrain(here, one)
    await here.standby(one)


async def test_a_drained_active_stays_while_nobody_else_is_fit_and_says_so(here: World) -> None:
    one, other = here.nodes
    other.namenode.healthy = False
    await here.until(lambda: not other.zkfc.candidacy.joined, "nn2 out")
    await drain(here, one)
    await here.until(
        lambda: "no other NameNode is fit" in str(_page(one)["kept_because"]), "it says so"
    )
    assert is_active(one)
    other.namenode.healthy = True
    await here.active(other)
    await out(here, one, "drained")


@pytest.mark.row("W26")
async def test_w26_the_preferred_of_two_standbys_takes_over(worlds: Worlds) -> None:
    ranks = {"nn2": Rank(priority=50, priority_delay_seconds=30.0), "nn3": Rank(priority=60)}
    async with worlds("nn1", "nn3", settings_hook=ranked(ranks)) as (here):
        one, three = here.nodes
        low = await here.add("nn2")
        await here.start(low)
        await out(here, low, "nn3 has the higher rank: priority 60")
        assert low.zkfc.failover_obstacle() is None  # nothing is wrong with it
        await one.namenode.die()
        await here.active(three)
        assert low.namenode.active_transitions == 0
        # Now no better one is left: nn1 is dead, nn3 dies; no delay is waited for.
        await here.standby(low)
        died_at = asyncio.get_running_loop().time()
        await three.namenode.die()
        await here.active(low)
        assert low.namenode.promoted_at - died_at < 5.0


@pytest.mark.row("W26")
async def test_w26_a_preferred_one_that_does_not_take_the_lock_is_waited_for_no_longer(
    worlds: Worlds,
) -> None:
    """Get the preferred one's election stuck, though it looks fit."""
    ranks = {"nn2": Rank(priority=50, priority_delay_seconds=0.3), "nn3": Rank(priority=60)}
    async with worlds("nn1", "nn3", settings_hook=ranked(ranks)) as (here):
        one, three = here.nodes
        low = await here.add("nn2")
        await here.start(low)
        await out(here, low, "nn3 has the higher rank")
        three.gate.shut()
        await here.expire(three)
        await one.namenode.die()
        await here.active(low)
        three.gate.open()
        await here.standby(three)


async def test_nofailover_is_never_made_active_but_by_an_operator(worlds: Worlds) -> None:
    async with worlds("nn1", settings_hook=ranked({"nn2": Rank(nofailover=True)})) as here:
        (one,) = here.nodes
        other = await here.add("nn2")
        await here.start(other)
        await out(here, other, "nnha.candidate.nofailover is set")
        one.namenode.healthy = False
        await here.until(lambda: not one.zkfc.candidacy.joined, "nn1 out")
        await until_lock_is_free(here)
        one.namenode.healthy = True
        await here.active(one)
        await ask_to_take_over(other)
        assert is_active(other)


@pytest.mark.row("W2")
async def test_w2_the_ready_one_takes_over_and_an_unready_one_only_when_nobody_else_does(
    worlds: Worlds,
) -> None:
    ranks = {"nn2": Rank(priority=999, unready_delay_seconds=0.5)}
    async with worlds("nn1", "nn3", settings_hook=ranked(ranks)) as (here):
        one, three = here.nodes
        unready = await here.add("nn2")
        unready.namenode.not_ready_reason = "safe mode is on"
        await here.start(unready)
        await out(here, unready, "not ready to become active: safe mode is on")
        await one.namenode.die()
        await here.active(three)
        assert unready.namenode.active_transitions == 0
        await three.namenode.die()
        await here.active(unready)


@pytest.mark.row("8.11 ZK.testElectionOnObserver")
async def test_row_8_11_zk_election_on_observer(worlds: Worlds) -> None:
    async with worlds("nn1", "nn2", "nn3") as here:
        one, other, observer = here.nodes
        observer.namenode.state = ServiceState.OBSERVER
        await out(here, observer, "our NameNode is an observer")
        client = await observer.rpc()
        await client.cede_active(-1, deadline_seconds=5.0)
        await client.close()
        assert observer.zkfc.believed is ServiceState.OBSERVER
        assert not observer.zkfc.candidacy.joined
        # Not a candidate when the others are gone, nor when an operator asks.
        await one.namenode.die()
        await here.active(other)
        with pytest.raises(ServiceFailed, match="observer"):
            await ask_to_take_over(observer)
        await other.namenode.die()
        await here.until(lambda: not other.zkfc.candidacy.joined, "nn2 out")
        await until_lock_is_free(here)
        assert observer.namenode.active_transitions == 0
        observer.namenode.state = ServiceState.STANDBY
        await here.active(observer)


async def test_status_shows_the_standing_with_fixed_keys(worlds: Worlds) -> None:
    ranks = {"nn2": Rank(priority=7)}
    async with worlds("nn1", "nn2", settings_hook=ranked(ranks)) as here:
        one, other = here.nodes
        await here.until(lambda: _page(one)["members"], "members")
        before = _page(one)
        await pause(here, one, other, until=datetime.now(UTC) + timedelta(hours=1))
        after = _page(one)
        assert list(before) == list(after)
        assert (before["pause"], before["kept_because"], before["priority"]) == (None, "", 100)
        shown = after["pause"]
        assert isinstance(shown, dict)
        assert (shown["owner"], shown["reason"]) == ("ann@ops1", "switch")
        assert 3500 < shown["seconds_left"] < 3601
        members = before["members"]
        assert isinstance(members, list)
        assert [(one["namenode"], one["priority"]) for one in members] == [("nn2", 7)]
