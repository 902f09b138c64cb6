"""Runs the upkeep of replicas: rounds by the clock, work in slices of turns.

See docs/reference/blocks.md#rounds.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from namenode_sim.datanode_protocol.slices import SLICE_SECONDS
from namenode_sim.datanodes.redundancy import ROUND_SECONDS, Redundancy

LOOK_SECONDS: Final = 0.25
"""So soon after a change blocks are judged."""

JUDGED_AT_ONCE: Final = 100


class Upkeep:
    """Has blocks judged soon after they change, and copied each round."""

    def __init__(self, redundancy: Redundancy, clock: Callable[[], float]) -> None:
        self.redundancy = redundancy
        self._clock = clock
        self._next_round = clock()

    async def run(self) -> None:
        """Work for ever."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Do all that is to be done now; others get the loop in between."""
        now = self._clock()
        if now >= self._next_round:
            self._next_round = now + ROUND_SECONDS
            self.redundancy.begin_round(now)
        clock = asyncio.get_running_loop().time
        began = clock()
        while self.redundancy.work(self._clock(), JUDGED_AT_ONCE):
            if clock() >= began + SLICE_SECONDS:
                await asyncio.sleep(0)
                began = clock()
