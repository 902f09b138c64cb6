"""One change of a replica at a time, each to its end."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hadoop.blocks import BlockId

T = TypeVar("T")


class Turn:
    """One change of a replica at a time."""

    def __init__(self, changing: dict[BlockId, asyncio.Event], block_id: BlockId) -> None:
        self._changing, self._block_id = changing, block_id

    async def __aenter__(self) -> None:
        while (other := self._changing.get(self._block_id)) is not None:
            await other.wait()
        self._changing[self._block_id] = asyncio.Event()

    async def __aexit__(self, *_: object) -> None:
        self._changing.pop(self._block_id).set()


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await work that goes on if the one that awaits it is cancelled."""
    task = asyncio.ensure_future(work)
    # A cancelled caller does not ask for the outcome any more.
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return await asyncio.shield(task)
