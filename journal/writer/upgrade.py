"""Upgrades, rolls back and discards on all nodes of a journal, with the stamp of its writer.

In Hadoop each of these calls needs every node, and any caller may send them.  Here nodes that
cannot be reached are reported and left out if a majority agrees; a refusal is an error.

See docs/reference/quorum-journal.md#upgrade-on-all-nodes.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import structlog

from journal.errors import InvariantBroken, QuorumLost, Unavailable
from journal.links.quorum_call import QuorumCall, ask_each, failed, good, reasons
from journal.links.settings import WriterSettings
from journal.model import NamespaceInfo, NodeName, TxId
from journal.writer.channel import NodeChannel

log = structlog.get_logger()
T = TypeVar("T")


class JournalUpgrades:
    """The upgrade calls of one writer, which must hold an epoch.

    Raises, from every call:
        QuorumLost: a node refused, or too few can be reached.  The others have carried it out, and
            the call may be repeated.
        InvariantBroken: the answers of nodes contradict each other.
    """

    def __init__(
        self, channels: Sequence[NodeChannel], namespace: NamespaceInfo, settings: WriterSettings
    ) -> None:
        self._channels = tuple(channels)
        self._namespace = namespace
        self._timeout = settings.operations_timeout_seconds

    async def pre_upgrade(self) -> None:
        """Keep a copy of the journal, for a roll-back of the upgrade."""
        await self._on_all(
            "keeping the journal for an upgrade",
            lambda node: node.remote.pre_upgrade(node.headers.info(), self._timeout),
        )

    async def upgrade(self, namespace: NamespaceInfo) -> None:
        """Adopt a layout version and a creation time."""
        await self._on_all(
            "upgrading",
            lambda node: node.remote.upgrade(node.headers.info(), namespace, self._timeout),
        )

    async def finalize(self) -> None:
        await self._on_all(
            "finalizing the upgrade",
            lambda node: node.remote.finalize_upgrade(node.headers.info(), self._timeout),
        )

    async def can_roll_back(self, target_layout_version: int) -> bool:
        """Return whether the nodes can roll back to a state of that layout."""
        return await self._require_agreement(
            "asking for the way back",
            lambda node: node.remote.can_roll_back(
                self._namespace, target_layout_version, self._timeout
            ),
        )

    async def roll_back(self) -> None:
        """Restore the state before the upgrade."""
        await self._on_all(
            "rolling back", lambda node: node.remote.roll_back(node.headers.info(), self._timeout)
        )

    async def discard_segments(self, first: TxId) -> None:
        """Rename all segments from ``first`` on to ``.trash``."""
        await self._on_all(
            f"discarding from {first} on",
            lambda node: node.remote.discard_segments(node.headers.info(), first, self._timeout),
        )

    async def ctime(self) -> int:
        """Return when the journal was last upgraded, in milliseconds since 1970."""
        return await self._require_agreement(
            "asking for the creation time", lambda node: node.remote.journal_ctime(self._timeout)
        )

    async def _require_agreement(
        self, operation: str, ask: Callable[[NodeChannel], Awaitable[T]]
    ) -> T:
        answers = await self._on_all(operation, ask)
        if len(set(answers.values())) > 1:
            raise InvariantBroken(f"{operation}: the nodes disagree: {answers}")
        return next(iter(answers.values()))

    async def _on_all(
        self, operation: str, ask: Callable[[NodeChannel], Awaitable[T]]
    ) -> dict[NodeName, T]:
        async def one(node: NodeChannel) -> T:
            # Queued in the node's channel: a writer's calls must arrive in order.
            call: QuorumCall[T] = QuorumCall(operation, [node.name], timeout_seconds=self._timeout)
            node.ask(call, partial(ask, node))
            try:
                return (await call.outcome())[node.name]
            except QuorumLost as lost:
                raise lost.failures[node.name] from None

        answers = await ask_each(self._channels, one)
        done, failures = good(answers), failed(answers)
        refused = any(not isinstance(why, Unavailable) for why in failures.values())
        if refused or 2 * len(done) <= len(self._channels):
            raise QuorumLost(
                f"{operation} needs every JournalNode that can be reached, and a majority; "
                f"failed: {reasons(failures)}",
                failures=failures,
            )
        for name, why in failures.items():
            log.warning("journal.node_left_behind", operation=operation, node=name, why=str(why))
        return done
