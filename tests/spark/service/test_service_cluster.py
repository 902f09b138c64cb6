"""The acceptance of issue 6 in a cluster of real processes: a checkpoint by Spark under writes."""

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from rich.console import Console

import deploy
from deploy.local.cluster.cluster import Cluster
from deploy.local.cluster.layout import NAMENODES, NAMESERVICE, Layout
from deploy.local.cluster.ports import HOST, free_ports
from deploy.local.cluster.processes import ManagedProcess, wait_until
from deploy.local.cluster.state import status
from deploy.local.demo.screen import Screen
from deploy.local.demo.stage import Stage, request_failover, staged
from deploy.local.workload.audit import JournalEdits, judge, read_journal
from deploy.local.workload.trial import hand_over, kill_active, settle, the_active
from journal.quorum import majority
from namenode_sim.edits.segment_file import named_range
from namenode_sim.storage.retention import IMAGE
from spark.service.merge_process import LOG_NAME

LOOK_SECONDS = 0.05


@dataclass
class JournalWatch:
    """Looks at the files of all JournalNodes and name directories, again and again.

    ``too_early`` has each look at which a JournalNode lacked edits that no NameNode had an image of
    in a majority of its name directories.
    """

    layout: Layout
    name_dirs: Mapping[str, Sequence[Path]]
    archive: Path
    too_early: list[str] = field(default_factory=list)
    looks: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> "JournalWatch":
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def first_edits(self) -> dict[str, int]:
        found = {}
        for name in self.layout.journalnodes:
            firsts = [r.first for path in _files(self._current(name)) if (r := named_range(path))]
            found[name] = min(firsts, default=1)
        return found

    def durable_image(self) -> int:
        """Return the newest image, with digest, in most directories of one NameNode."""
        return max(self._durable_of(name) for name in self.name_dirs)

    def images_of(self, namenode: str) -> list[int]:
        """Return the newest image in each of a NameNode's directories; -1 for none."""
        held = []
        for folder in self.name_dirs[namenode]:
            names = set(_files(folder / "current"))
            whole = [int(m[1]) for n in names if (m := IMAGE.fullmatch(n)) and f"{n}.md5" in names]
            held.append(max(whole, default=-1))
        return held

    def whole_journal(self) -> JournalEdits:
        """Return every edit that was ever in a closed segment, and those in the open ones."""
        self._keep(is_open=True)
        return read_journal(replace(self.layout, directory=self.archive))

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            self._keep(is_open=False)
            # In this order: an image that comes in between excuses nothing that went before it.
            first, durable = max(self.first_edits().values()), self.durable_image()
            self.looks += 1
            if first > durable + 1:
                self.too_early.append(f"edits up to {first - 1} were gone, images go to {durable}")

    def _keep(self, *, is_open: bool) -> None:
        for name in self.layout.journalnodes:
            target = self.archive / "data" / name / NAMESERVICE / "current"
            target.mkdir(parents=True, exist_ok=True)
            for file in _files(self._current(name)):
                found = named_range(file)
                if found is None or (found.last is None and not is_open):
                    continue
                with suppress(FileExistsError, FileNotFoundError):
                    os.link(self._current(name) / file, target / file)

    def _current(self, journalnode: str) -> Path:
        return self.layout.edits_dir(journalnode) / NAMESERVICE / "current"

    def _durable_of(self, namenode: str) -> int:
        held = sorted(self.images_of(namenode), reverse=True)
        return held[majority(len(held)) - 1]


def _files(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []


pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

ENGINE = ("--engine", "spark", "--master", "local[2]")
CHECKPOINT_SECONDS = 240.0
"""Spark's start and a merge on a loaded machine."""
STOP_SECONDS = 30.0


def name_dirs(directory: Path) -> dict[str, list[Path]]:
    return {
        name: [directory / "data" / name / "name", directory / "second" / name]
        for name in NAMENODES
    }


def keys_for(directory: Path, port: int) -> dict[str, str]:
    """Checkpoints by the service alone; every edit goes as soon as it may."""
    dirs = name_dirs(directory)
    return {
        **{f"dfs.namenode.name.dir.ns1.{name}": ",".join(map(str, dirs[name])) for name in dirs},
        "dfs.ha.standby.checkpoints": "false",
        "dfs.ha.log-roll.period": "1s",
        "dfs.namenode.checkpoint.txns": "400",
        "dfs.namenode.checkpoint.check.period": "1s",
        "dfs.namenode.num.checkpoints.retained": "1",
        "dfs.namenode.num.extra.edits.retained": "0",
        "nnha.checkpoint.http-address": f"{HOST}:{port}",
        "nnha.checkpoint.work-dir": str(directory / "checkpoint-work"),
        "nnha.checkpoint.retry.first": "1s",
    }


def start_service(cluster: Cluster) -> ManagedProcess:
    command = [sys.executable, "-m", "ha.cli.main", "checkpoint", "run"]
    return cluster.supervisor.start(
        "checkpoint",
        [*command, "--conf-dir", str(cluster.conf_dir), "--", *ENGINE],
        environment={"PYTHONPATH": str(Path(deploy.__file__).resolve().parent.parent)},
    )


def started_from(cluster: Cluster, namenode: str) -> int:
    """Return the transaction of the image that a NameNode loaded at its second start.

    It may serve before its log says so: the lines of a start wait for a reason to come first.
    """
    log = cluster.process(namenode).log

    def starts() -> list[str]:
        lines = log.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if '"namenode.started"' in line]

    wait_until(lambda: len(starts()) > 1, what="the line of the start", deadline_seconds=30)
    return int(json.loads(starts()[-1])["applied_txid"])


def processes_in(directory: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if str(directory / "checkpoint-work") in line:
            found.append(line.replace("\0", " "))
    return found


def checkpoint_under_writes(stage: Stage, watch: JournalWatch, url: str) -> None:
    """Wait until a checkpoint is taken and edits have gone; then stop the service."""
    stage.workload.pause_seconds = 0.05
    stage.workload.start()
    stage.workload.wait_for_acknowledged(40, deadline_seconds=60)
    service = start_service(stage.cluster)

    def taken_and_purged() -> bool:
        told = status(url) or {}
        taken = told.get("last_taken")
        done = isinstance(taken, dict) and taken["txid"] is not None
        # The standby makes no images; without this one it could not start once edits are gone.
        everywhere = min(watch.images_of(name)[0] for name in NAMENODES) > 0
        return done and everywhere and min(watch.first_edits().values()) > 1

    wait_until(
        taken_and_purged,
        what="both NameNodes to have a checkpoint and the edits in it to be purged",
        deadline_seconds=CHECKPOINT_SECONDS,
        abandon=service.ended_early,
    )
    merge_log = stage.cluster.layout.directory / "checkpoint-work" / LOG_NAME
    assert "single_process" not in merge_log.read_text(), "it was to be divided"
    service.send(signal.SIGTERM)
    assert service.wait(STOP_SECONDS) == 0, service.log_tail()
    assert processes_in(stage.cluster.layout.directory) == []


def test_a_namenode_that_starts_from_the_merged_image_takes_over_with_nothing_missing(
    tmp_path: Path,
) -> None:
    directory = tmp_path.resolve()
    (port,) = free_ports(1)
    for _, second in name_dirs(directory).values():
        second.mkdir(parents=True)
    with staged(directory, Screen(Console(stderr=True)), keys_for(directory, port)) as stage:
        cluster = stage.cluster
        archive = directory / "archive"
        with JournalWatch(cluster.layout, name_dirs(directory), archive) as watch:
            checkpoint_under_writes(stage, watch, f"http://{HOST}:{port}")
            first, _ = the_active(cluster)
            image = watch.durable_image()
            assert image > 0
            kill_active(cluster, stage.workload)
            cluster.start(first)
            assert started_from(cluster, first) == image
            settle(cluster, first)
            hand_over(cluster, stage.workload, lambda old, new: request_failover(cluster, old, new))
            assert the_active(cluster)[0] == first
            stage.workload.stop()
            tree = stage.client.tree(stage.workload.root)
            verdict = judge(stage.workload.writes(), tree, watch.whole_journal())
        assert (verdict.missing, verdict.duplicated) == ((), ())
        assert (verdict.gaps, verdict.diverging) == (0, 0)
        assert stage.workload.errors() == ()
        assert watch.too_early == []
        assert watch.looks > 20
        assert verdict.acknowledged > 100
