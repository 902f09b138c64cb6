"""Runs the upkeep of replicas and of the map: rounds by the clock, work in slices of turns.

See docs/reference/blocks.md#rounds.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from namenode_sim.blocks.blocks_map import BlocksMap
from namenode_sim.datanode_protocol.metrics import MAP_FINDINGS
from namenode_sim.datanode_protocol.slices import SLICE_SECONDS
from namenode_sim.datanodes.redundancy import ROUND_SECONDS, Redundancy

log = structlog.get_logger()

LOOK_SECONDS: Final = 0.25
"""So soon after a change blocks are judged."""

JUDGED_AT_ONCE: Final = 100
MAP_SLOTS_A_ROUND: Final = 200
"""Of these blocks each round compares what the map says twice, in about 2 ms."""


class MapCheck:
    """Compares what the map says twice of some blocks, of the next ones each time."""

    def __init__(self, blocks: BlocksMap) -> None:
        self._blocks = blocks
        self._next = 0

    def look(self) -> None:
        """Log and count what does not agree; the NameNode goes on."""
        first = self._next if self._next < self._blocks.slot_count() else 0
        self._next = first + MAP_SLOTS_A_ROUND
        try:
            found = self._blocks.check_slots(first, MAP_SLOTS_A_ROUND)
        except Exception as broken:  # noqa: BLE001 - what is broken may break the check in any way
            found = [repr(broken)]
        if found:
            MAP_FINDINGS.inc(len(found))
            log.error(
                "blocks.map_broken",
                first_slot=first,
                findings=len(found),
                finding=found[0],
                advice="report this as a bug; a restart of this NameNode builds the map anew",
            )


class Upkeep:
    """Has blocks judged soon after they change, and copied and compared each round."""

    def __init__(
        self, redundancy: Redundancy, blocks: BlocksMap, clock: Callable[[], float]
    ) -> None:
        self.redundancy = redundancy
        self._map_check = MapCheck(blocks)
        self._clock = clock
        self._next_round = clock()

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Do all that is to be done now; others get the loop in between."""
        now = self._clock()
        if now >= self._next_round:
            self._next_round = now + ROUND_SECONDS
            self.redundancy.begin_round(now)
            self._map_check.look()
        clock = asyncio.get_running_loop().time
        began = clock()
        while self.redundancy.work(self._clock(), JUDGED_AT_ONCE):
            if clock() >= began + SLICE_SECONDS:
                await asyncio.sleep(0)
                began = clock()
