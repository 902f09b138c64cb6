"""Each invariant of the candidacy is seen to break, by a bug that is planted into the core."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from ha.elector.model import Role
from ha.health.core import Health
from ha.invariant import InvariantBroken
from ha.service.errors import ServiceError
from ha.zkfc.candidacy import core, model
from ha.zkfc.candidacy.core import step
from ha.zkfc.candidacy.model import CedeAsked, HealthChanged, Join
from ha.zkfc.candidacy.state import Active, Candidacy, Joined, Out, Step, TakingOver
from ha.zkfc.process import controller
from tests.ha.zkfc.elections import ELECTED, LOCK_WON, at
from tests.ha.zkfc.test_core import ACTIVE, IN, NOW, STANDBY, WELL, S
from tests.ha.zkfc.zkfc_world import Worlds

Bug = tuple[str, Callable[..., Any], Candidacy, model.Event, str]
_LEAVE = core._leave
SECONDS = 30.0
HAS_LOCK = "has the lock"
IS_JOINED = "is in the election"


def _left_for_another_reason(state: Candidacy, because: str, *, needs_fencing: bool) -> Step:
    left = _LEAVE(state, because, needs_fencing=needs_fencing)
    return Step(replace(left.state, place=Out("another")), left.decisions)


BUGS: dict[str, Bug] = {
    "left, and still in": (
        "_judge_unwell",
        lambda state, _now: Step(state, _LEAVE(state, "", needs_fencing=True).decisions),
        STANDBY, HealthChanged(Health.UNHEALTHY), "who has joined it and not left it"),
    "out, and nobody was told": (
        "_judge_unwell", lambda state, _now: Step(replace(state, place=Out("ill"))),
        STANDBY, HealthChanged(Health.UNHEALTHY), "who has joined it and not left it"),
    "joined twice": (
        "_judge_healthy",
        lambda state, _now: Step(replace(state, place=Joined()), (Join(), Join())),
        WELL, model.RecheckDue(), "who has joined it and not left it"),
    "in, though the takeover has failed": (
        "_back_off", lambda state, _now: Step(state), IN, model.TakeoverFailed(),
        "who has joined it and not left it"),
    "two reasons to be out": (
        "_leave", _left_for_another_reason, STANDBY, HealthChanged(Health.UNHEALTHY),
        "one reason to be out"),
    "taking over, and not joined": (
        "_follow_election",
        lambda state, _event, _now: Step(replace(state, place=TakingOver(S.STANDBY)), (Join(),)),
        WELL, LOCK_WON, IS_JOINED),
    "active, and not joined": (
        "_follow_election",
        lambda state, _event, _now: Step(replace(state, place=Active()), (Join(),)), WELL,
        ELECTED, IS_JOINED),
    "active by the end of a demotion": (
        "_handle_demotion", lambda state, *_: Step(replace(state, place=Active())),
        STANDBY, model.DemotionTried(), HAS_LOCK),
    "a standby hands over": (
        "_judge_healthy", lambda state, _now: Step(state, (model.HandOverTo("nn2", "there:8019"),)),
        STANDBY, model.RecheckDue(), "only an active hands over"),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_breaks_an_invariant(bug: str) -> None:
    name, planted, state, event, invariant = BUGS[bug]
    step(state, event, now=NOW)
    with patch.object(core, name, planted), pytest.raises(InvariantBroken, match=invariant):
        step(state, event, now=NOW)


@pytest.mark.parametrize("role", [Role.TAKING_OVER, Role.ACTIVE])
def test_an_election_without_the_lock_makes_nobody_active(role: Role) -> None:
    before = Role.STANDBY if role is Role.TAKING_OVER else Role.TAKING_OVER
    lost = replace(at(role), holding=False)
    with pytest.raises(InvariantBroken, match=HAS_LOCK):
        step(IN, model.ElectionMoved(at(before), lost), now=NOW)


def test_who_cedes_has_that_one_reason_to_be_out() -> None:
    ceded = step(ACTIVE, CedeAsked(5.0, needs_fencing=True), now=NOW).state
    assert ceded.out_because == "asked to cede"
    assert ceded.kept_because == ""


@pytest.mark.zookeeper
async def test_one_that_breaks_in_a_call_ends_the_controller(worlds: Worlds) -> None:
    """Its caller alone would hear of it, and the controller go on with what cannot be."""

    def broken(state: Candidacy, event: model.Event, *, now: float) -> Step:
        if isinstance(event, CedeAsked):
            raise InvariantBroken("a planted bug")
        return step(state, event, now=now)

    async with worlds("nn1") as here:
        (one,) = here.nodes
        assert one.task is not None
        with patch.object(controller, "step", broken):
            client = await one.rpc()
            with pytest.raises(ServiceError):
                await client.cede_active(1000, deadline_seconds=SECONDS)
            with pytest.raises(controller.ElectionImpossible, match="a planted bug"):
                await asyncio.wait_for(one.task, SECONDS)
            await client.close()
        one.task = None
