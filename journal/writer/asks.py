"""Calls of a writer that stand in line with its batches."""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from journal.errors import JournalError
from journal.links.quorum_call import QuorumCall
from journal.model import NodeName, TxId


@dataclass(frozen=True, slots=True)
class Ask:
    """A call in its place between the batches: its turn comes when ``after`` is next.

    ``starts`` is the segment that it begins, if it does.
    """

    perform: Callable[[], Awaitable[Any]]
    call: QuorumCall[Any]
    after: TxId
    starts: TxId | None


def fail_all(asks: deque[Ask], node: NodeName, error: JournalError) -> None:
    """Fail all of them, as none will be performed."""
    while asks:
        asks.popleft().call.fail(node, error)
