"""Storages that are gone: what the map says of them is dropped, a slice at a time.

See docs/reference/datanodes.md#long-work.
"""

import asyncio
from collections import deque
from collections.abc import Iterator

import structlog

from ha.record import dataclass
from namenode_sim.datanode_protocol.slices import SLICE_ITEMS, in_slices
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import Node, NodeStorage, StorageState

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Gone:
    node: Node
    storage: NodeStorage
    for_good: bool


class GoneStorages:
    """Storages of DataNodes that died or were replaced, and storages that failed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._queue: deque[_Gone] = deque()
        self._work = asyncio.Event()

    def add(self, node: Node, storage: NodeStorage, *, for_good: bool = False) -> None:
        """Note that a storage is gone; ``for_good``: and is to be forgotten."""
        # At once: nothing that it held proves anything.  The rest takes its time.
        self._cluster.blocks.distrust(storage.held)
        self._queue.append(_Gone(node, storage, for_good))
        self._work.set()

    def add_all(self, node: Node, *, for_good: bool = False) -> None:
        for storage in list(node.storages.values()):
            self.add(node, storage, for_good=for_good)

    async def run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._queue:
                await self._empty(self._queue.popleft())

    async def _empty(self, gone: _Gone) -> None:
        cluster, held = self._cluster, gone.storage.held

        def is_still_gone() -> bool:
            place = cluster.find_place(held.number)
            if place is None or place[1] is not gone.storage:
                return False
            return not gone.node.alive or gone.storage.state is StorageState.FAILED

        def steps() -> Iterator[int]:
            while count := cluster.blocks.lose_some(held, SLICE_ITEMS // 10):
                yield count

        if await in_slices(steps(), is_still_gone):
            cluster.blocks.empty_storage(held)
            if gone.for_good:
                cluster.remove_storage(gone.node, gone.storage)
            log.info("datanodes.storage_emptied", datanode=gone.node.id.uuid, storage=held.uuid)
