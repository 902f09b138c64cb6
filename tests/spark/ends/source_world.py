"""A cluster as a merge's source sees it: JournalNodes with edits, and a NameNode with an image."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from journal.model import NamespaceInfo, TxId
from namenode_sim.edits.ops import EndLogSegment, Op, StartLogSegment
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.transfer.namenode_protocol import Facts
from spark.ends.sources.cluster import Cluster
from spark.ends.sources.from_cluster import stage_from_cluster
from spark.ends.sources.model import Staged
from tests.namenode_sim.image.image_world import EDITS
from tests.namenode_sim.startup.startup_world import World, held_by, mkdir, peer, world
from tests.worlds.files import frames, info
from tests.worlds.name_dirs import format_name_dirs

SEGMENTS: tuple[tuple[Op, ...], ...] = (
    (*EDITS, EndLogSegment()),
    (StartLogSegment(), mkdir("/two"), EndLogSegment()),
    (StartLogSegment(), mkdir("/three"), mkdir("/three/a"), EndLogSegment()),
)
OPS: tuple[Op, ...] = tuple(op for segment in SEGMENTS for op in segment)


@dataclass
class SourceWorld:
    """The running parts, and what the edits make of an empty namespace."""

    servers: World
    cluster: Cluster
    work: Path
    told: list[str] = field(default_factory=list)

    async def stage(self) -> Staged:
        self.work.mkdir(exist_ok=True)
        return await stage_from_cluster(self.cluster, self.work, self.told.append)

    def files(self) -> list[str]:
        found = (path for path in self.work.rglob("*") if path.is_file())
        return sorted(path.name for path in found if path.suffix != ".lock")

    def copies(self, name: str) -> list[Path]:
        """Return one segment's file on each JournalNode, in the order in which they are asked."""
        nodes = self.servers.nodes
        order = sorted(range(3), key=nodes.name)
        return [
            self.servers.folder / "journal" / f"jn{i}" / "ns1" / "current" / name for i in order
        ]


def segment_name(number: int) -> str:
    first = 1 + sum(map(len, SEGMENTS[:number]))
    return f"edits_{first:019d}-{first + len(SEGMENTS[number]) - 1:019d}"


def whole() -> Namespace:
    return held_by(OPS)


@asynccontextmanager
async def source_world(
    folder: Path, *, journal_of: NamespaceInfo | None = None
) -> AsyncIterator[SourceWorld]:
    """Three JournalNodes with three segments, and a NameNode whose image is empty."""
    format_name_dirs([folder / "name"], info(), Namespace.empty("hdfs"))
    facts = Facts(info(), TxId(0), TxId(len(OPS)), upgrade_finalized=True, rolling_upgrade=False)
    async with world(folder) as servers, peer(facts, folder / "name") as at:
        await write_journal(servers, journal_of or info(), SEGMENTS)
        cluster = Cluster.from_configuration(servers.conf(*at))
        yield SourceWorld(servers, cluster, folder / "work")


async def write_journal(
    servers: World, namespace: NamespaceInfo, segments: Sequence[Sequence[Op]]
) -> None:
    writer = servers.writer(namespace)
    try:
        await writer.format()
        await writer.become_writer()
        first = TxId(1)
        for segment in segments:
            await writer.start_segment(first)
            await writer.write(first, len(segment), frames(first, segment))
            first = TxId(first + len(segment))
            await writer.finalize_segment(TxId(first - 1))
        await writer.settle(timeout_seconds=30)  # a quorum had it: tests count on all three
    finally:
        await writer.close()
