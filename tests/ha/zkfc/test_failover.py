"""Hadoop's TestZKFailoverController on a real ZooKeeper, and what it lacks."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from ha.elector.model import Role
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.outcome import Done
from ha.elector.zookeeper.znodes import connected, read_active
from ha.health.core import Health
from ha.service.model import ServiceState
from ha.zkfc.settings.settings import ZkfcSettings
from tests.ha.zkfc.zkfc_world import DEADLINE_SECONDS, World, Worlds, until

pytestmark = pytest.mark.zookeeper


async def _breadcrumb(here: World) -> bytes | None:
    async with connected(here.zookeeper, deadline_seconds=5.0) as session:
        outcome = await session.read(here.zookeeper.breadcrumb)
    return outcome.value[0] if isinstance(outcome, Done) else None


async def test_a_killed_namenode_is_replaced_before_anything_times_out(worlds: Worlds) -> None:
    def patient(settings: ZkfcSettings) -> ZkfcSettings:
        health = replace(
            settings.health,
            check_interval_seconds=2 * DEADLINE_SECONDS,
            rpc_timeout_seconds=2 * DEADLINE_SECONDS,
        )
        return replace(settings, health=health)

    async with worlds("nn1", "nn2", settings_hook=patient) as here:
        one, two = here.nodes
        await one.namenode.die()
        # Its closed connection shows it: no probe is due before the wait is over.
        await here.active(two)
        assert one.zkfc.monitor.state.health is Health.NOT_RESPONDING
        assert here.fenced() == ["nn1"]


async def test_lost_sessions_fail_over_there_and_back(here: World) -> None:
    one, two = here.nodes

    def settled() -> bool:
        # The loser may win the next election, too: then nothing has to move at all.
        roles = {node.zkfc.elector.state.role for node in here.nodes}
        return roles == {Role.ACTIVE, Role.STANDBY}

    for loser in (one, two):
        before = loser.keeper.session_id
        await here.expire(loser)
        await until(lambda: loser.keeper.session_id != before, "a new session")  # noqa: B023
        await until(settled, "one active, one standby")


async def test_fencing_that_fails_keeps_us_standby_and_is_tried_again(
    here: World, tmp_path: Path
) -> None:
    one, two = here.nodes
    (tmp_path / "broken").touch()
    await one.namenode.die()
    await until(lambda: two.zkfc.attempts.number >= 2, "two attempts")
    record = two.zkfc.attempts.last
    assert record is not None
    assert not record.succeeded
    assert "Unable to fence" in record.text
    assert two.namenode.active_transitions == 0
    (tmp_path / "broken").unlink()
    await here.active(two)
    assert two.zkfc.candidacy.failures == 0


async def test_ceding_deletes_the_breadcrumb_and_stopping_keeps_it(alone: World) -> None:
    (one,) = alone.nodes
    assert await _breadcrumb(alone) is not None
    await one.zkfc.cede(30.0)
    assert await _breadcrumb(alone) is None
    await one.zkfc.cede(0.0)
    await alone.active(one)
    await one.stop()
    assert await _breadcrumb(alone) is not None
    assert await read_active(alone.zookeeper, deadline_seconds=5.0) is None
    assert one.namenode.state is ServiceState.ACTIVE


@pytest.mark.row("W14")
async def test_a_stopped_controller_hands_over_politely(here: World) -> None:
    one, two = here.nodes
    await one.stop()
    await here.active(two)
    assert here.fenced() == []
    assert one.namenode.seen[-1] == "standby by ZKFC"


@pytest.mark.row("8.13 1", "W1", "W22")
async def test_w1_8_13_1_a_breadcrumb_with_another_address_does_not_stop_a_takeover(
    here: World,
) -> None:
    # Hadoop fails to decode it, for ever, and every NameNode stays standby.
    one, two = here.nodes
    await one.zkfc.cede(30.0)
    await here.active(two)
    await two.zkfc.cede(30.0)
    stale = encode(ActiveNodeInfo(here.nameservice, "nn2", "127.0.0.1", 1, 8019))
    async with connected(here.zookeeper, deadline_seconds=5.0) as session:
        assert await session.create(here.zookeeper.breadcrumb, stale) == Done(None)
    await one.zkfc.cede(0.0)
    await here.active(one)
    assert here.fenced() == ["nn2"]  # at the address in the breadcrumb
    assert two.namenode.seen[-1] == "standby by ZKFC"  # and at the configured one, politely


@pytest.mark.row("8.13 2", "W4")
async def test_w4_8_13_2_a_session_lost_during_the_promotion_does_not_make_two_actives(
    here: World,
) -> None:
    # Hadoop does not see the loss before the promotion has ended.
    one, two = here.nodes
    two.namenode.hold_promotion = asyncio.Event()
    await one.namenode.die()
    await until(lambda: two.namenode.active_transitions == 1, "promotion under way")
    await one.namenode.start()
    attempt = two.zkfc.elector.state.attempt
    await here.expire(two)
    await until(
        lambda: (
            two.zkfc.elector.state.attempt != attempt
            or two.zkfc.elector.state.role is not Role.TAKING_OVER
        ),
        "the loss is seen while the NameNode still works",
    )
    two.namenode.hold_promotion.set()
    await until(
        lambda: (
            sorted(n.zkfc.elector.state.role for n in here.nodes) == [Role.ACTIVE, Role.STANDBY]
        ),
        "one active",
    )
    await until(lambda: here.resource.holder is not None, "somebody serves")


async def test_settings_of_three_nodes_elect_exactly_one(worlds: Worlds) -> None:
    async with worlds("nn1", "nn2", "nn3") as here:
        first = here.nodes[0]
        await first.namenode.die()
        await until(
            lambda: (
                sorted(n.zkfc.elector.state.role for n in here.nodes[1:])
                == [Role.ACTIVE, Role.STANDBY]
            ),
            "one of the two others",
        )
