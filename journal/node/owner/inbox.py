"""What waits for a journal on the event loop, and which of it is served together."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from journal.core.replies import Reply
from journal.core.requests import Heartbeat, Journal, Request
from journal.errors import JournalError, OutOfSync, StorageFailed
from journal.node.owner.request_group import batch_bytes

MAX_WAITING: Final = 1024
"""Requests that may wait for one journal; writers keep at most a few under way."""
MAX_WAITING_BYTES: Final = 256 * 1024 * 1024
"""Batches that may wait for one journal, together; a slow disk must not fill the memory."""
MAX_GROUP_BYTES: Final = 8 * 1024 * 1024
"""Batches that share one sync are at most this large together, or one batch."""


class Waiting:
    """A request, and what whoever asked waits for."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        # The caller may be gone when an error arrives; asyncio need not complain about that.
        self.answer.add_done_callback(_seen)

    def tell(self, answer: Reply | JournalError) -> None:
        """Set the answer, unless the caller has given up waiting."""
        if self.answer.done():
            return
        if isinstance(answer, JournalError):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class Inbox:
    """Requests in the order in which they came, bounded in number and in bytes."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def require_room(self, request: Request) -> None:
        """Raise OutOfSync where too much waits already."""
        size = batch_bytes(request)
        if len(self._waiting) >= MAX_WAITING or self._bytes + size > MAX_WAITING_BYTES:
            raise OutOfSync(
                f"{len(self._waiting)} requests, {self._bytes} bytes, are waiting already"
            )

    def put(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)
        self._bytes += batch_bytes(waiting.request)

    def next_group(self) -> Sequence[Waiting]:
        """Take the next request, or all batches and heartbeats that stand at the head together.

        One sync makes a whole group durable, whichever streams its batches came from.
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
        """Refuse all that waits, as the journal is not served any more."""
        refuse(self._waiting, why)
        self._waiting.clear()


def tell(group: Sequence[Waiting], answers: Iterable[tuple[Request, Reply | JournalError]]) -> None:
    """Answer each, in order."""
    for waiting, (_, answer) in zip(group, answers, strict=True):
        waiting.tell(answer)


def refuse(group: Iterable[Waiting], why: StorageFailed) -> None:
    for waiting in group:
        waiting.tell(why)


def _seen(done: asyncio.Future[Reply]) -> None:
    if not done.cancelled():
        done.exception()
