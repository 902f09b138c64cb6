"""Daemons under a systemd that was booted: how soon they are back, and what a client notices.

Seconds are systemd's own where a daemon is back, from its end until it is ready again.
"""

import statistics
from collections.abc import Mapping
from pathlib import Path

from tests.deploy.systemd import deeds
from tests.deploy.systemd.hosts import Hosts, running
from tests.deploy.systemd.image import installed
from tests.deploy.systemd.sandbox import levels


def figures(directory: Path, rounds: int, *, seed: int) -> Mapping[str, object]:
    """Boot three hosts, end daemons in all ways, ``rounds`` times."""
    with running(directory, installed(directory), seed=seed) as hosts:
        hosts.install()
        hosts.format()
        hosts.everything_up()
        found: dict[str, list[float]] = {}
        for _ in range(rounds):
            _one_round(hosts, found)
        exposed = levels(hosts.machines["h1"])
    return {name: spread(values) for name, values in found.items()} | {"exposed": exposed}


def _one_round(hosts: Hosts, found: dict[str, list[float]]) -> None:
    for unit in deeds.UNITS:
        active = hosts.wait_healthy()
        named = unit.format(active)
        seconds = deeds.killed(hosts.host_of(active), named).seconds
        found.setdefault(f"{unit.format('*')}_back_seconds", []).append(seconds)
    ended = deeds.stopped_controller(hosts)
    if deeds.STACKS not in ended.said:
        raise AssertionError(f"no stacks in: {ended.said}")
    after = found.setdefault("active_after_a_frozen_controllers_namenode_died_seconds", [])
    after.append(ended.active_after_seconds)
    for name, end in (("stop", deeds.stop_controller), ("shutdown", deeds.shut_down)):
        active = hosts.wait_healthy()
        seen = deeds.ended_in_order(hosts, end)
        if seen.errors or seen.successor == active:
            raise AssertionError(f"{name} of {active}: {seen}")
        found.setdefault(f"{name}_longest_call_seconds", []).append(seen.longest_call_seconds)
        machine = hosts.host_of(active)
        if machine.process.exit_code is not None:
            machine.boot()
        hosts.everything_up()


def spread(values: list[float]) -> Mapping[str, float]:
    median = statistics.median(values)
    return {"median": round(median, 3), "longest": round(max(values), 3), "count": len(values)}
