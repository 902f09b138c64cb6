"""Six DataNodes on three racks, files that stay as they are, and a looker that counts replicas."""

import getpass
import hashlib
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Final
from urllib.parse import urlencode

from deploy.local.cluster import site
from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.processes import http_get, wait_until
from deploy.local.workload.java_client import JavaFiles

SECONDS: Final = 120.0
LOOK_SECONDS: Final = 0.1
NEW_SECONDS: Final = 20.0
"""A block may be closed with one replica that is reported; the others are reported or made then."""

RACKS: Final = {f"dn{n}": f"/rack{(n - 1) // 2}" for n in range(1, 7)}
STAYING: Final = ("live", "decommissioning")
FILE_BYTES: Final = 20_000

Block = Mapping[str, Any]
"""A block as ``/fsck`` gives it to programs."""


@contextmanager
def on_racks(folder: Path, more: Mapping[str, str]) -> Iterator[Cluster]:
    """Give a cluster whose DataNodes have names of their own, and stand on the racks."""
    table = folder / "racks"
    table.write_text("".join(f"{name}.local {rack}\n" for name, rack in RACKS.items()))
    keys = {
        "net.topology.table.file.name": str(table),
        "dfs.namenode.decommission.interval": "1s",
        "dfs.namenode.heartbeat.recheck-interval": "500",
        "dfs.namenode.safemode.extension": "0",
        **more,
    }
    with open_cluster(folder / "cluster", datanodes=len(RACKS), more_keys=keys) as cluster:
        for name in cluster.datanodes:
            own = site.datanode_overrides(cluster.layout, name)
            own |= {"dfs.datanode.hostname": f"{name}.local"}
            options = [part for key, value in own.items() for part in ("-D", f"{key}={value}")]
            cluster.commands[name] = cluster.command("datanode", *options)
        cluster.up()
        until(lambda: len(listed(cluster)) == len(RACKS), what="all DataNodes")
        assert {name: one["rack"] for name, one in listed(cluster).items()} == RACKS
        yield cluster


def until(condition: Callable[[], object], *, what: str, poll_seconds: float = 0.1) -> None:
    wait_until(condition, what=what, deadline_seconds=SECONDS, poll_seconds=poll_seconds)


def nnha(cluster: Cluster, *words: str) -> "subprocess.CompletedProcess[str]":
    command, more = _program(cluster, words)
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=SECONDS, env=more
    )


def begin_nnha(cluster: Cluster, *words: str) -> "subprocess.Popen[str]":
    command, more = _program(cluster, words)
    piped = subprocess.PIPE
    return subprocess.Popen(command, stdout=piped, stderr=piped, text=True, env=more)


def _program(cluster: Cluster, words: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    command = [sys.executable, "-m", "nnha", *words]
    return command, os.environ | {"HADOOP_CONF_DIR": str(cluster.conf_dir)}


def listed(cluster: Cluster) -> dict[str, Mapping[str, Any]]:
    """Return the DataNodes as the active knows them; none while there is no active."""
    said = nnha(cluster, "datanodes", "-o", "json").stdout
    found = json.loads(said).get("datanodes", []) if said else []
    return {one["host"].removesuffix(".local"): one for one in found}


def blocks_of(cluster: Cluster) -> Sequence[Block]:
    """Return all blocks as the active knows them; none where no NameNode answers as active."""
    asked = {"form": "json", "ugi": getpass.getuser(), "path": "/", "blocks": "1"}
    for name in cluster.layout.namenodes:
        url = f"{cluster.layout.url(name)}/fsck?{urlencode(asked | {'openforwrite': '1'})}"
        status, body = http_get(url, deadline_seconds=10.0) or (0, b"")
        document = json.loads(body) if status == 200 else {}
        if "blocks" in document:
            assert document["totals"]["not_listed"] == 0
            return list(document["blocks"])
    return ()


def holders(block: Block, *states: str) -> set[str]:
    """Return the DataNodes that have a replica in one of these states."""
    found = (one for one in block["replicas"] if one["state"] in states)
    return {str(one["datanode"]).removesuffix(".local") for one in found}


def misplaced(blocks: Iterable[Block]) -> list[str]:
    """Name the complete blocks that lack live replicas, or whose live ones are on one rack."""
    return [
        f"{block['path']} {block['block']}: {sorted(live)} of {block['expected']}"
        for block in blocks
        if block["state"] != "being written"
        for live in [holders(block, "live")]
        if len(live) < block["expected"]
        or len({RACKS[name] for name in live}) < min(2, block["expected"])
    ]


@dataclass(slots=True)
class Counted:
    """What was seen of the replicas on DataNodes that serve or are being decommissioned.

    ``below`` names each block that had fewer than it is to have, after it once had them all or
    ``NEW_SECONDS`` after it was seen first.  ``slowest`` is how long a new one lacked some.
    """

    looks: int = 0
    blocks: int = 0
    lowest: int | None = None
    slowest: float = 0.0
    below: list[str] = field(default_factory=list)
    _seen: dict[str, float] = field(default_factory=dict)
    _whole: set[str] = field(default_factory=set)

    def saw(self, blocks: Sequence[Block], now: float) -> None:
        self.looks += bool(blocks)
        self.blocks = max(self.blocks, len(blocks))
        for block in (one for one in blocks if one["state"] != "being written"):
            name, count = str(block["block"]), len(holders(block, *STAYING))
            age = now - self._seen.setdefault(name, now)
            if count >= block["expected"]:
                if name not in self._whole:
                    self.slowest = max(self.slowest, age)
                self._whole.add(name)
            if name in self._whole or age > NEW_SECONDS:
                spare = count - int(block["expected"])
                self.lowest = spare if self.lowest is None else min(self.lowest, spare)
                if spare < 0:
                    self.below.append(f"look {self.looks}: {block}")


def say(text: str) -> None:
    """Print a figure of a play; ``pytest -s`` shows it."""
    sys.stdout.write(f"{text}\n")


def figures(counted: Counted) -> str:
    return (
        f"{counted.looks} looks at up to {counted.blocks} blocks: at the least {counted.lowest} "
        f"replicas above what is wanted; a new one was whole after {counted.slowest:.1f} s at most"
    )


@contextmanager
def looking(cluster: Cluster) -> Iterator[Counted]:
    """Count the replicas of all blocks again and again in a thread, whatever else happens."""
    counted, ends = Counted(), threading.Event()

    def look() -> None:
        while not ends.wait(LOOK_SECONDS):
            counted.saw(blocks_of(cluster), monotonic())

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield counted
    finally:
        ends.set()
        thread.join()


@dataclass(slots=True)
class Kept:
    """Files that are written once, and how many replicas each is to have."""

    files: JavaFiles
    written: dict[str, str] = field(default_factory=dict)
    """Their digests by path."""

    def write(self, folder: str, count: int, replicas: int) -> None:
        draw = random.Random(folder)
        for number in range(count):
            path, data = f"{folder}/{number}", draw.randbytes(FILE_BYTES)
            self.files.write(path, [data], block_size=1 << 20)
            self.files.set_replication(path, replicas)
            self.written[path] = hashlib.sha256(data).hexdigest()

    def wrong(self) -> list[str]:
        """Read all of them; name those with other bytes than were written."""
        return [path for path, digest in self.written.items() if self.files.sha256(path) != digest]
