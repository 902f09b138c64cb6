"""Fencing with real bash: order, deadlines that kill everything, environment, output."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fencing.fencer import fence
from fencing.model import FencingOutcome, FencingReport, Target
from fencing.output import MAX_LINES
from fencing.shell import NotStarted, run_command
from fencing.spec import parse_methods
from tests.log_lines import captured

TARGET = Target("ns1", "nn1", "dummyhost", 1234)


async def fenced_by(
    text: str,
    environment: Mapping[str, str] | None = None,
    *,
    method_timeout_seconds: float = 20.0,
    total_timeout_seconds: float = 40.0,
) -> FencingReport:
    return await fence(
        parse_methods(text),
        TARGET,
        environment=environment or {},
        method_timeout_seconds=method_timeout_seconds,
        total_timeout_seconds=total_timeout_seconds,
    )


def outcomes(report: FencingReport) -> list[FencingOutcome]:
    return [attempt.outcome for attempt in report.attempts]


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    """Return whether a process runs; one that is dead and waits for its parent does not."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


async def test_the_first_success_ends_it() -> None:
    report = await fenced_by("shell(exit 3)\nshell(true)\nshell(true)")
    assert report.fenced
    assert outcomes(report) == [FencingOutcome.FAILED, FencingOutcome.SUCCEEDED]
    assert report.attempts[0].detail == "exit status 3"


async def test_when_all_fail_the_report_tells_each_of_them() -> None:
    report = await fenced_by("shell(exit 1)\nshell(no-such-command-here)\nsshfence(:1)")
    assert not report.fenced
    assert outcomes(report) == [FencingOutcome.FAILED, FencingOutcome.FAILED, FencingOutcome.FAILED]
    assert "exit status 127" in str(report)
    assert "ssh failed while logging in" in str(report)
    assert "could not be fenced" in str(report)


async def test_no_methods_fence_nothing() -> None:
    report = await fenced_by("# nothing here")
    assert not report.fenced
    assert "no fencing method" in str(report)


async def test_a_failing_command_in_the_middle_fails_the_method() -> None:
    # bash -e: without it, the last command would decide alone.
    assert outcomes(await fenced_by("shell(false; true)")) == [FencingOutcome.FAILED]


async def test_a_signal_is_told_as_one() -> None:
    report = await fenced_by("shell(kill -9 $$)")
    assert outcomes(report) == [FencingOutcome.FAILED]
    assert report.attempts[0].detail == "killed by signal 9"


async def test_there_is_nothing_to_read() -> None:
    report = await fenced_by("shell(read line)")
    assert outcomes(report) == [FencingOutcome.FAILED]
    assert report.duration_seconds < 5


@pytest.mark.row("W10")
@pytest.mark.row(
    "8.13 9",
    because="the fencer's process tree, which the row asks to be dead, is the process group",
)
async def test_the_deadline_kills_the_whole_process_group(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    command = f"trap '' TERM; (trap '' TERM; sleep 600) & echo $$ $! > {pids}; sleep 600"
    report = await fenced_by(f"shell({command})\nshell(true)", method_timeout_seconds=2.0)
    assert outcomes(report) == [FencingOutcome.TIMED_OUT, FencingOutcome.SUCCEEDED]
    for pid in map(int, pids.read_text().split()):
        await until(lambda pid=pid: not alive(pid))  # type: ignore[misc]


async def test_what_a_successful_script_left_in_the_background_is_killed_too(
    tmp_path: Path,
) -> None:
    # Or "sleep 5; kill the NameNode" would hit it after it was rightly made active again.
    pid = tmp_path / "pid"
    report = await fenced_by(f"shell(sleep 600 & echo $! > {pid})")
    assert report.fenced
    assert report.duration_seconds < 5
    await until(lambda: not alive(int(pid.read_text())))


async def test_a_process_that_left_the_group_does_not_hold_us_by_its_open_output(
    tmp_path: Path,
) -> None:
    pid = tmp_path / "pid"
    report = await fenced_by(f"shell(setsid sleep 600 & echo $! > {pid}; sleep 0.2)")
    os.kill(int(pid.read_text()), signal.SIGKILL)
    assert report.fenced
    assert report.duration_seconds < 5


STRAY = (
    """(setsid bash -c 'trap "" TERM; echo $$ >> {pids}; sleep 600 & echo $! >> {pids}; wait' &)"""
)
"""In a session of its own, with a child, and its parent is gone."""


async def test_the_deadline_kills_what_has_left_the_group_and_nobody_else(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    bystander = await asyncio.create_subprocess_exec("sleep", "600", start_new_session=True)
    try:
        report = await fenced_by(
            f"shell({STRAY.format(pids=pids)}; sleep 600)", method_timeout_seconds=5.0
        )
        assert outcomes(report) == [FencingOutcome.TIMED_OUT]
        strays = [int(pid) for pid in pids.read_text().split()]
        assert len(strays) == 2
        for pid in strays:
            await until(lambda pid=pid: not alive(pid))  # type: ignore[misc]
        assert bystander.returncode is None
        assert alive(bystander.pid)
    finally:
        bystander.kill()
        await bystander.wait()


async def test_cancelling_kills_what_has_left_the_group(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    task = asyncio.create_task(fenced_by(f"shell({STRAY.format(pids=pids)}; sleep 600)"))
    await until(lambda: pids.exists() and len(pids.read_text().split()) == 2, seconds=30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for pid in map(int, pids.read_text().split()):
        await until(lambda pid=pid: not alive(pid))  # type: ignore[misc]


async def test_cancelling_at_the_start_kills_what_runs_already(tmp_path: Path) -> None:
    """Under load bash and what it starts can be there before the loop has connected its pipes."""
    pids = tmp_path / "pids"
    others = children()  # such as a JVM of an earlier test
    task = asyncio.create_task(fenced_by(f"shell({STRAY.format(pids=pids)}; sleep 600)"))
    while children() <= others:
        await asyncio.sleep(0)
    deadline = time.monotonic() + 30
    while not pids.exists() or len(pids.read_text().split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)  # the loop must not run: it would connect the pipes
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for pid in map(int, pids.read_text().split()):
        await until(lambda pid=pid: not alive(pid))  # type: ignore[misc]


@pytest.mark.row("W10")
async def test_the_total_limit_ends_the_later_methods() -> None:
    started = time.monotonic()
    report = await fenced_by(
        "shell(sleep 60)\nshell(sleep 60)\nshell(true)",
        method_timeout_seconds=2.5,  # to end the first may itself take long
        total_timeout_seconds=4.5,
    )
    assert outcomes(report) == [
        FencingOutcome.TIMED_OUT,
        FencingOutcome.TIMED_OUT,
        FencingOutcome.NOT_RUN,
    ]
    assert time.monotonic() - started < 60
    assert not report.fenced


async def test_cancelling_kills_what_was_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    task = asyncio.create_task(fenced_by(f"shell(echo $$ > {pid}; sleep 600)"))
    await until(lambda: pid.exists() and pid.read_text().endswith("\n"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not alive(int(pid.read_text())))


async def test_the_configuration_and_the_target_are_in_the_environment() -> None:
    checks = (
        'test "$in_fencing_tests" = yees',
        'test "$dfs_namenode_rpc_address" = h:1',
        'test "$target_host/$target_port" = dummyhost/1234',
        'test "$target_address" = dummyhost:1234',
        'test "$target_nameserviceid.$target_namenodeid" = ns1.nn1',
        'test -z "${ha_zookeeper_auth:-}"',
        'test -n "$PATH"',
    )
    environment = {
        "in.fencing.tests": "yees",
        "dfs.namenode.rpc-address": "h:1",
        "ha.zookeeper.auth": "digest:a:b",
    }
    report = await fenced_by(f"shell({' && '.join(checks)})", environment)
    assert report.fenced, str(report)


async def test_output_is_logged_line_by_line_and_its_end_is_reported() -> None:
    with captured("fencing.std") as logs:
        report = await fenced_by("shell(echo hello; echo trouble >&2; printf end; exit 1)")
    heard = [(e["log_level"], e["line"]) for e in logs]
    assert set(heard) == {("info", "hello"), ("warning", "trouble"), ("info", "end")}
    assert report.attempts[0].output == "hello\nend\ntrouble"


async def test_a_flood_of_output_is_cut_and_does_not_block_the_loop() -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    heart = asyncio.create_task(beat())
    with captured("fencing.stdout", "fencing.output_cut") as logs:
        report = await fenced_by("shell(yes)", method_timeout_seconds=1.0)
    heart.cancel()
    assert outcomes(report) == [FencingOutcome.TIMED_OUT]
    assert sum(line["event"] == "fencing.stdout" for line in logs) == MAX_LINES
    (cut,) = (line for line in logs if line["event"] == "fencing.output_cut")
    assert cut["lines"] > 0
    assert beats >= 10
    assert len(report.attempts[0].output) < 100_000


async def test_an_endless_line_is_cut() -> None:
    report = await fenced_by("shell(head -c 1000000 /dev/zero | tr '\\\\0' x)")
    assert report.fenced
    assert len(report.attempts[0].output) <= 2000


async def test_a_command_that_cannot_be_started_is_not_run() -> None:
    ended = await run_command("true", {"long": "x" * 3_000_000}, deadline_seconds=5)
    assert isinstance(ended, NotStarted)
    assert "cannot be started" in ended.reason


async def test_cancelling_a_command_that_cannot_be_started_only_cancels() -> None:
    task = asyncio.create_task(run_command("true", {"long": "x" * 3_000_000}, deadline_seconds=5))
    await asyncio.sleep(0)  # it waits for the start by now
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("methods", "loaded"), [("journal-epoch", False), ("shell(true)\nsshfence", True)]
)
def test_paramiko_is_loaded_before_it_is_needed_and_only_where_it_is(
    methods: str, loaded: bool
) -> None:
    program = (
        "import sys, ha.zkfc.process.command; from fencing.fencer import load_code_of;"
        "from fencing.spec import parse_methods; load_code_of(parse_methods(sys.argv[1]));"
        "print('paramiko' in sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, methods], capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == str(loaded)
