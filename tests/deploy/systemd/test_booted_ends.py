"""Daemons that are killed, stand still, or are stopped in order, under a real systemd.

The bounds allow for a busy machine; ``./run soak deploy`` measures.
"""

from collections.abc import Callable

import pytest

from deploy.local.cluster.processes import wait_until
from tests.deploy.systemd import deeds
from tests.deploy.systemd.hosts import Hosts
from tests.needs import BOOTED_SYSTEMD

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.long,
    pytest.mark.timeout(1200),
    BOOTED_SYSTEMD.mark,
]
BUSY_SECONDS = 30.0


def test_a_daemon_that_is_killed_is_there_again(hosts: Hosts) -> None:
    hosts.everything_up()
    for unit in deeds.UNITS:
        active = hosts.wait_healthy()
        named = unit.format(active)
        assert deeds.killed(hosts.host_of(active), named).seconds < BUSY_SECONDS, named
    hosts.wait_healthy()


def test_a_controller_that_is_killed_is_there_again_in_its_session(hosts: Hosts) -> None:
    active = hosts.wait_healthy()
    machine, unit = hosts.host_of(active), f"nnha-zkfc@{active}"
    epoch, restarts = hosts.status(active), machine.shown(unit, "NRestarts")
    child = deeds.controller(machine, unit)
    machine.run("kill", "-KILL", str(child))
    wait_until(
        lambda: (
            machine.run("pgrep", "-P", str(machine.main_pid(unit)), check=False).output.strip()
            not in ("", str(child))
        ),
        what="another controller",
        deadline_seconds=BUSY_SECONDS,
    )
    assert hosts.wait_healthy() == active
    after = hosts.status(active)
    assert epoch is not None
    assert after is not None
    assert after.epoch == epoch.epoch
    assert machine.shown(unit, "NRestarts") == restarts


def test_the_watchdog_ends_a_controller_that_stands_still_and_its_stacks_are_told(
    hosts: Hosts,
) -> None:
    ended = deeds.stopped_controller(hosts)
    assert "Watchdog timeout (limit 10s)" in ended.said
    assert deeds.STACKS in ended.said
    assert "process/command.py" in ended.said, "the stacks are the controller's, not its parent's"
    hosts.wait_healthy()


@pytest.mark.parametrize("unit", ["nnha-journalnode", "nnha-namenode@{}"])
def test_the_watchdog_ends_a_daemon_that_stands_still(hosts: Hosts, unit: str) -> None:
    active = hosts.wait_healthy()
    named, machine = unit.format(deeds.other(active)), hosts.host_of(deeds.other(active))
    known = len(machine.journal(named))
    deeds.struck(machine, named, "STOP", machine.main_pid(named))
    said = machine.journal(named)[known:]
    assert "Watchdog timeout (limit 1min)" in said
    assert deeds.STACKS in said
    hosts.wait_healthy()


@pytest.mark.parametrize("end", [deeds.stop_controller, deeds.shut_down])
def test_an_end_in_order_hands_over_first(hosts: Hosts, end: Callable[[Hosts, str], None]) -> None:
    active = hosts.wait_healthy()
    try:
        seen = deeds.ended_in_order(hosts, end)
    finally:
        if hosts.host_of(active).process.exit_code is not None:
            hosts.host_of(active).boot()
        hosts.everything_up()
    assert seen.errors == 0
    assert seen.successor == deeds.other(active)
    assert seen.longest_call_seconds < BUSY_SECONDS
