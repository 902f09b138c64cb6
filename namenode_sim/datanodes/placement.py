"""Where the replicas of a block go (BlockPlacementPolicyDefault).

See docs/reference/datanodes.md#placement.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from ha.record import dataclass, field
from namenode_sim.datanodes.model import (
    AdminState,
    Draw,
    Node,
    NodeStorage,
    StorageState,
    StorageType,
)
from namenode_sim.datanodes.storage_policies import StoragePolicy
from namenode_sim.datanodes.topology import STALE_SECONDS, distance, drawn, is_stale

Place = tuple[Node, NodeStorage]

_BUSY_TIMES_MEAN: Final = 2
"""A DataNode is too busy with more than this number of times the mean of transfers."""


class NotTaken(Enum):
    """Why a DataNode does not get a replica."""

    NOT_IN_SERVICE = "not in service"
    STALE = "not heard of lately"
    TOO_BUSY = "too busy"
    TOO_MANY_ON_RACK = "too many replicas on its rack"
    NO_STORAGE_TYPE = "no storage of the type"
    NO_ROOM = "no room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked for: ``count`` more replicas of ``size`` bytes at most.

    ``writer`` is the DataNode on the client's host, or on a copy the source; without one the first
    of the ``chosen`` stands for it, which have the block already, or else the ``rack`` counts on
    which the client is. ``excluded`` are uuids.
    ``local_write``: the writer may get a replica.
    """

    count: int
    size: int
    policy: StoragePolicy
    writer: Node | None = None
    rack: str | None = None
    chosen: tuple[Place, ...] = ()
    excluded: frozenset[str] = frozenset()
    favored: tuple[Node, ...] = ()
    copy: bool = False
    local_write: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """The new places in the order of the pipeline, and why others were not taken, counted."""

    places: tuple[Place, ...]
    reasons: Mapping[NotTaken, int]


@dataclass(frozen=True, slots=True)
class _Scope:
    """A part of the cluster: on a rack, off it, or (None) anywhere."""

    rack: str | None = None
    off: bool = False

    def has(self, node: Node) -> bool:
        return self.rack is None or (node.rack == self.rack) is not self.off


_ANYWHERE = _Scope()


@dataclass(slots=True, eq=False)
class _Search:
    """One search; ``lenient`` ones take who is stale, busy, or the writer that is to be spared.

    ``nodes`` are those in service, ``transceivers`` the transfers that all of them are busy with.
    A DataNode that was silent for more than ``stale_seconds`` may be gone.
    """

    wish: Wish
    stale_seconds: float
    now: float
    draw: Draw
    nodes: list[Node]
    most_on_rack: int
    transceivers: int
    taken: list[Place] = field(default_factory=list)
    left: list[StorageType] = field(default_factory=list)
    unavailable: set[StorageType] = field(default_factory=set)
    reasons: dict[str, NotTaken] = field(default_factory=dict)
    lenient: bool = False

    def results(self) -> list[Place]:
        return [*self.wish.chosen, *self.taken]


def choose(
    nodes: Iterable[Node], wish: Wish, now: float, draw: Draw, stale_seconds: float = STALE_SECONDS
) -> Choice:
    """Choose up to ``wish.count`` places; fewer where there are no more that are fit."""
    search = _begin(list(nodes), wish, now, draw, stale_seconds)
    _fill(search)
    search.lenient = True
    _fill(search)
    while not search.unavailable.issuperset(search.left):
        search.unavailable.update(search.left)
        _fill(search)
    new = {node.id.uuid for node, _ in search.taken}
    reasons = Counter(why for uuid, why in search.reasons.items() if uuid not in new)
    return Choice(_in_pipeline_order(search), reasons)


def _begin(nodes: list[Node], wish: Wish, now: float, draw: Draw, stale_seconds: float) -> _Search:
    in_service = [node for node in nodes if is_in_service(node)]
    have = {node.id.uuid for node, _ in wish.chosen if is_in_service(node)}
    total = len(wish.chosen) + min(wish.count, len(in_service) - len(have))
    racks = len({node.rack for node in in_service})
    most = (total - 1) // max(racks, 1) + 2
    most -= most == total
    return _Search(
        wish,
        stale_seconds,
        now,
        draw,
        in_service,
        most,
        sum([node.transceivers for node in in_service]),
        reasons={}
        if len(in_service) == len(nodes)
        else {node.id.uuid: NotTaken.NOT_IN_SERVICE for node in nodes if not is_in_service(node)},
    )


def is_in_service(node: Node) -> bool:
    """Return whether a DataNode may get replicas."""
    return node.alive and not node.must_register and node.admin is AdminState.NORMAL


def _fill(search: _Search) -> None:
    """Take places, one after the other, until none is left to be chosen or no DataNode is fit."""
    wish, results = search.wish, search.results()
    types = [storage.type for _, storage in results]
    total = len(wish.chosen) + wish.count
    search.left = wish.policy.wanted(total, types, search.unavailable, copy=wish.copy)
    for node in wish.favored:
        if search.left:
            _take(search, node, local=False)
    while search.left and _take_next(search):
        pass


def _take_next(search: _Search) -> bool:
    """Take the next place, whose rack depends on those before it."""
    places, writer = search.results(), search.wish.writer
    if not places and writer is not None and _take(search, writer, local=True):
        return True
    for scope in _scopes([node for node, _ in places], search.wish):
        for node in drawn(search.nodes, search.draw):  # of thousands, the first is mostly fit
            if scope.has(node) and _take(search, node, local=False):
                return True
    return False


def _scopes(nodes: list[Node], wish: Wish) -> list[_Scope]:
    """Return where to look for the next place, the best first."""
    writer = wish.writer
    match nodes:
        case []:
            rack = wish.rack if writer is None else writer.rack
            return [_ANYWHERE] if rack is None else [_Scope(rack), _ANYWHERE]
        case [first]:
            return [_Scope(first.rack, off=True), _ANYWHERE]
        case [first, second]:
            if first.rack == second.rack:
                return [_Scope(first.rack, off=True), _ANYWHERE]
            beside = (writer or first) if wish.copy else second
            return [_Scope(beside.rack), _Scope(first.rack), _ANYWHERE]
        case _:
            return [_ANYWHERE]


def _take(search: _Search, node: Node, *, local: bool) -> bool:
    """Take a place on a DataNode if it is fit for one; ``local``: it is the writer's."""
    uuid = node.id.uuid
    if uuid in search.wish.excluded or any(node is one for one, _ in search.results()):
        return False
    if search.reasons.get(uuid) is NotTaken.NOT_IN_SERVICE:
        return False
    if node is search.wish.writer and not search.wish.local_write and not search.lenient:
        return False
    why = _unfit(search, node, local=local)
    if why is None:
        found = _storage(search, node)
        if isinstance(found, NodeStorage):
            search.taken.append((node, found))
            search.left.remove(found.type)
            return True
        why = found
    search.reasons[uuid] = why
    return False


def _unfit(search: _Search, node: Node, *, local: bool) -> NotTaken | None:
    """Return what speaks against a DataNode, whatever its storages are."""
    if not search.lenient:
        if is_stale(node, search.now, search.stale_seconds):
            return NotTaken.STALE
        is_busy = node.transceivers * len(search.nodes) > _BUSY_TIMES_MEAN * search.transceivers
        if is_busy and not local:
            return NotTaken.TOO_BUSY
    beside = sum(node.rack == other.rack for other, _ in search.results())
    return NotTaken.TOO_MANY_ON_RACK if beside >= search.most_on_rack else None


def _storage(search: _Search, node: Node) -> NodeStorage | NotTaken:
    """Return a storage of a DataNode with room, of the first type that is still to be chosen."""
    why, size = NotTaken.NO_STORAGE_TYPE, search.wish.size
    for kind in dict.fromkeys(search.left):
        of_type = [
            storage
            for storage in node.storages.values()
            if storage.type is kind and storage.state is StorageState.NORMAL
        ]
        roomy = [storage for storage in of_type if storage.room.remaining >= size]
        free = sum(storage.room.remaining for storage in roomy)
        scheduled = sum(storage.held.scheduled.count(search.now) for storage in of_type)
        if roomy and free - scheduled * size >= size:
            return roomy[search.draw.randrange(len(roomy))]
        if of_type:
            why = NotTaken.NO_ROOM
    return why


def _in_pipeline_order(search: _Search) -> tuple[Place, ...]:
    """Order the places: from the writer to the nearest, and so on from each."""
    left, order = list(search.taken), list[Place]()
    if not left:
        return ()
    at = search.wish.writer or search.results()[0][0]
    while left:
        hops = [distance(at, node) for node, _ in left]
        order.append(left.pop(hops.index(min(hops))))
        at = order[-1][0]
    return tuple(order)
