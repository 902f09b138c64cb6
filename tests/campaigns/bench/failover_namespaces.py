"""`./run bench failover --inodes N`: what a failover costs the larger the namespace; as a process:
make an image.
"""

import os
import re
import select
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.request import urlopen

from deploy.local.cluster.cluster import Cluster, zkfc_of
from deploy.local.cluster.layout import NAMENODES
from deploy.local.cluster.processes import wait_until
from deploy.local.demo.stage import Stage
from deploy.local.workload.phases import PHASES
from deploy.local.workload.trial import begin, hand_over, observe, other, settle, the_active
from namenode_sim.huge_pages import LEAST_BYTES
from tests.campaigns.bench.failover_world import JOURNAL_EPOCH, World
from tests.campaigns.bench.formats_world import big_namespace, save
from tests.campaigns.bench.report import Row
from tests.campaigns.bench.switches import Switch, switch_of
from tests.campaigns.bench.waiting_command import waiting_command

SMALLEST: Final = 100_000
TIMES_BAR: Final = 1.3
LOAD_SECONDS: Final = 900.0
HUGE_SECONDS: Final = 120.0
LARGE_MEGABYTES: Final = 1.1 * LEAST_BYTES / 1e6
MEGABYTE: Final = 1e6
KEYS: Final = JOURNAL_EPOCH | {"dfs.namenode.safemode.threshold-pct": "0"}
"""No DataNode reports the blocks."""
CHECKPOINT_AT_ONCE: Final = ("checkpoint.txns=1", "checkpoint.check.period=1")
_SAVED: Final = re.compile(r"^nnha_checkpoint_duration_seconds_(sum|count) (\S+)", re.MULTILINE)
_FIELDS: Final = {"VmRSS": "status", "AnonHugePages": "smaps_rollup"}


@dataclass(slots=True)
class Found:
    """What one size costs; each time in seconds."""

    kills: list[Switch] = field(default_factory=list)
    freed: list[float] = field(default_factory=list)
    """From each kill until the kernel had ended the process."""
    hand_overs: list[Switch] = field(default_factory=list)
    resident: float = 0.0
    huge: float = 0.0
    start: float = 0.0
    checkpoint: float = 0.0


def namespaces(world: World, sizes: Sequence[int], blocks: int) -> list[Row]:
    """Measure the smallest size and then each other; every size has a cluster of its own."""
    smallest = _measured(world, SMALLEST, blocks)
    rows = _rows(SMALLEST, smallest, smallest)
    for inodes in sorted({*sizes} - {SMALLEST}):
        rows += _rows(inodes, _measured(world, inodes, blocks), smallest)
    return rows


def _measured(world: World, inodes: int, blocks: int) -> Found:
    found = Found()
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", __name__, str(inodes), str(blocks), folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

        def take_image(cluster: Cluster) -> None:
            _take_image(cluster, Path(folder))

        with world.stage(f"inodes-{inodes}", KEYS, ready=take_image) as stage:
            cluster, workload = stage.cluster, stage.workload
            for _ in range(world.rounds):
                _kill(stage, found)
            with waiting_command(cluster.conf_dir) as ask:
                for _ in range(world.rounds):
                    one = hand_over(cluster, workload, ask)
                    found.hand_overs.append(switch_of(one))
                    settle(cluster, one.old)
            active, _ = the_active(cluster)
            pid = cluster.process(active).pid
            found.resident, found.huge = (_megabytes(pid, name) for name in _FIELDS)
            _restart_standby(cluster, other(active), found)
    return found


def _take_image(cluster: Cluster, images: Path) -> None:
    """Have both NameNodes load this image: the journal has no edits yet."""
    cluster.supervisor.stop_together([zkfc_of(name) for name in NAMENODES])
    cluster.supervisor.stop_together(list(NAMENODES))
    for name in NAMENODES:
        current = cluster.layout.name_dir(name) / "current"
        for old in current.glob("fsimage_*"):
            old.unlink()
        for image in images.glob("fsimage_*"):
            shutil.copy(image, current)
        cluster.launch(name)
    for name in NAMENODES:
        cluster.wait_for_answer(name, deadline_seconds=LOAD_SECONDS)
        cluster.launch(zkfc_of(name))
    standby = other(cluster.wait_for_active(deadline_seconds=LOAD_SECONDS))
    settle(cluster, standby)
    for name in NAMENODES:
        _wait_for_huge_pages(cluster, name)


def _wait_for_huge_pages(cluster: Cluster, name: str) -> None:
    """Wait until its memory is as it stays: a NameNode is not killed as soon as it has loaded."""
    process = cluster.process(name)
    if _megabytes(process.pid, "VmRSS") < LARGE_MEGABYTES:
        return

    def have_been_made() -> bool:
        # The log goes on where an earlier process's ended.
        own = process.log.read_text().rpartition('"daemon.started"')[2]
        return '"huge_pages.made"' in own or '"huge_pages.off"' in own

    wait_until(have_been_made, what=f"{name} to have huge pages", deadline_seconds=HUGE_SECONDS)


def _kill(stage: Stage, found: Found) -> None:
    cluster = stage.cluster

    def strike(old: str) -> None:
        descriptor, began = os.pidfd_open(cluster.process(old).pid), time.monotonic()
        cluster.kill(old)
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        ended.poll()
        found.freed.append(time.monotonic() - began)
        os.close(descriptor)

    killed = observe(cluster, stage.workload, begin(cluster, strike, PHASES))
    found.kills.append(switch_of(killed))
    cluster.launch(killed.old)
    cluster.wait_for_answer(killed.old, deadline_seconds=LOAD_SECONDS)
    settle(cluster, killed.old)
    _wait_for_huge_pages(cluster, killed.old)


def _restart_standby(cluster: Cluster, name: str, found: Found) -> None:
    """Start the standby anew, so that it saves an image as soon as it can."""
    own = ["-D", f"dfs.ha.namenode.id={name}"]
    more = [part for key in CHECKPOINT_AT_ONCE for part in ("-D", f"dfs.namenode.{key}")]
    cluster.supervisor.stop(name)
    cluster.commands[name] = cluster.command("namenode", *own, *more)
    began = time.monotonic()
    cluster.launch(name)
    cluster.wait_for_ready_standby(name, deadline_seconds=LOAD_SECONDS)
    found.start = time.monotonic() - began

    def saved() -> float | None:
        with urlopen(f"{cluster.layout.url(name)}/metrics") as answer:
            figures = dict(_SAVED.findall(answer.read().decode()))
        count = float(figures.get("count", 0))
        return float(figures["sum"]) / count if count else None

    found.checkpoint = wait_until(
        saved, what=f"{name} to save an image", deadline_seconds=LOAD_SECONDS
    )


def _rows(inodes: int, found: Found, smallest: Found) -> list[Row]:
    name = f"{inodes:,} inodes"
    rows = []
    for what, kind in (("kill -9", "kills"), ("hand-over", "hand_overs")):
        mine, base = getattr(found, kind), getattr(smallest, kind)
        calls = [one.client for one in mine], [one.client for one in base]
        rows += [
            _held(f"{name}, {what}: other active", [one.active for one in mine],
                  [one.active for one in base]),
            _held(f"{name}, {what}: client's longest call", *calls),
        ]  # fmt: skip
    freed, worst = statistics.median(found.freed), max(found.freed)
    return [
        *rows,
        Row(f"{name}: the kernel alone ends it", freed, "s", "-", None, f"worst {worst:.3f} s"),
        Row(f"{name}: NameNode's memory", found.resident, "MB", "-", None,
            f"in huge pages: {found.huge:,.0f} MB"),
        Row(f"{name}: start of a standby", found.start, "s", "-", None, "until it is ready"),
        Row(f"{name}: first checkpoint", found.checkpoint, "s", "-", None, "on a standby"),
    ]  # fmt: skip


def _held(figure: str, mine: Sequence[float], base: Sequence[float]) -> Row:
    value, least = statistics.median(mine), statistics.median(base)
    spread = f"{min(mine):.3f}-{max(mine):.3f} s"
    if mine == base:
        return Row(figure, value, "s", "-", None, spread)
    times = value / least
    peer = f"{times:.2f} x; {spread}"
    bar = f"<= {TIMES_BAR:g} x {least:.3f}"
    return Row(figure, value, "s", bar, times <= TIMES_BAR, peer)


def _megabytes(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/{_FIELDS[name]}").read_text().splitlines()
    line = next(line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024 / MEGABYTE


def main(arguments: Sequence[str]) -> None:
    inodes, blocks, folder = int(arguments[0]), int(arguments[1]), Path(arguments[2])
    save(big_namespace(inodes, blocks), folder)


if __name__ == "__main__":
    main(sys.argv[1:])
