"""What a simulated DataNode does on command: deletions, copies, recoveries."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from datanode.model import Finalized, ReplicaState, StorageId, UnderRecovery, state_of
from datanode.namenodes.namenode_client import recovery_request
from datanode.replicas.agreement import Agreed, Disagreement, Found, agree
from datanode.replicas.operations import (
    BeginRecovery,
    Complete,
    CreateCopy,
    EndRecovery,
    News,
)
from datanode.replicas.replica import received
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import DATANODE_PROTOCOL
from ha.rpc.protocol import Call
from hadoop.blocks import Block, GenerationStamp, PoolId
from namenode_sim.datanodes.commands import (
    Bandwidth,
    Cache,
    Command,
    Copy,
    Delete,
    Recover,
    Recovery,
    Transfer,
    Uncache,
)
from namenode_sim.process.client_service import ClientService
from tests.simulation.blocks.actor import CALL_SECONDS
from tests.simulation.blocks.datanode import Datanode, Life, block, may_command
from tests.simulation.blocks.disks import NotDone, Stored
from tests.simulation.blocks.names import POOL, id_of
from tests.simulation.blocks.wires import Broken

COPY_SECONDS: Final = 1.0
"""The most that a copy takes."""
LOST: Final = (Broken, TimeoutError, NotDone)
COMMIT: Final = Call(DATANODE_PROTOCOL, "commitBlockSynchronization", b"", 0, 0, "hdfs", None, "")

Faces = Callable[[str], ClientService | None]
"""The calls of a NameNode, while it runs."""


class Executor:
    """Takes the commands of one life in order."""

    def __init__(self, life: Life, others: dict[str, Datanode], faces: Faces) -> None:
        self._life, self._others, self._faces = life, others, faces
        self._name, self._watcher = life.owner.name, life.owner.watcher
        life.take_queued = self.take_before_report

    async def run(self) -> None:
        """Execute commands for ever; the claim is checked when a command is taken."""
        life = self._life
        while True:
            await life.more.wait()
            life.more.clear()
            if life.owner.command_seconds:
                await asyncio.sleep(life.owner.random.random() * life.owner.command_seconds)
            await self._take_queued()

    async def take_before_report(self) -> None:
        await self._take_queued()

    async def _take_queued(self) -> None:
        life = self._life
        while life.commands:
            who, command = life.commands.popleft()
            if may_command(life, who):
                self._watcher.executes(self._name, who, command)
                self._execute(who, command)
            else:
                self._watcher.drops(self._name, who, command)
            await asyncio.sleep(0)

    def _execute(self, who: str, command: Command) -> None:
        match command:
            case Delete(replicas=replicas):
                for block_id, stamp in replicas:
                    self._life.delete(block(block_id, stamp))
            case Transfer(blocks=copies):
                for one in copies:
                    self._life.spawn(self._copy(one))
            case Recover(blocks=recoveries):
                for recovery in recoveries:
                    self._life.spawn(self._recover(who, recovery))
            case Cache() | Uncache() | Bandwidth():
                pass  # no memory and no speed is simulated

    async def _copy(self, order: Copy) -> None:
        life, what = self._life, block(order.block_id, order.stamp)
        life.copies += 1
        try:
            stored = life.map.find(what)
            if not isinstance(stored.replica, Finalized) or stored.replica.length < order.length:
                return
            data = stored.data
            for node, storage in order.targets:
                other = self._others[node.id.host]
                async with asyncio.timeout(CALL_SECONDS):
                    await life.owner.wires.call(
                        self._name,
                        other.name,
                        f"copy of {what}",
                        lambda: take_copy(other, what, StorageId(storage.uuid), data),  # noqa: B023
                    )
        except LOST:
            return
        finally:
            life.copies -= 1

    async def _recover(self, who: str, order: Recovery) -> None:
        what = block(order.block_id, order.stamp)
        ended: list[tuple[Datanode, StorageId]] = []
        length = 0
        try:
            found, silent = await self._ask_all(order, what)
            cut = None if order.cut is None else order.cut.length
            agreed = agree(what, found, cut, silent=silent)
            if isinstance(agreed, Disagreement):
                return
            if isinstance(agreed, Agreed):
                length = agreed.length
                ended = await self._end_all(order, agreed.replicas, length)
        except LOST:
            return
        await self._commit(who, order, length, ended)

    async def _commit(
        self, who: str, order: Recovery, length: int, ended: Sequence[tuple[Datanode, StorageId]]
    ) -> None:
        request = recovery_request(
            block(order.block_id, order.stamp),
            PoolId(POOL),
            new_stamp=order.recovery_stamp,
            length=length,
            nodes=[id_of(owner) for owner, _ in ended],
            storages=[storage for _, storage in ended],
        )

        async def there() -> None:
            face = self._faces(who)
            if face is None:
                raise Broken(f"{who} is starting")
            await face.commit_block_synchronization(COMMIT, request)

        try:
            async with asyncio.timeout(CALL_SECONDS):
                await self._life.owner.wires.call(self._name, who, "commit", there)
        except (*LOST, RemoteFault):
            return

    async def _ask_all(self, order: Recovery, what: Block) -> tuple[list[Found[Datanode]], int]:
        """Return the replicas that there are, and how many DataNodes did not answer."""
        found = []
        silent = 0
        for node, _ in order.places:
            other = self._others[node.id.host]
            try:
                begun = await self._ask(other, what, order.recovery_stamp)
            except NotDone as refusal:
                if refusal.recovery_in_progress:
                    raise
                silent += 1
            except (Broken, TimeoutError):
                silent += 1
            else:
                if begun is not None:
                    found.append(Found(other, *begun))
        if silent == len(order.places):
            raise NotDone("nobody answers")
        return found, silent

    async def _ask(
        self, other: Datanode, what: Block, recovery_stamp: int
    ) -> tuple[ReplicaState, Block, int] | None:
        async with asyncio.timeout(CALL_SECONDS):
            return await self._life.owner.wires.call(
                self._name, other.name, f"recovery of {what}",
                lambda: begin_recovery(other, what, recovery_stamp),
            )  # fmt: skip

    async def _end_all(
        self, order: Recovery, replicas: Sequence[Found[Datanode]], length: int
    ) -> list[tuple[Datanode, StorageId]]:
        ended = []
        for one in replicas:
            try:
                async with asyncio.timeout(CALL_SECONDS):
                    storage = await self._life.owner.wires.call(
                        self._name, one.node.name, f"end of {one.block}'s recovery",
                        lambda: end_recovery(one.node, one.block, order.recovery_stamp, length),  # noqa: B023
                    )  # fmt: skip
            except LOST:
                continue
            ended.append((one.node, storage))
        if not ended:
            raise NotDone("nobody has cut its replica")
        return ended


def _life_of(owner: Datanode) -> Life:
    if owner.life is None:
        raise Broken(f"{owner.name} is not running")
    return owner.life


async def take_copy(
    owner: Datanode, what: Block, storage: StorageId, data: bytes, hint: str = ""
) -> None:
    """Take a whole replica from another DataNode; ``hint`` may lose its own for it."""
    life = _life_of(owner)
    if storage not in owner.disks.volumes:
        storage = next(iter(owner.disks.volumes))
    stored = life.map.perform(CreateCopy(what, storage, 0))
    await asyncio.sleep(owner.random.random() * COPY_SECONDS)
    if life.map.find(what) is not stored:
        raise NotDone(f"{what} was replaced")
    stored.data = data
    stored.replica = received(stored.replica, len(data))
    life.map.perform(Complete(what))
    stored.copied_at = asyncio.get_running_loop().time()
    owner.watcher.whole(owner.name, stored)
    life.announce(News.RECEIVED, stored.replica, hint)


async def change_volume(owner: Datanode, what: Block, storage: StorageId) -> None:
    """Put a whole replica onto another volume, unless it changes in the meantime."""
    life = _life_of(owner)
    stored = life.map.find(what)
    before = stored.replica
    if not isinstance(before, Finalized) or before.storage == storage:
        raise NotDone(f"{what} is not to be moved")
    await asyncio.sleep(owner.random.random() * COPY_SECONDS)
    if life.map.find(what) is not stored or stored.replica is not before or stored.doomed:
        raise NotDone(f"{what} has changed")
    if storage not in owner.disks.volumes:
        raise NotDone(f"{storage} was lost")
    moved = Stored(replace(before, storage=storage), stored.data)
    moved.lost_its_end, moved.copied_at = stored.lost_its_end, stored.copied_at
    owner.disks.remove(stored)
    owner.disks.put(moved)
    life.map.known[what.block_id] = moved
    life.announce(News.RECEIVED, moved.replica)


async def begin_recovery(
    owner: Datanode, what: Block, recovery_stamp: int
) -> tuple[ReplicaState, Block, int] | None:
    """Keep a replica as it is; what it was before.  None: there is none."""
    life = _life_of(owner)
    recovery = GenerationStamp(recovery_stamp)
    try:
        replica = life.map.perform(BeginRecovery(what, recovery)).replica
    except NotDone as refusal:
        if refusal.missing:
            return None
        raise
    assert isinstance(replica, UnderRecovery)
    return state_of(replica.original), replica.block, replica.length


async def end_recovery(owner: Datanode, what: Block, recovery_stamp: int, length: int) -> StorageId:
    life = _life_of(owner)
    stored = life.map.perform(EndRecovery(what, GenerationStamp(recovery_stamp), length))
    owner.watcher.whole(owner.name, stored)
    life.announce(News.RECEIVED, stored.replica)
    return stored.replica.storage
