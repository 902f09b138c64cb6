"""A daemon's life seen from outside: its log lines, its exit codes and its signals."""

import errno
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ha.daemon.event_loop import LOOP_VARIABLE, EventLoop
from ha.daemon.stderr import LossyStream
from tests.log_lines import captured

PROGRAM = """
import asyncio, logging, resource, sys, time
import structlog
from prometheus_client import REGISTRY
from ha.daemon.logs import configure_logging
from ha.daemon.process import ExitWith, halt, run_daemon

async def waits(stop):
    structlog.get_logger().info("main.started", number=7)
    await stop.wait()
    structlog.get_logger().info("main.stopping")

async def gives_up(stop):
    raise ExitWith(6, "no ZooKeeper at 127.0.0.1:1")

async def is_done(stop):
    raise ExitWith(0, "there was nothing to do")

async def breaks(stop):
    raise RuntimeError("a bug")

async def ignores_the_first_signal(stop):
    await stop.wait()
    structlog.get_logger().info("main.stopping")
    await asyncio.Event().wait()

async def logs(stop):
    for number in range(1000):
        structlog.get_logger().info("a.line", number=number)
        logging.getLogger("kazoo.client").warning("another")
    print("still here")

async def halts(stop):
    halt("journalnode", 9, "superseded")

async def stands_still(stop):
    gauges = ["nnha_loop_lag_seconds", "nnha_loop_lag_longest_seconds"]
    late = [0, 0]
    while not all(late):
        await asyncio.sleep(0.05)
        late = [REGISTRY.get_sample_value(one, {"process": "journalnode"}) for one in gauges]
        time.sleep(1.3 * (not any(late)))
    structlog.get_logger().info("main.late", seconds=late)

async def counts_its_files(stop):
    structlog.get_logger().info("main.files", limit=resource.getrlimit(resource.RLIMIT_NOFILE))

async def uses_old_logging(stop):
    logging.getLogger("kazoo.client").warning("session %s", "lost")
    logging.getLogger("kazoo.client").info("not worth it")

configure_logging("journalnode", level="info")
sys.exit(run_daemon("journalnode", globals()[sys.argv[1]], busy=True))
"""
on_both_loops = pytest.mark.parametrize("loop", [loop.value for loop in EventLoop])


@contextmanager
def daemon(which: str, loop: str = "") -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, which],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, LOOP_VARIABLE: loop},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=10)


def until(process: subprocess.Popen[str], event: str) -> dict[str, Any]:
    assert process.stderr is not None
    for line in process.stderr:
        found: dict[str, Any] = json.loads(line)
        if found["event"] == event:
            return found
    raise AssertionError(f"{event} was never logged")


def test_a_line_is_json_with_time_level_process_and_fields() -> None:
    with daemon("waits") as process:
        line = until(process, "main.started")
    assert line["process"] == "journalnode"
    assert line["level"] == "info"
    assert line["number"] == 7
    assert len(line["timestamp"]) == len("2026-01-01T00:00:00.000000Z")


@on_both_loops
@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGHUP])
def test_the_daemon_stops_in_its_own_order_with_exit_code_0(
    asked: signal.Signals, loop: str
) -> None:
    """SIGHUP comes from a terminal that closes."""
    with daemon("waits", loop) as process:
        assert until(process, "daemon.started")["loop"] == loop
        until(process, "main.started")
        process.send_signal(asked)
        until(process, "main.stopping")
        assert process.wait(timeout=10) == 0


def test_a_loop_that_is_not_there_is_a_reason_to_end() -> None:
    with daemon("waits", "twisted") as process:
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 1
    assert errors.splitlines()[-1].startswith("journalnode: NNHA_LOOP is 'twisted'")


@on_both_loops
def test_a_second_signal_ends_a_daemon_that_does_not_stop(loop: str) -> None:
    with daemon("ignores_the_first_signal", loop) as process:
        until(process, "daemon.started")
        process.send_signal(signal.SIGTERM)
        until(process, "main.stopping")
        process.send_signal(signal.SIGTERM)
        assert until(process, "daemon.cancelled")["level"] == "warning"
        assert process.wait(timeout=10) == 1


@pytest.mark.parametrize(
    ("which", "level", "code", "reason"),
    [
        ("gives_up", "error", 6, "no ZooKeeper at 127.0.0.1:1"),
        ("is_done", "info", 0, "there was nothing to do"),
    ],
)
def test_a_wished_exit_shows_its_message_and_its_code(
    which: str, level: str, code: int, reason: str
) -> None:
    with daemon(which) as process:
        _, errors = process.communicate(timeout=10)
        assert process.returncode == code
    assert f"journalnode: {reason}" in errors.splitlines()
    (line,) = [json.loads(line) for line in errors.splitlines() if '"daemon.exit"' in line]
    assert (line["level"], line["code"], line["reason"]) == (level, code, reason)


def test_an_unforeseen_error_is_logged_with_its_traceback_and_exits_1() -> None:
    with daemon("breaks") as process:
        line = until(process, "daemon.failed")
        assert process.wait(timeout=10) == 1
    assert "RuntimeError: a bug" in line["exception"]


def test_libraries_are_heard_from_warning_on_in_the_same_form() -> None:
    with daemon("uses_old_logging") as process:
        _, errors = process.communicate(timeout=10)
    lines = [json.loads(line) for line in errors.splitlines()]
    (found,) = [line for line in lines if line.get("logger") == "kazoo.client"]
    assert found["event"] == "session lost"
    assert found["process"] == "journalnode"
    assert found["level"] == "warning"


def test_a_daemon_may_open_as_many_files_as_the_system_allows() -> None:
    few = f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 500))\n{PROGRAM}"
    process = subprocess.Popen(
        [sys.executable, "-c", few, "counts_its_files"], stderr=subprocess.PIPE, text=True
    )
    assert until(process, "main.files")["limit"] == [500, 500]
    process.communicate(timeout=30)


def test_one_that_says_so_twice_does_not_cut_the_end_short() -> None:
    with daemon("ignores_the_first_signal") as process:
        until(process, "daemon.started")
        for again in (False, True):
            process.send_signal(signal.SIGHUP)
            assert until(process, "daemon.signal")["again"] is again
        process.send_signal(signal.SIGTERM)
        assert until(process, "daemon.signal")["signal"] == "SIGTERM"
        assert process.wait(timeout=30) == 1


def test_under_nohup_it_is_not() -> None:
    deaf = f"import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n{PROGRAM}"
    process = subprocess.Popen(
        [sys.executable, "-c", deaf, "waits"], stderr=subprocess.PIPE, text=True
    )
    until(process, "main.started")
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert until(process, "daemon.signal")["signal"] == "SIGTERM"
    process.communicate(timeout=30)


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-"])
@pytest.mark.parametrize(("which", "code"), [("gives_up", 6), ("breaks", 1), ("logs", 0)])
def test_a_full_disk_for_logs_ends_no_daemon(stderr: str, which: str, code: int) -> None:
    ended = subprocess.run(
        ["sh", "-c", f'exec "$@" {stderr}', "sh", sys.executable, "-c", PROGRAM, which],
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == code
    if which == "logs":
        assert ended.stdout == "still here\n"


def test_a_loop_that_stood_still_is_seen_in_the_log_and_by_the_next_scrape() -> None:
    with daemon("stands_still") as process:
        line = until(process, "daemon.loop_was_late")
        scraped = until(process, "main.late")
    assert (line["level"], line["seconds"] > 1.0) == ("warning", True)
    assert scraped["seconds"][1] > 1.0


def test_a_halt_is_an_error_with_its_reason() -> None:
    with daemon("halts") as process:
        line = until(process, "daemon.halted")
        assert process.wait(timeout=10) == 9
    assert (line["level"], line["code"], line["reason"]) == ("error", 9, "superseded")


def test_a_halt_is_at_once_though_its_reason_cannot_be_written() -> None:
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>/dev/full', "sh", sys.executable, "-c", PROGRAM, "halts"],
        timeout=60,
        check=False,
    )
    assert ended.returncode == 9


def test_lines_that_were_lost_are_counted_when_there_is_room_again() -> None:
    written: list[str] = []
    full = True

    class Disk(io.StringIO):
        def write(self, text: str) -> int:
            if full:
                raise OSError(errno.ENOSPC, "No space left on device")
            written.append(text)
            return len(text)

    stream = LossyStream(Disk())
    for _ in range(3):
        assert stream.write("lost\n") == 5
    full = False
    with captured("log.", here=True) as lines:
        stream.write("kept\n")
        stream.write("kept too\n")
    assert written == ["kept\n", "kept too\n"]
    assert [(line["event"], line["lines"]) for line in lines] == [("log.lines_lost", 3)]


def test_when_how_bad_who_and_what_stand_first_in_a_line() -> None:
    with daemon("logs") as process:
        line = until(process, "a.line")
    assert list(line)[:4] == ["timestamp", "level", "process", "event"]


def test_an_end_with_a_reason_is_an_error() -> None:
    with daemon("gives_up") as process:
        assert until(process, "daemon.exit")["level"] == "error"


@pytest.mark.parametrize("command", ["journalnode", "zkfc", "namenode"])
def test_every_daemon_writes_the_form_that_is_asked_for(command: str, tmp_path: Path) -> None:
    def lines(form: str) -> str:
        told = subprocess.run(
            [
                sys.executable, "-m", "ha.cli.main", command, "--log-format", form,
                "--conf-dir", str(tmp_path),
            ],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert told.returncode != 0
        return told.stderr

    assert '"event"' not in lines("text")
    assert "Usage" not in lines("json")
