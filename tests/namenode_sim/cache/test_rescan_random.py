"""Random histories of files, directives and memories."""

import random

import pytest

from namenode_sim.datanodes.model import NodeCache
from tests.namenode_sim.cache.caching_nodes import Caching
from tests.namenode_sim.client_protocol.datanodes_in_memory import written


class World:
    """Files, directives and DataNodes that change in any order, with a NameNode that may end."""

    def __init__(self, seed: int) -> None:
        self.made, self.draw = Caching(), random.Random(seed)
        self.files: dict[str, int] = {}
        self.directives: list[int] = []
        self.names = 0

    async def begin(self) -> None:
        await self.made.pool("p", limit=self.draw.choice([100, 300, 1 << 40]))
        await self.made.pool("q")
        for node in self.made.nodes():
            node.cache.capacity = self.draw.choice([0, 50, 200, 1000])

    async def step(self) -> None:
        made, draw = self.made, self.draw
        node = draw.choice(made.nodes())
        match draw.randrange(8):
            case 0:
                self.names += 1
                path = f"/d{draw.randrange(2)}/f{self.names}"
                lengths = [draw.randrange(1, 40) for _ in range(draw.randrange(1, 4))]
                await written(made.served, path, *lengths)
                self.files[path] = sum(lengths)
            case 1 if self.files:
                path = draw.choice(sorted(self.files))
                del self.files[path]
                await made.served.call("delete", src=path, recursive=False)
            case 2:
                path = draw.choice([*sorted(self.files), "/d0", "/d1"])
                wanted = draw.randrange(1, 4)
                pool = draw.choice("pq")
                self.directives.append(await made.add(path, pool, replication=wanted))
            case 3 if self.directives:
                number = self.directives.pop(draw.randrange(len(self.directives)))
                await made.served.call("removeCacheDirective", id=number)
            case 4:
                made.memory[node.id.uuid].clear()  # its process starts anew
                node.cache = NodeCache(node.cache.capacity)
            case 5:
                for one in made.nodes():  # another NameNode takes over
                    one.forget_orders()
                made.served.cluster.cache.counted = {}
            case 6:
                made.scan()
            case _:
                made.now += draw.random() * 40
                made.obey(node)
                made.report(node)
        for one in made.nodes():
            assert sum(made.memory[one.id.uuid].values()) <= one.cache.capacity

    async def check_settled(self) -> None:
        """Demand that rounds without changes come to an end, within all limits."""
        made = self.made
        for _ in range(3):
            made.round()
        before = {name: dict(held) for name, held in made.memory.items()}
        made.round()
        assert made.memory == before
        assert not any(made.orders(node) for node in made.nodes())
        for counted in await made.stats():
            assert counted.bytesCached <= counted.bytesNeeded
        answer = await made.served.call("listCachePools", prevPoolName="")
        for entry in answer.entries:  # type: ignore[attr-defined]
            assert entry.stats.bytesCached <= entry.info.limit
        if not self.directives:
            assert not any(made.memory.values())
        for node in made.nodes():
            assert node.cache.promised == sum(node.cache.to_cache.values())


@pytest.mark.parametrize("seed", range(40))
async def test_memories_stay_within_their_limits_and_settle(seed: int) -> None:
    world = World(seed)
    await world.begin()
    for _ in range(60):
        await world.step()
    await world.check_settled()
