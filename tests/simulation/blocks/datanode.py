"""A simulated DataNode: the product's decisions about claims, replicas and news, on model disks.

One actor for each NameNode registers, heartbeats and reports, as the product's does; an executor
takes commands in order and asks whom the DataNode obeys when it takes one.  A DataNode like Java's
looks at the claim at the same instant, but its replicas leave the map only when their files go,
which may take minutes.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from random import Random
from typing import Any, Final, Protocol

from datanode.model import Replica, StorageId
from datanode.namenodes import claim
from datanode.namenodes.claim import ClaimEffect as Heard
from datanode.namenodes.claim import decode, hear
from datanode.namenodes.incremental_reports import IncrementalQueue
from datanode.replicas.operations import Invalidate, News
from datanode.replicas.replica import Next, decide
from datanode.replicas.store import Announcement
from hadoop.blocks import Block, BlockId, GenerationStamp
from namenode_sim.datanode_protocol.keeper import Answer
from namenode_sim.datanodes.commands import Command
from namenode_sim.datanodes.model import DatanodeId
from tests.simulation.blocks.disks import Disks, ReplicaMap, Stored
from tests.simulation.blocks.told import told
from tests.simulation.blocks.wires import Machine, Wires
from tests.simulation.engine.clock import Process, VirtualLoop

DELETED: Final = "deleted"
"""Why a replica's files are gone: by an order, not with their disk."""


class Watcher(Protocol):
    """Judges what a DataNode does."""

    def heard(self, datanode: str, who: str, said: claim.Said, txid: int, verdict: Heard) -> None:
        """Note a NameNode's answer, and what the DataNode made of it."""

    def answers(self, who: str, datanode: str, answer: Answer) -> None:
        """Judge a NameNode's answer to a heartbeat."""

    def executes(self, datanode: str, who: str, command: object) -> None:
        """Judge a command that is carried out."""

    def drops(self, datanode: str, who: str, command: object) -> None:
        """Note a command that is not carried out, since another NameNode is obeyed."""

    def starts(self, datanode: str) -> None:
        """Forget what the DataNode's former process was ordered and had not carried out."""

    def gone(self, datanode: str, stored: Stored, why: str) -> None:
        """Judge that a replica's files are gone."""

    def whole(self, datanode: str, stored: Stored) -> None:
        """Judge a replica that was finalized."""


Tasks = Callable[["Life"], Iterable[Coroutine[Any, Any, None]]]
"""What a life of a DataNode consists of."""


class Datanode:
    """One machine with disks; ``start`` begins a life of its process."""

    def __init__(
        self,
        name: str,
        number: int,
        loop: VirtualLoop,
        wires: Wires,
        tasks: "Tasks",
        watcher: Watcher,
        random: Random,
        *,
        namenodes: tuple[str, ...],
        volumes: int,
        java: bool,
        deletion_seconds: float,
        report_seconds: float,
        command_seconds: float,
        rack: str = "/default-rack",
    ) -> None:
        self.name, self.number, self.java, self.rack = name, number, java, rack
        self.loop, self.wires, self.watcher, self.random = loop, wires, watcher, random
        self.namenodes, self._tasks = namenodes, tasks
        self.deletion_seconds, self.report_seconds = deletion_seconds, report_seconds
        self.command_seconds = command_seconds
        self.uuid = f"{name}-uuid"
        self.disks = Disks({self.storage(index): {} for index in range(volumes)})
        self.machine: Machine = wires.machine(name)
        self.failed_volumes = self.formatted = 0
        self.life: Life | None = None
        self.lives = 0

    def storage(self, index: int) -> StorageId:
        """Return the id of a volume that was formatted as often as this one."""
        return StorageId(f"DS-{self.name}-{index}")

    def start(self) -> None:
        """Begin a life, if none is there."""
        if self.machine.runs:
            return
        self.lives += 1
        self.watcher.starts(self.name)
        process = Process(self.name, self.loop)
        self.machine.process = process
        self.life = process.context.run(Life, self, process)
        for work in self._tasks(self.life):
            self.life.spawn(work)

    def kill(self) -> None:
        """End the process; the disks stay as they are."""
        if self.machine.process is not None and self.machine.process.alive:
            self.machine.process.kill()
            self.life = None
            self.wires.ended(self.machine)

    def replicas(self) -> dict[BlockId, Stored]:
        return {} if self.life is None else self.life.map.known

    @property
    def is_well(self) -> bool:
        """Whether it runs, and NameNodes can hear it."""
        process, network = self.machine.process, self.wires.network
        if process is None or not process.alive or process.frozen:
            return False
        links = [(one, self.name) for one in self.namenodes]
        return not any(network.is_cut(link) or network.is_cut(link[::-1]) for link in links)

    @property
    def id(self) -> DatanodeId:
        """How it registers."""
        return DatanodeId(self.uuid, f"10.0.0.{self.number}", self.name, 9866, 9864, 9867)


async def no_commands() -> None:
    """Take none: no executor is there yet."""


class Life:
    """One life of a DataNode's process."""

    def __init__(self, owner: Datanode, process: Process) -> None:
        self.owner, self.process = owner, process
        self.map = ReplicaMap(owner.disks)
        self.map.load()
        kept = owner.disks.claim
        self.claims = claim.Claims() if kept is None or owner.java else decode(kept)
        self.queues = {name: IncrementalQueue() for name in owner.namenodes}
        self.wakes = {name: asyncio.Event() for name in owner.namenodes}
        self.commands: deque[tuple[str, Command]] = deque()
        self.take_queued: Callable[[], Awaitable[None]] = no_commands
        """Takes all that waits, as its executor does."""
        self.more = asyncio.Event()
        self.copies = 0

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something in this process; an error of it is one of the world."""
        told(self.process.spawn(work), self.owner.loop)

    def announce(self, news: News, replica: Replica, hint: str = "") -> None:
        one = Announcement(news, replica.storage, replica.block, replica.length, hint)
        for name, queue in self.queues.items():
            queue.add(one)
            if queue.urgent:
                self.wakes[name].set()

    def hear(self, who: str, answer: Answer) -> None:
        """Decide by a NameNode's answer which NameNode to obey."""
        said = claim.Said.ACTIVE if answer.standing.active else claim.Said.STANDBY
        txid = answer.standing.durable
        before = self.claims
        self.claims, verdict = hear(before, claim.NameNodeId(who), said, txid)
        if before.obeyed != self.claims.obeyed and not self.owner.java:
            self.owner.disks.claim = claim.encode(self.claims)
        self.owner.watcher.heard(self.owner.name, who, said, txid, verdict)
        if verdict is Heard.OBEYED:
            self.drop_orders_of_others(who)
        for command in answer.commands:
            self.commands.append((who, command))
            self.more.set()

    def drop_orders_of_others(self, who: str) -> None:
        """Drop them as the product's executor does; Hadoop's does not: its NameNode waits for its
        queue.
        """
        self._drop([each for each in self.commands if each[0] != who])

    def forget_orders(self, who: str) -> None:
        """Drop them where the product's DataNode registers; Hadoop's does not, as above."""
        if not self.owner.java:
            self._drop([each for each in self.commands if each[0] == who])

    def _drop(self, orders: list[tuple[str, Command]]) -> None:
        for giver, command in orders:
            self.commands.remove((giver, command))
            self.owner.watcher.drops(self.owner.name, giver, command)

    def delete(self, block: Block) -> None:
        """Delete a replica: out of the map at once, or when its files go; then announce it."""
        stored = self.map.known.get(block.block_id)
        if stored is None:
            return
        outcome = decide(Invalidate(block), stored.replica)
        if not isinstance(outcome, Next) or stored.doomed:
            return
        stored.doomed = True
        if not self.owner.java:
            self.map.forget(stored)
        seconds = self.owner.random.random() * self.owner.deletion_seconds
        self.spawn(self._unlink(stored, seconds))

    async def _unlink(self, stored: Stored, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.map.forget(stored)
        if self.owner.disks.remove(stored):
            self.owner.watcher.gone(self.owner.name, stored, DELETED)
        if stored.replica.block.block_id not in self.map.known:
            self.announce(News.DELETED, stored.replica)


def may_command(life: Life, who: str) -> bool:
    """Return whether a NameNode's command is carried out; asked when it is taken."""
    return life.claims.obeyed == who


def block(block_id: int, stamp: int) -> Block:
    return Block(BlockId(block_id), GenerationStamp(stamp))
