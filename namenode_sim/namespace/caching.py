"""What cache directives cover, and how far each is.

See docs/reference/namenode.md#centralized-cache.
"""

from collections.abc import Mapping
from typing import Protocol, cast

from ha.record import dataclass, field, record
from namenode_sim.namespace.inode import INode, INodeDirectory, INodeFile
from namenode_sim.namespace.namespace import Namespace


@record
class Statistics:
    """How much a directive wants cached, and how much is: bytes count with their replicas."""

    files_needed: int = 0
    bytes_needed: int = 0
    files_cached: int = 0
    bytes_cached: int = 0

    def __add__(self, other: "Statistics") -> "Statistics":
        return Statistics(
            self.files_needed + other.files_needed,
            self.bytes_needed + other.bytes_needed,
            self.files_cached + other.files_cached,
            self.bytes_cached + other.bytes_cached,
        )


class KnownPool(Protocol):
    """A pool of the namespace, all of whose fields are set."""

    @property
    def name(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def mode(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def max_relative_expiry(self) -> int: ...
    @property
    def default_replication(self) -> int: ...


class KnownDirective(Protocol):
    """A directive of the namespace, all of whose fields are set."""

    @property
    def id(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def replication(self) -> int: ...
    @property
    def pool(self) -> str: ...
    @property
    def expiration(self) -> int: ...


@dataclass(slots=True)
class CacheFigures:
    """What the last scan has counted, of each directive as it was then.

    ``reported``: a cache report has shown something new since the scan before began.
    """

    counted: dict[int, tuple[KnownDirective, Statistics]] = field(default_factory=dict)
    reported: bool = False

    def of(self, directive: KnownDirective) -> Statistics | None:
        """Return what was counted of a directive; None if it is new, or has changed since."""
        found = self.counted.get(directive.id)
        return found[1] if found is not None and found[0] == directive else None


def pools_of(namespace: Namespace) -> Mapping[str, KnownPool]:
    return cast("Mapping[str, KnownPool]", namespace.cache.pools)


def directives_of(namespace: Namespace) -> Mapping[int, KnownDirective]:
    return cast("Mapping[int, KnownDirective]", namespace.cache.directives)


def has_expired(directive: KnownDirective, now_ms: int) -> bool:
    return directive.expiration < now_ms


def covered(namespace: Namespace, path: str) -> list[INodeFile]:
    """Return the files that a directive is about: one, or those directly in a directory."""
    node = namespace.tree.find(path)
    nodes: list[INode | None] = [node]
    if isinstance(node, INodeDirectory):
        nodes = list(node.children.values())
    return [one for one in nodes if isinstance(one, INodeFile)]
