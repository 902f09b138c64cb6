"""A writer that treats its nodes as Hadoop's does: it knows no learners, and no way back inside.

A node that refuses or misses something is left out until the next segment begins; a node that
begins it counts.  Everything else is our own writer's, as are digests: what Java lacks there the
node's Hadoop face makes up for.
"""

from typing import Any

from journal.errors import OutOfSync
from journal.writer.channel import NodeChannel
from journal.writer.writer import QuorumWriter


def hadoop_like(writer: QuorumWriter) -> QuorumWriter:
    """Make a writer admit no node and resume nothing."""
    for channel in writer._channels:
        _keep_out(channel)
    return writer


def claims_in_one_round(writer: QuorumWriter) -> None:
    """Have it claim its epoch as Java's does, and not ask whether its promises are remembered."""
    ask = writer._ask

    async def careless(operation: str, *asked: Any, **more: Any) -> Any:  # noqa: ANN401
        return {} if operation.startswith("confirming") else await ask(operation, *asked, **more)

    vars(writer)["_ask"] = careless


def _keep_out(channel: NodeChannel) -> None:
    """Prevent that the node is asked to take part again."""

    async def waits() -> None:
        channel._last_error = "left out until the next segment"

    async def reopens(first: int) -> None:
        raise OutOfSync(f"segment {first} cannot be opened again")

    vars(channel).update(_try_to_rejoin=waits, _reopen=reopens)
