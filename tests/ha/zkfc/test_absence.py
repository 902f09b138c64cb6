"""How long ZooKeeper is away is counted once, and ends when it is back."""

import asyncio
from dataclasses import replace

import pytest

from ha.elector.events import LookDue
from ha.elector.model import Link
from ha.elector.state import ElectorState
from ha.zkfc.process.zookeeper_absence import Absence
from tests.ha.zkfc.zkfc_world import until

OUT = ElectorState()
HERE = replace(OUT, wanted=True, link=Link.CONNECTED)
SUSPENDED = replace(HERE, link=Link.SUSPENDED)
CONNECTING = replace(HERE, link=Link.CONNECTING)
AFTER_SECONDS = 0.1


@pytest.mark.row("W20")
async def test_w20_it_is_told_once_in_each_absence() -> None:
    told: list[int] = []
    absence = Absence(AFTER_SECONDS, lambda: told.append(1))
    for state in (HERE, SUSPENDED, CONNECTING, SUSPENDED):
        absence.observe_step(LookDue(), state, state)
    assert "failover is off" in absence.describe()
    await until(lambda: told, "told")
    await asyncio.sleep(2 * AFTER_SECONDS)
    assert told == [1]
    absence.observe_step(LookDue(), HERE, HERE)
    assert absence.describe() == ""
    absence.observe_step(LookDue(), SUSPENDED, SUSPENDED)
    await until(lambda: told == [1, 1], "told again")


@pytest.mark.row("W20")
async def test_w20_whoever_is_back_in_time_or_out_of_the_election_is_left_alone() -> None:
    told: list[int] = []
    for end in (HERE, OUT):
        absence = Absence(AFTER_SECONDS, lambda: told.append(1))
        absence.observe_step(LookDue(), SUSPENDED, SUSPENDED)
        absence.observe_step(LookDue(), end, end)
        assert absence.describe() == ""
    stopped = Absence(AFTER_SECONDS, lambda: told.append(1))
    stopped.observe_step(LookDue(), SUSPENDED, SUSPENDED)
    stopped.stop()
    await asyncio.sleep(3 * AFTER_SECONDS)
    assert told == []


@pytest.mark.row("W20")
async def test_w20_by_default_it_may_last_for_ever() -> None:
    told: list[int] = []
    absence = Absence(0.0, lambda: told.append(1))
    absence.observe_step(LookDue(), SUSPENDED, SUSPENDED)
    await asyncio.sleep(AFTER_SECONDS)
    assert told == []
    assert absence.describe().endswith("for as long as it takes")
