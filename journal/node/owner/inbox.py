"""The requests that wait for a journal on the event loop, and their grouping under one sync."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from journal.core.replies import Reply
from journal.core.requests import Heartbeat, Journal, Request
from journal.errors import JournalError, OutOfSync, StorageFailed
from journal.node.owner.request_group import batch_bytes

MAX_WAITING: Final = 1024
"""Limit of the requests that wait for one journal; a writer sends only a few at a time."""
MAX_WAITING_BYTES: Final = 256 * 1024 * 1024
"""Limit of the bytes in batches that wait for one journal: a slow disk must not fill the memory."""
MAX_GROUP_BYTES: Final = 8 * 1024 * 1024
"""Limit of the bytes in batches under one sync; a single larger batch is synced alone."""


class Waiting:
    """A request, and the future of its answer that the caller awaits."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        # If the caller has been cancelled, asyncio would log that the error was not retrieved.
        self.answer.add_done_callback(_seen)

    def tell(self, answer: Reply | JournalError) -> None:
        """Set the answer, unless the caller has cancelled it."""
        if self.answer.done():
            return
        if isinstance(answer, JournalError):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class Inbox:
    """A queue of requests, limited in their number and in bytes."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def require_room(self, request: Request) -> None:
        """Raise OutOfSync if the request would exceed the queue's limits."""
        size = batch_bytes(request)
        if len(self._waiting) >= MAX_WAITING or self._bytes + size > MAX_WAITING_BYTES:
            raise OutOfSync(
                f"{len(self._waiting)} requests, {self._bytes} bytes, are waiting already"
            )

    def put(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)
        self._bytes += batch_bytes(waiting.request)

    def next_group(self) -> Sequence[Waiting]:
        """Remove and return the next request, or all batches and heartbeats at the queue's head.

        One sync makes the whole group durable, also if its batches came on different streams.
        """
        group = [self._waiting.popleft()]
        size = batch_bytes(group[0].request)
        while (
            self._waiting
            and isinstance(group[0].request, Journal | Heartbeat)
            and isinstance(self._waiting[0].request, Journal | Heartbeat)
            and size + batch_bytes(self._waiting[0].request) <= MAX_GROUP_BYTES
        ):
            size += batch_bytes(self._waiting[0].request)
            group.append(self._waiting.popleft())
        self._bytes -= size
        return group

    def refuse_all(self, why: StorageFailed) -> None:
        """Answer all requests in the queue with the error, as the journal has stopped."""
        refuse(self._waiting, why)
        self._waiting.clear()


def tell(group: Sequence[Waiting], answers: Iterable[tuple[Request, Reply | JournalError]]) -> None:
    """Set the answers of a group of requests, in order."""
    for waiting, (_, answer) in zip(group, answers, strict=True):
        waiting.tell(answer)


def refuse(group: Iterable[Waiting], why: StorageFailed) -> None:
    for waiting in group:
        waiting.tell(why)


def _seen(done: asyncio.Future[Reply]) -> None:
    if not done.cancelled():
        done.exception()
