"""A cluster whose daemons run on asyncio's own loop, as where uvloop is not installed."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from deploy.local.cluster.processes import ManagedProcess
from deploy.local.demo.screen import Screen
from deploy.local.demo.stage import staged
from deploy.local.workload.trial import kill_active, the_active
from ha.daemon.event_loop import LOOP_VARIABLE, EventLoop

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(300)]


def loops(process: ManagedProcess) -> set[str]:
    lines = [json.loads(line) for line in process.log.read_text().splitlines() if line[:1] == "{"]
    return {line["loop"] for line in lines if line["event"] == "daemon.started"}


def test_it_fails_over_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOOP_VARIABLE, EventLoop.ASYNCIO.value)
    with staged(tmp_path, Screen(Console(stderr=True, width=200)), datanodes=1) as stage:
        stage.workload.start()
        stage.workload.wait_for_acknowledged(40, deadline_seconds=60)
        failover = kill_active(stage.cluster, stage.workload)
        stage.workload.stop()
        verdict = stage.verdict()
        assert (verdict.missing, verdict.duplicated) == ((), ())
        assert the_active(stage.cluster)[0] == failover.new
        running = stage.cluster.supervisor.processes
        for name in ("jn1", failover.new, "dn1"):
            assert loops(running[name]) == {"asyncio"}
