"""The controller itself: what it costs to start and to keep, and what its own death costs."""

import json
import os
import signal
import statistics
import subprocess
import time
from datetime import datetime
from pathlib import Path

from deploy.local.cluster.certificates import tls_folder
from deploy.local.cluster.cluster import Cluster, zkfc_of
from deploy.local.cluster.layout import NAMENODES
from deploy.local.cluster.processes import wait_until
from deploy.local.cluster.state import status
from deploy.local.demo.stage import Stage
from deploy.local.workload.phases import PHASES, read_logs
from deploy.local.workload.trial import Failover, begin, observe, other, settle, the_active
from ha.conf.keys.security import TLS_DIR
from ha.zkfc.process.supervisor import QUICK_SECONDS
from tests import ROOT
from tests.campaigns.bench.failover_world import JOURNAL_EPOCH, World
from tests.campaigns.bench.report import Row
from tests.campaigns.bench.switches import Bars, rows_of, switch_of

MEGABYTE = 1e6
START_BAR_SECONDS = 0.5
STATUS_BAR_SECONDS = 0.35
BACK_BAR_SECONDS = 0.2
MEMORY_BAR_MEGABYTES = 55
BOTH = "ZKFC and NameNode killed, parent alive"
SERVICES = "ZKFC's service and NameNode killed, restarted after a second"
RESTART_SECONDS = 1.0
SERVICES_BAR_SECONDS = 1.5
SESSION = {"ha.zookeeper.session-timeout.ms": "10000"}
"""The default; the local cluster's own is shorter."""
LEASE_SECONDS = 1.0
"""With its ZKFC dead, no one has seen that NameNode's process end: its read lease is waited for."""
SECONDS = 30.0


def controllers(world: World) -> list[Row]:
    with world.stage("zkfc", JOURNAL_EPOCH | SESSION) as stage:
        cluster = stage.cluster
        resident = controllers_megabytes(cluster)
        starts = [_start(cluster) for _ in range(world.rounds)]
        asked = statistics.median(_status(cluster) for _ in range(world.rounds))
        shared = _supervise(cluster)
        before = the_active(cluster)
        back = [_kill_controller(cluster) for _ in range(world.rounds)]
        same = the_active(cluster) == before
        world.record.switches[BOTH] = [switch_of(_kill_both(stage)) for _ in range(world.rounds)]
        world.record.switches[SERVICES] = [
            switch_of(_kill_services(stage)) for _ in range(world.rounds)
        ]
    started, returned = statistics.median(starts), statistics.median(back)
    hadoop = world.record.hadoop_zkfc_megabytes
    theirs = f"Hadoop, same run: {hadoop:.0f} MB" if hadoop else "Hadoop 2.7.3 80-94 MB"
    return [
        memory_row("ZKFC: resident memory", resident, theirs),
        memory_row("ZKFC and its parent: memory", shared, "pages in common counted once"),
        _seconds("ZKFC: start to in election", started, START_BAR_SECONDS, "Hadoop 2.7.3 0.68 s"),
        _seconds("nnha status: a healthy cluster, median", asked, STATUS_BAR_SECONDS, "-"),
        _seconds("ZKFC killed: back with its lock, median", returned, BACK_BAR_SECONDS, "-"),
        _seconds("ZKFC killed: back with its lock, worst", max(back), None, "-"),
        Row("ZKFC killed: role changes", 1 - same, "-", "0", same, f"{world.rounds} kills"),
        *rows_of(world.record, BOTH, BOTH, Bars(LEASE_SECONDS + BACK_BAR_SECONDS)),
        *rows_of(world.record, SERVICES, SERVICES, Bars(SERVICES_BAR_SECONDS)),
    ]


def controllers_megabytes(cluster: Cluster) -> float:
    return max(_memory(cluster.process(zkfc_of(name)).pid, "VmRSS") for name in NAMENODES)


def memory_row(figure: str, megabytes: float, peer: str) -> Row:
    """Hold it against the issue's bar for a controller."""
    bar = MEMORY_BAR_MEGABYTES
    return Row(figure, megabytes, "MB", f"<= {bar}", megabytes <= bar, peer)


def _seconds(figure: str, value: float, bar: float | None, peer: str) -> Row:
    if bar is None:
        return Row(figure, value, "s", "-", None, peer)
    return Row(figure, value, "s", f"<= {bar:g}", value <= bar, peer)


def _start(cluster: Cluster) -> float:
    """Start the standby's controller anew; return seconds until it stands in the election."""
    active, _ = the_active(cluster)
    name = zkfc_of(other(active))
    cluster.supervisor.stop(name)
    began = time.time()
    log = cluster.start(name).log
    return wait_until(
        lambda: _in_election(log, began),
        what=f"{name} to stand in the election",
        deadline_seconds=SECONDS,
    )


def _status(cluster: Cluster) -> float:
    """Return seconds from the start of ``nnha status`` to its end, when all is well."""
    began = time.monotonic()
    told = subprocess.run(
        cluster.command("status"), env=os.environ | environment(), capture_output=True, check=False
    )
    took = time.monotonic() - began
    assert told.returncode == 0, told.stdout + told.stderr
    return took


def _in_election(log: Path, since: float) -> float | None:
    for line in log.read_text(errors="replace").splitlines():
        if '"elector.step"' not in line:
            continue
        entry = json.loads(line)
        at = datetime.fromisoformat(entry["timestamp"]).timestamp()
        if at >= since and entry["after"] == "standby":
            return at - since
    return None


def _supervise(cluster: Cluster) -> float:
    """Start both controllers below parents; return the larger pair's memory, shared pages once."""
    for name in NAMENODES:
        cluster.supervisor.stop(zkfc_of(name))
    for name in NAMENODES:
        _launch_supervised(cluster, name)
        cluster.wait_for_answer(zkfc_of(name))
    active = cluster.wait_for_active()
    settle(cluster, other(active))
    cluster.wait_for_candidate(active)
    pairs = [(cluster.process(zkfc_of(name)).pid, _worker(cluster, name)) for name in NAMENODES]
    return max(sum(_memory(pid, "Pss") for pid in pair) for pair in pairs)


def _launch_supervised(cluster: Cluster, namenode: str) -> None:
    folder = tls_folder(cluster.layout, zkfc_of(namenode))
    tls = ("-D", f"{TLS_DIR.name}={folder}") if folder.exists() else ()
    own_id = ("-D", f"dfs.ha.namenode.id={namenode}")
    command = cluster.command("zkfc", *own_id, *tls, "--supervised")
    cluster.supervisor.start(zkfc_of(namenode), command, environment=environment())


def environment() -> dict[str, str]:
    """Let a process that is started in the cluster's directory import us."""
    return {"PYTHONPATH": str(ROOT)}


def _worker(cluster: Cluster, namenode: str, *, other_than: int = 0) -> int:
    """Return the process that its status page shows: not the parent."""

    def shown() -> int | None:
        facts = status(cluster.layout.url(zkfc_of(namenode))) or {}
        pid = facts.get("pid")
        return pid if isinstance(pid, int) and pid != other_than else None

    return wait_until(shown, what=f"a controller of {namenode}", deadline_seconds=SECONDS)


def _memory(pid: int, field: str) -> float:
    """Return ``VmRSS`` or ``Pss`` of a process in units of 10^6 bytes."""
    file = "status" if field == "VmRSS" else "smaps_rollup"
    lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    line = next(line for line in lines if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024 / MEGABYTE


def _kill_controller(cluster: Cluster) -> float:
    """SIGKILL the active's controller; return seconds until the next one is sure of its role."""
    active, _ = the_active(cluster)
    pid = _worker(cluster, active)
    killed_at = time.time()
    os.kill(pid, signal.SIGKILL)
    log = {zkfc_of(active): cluster.process(zkfc_of(active)).log}

    def back() -> float | None:
        told = (e.at for e in read_logs(log) if e.phase == "active" and e.at > killed_at)
        at = next(told, None)
        return None if at is None else at - killed_at

    took = wait_until(back, what="the controller to be back", deadline_seconds=SECONDS)
    _worker(cluster, active, other_than=pid)
    cluster.wait_for_candidate(active)
    # The next kill is not to be of one that has just begun: its parent would wait before it.
    wait_until(
        lambda: time.time() - killed_at > QUICK_SECONDS + 0.2,
        what="the parent's patience",
        deadline_seconds=SECONDS,
    )
    return took


def _kill_both(stage: Stage) -> Failover:
    """Kill the controller and its NameNode at once; only the parent is left to report it."""
    cluster = stage.cluster

    def strike(old: str) -> None:
        process = cluster.process(old)
        process.ended_by_us = True
        os.kill(_worker(cluster, old), signal.SIGKILL)
        process.send(signal.SIGKILL)

    killed = observe(cluster, stage.workload, begin(cluster, strike, PHASES))
    cluster.start(killed.old)
    settle(cluster, killed.old)
    return killed


def _kill_services(stage: Stage) -> Failover:
    """Kill the active, its controller and that one's parent; start them again after a second."""
    cluster = stage.cluster

    def strike(old: str) -> None:
        struck = time.monotonic()
        for name in (zkfc_of(old), old):
            cluster.kill(name)
        time.sleep(max(0.0, struck + RESTART_SECONDS - time.monotonic()))
        _launch_supervised(cluster, old)
        cluster.launch(old)

    killed = observe(cluster, stage.workload, begin(cluster, strike, PHASES))
    settle(cluster, killed.old)
    return killed
