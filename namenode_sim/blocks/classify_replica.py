"""What becomes of one reported replica: a table, the first row that fits.

See docs/reference/blocks.md#judgement.
"""

from enum import Enum, auto

from ha.record import dataclass
from namenode_sim.blocks.model import BlockInfo, Reason, ReplicaState, Reported, Role, Stage


class ReplicaVerdict(Enum):
    """What to do with a report; a Reason instead of it says that the replica is corrupt."""

    TAKE = auto()
    NOTE = auto()
    """Remember it in the block's construction."""
    WAIT = auto()
    IGNORE = auto()
    INVALIDATE = auto()


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What else counts.

    ``invalidated``: the storage is to delete exactly this replica. ``superseded``: something newer
    than this report has shown that the storage holds the block's own stamp. ``starting``: this is
    the storage's first report, in the safe mode of the start.
    """

    role: Role
    from_future: bool = False
    invalidated: bool = False
    superseded: bool = False
    starting: bool = False


def classify(
    stored: BlockInfo | None, reported: Reported, around: Circumstances
) -> ReplicaVerdict | Reason:
    """Judge one report; ``stored`` is None for an unknown block."""
    standby = around.role is Role.STANDBY
    if standby and around.from_future:
        return ReplicaVerdict.WAIT
    if stored is None:
        spared = standby or around.starting or around.invalidated
        return ReplicaVerdict.IGNORE if spared else ReplicaVerdict.INVALIDATE
    late = around.superseded and reported.stamp < stored.stamp
    if around.invalidated or late:
        return ReplicaVerdict.IGNORE
    verdict = _by_state(stored, reported)
    # A standby's edits may be older than the report, so that none is wrong for it.
    return ReplicaVerdict.WAIT if standby and isinstance(verdict, Reason) else verdict


def _by_state(stored: BlockInfo, reported: Reported) -> ReplicaVerdict | Reason:
    match reported.state:
        case ReplicaState.FINALIZED:
            return _classify_finalized(stored, reported)
        case ReplicaState.RBW | ReplicaState.RWR:
            return _classify_being_written(stored, reported)
        case ReplicaState.RUR | ReplicaState.TEMPORARY:
            return Reason.INVALID_STATE


def _classify_finalized(stored: BlockInfo, reported: Reported) -> ReplicaVerdict | Reason:
    match stored.stage:
        case Stage.COMPLETE | Stage.COMMITTED:
            if reported.stamp != stored.stamp:
                return Reason.GENSTAMP_MISMATCH
            if reported.length != stored.length:
                return Reason.SIZE_MISMATCH
            return ReplicaVerdict.TAKE
        case Stage.UNDER_CONSTRUCTION:
            if reported.stamp < stored.stamp:
                return Reason.GENSTAMP_MISMATCH
            return ReplicaVerdict.NOTE
        case Stage.UNDER_RECOVERY:
            return ReplicaVerdict.NOTE


def _classify_being_written(stored: BlockInfo, reported: Reported) -> ReplicaVerdict | Reason:
    if stored.stage is not Stage.COMPLETE:
        return Reason.GENSTAMP_MISMATCH if reported.stamp < stored.stamp else ReplicaVerdict.NOTE
    if reported.stamp != stored.stamp:
        return Reason.GENSTAMP_MISMATCH
    if reported.state is ReplicaState.RBW:
        return ReplicaVerdict.IGNORE  # the report of the finalized replica is on its way
    return Reason.INVALID_STATE
