"""Phases are read from the daemons' logs, whatever else stands in them."""

import json
from pathlib import Path

import pytest

from deploy.local.workload.phases import GRACEFUL_PHASES, PHASES, parse_log, read_logs, time_phases

T0 = 1_795_255_200.0


def line(seconds: float, phase: str, **more: object) -> str:
    whole = int(seconds)
    stamp = f"2026-11-21T10:00:{whole:02d}.{round((seconds - whole) * 1e6):06d}Z"
    entry = {"timestamp": stamp, "level": "info", "event": "failover.phase", "phase": phase, **more}
    return json.dumps(entry) + "\n"


def write_logs(directory: Path) -> dict[str, Path]:
    texts = {
        "zkfc-nn1": line(0.5, "lock") + line(1.01, "detected") + line(1.02, "released"),
        "zkfc-nn2": line(1.03, "lock") + line(1.05, "fenced")
        + line(1.055, "promoting") + line(1.2, "active"),
        "nn2": line(0.1, "standby") + line(1.06, "recovering") + line(1.1, "recovered")
        + line(1.11, "caught_up") + line(1.15, "active") + line(7.0, "active"),
    }  # fmt: skip
    logs = {}
    for name, text in texts.items():
        logs[name] = directory / f"{name}.log"
        logs[name].write_text(text)
    return logs


def test_each_phase_is_timed_from_the_fault_by_the_one_who_saw_it(tmp_path: Path) -> None:
    events = read_logs({**write_logs(tmp_path), "absent": tmp_path / "absent.log"})
    times = time_phases(events, old="nn1", new="nn2", since=T0 + 1.0, wanted=PHASES)
    assert times == {
        "detected": pytest.approx(0.01, abs=1e-5),
        "lock": pytest.approx(0.03, abs=1e-5),
        "fenced": pytest.approx(0.05, abs=1e-5),
        "promoting": pytest.approx(0.055, abs=1e-5),
        "recovered": pytest.approx(0.1, abs=1e-5),
        "caught_up": pytest.approx(0.11, abs=1e-5),
        "active": pytest.approx(0.15, abs=1e-5),
    }


def test_a_hand_over_begins_with_the_old_active_stepping_down(tmp_path: Path) -> None:
    logs = write_logs(tmp_path)
    logs["nn1"] = tmp_path / "nn1.log"
    logs["nn1"].write_text(line(1.005, "standby") + line(1.5, "standby"))
    times = time_phases(
        read_logs(logs), old="nn1", new="nn2", since=T0 + 1.0, wanted=GRACEFUL_PHASES
    )
    assert times["standby"] == pytest.approx(0.005, abs=1e-5)
    assert times["released"] == pytest.approx(0.02, abs=1e-5)


def test_a_phase_that_nobody_told_is_none_not_zero(tmp_path: Path) -> None:
    events = read_logs(write_logs(tmp_path))
    times = time_phases(events, old="nn2", new="nn1", since=T0 + 1.0, wanted=GRACEFUL_PHASES)
    assert times == dict.fromkeys(GRACEFUL_PHASES)


@pytest.mark.parametrize(
    "text",
    [
        "failover.phase",
        '{"event": "failover.phase"}',
        '{"event": "failover.phase", "timestamp": "yesterday"}',
        '{"event": "failover.phase", "timestamp": 7}',
        '["failover.phase"]',
        '{"event": "told", "timestamp": "2026-11-21T10:00:00Z", "what": "failover.phase"}',
        line(1, "active")[:-10],
        "",
    ],
)
def test_lines_that_are_no_phase_are_passed_over(text: str) -> None:
    assert parse_log("nn1", [text]) == []
