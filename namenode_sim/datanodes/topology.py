"""Racks: how far two DataNodes are from each other, and from a client.

See docs/reference/datanodes.md#distance.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final, TypeVar

from namenode_sim.datanodes.model import Draw, Node

SAME_NODE: Final = 0
SAME_RACK: Final = 2
HOPS_A_LEVEL: Final = 2

T = TypeVar("T")

STALE_SECONDS: Final = 30.0
"""The default of dfs.namenode.stale.datanode.interval."""


def is_stale(node: Node, now: float, stale_seconds: float) -> bool:
    """Return whether a DataNode may be gone: it was silent for a while, or its connection broke."""
    return node.broken or now - node.last_heard > stale_seconds


def on_host(nodes: Iterable[Node], host: str) -> list[Node]:
    return [node for node in nodes if node.id.ip == host or node.id.host == host]


def distance(one: Node, other: Node) -> int:
    return SAME_NODE if one is other else distance_of_racks(one.rack, other.rack)


def distance_of_racks(one: str, other: str) -> int:
    """Return the hops between two nodes: 2 on the same rack, 4 on racks of one hall, and so on."""
    if one == other:
        return SAME_RACK
    ours, theirs = one.split("/"), other.split("/")
    levels = zip(ours, theirs, strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], levels))
    return SAME_RACK + HOPS_A_LEVEL * (max(len(ours), len(theirs)) - common)


def distance_from(local: Sequence[Node], rack: str | None, node: Node) -> int:
    """Return how far a node is from a client at whose address the ``local`` DataNodes are.

    One without any is on a ``rack``; if that is not known, it is equally far from all.
    """
    if node in local:
        return SAME_NODE
    racks = {one.rack for one in local} or ({rack} if rack is not None else set())
    return min((distance_of_racks(one, node.rack) for one in racks), default=SAME_RACK)


def drawn(things: Iterable[T], draw: Draw) -> Iterator[T]:
    """Yield things in an order that is drawn, each order as likely as any, a draw at a time."""
    order = list(things)
    for index in range(len(order) - 1):
        other = index + draw.randrange(len(order) - index)
        order[index], order[other] = order[other], order[index]
        yield order[index]
    yield from order[-1:]
