"""Hadoop's TestStandbyInProgressTail and TestHAWithInProgressTail on real JournalNodes.

CorruptJournalCache and TailWithoutCache are in tests/journal/reader/test_tailing.py.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from namenode_sim.edits.ops import Delete
from namenode_sim.edits.values import NO_RPC_IDS
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.term.gate import Gate
from namenode_sim.term.journal_access import JournalAccess
from namenode_sim.term.namenode import NameNode
from tests.journal.writer.journal_cluster import Nodes, formatted_nodes

MIB = 1024 * 1024
NOBODY = Delete("/nobody", 0, NO_RPC_IDS)


async def nobody_else() -> bool:
    return False


@asynccontextmanager
async def namenode(
    nodes: Nodes, name: str, *, follows: bool = True, period: float = 0.01
) -> AsyncIterator[NameNode]:
    node = NameNode(
        name=name,
        namespace=Namespace.empty("root"),
        journal=JournalAccess(nodes.writer, nodes.reader(), tails_open_segment=follows),
        gate=Gate(any_peer_active=nobody_else, park_timeout_seconds=1.0),
        tail_period_seconds=period,
    )
    node.start()
    try:
        yield node
    finally:
        await node.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


async def edit(node: NameNode, count: int = 1) -> int:
    for _ in range(count):
        txid = node.append(NOBODY)
        node.namespace.apply(txid, NOBODY)
        await node.durable(txid)
    return node.namespace.last_applied


@pytest.mark.row("8.7 StandbyInProgressTail.Default")
async def test_default_sees_nothing_before_a_roll_and_then_everything(tmp_path: Path) -> None:
    async with (
        formatted_nodes(tmp_path, edits_cache_bytes=MIB) as nodes,
        namenode(nodes, "nn1") as active,
        namenode(nodes, "nn2", follows=False) as standby,
    ):
        await active.become_active()
        last = await edit(active, 3)
        await until(lambda: standby.tailer.trouble is None)
        async with namenode(nodes, "nn3") as other:
            await until(lambda: other.namespace.last_applied == last)
        assert standby.namespace.last_applied == 0
        active.roll_edits()
        await until(lambda: standby.namespace.last_applied > last)


def names(nodes: Nodes) -> list[str]:
    """Return the names of all files of three JournalNodes."""
    return sorted(path.name for i in range(3) for path in nodes.current(i).iterdir())


@pytest.mark.row(
    "8.7 StandbyInProgressTail.Setup",
    because="four of Hadoop's set-ups in one: the standby begins before, in and behind a segment",
)
async def test_edits_arrive_before_across_and_after_rolls_without_failover(tmp_path: Path) -> None:
    """Setup, HalfStart, InitStart and NewStart: the standby may begin anywhere in a segment."""
    async with (
        formatted_nodes(tmp_path, edits_cache_bytes=MIB) as nodes,
        namenode(nodes, "nn1") as active,
        namenode(nodes, "nn2") as standby,
    ):
        await active.become_active()
        for _ in range(3):
            last = await edit(active, 2)
            await until(lambda: standby.namespace.last_applied == last)  # noqa: B023
            active.roll_edits()
            last = await edit(active)
            await until(lambda: standby.namespace.last_applied == last)  # noqa: B023
        # A node behind the majority would still rename its files: those of three segments that
        # ended, and that of the fourth, which has another name until its first edit is durable.
        await until(lambda: all(len(nodes.finalized(i)) == 3 for i in range(3)))
        await until(lambda: names(nodes).count("edits_inprogress_0000000000000000015") == 3)
        before = names(nodes)
        async with namenode(nodes, "nn3") as late:
            await until(lambda: late.namespace.last_applied == last)
        assert names(nodes) == before


@pytest.mark.row("8.7 UndertailingWhileFailover")
async def test_undertailing_while_failover_loses_nothing(tmp_path: Path) -> None:
    async with (
        formatted_nodes(tmp_path, edits_cache_bytes=MIB) as nodes,
        namenode(nodes, "nn1") as active,
        namenode(nodes, "nn2", period=600) as standby,
    ):
        await until(lambda: standby.tailer.trouble is None)
        await active.become_active()
        for _ in range(3):
            await edit(active, 2)
            active.roll_edits()
        last = await edit(active)
        assert standby.namespace.last_applied == 0
        await standby.become_active()
        assert standby.namespace.last_applied > last


@pytest.mark.row("8.7 NonUniformConfig")
async def test_non_uniform_configuration_still_delivers(tmp_path: Path) -> None:
    """Keep nothing in the JournalNodes' memory; what is committed comes from their files."""
    async with (
        formatted_nodes(tmp_path) as nodes,
        namenode(nodes, "nn1", follows=False) as active,
        namenode(nodes, "nn2") as standby,
    ):
        await active.become_active()
        last = await edit(active, 5)
        await until(lambda: standby.namespace.last_applied >= last - 1)
        active.roll_edits()
        await until(lambda: standby.namespace.last_applied >= last)


@pytest.mark.row("8.7 EditsServedViaCache", because="the row's name with its verb and article")
async def test_edits_are_served_via_the_cache(tmp_path: Path) -> None:
    async with (
        formatted_nodes(tmp_path, edits_cache_bytes=MIB) as nodes,
        namenode(nodes, "nn1") as active,
    ):
        await active.become_active()
        last = await edit(active, 5)
        for i in range(3):
            for path in nodes.current(i).glob("edits_*"):
                path.unlink()
        async with namenode(nodes, "nn2") as standby:
            await until(lambda: standby.namespace.last_applied == last)


@pytest.mark.row(
    "8.7 HAWithInProgressTail",
    because="the row's name is that of a class of Hadoop; its one scenario is this",
)
async def test_a_takeover_with_an_empty_and_a_lagging_node_loses_nothing(tmp_path: Path) -> None:
    """HAWithInProgressTail (HDFS-16689): what single nodes say is never taken for the end."""
    async with (
        formatted_nodes(tmp_path, edits_cache_bytes=MIB) as nodes,
        namenode(nodes, "nn1") as active,
        namenode(nodes, "nn2", period=600) as standby,
    ):
        await until(lambda: standby.tailer.trouble is None)
        await nodes.stop(2)
        await active.become_active()
        last = await edit(active, 5)
        await nodes.start(2)  # it has nothing
        await nodes.stop(0)
        await nodes.start(0)  # and this one has nothing in memory
        await standby.become_active()
        assert standby.namespace.last_applied > last
        assert await edit(standby) == standby.namespace.last_applied
