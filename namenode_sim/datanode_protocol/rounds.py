"""Keeps blocks at their number of replicas: a round every few seconds, a little work at a time.

See docs/reference/blocks.md#rounds.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from namenode_sim.datanode_protocol.metrics import COPY_TIMEOUTS
from namenode_sim.datanodes.redundancy import ROUND_SECONDS, Redundancy

log = structlog.get_logger()

LOOK_SECONDS: Final = 0.2
"""Blocks that reports and edits have touched wait for so long at most."""


async def keep_redundancy(redundancy: Redundancy, clock: Callable[[], float]) -> None:
    """Work for ever; on a standby and in the safe mode of the start there is nothing to do."""
    next_round, timeouts = clock(), 0
    while True:
        if clock() >= next_round:
            redundancy.begin_round(clock())
            next_round = clock() + ROUND_SECONDS
        has_more = redundancy.work(clock())
        if redundancy.timeouts > timeouts:
            log.warning("datanodes.copies_given_up", blocks=redundancy.timeouts - timeouts)
            COPY_TIMEOUTS.inc(redundancy.timeouts - timeouts)
            timeouts = redundancy.timeouts
        await asyncio.sleep(0 if has_more else LOOK_SECONDS)
