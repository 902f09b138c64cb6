"""One NameNode of ours and one of Hadoop's, each active on its journal, from the same image."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.local.cluster.cluster import open_cluster, zkfc_of
from deploy.local.cluster.layout import NAMENODES, Layout
from deploy.local.cluster.ports import HOST
from deploy.local.cluster.processes import Supervisor
from ha.conf.topology import HostPort
from tests.campaigns.bench.cpu import cpu_seconds
from tests.campaigns.bench.hadoop_cluster import hadoop_cluster
from tests.campaigns.bench.namenode_calls import until_active

NAMENODE: Final = "nn1"
KEYS: Final = {"dfs.namenode.datanode.registration.ip-hostname-check": "false"}
HEAP_MEGABYTES: Final = 1536
"""Room for a million blocks with three replicas each, and for garbage next to them."""


@dataclass(frozen=True, slots=True)
class Side:
    """A cluster of which one NameNode and its ZKFC run, next to the journal."""

    whose: str
    layout: Layout
    supervisor: Supervisor
    start_namenode: Callable[[str], object]
    start_zkfc: Callable[[str], object]

    @property
    def address(self) -> HostPort:
        """Where the NameNode serves everybody."""
        return HostPort(HOST, self.layout.namenodes[NAMENODE].rpc)

    @property
    def empty_images(self) -> Path:
        """Where the image of the empty namespace is, once another one has taken its place."""
        return self.layout.directory / "empty"

    def cpu_seconds(self) -> float:
        """Return what the NameNode has used until now."""
        return cpu_seconds(self.supervisor.processes[NAMENODE].pid)

    def restart_from(self, images: Path) -> None:
        """Start the NameNode again, from the image in this folder, until it is the active.

        The journal has no edits but of segments until now, which may follow on any image.
        """
        self.supervisor.stop_together([zkfc_of(name) for name in NAMENODES])
        self.supervisor.stop_together(NAMENODES)
        current = self.layout.name_dir(NAMENODE) / "current"
        kept = self.empty_images
        if not kept.exists():
            kept.mkdir()
            _copy_images(current, kept)
        for old in current.glob("fsimage_*"):
            old.unlink()
        _copy_images(images, current)
        self.start_namenode(NAMENODE)
        self.start_zkfc(NAMENODE)
        asyncio.run(until_active(self.address))


def _copy_images(source: Path, target: Path) -> None:
    for file in source.glob("fsimage_*"):
        shutil.copy(file, target)


@contextmanager
def our_side(directory: Path) -> Iterator[Side]:
    """Run a cluster of ours; raise LocalClusterError where a part does not come up."""
    with open_cluster(directory, more_keys=KEYS) as cluster:
        cluster.up()
        yield Side(
            "ours",
            cluster.layout,
            cluster.supervisor,
            cluster.launch,
            lambda name: cluster.launch(zkfc_of(name)),
        )


@contextmanager
def their_side(directory: Path) -> Iterator[Side]:
    """Run a cluster of Hadoop's; raise JarsMissing, too."""
    heap = {"namenode": HEAP_MEGABYTES}
    with hadoop_cluster(directory, more_keys=KEYS, more_heap=heap) as cluster:
        yield Side(
            "Hadoop's",
            cluster.layout,
            cluster.supervisor,
            cluster.start_namenode,
            cluster.start_zkfc,
        )


@contextmanager
def both_sides(directory: Path) -> Iterator[tuple[Side, Side]]:
    """Run Hadoop's and ours; Hadoop's first, so that ours are not started where it is missing."""
    with ExitStack() as running:
        theirs = running.enter_context(their_side(directory / "hadoop"))
        yield running.enter_context(our_side(directory / "ours")), theirs
