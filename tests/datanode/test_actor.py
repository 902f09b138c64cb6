"""What an actor has its DataNode do with each registration, and in which order."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from datanode.namenodes.actor import Actor, Rhythm
from datanode.namenodes.claim import NameNodeId, Said
from datanode.namenodes.commands import Command
from datanode.namenodes.executor import Executor
from datanode.namenodes.identity import Identity, Namespace
from datanode.namenodes.namenode_client import Condition
from datanode.replicas.operations import News
from datanode.replicas.store import Announcement, Store
from ha.conf.topology import HostPort
from hadoop.proto import block_tokens_pb2 as tokens
from hadoop.wire.peer import TransferLimits
from tests.datanode import name_nodes
from tests.datanode.name_nodes import NameNode, seen
from tests.datanode.stores import POOL, block, finalized, store, volume

WHO = NameNodeId("nn1")
IDENTITY = Identity("uuid-1", "127.0.0.1", 1, 2, 3, Namespace(77, "CID-1", 1234, POOL.pool))


class Noting:
    """A DataNode that notes what its actor wants, and takes commands only when it must."""

    def __init__(self, held: Store, active: NameNode) -> None:
        self.noted: list[tuple[str, int]] = []
        self._held, self._active = held, active
        self._executor = Executor(
            held, IDENTITY, TransferLimits(), obeyed=lambda: WHO, calls=lambda _: None
        )

    def _note(self, what: str) -> None:
        self.noted.append((what, len(self._active.registrations)))

    async def join(self, _: NameNodeId, __: Namespace) -> tuple[Identity, Store]:
        return IDENTITY, self._held

    def condition(self) -> Condition:
        return Condition((), (), 0, 0)

    async def heard(self, _: NameNodeId, __: Said, ___: int) -> None:
        return

    def commanded(self, who: NameNodeId, commands: Sequence[Command]) -> None:
        if commands:
            self._note("commanded")
            self._executor.add(who, commands)

    def forget_orders(self, _: NameNodeId) -> None:
        self._note("forget orders")

    async def take_queued(self) -> None:
        await self._executor.take_queued()

    def learn_keys(self, _: NameNodeId, __: tokens.ExportedBlockKeysProto) -> None:
        return


async def test_orders_are_forgotten_with_each_registration_before_the_next_come(
    tmp_path: Path, active: NameNode
) -> None:
    member = Noting(await store(volume(tmp_path)), active)
    rhythm = Rhythm(0.05, 3600, cache_report_seconds=0.05)
    actor = Actor(WHO, HostPort("127.0.0.1", active.port), member, rhythm)
    running = asyncio.create_task(actor.run())
    await seen(lambda: len(active.heartbeats) > 1)
    active.commands = [name_nodes.register()]
    await seen(lambda: len(active.registrations) == 2)
    active.commands = [name_nodes.invalidate(block())]
    await seen(lambda: ("commanded", 2) in member.noted)
    assert member.noted == [("forget orders", 1), ("forget orders", 2), ("commanded", 2)]
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_a_full_report_names_no_replica_whose_deletion_waits(
    tmp_path: Path, active: NameNode
) -> None:
    """Bad schedule: the NameNode's next term counts it, and has the others deleted."""
    kept = await store(volume(tmp_path))
    for each in (block(0), block(1)):
        await finalized(kept, each, b"bytes")
    member = Noting(kept, active)
    actor = Actor(WHO, HostPort("127.0.0.1", active.port), member, Rhythm(0.05, 3600))
    running = asyncio.create_task(actor.run())
    await seen(lambda: len(active.heartbeats) > 1)
    active.commands = [name_nodes.invalidate(block(0))]
    await seen(lambda: not active.commands)
    active.lease = 7
    await seen(lambda: len(active.reports) > 0)
    assert [one.numberOfBlocks for one in active.reports[0].reports] == [1]
    # The next heartbeat shows that the actor has had its answer to the report.
    answered = len(active.heartbeats)
    await seen(lambda: len(active.heartbeats) > answered)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_news_that_come_while_a_report_is_under_way_are_sent_at_once(
    tmp_path: Path, active: NameNode
) -> None:
    kept = await store(volume(tmp_path))
    actor = Actor(WHO, HostPort("127.0.0.1", active.port), Noting(kept, active), Rhythm(3600, 3600))
    replica = await finalized(kept, block(0), b"bytes")
    news = Announcement(News.RECEIVED, replica.storage, replica.block, len(b"bytes"))
    active.lease, active.on_report = 7, lambda: actor.tell(news)
    running = asyncio.create_task(actor.run())
    await seen(lambda: bool(active.news))
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_a_namenode_is_called_only_once_it_has_registered_this_process_again(
    tmp_path: Path, active: NameNode
) -> None:
    member = Noting(await store(volume(tmp_path)), active)
    paused = asyncio.Event()

    async def pause(_: float) -> None:
        paused.set()

    address = HostPort("127.0.0.1", active.port)
    actor = Actor(WHO, address, member, Rhythm(0.05, 3600), pause=pause)
    running = asyncio.create_task(actor.run())
    await seen(lambda: actor.calls is not None)
    active.greets.clear()
    active.refused = 1
    await seen(paused.is_set)
    for _ in range(50):
        assert actor.calls is None
        await asyncio.sleep(0)
    active.greets.set()
    await seen(lambda: actor.calls is not None)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
