"""What happens in the middle of a takeover or a cede."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from fencing.model import ShellMethod
from ha.elector.model import Role, Stage
from ha.service.model import ServiceState
from ha.zkfc.settings.settings import FencingPlan, ZkfcSettings
from tests.ha.zkfc.zkfc_world import Node, World, until

pytestmark = pytest.mark.zookeeper


def _slow_fencing(here: World) -> None:
    """Fencing that lasts until the file "go" is there."""
    command = f"while ! test -e {here.directory}/go; do sleep 0.02; done; echo done >&2"
    plan = FencingPlan(methods=(ShellMethod(command),))

    def hook(settings: ZkfcSettings) -> ZkfcSettings:
        return replace(settings, fencing={"": plan})

    here.settings_hook = hook


async def _restart(here: World, node: Node) -> None:
    await node.stop()
    await here.start(node)
    await here.standby(node)


@pytest.mark.row("8.13 4", "W5")
async def test_w5_8_13_4_health_that_turns_bad_while_fencing_ends_the_takeover(here: World) -> None:
    # Hadoop's health monitor waits for the lock that the fencing holds.
    one, two = here.nodes
    _slow_fencing(here)
    await _restart(here, two)
    await one.namenode.die()
    await until(lambda: two.zkfc.elector.state.stage is Stage.FENCING, "fencing")
    two.namenode.healthy = False
    await until(lambda: two.zkfc.elector.state.role is Role.INIT, "out", seconds=10.0)
    await one.namenode.start()
    await here.active(one)  # its own breadcrumb: no NameNode to fence
    assert two.namenode.active_transitions == 0


@pytest.mark.row("8.13 3", "W4")
async def test_w4_8_13_3_a_session_lost_while_fencing_is_noticed_and_the_fencing_stopped(
    here: World, tmp_path: Path
) -> None:
    one, two = here.nodes
    _slow_fencing(here)
    await _restart(here, two)
    await one.namenode.die()
    await until(lambda: two.zkfc.elector.state.stage is Stage.FENCING, "fencing")
    attempt = two.zkfc.elector.state.attempt
    await here.expire(two)
    await until(lambda: two.zkfc.elector.state.attempt > attempt, "a new attempt")
    (tmp_path / "go").touch()
    await here.active(two)
    assert two.namenode.active_transitions == 1


async def test_a_controller_stopped_while_fencing_leaves_no_lock(here: World) -> None:
    one, two = here.nodes
    _slow_fencing(here)
    await _restart(here, two)
    await one.namenode.die()
    await until(lambda: two.zkfc.elector.state.stage is Stage.FENCING, "fencing")
    await two.stop()
    await one.namenode.start()
    await here.active(one)


@pytest.mark.row("8.13 18")
async def test_8_13_18_a_namenode_that_was_restarted_unnoticed_is_elected_again(
    alone: World,
) -> None:
    (one,) = alone.nodes
    alone.resource.release("nn1")
    one.namenode.state = ServiceState.STANDBY  # between two probes
    await until(lambda: one.namenode.active_transitions == 2, "promoted again")
    await alone.active(one)


async def test_ceding_half_way_through_a_takeover_ends_it(here: World) -> None:
    one, two = here.nodes
    two.namenode.hold_promotion = asyncio.Event()
    await one.namenode.die()
    await until(lambda: two.namenode.active_transitions == 1, "promotion under way")
    await two.zkfc.cede(0.5)
    assert two.zkfc.elector.state.role is Role.INIT
    two.namenode.hold_promotion.set()
    await one.namenode.start()
    await until(lambda: Role.ACTIVE in {node.zkfc.elector.state.role for node in here.nodes}, "one")
