"""What a block's recovery ends with: which replicas stay, and how long the block is.

See docs/reference/datanode.md#block-recovery.

Pure.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from datanode.model import ReplicaState
from ha.record import dataclass
from hadoop.blocks import Block

N = TypeVar("N")
"""Whatever stands for a DataNode."""


@dataclass(frozen=True, slots=True)
class Found(Generic[N]):
    """A replica that takes part, as its DataNode has reported; ``state`` is its earlier state."""

    node: N
    state: ReplicaState
    block: Block
    length: int


@dataclass(frozen=True, slots=True)
class Agreed(Generic[N]):
    """These replicas become whole with this length."""

    replicas: tuple[Found[N], ...]
    length: int


@dataclass(frozen=True, slots=True)
class Empty:
    """No DataNode has a byte of the block: it goes."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The replicas cannot be made equal."""

    why: str


Agreement: TypeAlias = Agreed[N] | Empty | Disagreement
_USABLE: Final = (ReplicaState.FINALIZED, ReplicaState.RBW, ReplicaState.RWR)


def agree(
    block: Block, found: Sequence[Found[N]], truncate_to: int | None, *, silent: int = 0
) -> Agreement[N]:
    """Decide from what was found; ``truncate_to`` is the length that a client wants.

    ``silent`` DataNodes did not answer, and may have what the others have not.
    """
    known = [one for one in found if one.block.stamp >= block.stamp and one.length > 0]
    if not known and silent:
        return Disagreement(f"nobody who answers has a byte of {block}, and {silent} do not answer")
    if not known:
        return Empty()
    usable = [one for one in known if one.state in _USABLE]
    if not usable:
        return Disagreement(f"none of {len(known)} replicas of {block} is in a usable state")
    best = min(one.state for one in usable)
    same = [one for one in usable if one.state is best]
    lengths = {one.length for one in same}
    if best is ReplicaState.FINALIZED:
        # A truncation that was cut off has left some replicas cut, and some not.
        if len(lengths) > 1 and truncate_to is None:
            return Disagreement(f"finalized replicas of {block} have lengths {sorted(lengths)}")
        length = same[0].length
        same += [one for one in usable if one.state is ReplicaState.RBW and one.length == length]
    length = _common(lengths)
    if truncate_to is not None:
        same = [one for one in same if one.length >= truncate_to]
        if not same:
            return Disagreement(f"no replica of {block} has the {truncate_to} bytes to keep")
        length = truncate_to
    return Agreed(tuple(same), length)


def _common(lengths: Iterable[int]) -> int:
    """Return the shortest of the lengths.

    It contains every acknowledged byte of replicas that were being written.
    """
    return min(lengths)
