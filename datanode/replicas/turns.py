"""One change of a replica at a time, each to its end."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
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


async def to_its_end(
    work: Coroutine[Any, Any, T], undo: Callable[[], Awaitable[None]] | None = None
) -> T:
    """Await work that goes on if the one that awaits it is cancelled.

    ``undo`` is then called once the work has ended, before CancelledError goes on.
    """
    task = asyncio.ensure_future(work)
    # A cancelled caller does not ask for the outcome any more.
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if undo is not None:
            while not task.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
            await undo()
        raise
