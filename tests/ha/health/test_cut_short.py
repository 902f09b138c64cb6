"""The monitor with a fault at each await: it lets go of its NameNode and of the guard."""

import math
import os
from pathlib import Path

import pytest

from ha.health.core import HealthSettings, ProbeOutcome
from ha.health.monitor import HealthMonitor
from ha.health.pid_file import PidFile
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.ha.health.test_monitor import Ear
from tests.ha.zkfc.toy_namenode import SharedResource, ToyNameNode

ROUNDS = 3
QUICK = HealthSettings(
    check_interval_seconds=0.001, retry_interval_seconds=0.001, rpc_timeout_seconds=5.0
)


class EnoughError(Exception):
    """Ends the rounds."""


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.FAIL])
async def test_a_monitor_that_is_cut_short_lets_go_of_everything(
    fault: Fault, tmp_path: Path
) -> None:
    path = tmp_path / "namenode.pid"
    path.write_text(str(os.getpid()))
    namenode = ToyNameNode("nn1", SharedResource())
    await namenode.start()
    beats: list[float] = []

    async def life() -> None:
        outcomes: list[ProbeOutcome] = []
        beats.clear()

        def measure(_: float, outcome: ProbeOutcome) -> None:
            outcomes.append(outcome)
            if len(outcomes) == ROUNDS:
                raise EnoughError

        monitor = HealthMonitor(
            namenode.address,
            QUICK,
            Ear(),
            measure=measure,
            process=PidFile(path),
            heartbeat=beats.append,
        )
        try:
            await monitor.run()
        except EnoughError:
            assert monitor.client is None

    async def after(_: int) -> None:
        assert not beats or beats[-1] == math.inf

    cuts = Cuts(life, fault, typed=(ConnectionError,), fails=("HealthMonitor", "test_a_monitor"))
    assert await awaits.cut_at_each_await(cuts, after) > ROUNDS
    await namenode.die()
