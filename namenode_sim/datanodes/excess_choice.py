"""Which replicas of a block go when there are too many.

See docs/reference/blocks.md#excess.
"""

from collections import Counter
from collections.abc import Sequence

from ha.record import dataclass
from namenode_sim.blocks.model import RACKS, StorageNumber
from namenode_sim.blocks.recheck_queue import DeleteHint
from namenode_sim.datanodes.model import StorageType


@dataclass(frozen=True, slots=True)
class Candidate:
    """A good replica on a confirmed storage.

    ``late``: its DataNode has missed some heartbeats; ``remaining`` bytes are free on its storage.
    """

    number: StorageNumber
    type: StorageType
    node: str
    rack: str
    last_heard: float
    late: bool
    remaining: int


def choose_excess(
    candidates: Sequence[Candidate], wanted: Sequence[StorageType], hint: DeleteHint | None
) -> list[StorageNumber]:
    """Choose what goes so that as many replicas stay as types are wanted.

    They keep to two racks if they stand on two, and to these types if that allows it.  What a
    balancer has moved goes first, by its ``hint``, where the move costs no rack.
    """
    left = list(candidates)
    chosen: list[StorageNumber] = []
    while len(left) > len(wanted):
        fit = _of_excess_types(_off_lonely_racks(left), left, wanted)
        goes = _choose_moved(fit, left, hint) or _first(fit, left)
        left.remove(goes)
        chosen.append(goes.number)
    return chosen


def _choose_moved(
    fit: list[Candidate], left: list[Candidate], hint: DeleteHint | None
) -> Candidate | None:
    """Return the replica that a move has replaced (useDelHint); None if it may not go."""
    if hint is None:
        return None
    spread = Counter(one.rack for one in left)
    new_rack = any(one.node == hint.added and spread[one.rack] == 1 for one in left)
    named = (one for one in fit if one.node == hint.to_free)
    return next((one for one in named if new_rack or spread[one.rack] > 1), None)


def _off_lonely_racks(left: list[Candidate]) -> list[Candidate]:
    """Leave out the last replica on one of two racks, which may not go."""
    spread = Counter(one.rack for one in left)
    if len(spread) != RACKS:
        return left
    return [one for one in left if spread[one.rack] > 1] or left


def _of_excess_types(
    fit: list[Candidate], left: list[Candidate], wanted: Sequence[StorageType]
) -> list[Candidate]:
    """Return what is on a type of storage of which there are more than wanted, if anything is."""
    excess = Counter(one.type for one in left) - Counter(wanted)
    return [one for one in fit if one.type in excess] or fit


def _first(fit: list[Candidate], left: list[Candidate]) -> Candidate:
    """Return the first to go: of late DataNodes the longest silent, else of the fullest storages.

    Of equal ones (new DataNodes, storages on one disk) that one whose rack has another.
    """
    spread = Counter(one.rack for one in left)

    def order(one: Candidate) -> tuple[bool, float, bool, StorageNumber]:
        when = one.last_heard if one.late else one.remaining
        return not one.late, when, spread[one.rack] == 1, one.number

    return min(fit, key=order)
