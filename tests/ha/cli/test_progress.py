"""The steps of a hand-over, shown at a terminal while it lasts."""

import asyncio
import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ha.cli.operate.progress import progress
from ha.conf.configuration import load_configuration
from ha.conf.topology import namenodes
from ha.console.switchover_hints import Steps, new_lines, steps_of
from ha.service.model import ServiceState
from tests.ha.cli.stand_ins import Cluster, frozen_process, running_cluster
from tests.ha.zkfc.zkfc_world import until

BEFORE = Steps(attempt=6, done=(("lock", 0.0), ("active", 0.1)))
LOCK, FENCED, PROMOTING = ("lock", 0.0), ("fenced", 0.71), ("promoting", 0.0)

NEWS: dict[str, tuple[Steps | None, Steps, bool, list[str]]] = {
    "nothing": (BEFORE, BEFORE, True, []),
    "an earlier hand-over is no news": (None, BEFORE, True, []),
    "asked": (
        BEFORE, Steps(asking="nn1", attempt=6, done=BEFORE.done), True,
        ["the zkfc of nn2 asks the zkfc of nn1 to cede"]),
    "the lock, then fenced": (
        Steps(attempt=7, done=(LOCK,)), Steps(attempt=7, done=(LOCK, FENCED)), True,
        ["the old active is fenced, after 0.71 s"]),
    "several at once, of a new attempt": (
        BEFORE, Steps(attempt=7, done=(LOCK, FENCED, PROMOTING, ("active", 0.02))), True,
        ["the zkfc of nn2 has the lock", "the old active is fenced, after 0.71 s",
         "nn2 is told to become active"]),
    "it fails": (
        Steps(attempt=7, done=(LOCK,)), Steps(attempt=7, done=(LOCK, ("failed", 2.0))), True,
        ["the zkfc of nn2: failed, after 2.00 s"]),
    "another one lets go": (
        Steps(holds_lock=True), Steps(), False, ["the zkfc of nn2 has released the lock"]),
    "another one's takeover is not of this hand-over": (
        BEFORE, Steps(asking="nn3", attempt=7, done=(LOCK,)), False, []),
}  # fmt: skip


@pytest.mark.parametrize("case", NEWS)
def test_what_is_told_between_two_looks(case: str) -> None:
    before, now, is_target, told = NEWS[case]
    assert list(new_lines("nn2", before, now, is_target=is_target)) == told


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"takeover": 7, "last_attempt": "x", "handing_over_from": None, "elector": None},
        {"takeover": {"number": True, "phases": [1, {"name": 3}, {"name": "x", "seconds": "y"}]}},
    ],
)
def test_pages_full_of_nonsense_say_nothing(page: dict[str, object]) -> None:
    assert steps_of(page) == Steps()


def _takeover(number: int, *phases: tuple[str, float]) -> dict[str, object]:
    named = [{"name": name, "seconds": seconds} for name, seconds in phases]
    return {"number": number, "phases": named}


async def _plays(cluster: Cluster, told: Sequence[str]) -> None:
    """Play a hand-over to nn2 as real controllers' pages show it, each step after it was shown."""
    old, new = cluster.controllers["nn1"].page, cluster.controllers["nn2"].page
    new["handing_over_from"] = "nn1"
    await until(lambda: "asks the zkfc of nn1" in told[-1], "asked")
    cluster.namenodes["nn1"].state = ServiceState.STANDBY
    await until(lambda: "nn1 is standby" in told[-1], "standby")
    old["elector"] = "init"
    await until(lambda: "released the lock" in told[-1], "released")
    new["takeover"] = _takeover(7, LOCK)
    await until(lambda: "has the lock" in told[-1], "lock")
    new["takeover"] = _takeover(7, LOCK, FENCED, PROMOTING)
    await until(lambda: "told to become active" in told[-1], "promoting")


@pytest.mark.row("W9")
async def test_w9_each_step_is_told_when_it_happens(tmp_path: Path) -> None:
    told: list[str] = [""]
    async with running_cluster(tmp_path) as cluster:
        new = cluster.controllers["nn2"].page
        new |= {"elector": "standby", "last_attempt": _takeover(6, LOCK, ("active", 0.1))}
        nodes = namenodes(load_configuration(tmp_path), "ns1")
        async with progress(nodes, "nn2", told.append):
            await _plays(cluster, told)
            # The end comes too soon for the next look: there is a last one.
            new |= {"takeover": None, "last_attempt": _takeover(7, LOCK, FENCED, PROMOTING)}
            cluster.namenodes["nn2"].state = ServiceState.ACTIVE
        assert [re.sub(r"^ +\d+\.\d\d s  ", "", line) for line in told[1:]] == [
            "the zkfc of nn2 asks the zkfc of nn1 to cede",
            "nn1 is standby",
            "the zkfc of nn1 has released the lock",
            "the zkfc of nn2 has the lock",
            "the old active is fenced, after 0.71 s",
            "nn2 is told to become active",
            "nn2 is active",
        ]


async def test_who_falls_silent_does_not_keep_the_others_from_being_told(tmp_path: Path) -> None:
    told: list[str] = [""]
    async with running_cluster(tmp_path) as cluster, frozen_process() as silent:
        address = f"127.0.0.1:{silent}"
        changed = (
            f"dfs.namenode.rpc-address.ns1.nn1={address}",
            f"nnha.zkfc.http-address.ns1.nn1={address}",
        )
        nodes = namenodes(load_configuration(tmp_path, changed), "ns1")
        async with progress(nodes, "nn2", told.append):
            cluster.controllers["nn2"].page["handing_over_from"] = "nn1"
            await until(lambda: "asks the zkfc of nn1" in told[-1], "asked")
            cluster.namenodes["nn2"].state = ServiceState.ACTIVE
            await until(lambda: "nn2 is active" in told[-1], "active")


COMMANDS = {
    "switchover": (("-m", "ha.cli.main", "switchover", "nn2", "--yes"), "nn2 is active in place"),
    "haadmin": (
        ("-c", "import sys; from ha.cli.hadoop.haadmin import run; sys.exit(run(sys.argv[1:]))",
         "-failover", "nn1", "nn2"),
        "Failover to NameNode at "),
}  # fmt: skip


@pytest.mark.row("W9")
@pytest.mark.parametrize("command", COMMANDS)
async def test_w9_it_is_told_on_stderr_and_stdout_stays_as_it_was(
    tmp_path: Path, command: str
) -> None:
    words, result = COMMANDS[command]
    async with running_cluster(tmp_path) as cluster:
        cluster.controllers["nn2"].page["elector"] = "standby"
        own = ("--conf-dir", str(tmp_path), "-D", "dfs.ha.automatic-failover.enabled=true",
               "-D", "ha.zookeeper.quorum=127.0.0.1:1")  # fmt: skip
        at = words.index("-failover") if "-failover" in words else len(words)
        line = (sys.executable, *words[:at], *own, *words[at:])
        code, out, err = await asyncio.to_thread(_at_a_terminal, line)
        assert code == 0, err
        assert (out.startswith(result), len(out.splitlines())) == (True, 1)
        assert re.search(r"^ +\d+\.\d\d s  nn2 is active\r?$", err, re.MULTILINE), err


def _at_a_terminal(line: Sequence[str]) -> tuple[int, str, str]:
    """Run it with a terminal as stderr; its exit code, stdout, and what the terminal shows."""
    ours, theirs = os.openpty()
    try:
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
            out, _ = process.communicate(timeout=60)
        fcntl.fcntl(ours, fcntl.F_SETFL, os.O_NONBLOCK)
        return process.returncode, out, os.read(ours, 65536).decode()
    finally:
        os.close(theirs)
        os.close(ours)
