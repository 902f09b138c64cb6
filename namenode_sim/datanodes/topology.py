"""Racks: how far two DataNodes are from each other, and from a client.

See docs/reference/datanodes.md#distance.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from namenode_sim.datanodes.model import Draw, Node

SAME_NODE: Final = 0
SAME_RACK: Final = 2
OTHER_RACK: Final = 4

T = TypeVar("T")

STALE_SECONDS: Final = 30.0
"""The default of dfs.namenode.stale.datanode.interval."""


def is_stale(node: Node, now: float, stale_seconds: float) -> bool:
    """Return whether a DataNode may be gone: it was silent for a while, or its connection broke."""
    return node.broken or now - node.last_heard > stale_seconds


def on_host(nodes: Iterable[Node], host: str) -> list[Node]:
    return [node for node in nodes if host in {node.id.ip, node.id.host}]


def distance(one: Node, other: Node) -> int:
    if one is other:
        return SAME_NODE
    return SAME_RACK if one.rack == other.rack else OTHER_RACK


def distance_from(local: Sequence[Node], node: Node) -> int:
    """Return how far a node is from a client at whose address the ``local`` DataNodes are."""
    if node in local:
        return SAME_NODE
    return SAME_RACK if any(one.rack == node.rack for one in local) else OTHER_RACK


def shuffled(things: Iterable[T], draw: Draw) -> list[T]:
    """Things in an order that is drawn, each order as likely as any."""
    order = list(things)
    for index in range(len(order) - 1, 0, -1):
        other = draw.randrange(index + 1)
        order[index], order[other] = order[other], order[index]
    return order
