"""A node of ours among JournalNodes of Hadoop's, under a writer of Hadoop's: sync, and its vote.

The others serve QJournalProtocol and segments, and nothing else that is ours.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from deploy.local.cluster.ports import free_ports
from ha.rpc.errors import RemoteFault
from ha.rpc.server import RpcServer
from journal.core.requests import Format
from journal.node.faces.hadoop_face import hadoop_protocols
from journal.node.process.daemon import JournalNodeDaemon
from journal.storage.incarnation import random_id
from tests.journal.core.requests_of import NAMESPACE
from tests.journal.node.faces.java_writer import HOST, JID, JavaWriter, connected
from tests.journal.node.process import running, until

CLAIM_SECONDS = 0.5


@asynccontextmanager
async def hadoops_node(folder: Path) -> AsyncIterator[tuple[int, JavaWriter]]:
    """Run a formatted voter that reports no digests; yield its port and a writer's connection."""
    async with running(folder, hadoop_host=HOST) as daemon, connected(daemon) as java:
        await java.format()
        server = RpcServer(hadoop_protocols(daemon.node))
        port = await server.start(HOST, 0)
        try:
            yield port, java
        finally:
            await server.stop()


class Writer:
    """Hadoop's writer, which goes on while a majority agrees, and leaves out who refuses."""

    def __init__(self, nodes: list[JavaWriter], epoch: int) -> None:
        self.nodes = [node.at(epoch) for node in nodes]
        self.open = 0
        self.last = 0

    async def begin(self, first: int) -> int:
        """Begin a segment and write its first edit; how many nodes take part."""
        self.open = self.last = first
        taken = 0
        for node in self.nodes:
            try:
                await node.written(first, first)
            except RemoteFault:
                continue
            taken += 1
        assert taken * 2 > len(self.nodes)
        return taken

    async def roll(self) -> int:
        done = 0
        for node in self.nodes:
            try:
                await node.finalize(self.open, self.last)
            except RemoteFault:
                continue
            done += 1
        assert done * 2 > len(self.nodes)
        return await self.begin(self.last + 1)


@asynccontextmanager
async def ours_among_hadoops(folder: Path) -> AsyncIterator[tuple[JournalNodeDaemon, Writer]]:
    """Two of Hadoop's, a writer of Hadoop's that has two, and a fresh learner of ours."""
    async with AsyncExitStack() as stack:
        ports, nodes = [], []
        for name in ("a", "b"):
            port, java = await stack.enter_async_context(hadoops_node(folder / name))
            ports.append(port)
            nodes.append(java)
            await java.new_epoch(1)
        (own_port,) = free_ports(1)
        ours = await stack.enter_async_context(
            running(
                folder / "ours",
                hadoop_host=HOST,
                hadoop_port=own_port,
                peers={JID: [(HOST, port) for port in (*ports, own_port)]},
                hadoop_port_of_peers=ports[0],
                sync_interval_seconds=0.1,
                sync_quick_seconds=0.05,
                admission_seconds=0.05,
                claim_seconds=CLAIM_SECONDS,
            )
        )
        asked = Format(NAMESPACE, founding=False, incarnation=random_id())
        await ours.node.format(JID, "", asked)
        nodes.append(await stack.enter_async_context(connected(ours)))
        yield ours, Writer(nodes, 1)


def waits_for(daemon: JournalNodeDaemon) -> str:
    """Return what its vote waits for, by its status page; empty when it votes."""
    told = daemon.node.status()[JID]
    assert isinstance(told, dict)
    return str(told["waits_for"] or "")


async def test_a_fresh_node_beside_hadoops_votes_after_a_log_roll(tmp_path: Path) -> None:
    async with ours_among_hadoops(tmp_path) as (ours, writer):
        owner = ours.node.owner_of(JID)
        assert await writer.begin(1) == 2
        assert await writer.roll() == 2
        await until(lambda: list(owner.state.segments) == [1], "the first segment is fetched")
        assert owner.state.segments[1].digest  # type: ignore[index]
        while waits_for(ours):
            # A writer that rolls faster than a learner fetches would never see it vote.
            await writer.roll()
            with suppress(TimeoutError):
                async with asyncio.timeout(4 * CLAIM_SECONDS):
                    await until(lambda: not waits_for(ours), "it votes")
        assert await writer.roll() == 3
        await until(
            lambda: (
                [s.last for s in owner.state.segments.values()][:1] == [1]
                and sum(s.finalized for s in owner.state.segments.values()) == writer.open - 1
            ),
            "every finalized segment is here",
        )


async def test_without_a_roll_it_stays_a_learner_and_says_so(tmp_path: Path) -> None:
    async with ours_among_hadoops(tmp_path) as (ours, writer):
        await writer.begin(1)

        await until(
            lambda: "it takes a log roll" in waits_for(ours), "the wait for a claim is over"
        )
        assert ours.node.owner_of(JID).state.start_heard == 1
        assert ours.node.owner_of(JID).state.learner
