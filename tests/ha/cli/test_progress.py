"""The steps of a hand-over, shown at a terminal while it lasts.

Results on a standard output that takes not all of them, or nothing.

What a person sees in a narrow window, and what Ctrl-C does to any command.
"""

import asyncio
import fcntl
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from deploy.local.cluster.site import site_xml
from ha.cli.explain.history import Listing
from ha.cli.operate.progress import progress
from ha.conf.configuration import load_configuration
from ha.conf.topology import namenodes
from ha.console.switchover_hints import Steps, new_lines, steps_of
from ha.notices.model import HistoryEntry
from ha.service.model import ServiceState
from tests.ha.cli.stand_ins import Cluster, frozen_process, running_cluster
from tests.ha.notices.test_model import RECORD
from tests.ha.zkfc.zkfc_world import free_port, until
from tests.stand_in import say_nothing, stand_in

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


NODES = ("nn1", "nn2")
ENDED = """
import sys
from ha.conf.configuration import Configuration
from ha.console.result import Code, CommandOutcome, Ending
from ha.console.cluster_options import ClusterCommand
ending = Ending(
    "switchover", outcome=CommandOutcome.UNKNOWN, code=Code.BAD_CONFIGURATION,
    message="nobody knows", hint="nnha status"
)
ClusterCommand(Configuration({}, {}), "ns1", sys.argv[1]).end(ending)
"""
SHOWN = """
import click
from ha.console.output import show
click.Command("status", callback=lambda: show("json", {}, "x"))([])
"""


def run(*words: str, shell: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, *words],
        capture_output=True,
        env=os.environ | environment,
        text=True,
        encoding="latin-1",
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
@pytest.mark.parametrize("full", [">/dev/full", ">&-"])
def test_the_code_tells_of_the_deed_where_its_text_cannot_be_written(
    output: str, full: str
) -> None:
    told = run("-c", ENDED, output, shell=full)
    assert told.returncode == 5
    assert "cannot be written to standard output" in told.stderr
    assert "nobody knows" in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize("full", [">/dev/full", ">&-"])
def test_a_picture_that_nobody_can_see_is_no_success(full: str) -> None:
    told = run("-c", SHOWN, shell=full)
    assert told.returncode == 1
    assert told.stderr.startswith("Error: the result cannot be written to standard output: ")


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "words",
    [("config", "show"), ("completion", "bash"), ("haadmin", "-help"), ("--help",), ("--version",)],
    ids=" ".join,
)
def test_a_full_standard_output_is_one_line_of_any_command(
    tmp_path: Path, words: tuple[str, ...], unbuffered: str
) -> None:
    (tmp_path / "hdfs-site.xml").write_text(site_xml({"dfs.nameservices": "ns1"}))
    environment = {"HADOOP_CONF_DIR": str(tmp_path), "PYTHONUNBUFFERED": unbuffered}
    told = run("-m", "ha.cli.main", *words, shell=">/dev/full", **environment)
    assert told.returncode == 1
    assert told.stderr == (
        "Error: the result cannot be written to standard output: No space left on device\n"
    )


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_an_arrow_does_not_end_a_command_where_the_locale_has_none(
    tmp_path: Path, encoding: str
) -> None:
    addresses = {f"dfs.namenode.rpc-address.ns1.{n}": f"127.0.0.1:{free_port()}" for n in NODES}
    site = {"dfs.nameservices": "ns1", "dfs.ha.namenodes.ns1": ",".join(NODES), **addresses}
    (tmp_path / "hdfs-site.xml").write_text(site_xml(site))
    words = ("-m", "ha.cli.main", "switchover", "--conf-dir", str(tmp_path))
    told = run(*words, PYTHONIOENCODING=encoding)
    assert (told.returncode, told.stderr) == (3, ""), told
    assert " ? " in told.stdout


CAUSE = "asked for by ann from ops1: the rack gets a new switch, and then the kernel is updated"


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_the_cause_of_a_failover_can_be_read_at_every_width(width: int) -> None:
    now = datetime.now(UTC)
    entries = (HistoryEntry(12, replace(RECORD, at=now, cause=CAUSE)), HistoryEntry(11, None, "?"))
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(Listing(entries, now))
    told = captured.get()
    assert all(len(line) <= width for line in told.splitlines())
    assert "…" not in told
    assert all(word in told for word in CAUSE.split())
    assert max(len(line.split()) for line in told.splitlines()) > 3, "not one word on each line"


@pytest.mark.parametrize(
    "words", [("status",), ("explain",), ("doctor",), ("haadmin", "-getServiceState", "nn1")]
)
async def test_an_interrupt_is_one_line_and_130(
    cluster: Cluster, tmp_path: Path, words: tuple[str, ...]
) -> None:
    # A shell that runs the tests in the background has us ignore SIGINT, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await say_nothing(reader, writer)

    command, *rest = words
    async with stand_in(silent) as port:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "ha.cli.main", command, "--conf-dir", str(tmp_path),
            "--timeout", "60",
            "-D", f"dfs.namenode.rpc-address.ns1.nn1=127.0.0.1:{port}", *rest,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            async with asyncio.timeout(60):
                await asked.wait()
                process.send_signal(signal.SIGINT)
                _, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert process.returncode == 130, err.decode()
    assert err.decode().split() == ["interrupted"]
