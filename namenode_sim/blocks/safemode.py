"""Safe mode: no edits, no orders to DataNodes, until enough of the blocks are reported.

The start begins in it and leaves it by itself; an operator and a full disk may bring it back.

See docs/reference/blocks.md#safe-mode.
"""

from enum import Enum
from struct import pack, unpack
from typing import assert_never

from ha.record import dataclass, replace
from namenode_sim.blocks.state import BlockState


def _single(number: float) -> float:
    """Return a number as Java's float holds it: the share of blocks is computed with that."""
    (rounded,) = unpack("f", pack("f", number))
    return float(rounded)


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeModeRules:
    """Hadoop's conditions: dfs.namenode.safemode.{threshold-pct,min.datanodes,extension}.

    A threshold of 0 or less waits for no block, one above 1 for ever.
    """

    threshold: float = 0.999
    min_datanodes: int = 0
    extension_seconds: float = 30.0

    def needed(self, total: int) -> int:
        """Return how many of ``total`` blocks must be safe."""
        return int(total * _single(self.threshold))


@dataclass(frozen=True, slots=True)
class Counts:
    """What is known of blocks and DataNodes.

    ``total`` are the complete blocks, ``safe`` those of them with enough replicas.
    ``bytes_in_future`` are in replicas that are newer than all edits: leaving safe mode would have
    them deleted.
    """

    total: int
    safe: int
    live_datanodes: int = 0
    bytes_in_future: int = 0


def counts_of(state: BlockState, live_datanodes: int) -> Counts:
    total, safe, bytes_in_future = state.map.safe_counts()
    return Counts(total, safe, live_datanodes, bytes_in_future)


@dataclass(frozen=True, slots=True)
class Pending:
    """Too few blocks are safe, or too few DataNodes live."""


@dataclass(frozen=True, slots=True)
class Extension:
    """Both conditions have held once, at ``since``; the rest of the cluster has time to come."""

    since: float


@dataclass(frozen=True, slots=True)
class Off:
    """The safe mode of the start is over, and does not come back."""


Startup = Pending | Extension | Off


@dataclass(frozen=True, slots=True)
class SafeMode:
    """The safe mode of the start, and what an operator or a full disk asks for in addition."""

    startup: Startup
    by_hand: bool = False
    low_resources: bool = False

    def is_on(self) -> bool:
        return self.hold() is not Hold.NOTHING

    def hold(self) -> "Hold":
        if self.by_hand or self.low_resources:
            return Hold.OPERATOR
        return Hold.NOTHING if isinstance(self.startup, Off) else Hold.START


class Hold(Enum):
    """Why edits are refused: a client of an active waits for the end of the start only."""

    NOTHING = "nothing"
    START = "too few blocks are reported"
    OPERATOR = "an operator must leave safe mode"


class ReplicasWouldBeDeleted(Exception):
    """Safe mode is not left, since replicas that are newer than the edits would be deleted."""

    def __init__(self, bytes_in_future: int) -> None:
        super().__init__(
            f"Safe mode stays on: DataNodes hold {bytes_in_future} bytes in replicas that are "
            f"newer than all edits of this NameNode, which would delete them. Start it with the "
            f"right image and edits, or give them up with -safemode forceExit"
        )


def begin(rules: SafeModeRules, counts: Counts) -> SafeMode:
    """Begin the safe mode of a start; where there is nothing to wait for it is over at once."""
    return SafeMode(Off() if _conditions_hold(rules, counts) else Pending())


def _conditions_hold(rules: SafeModeRules, counts: Counts) -> bool:
    enough_blocks = counts.safe >= rules.needed(counts.total)
    return enough_blocks and counts.live_datanodes >= rules.min_datanodes


def look(
    mode: SafeMode, rules: SafeModeRules, counts: Counts, now: float, *, taking_over: bool
) -> SafeMode:
    """Look whether the safe mode of the start moves on; not in the midst of a takeover.

    Asked after each change of the counts, and each second.
    """
    if taking_over or not _conditions_hold(rules, counts):
        return mode
    match mode.startup:
        case Pending():
            if rules.extension_seconds > 0:
                return replace(mode, startup=Extension(now))
        case Extension(since):
            if now < since + rules.extension_seconds:
                return mode
        case Off():
            return mode
        case _:
            assert_never(mode.startup)
    return mode if counts.bytes_in_future else replace(mode, startup=Off())


def enter(mode: SafeMode) -> SafeMode:
    """Enter safe mode for an operator; only an operator ends it."""
    return replace(mode, by_hand=True)


def leave(counts: Counts) -> SafeMode:
    """Leave safe mode, of whatever kind, for an operator.

    Raises:
        ReplicasWouldBeDeleted: while replicas from the future are known.
    """
    if counts.bytes_in_future:
        raise ReplicasWouldBeDeleted(counts.bytes_in_future)
    return force_exit()


def force_exit() -> SafeMode:
    """Leave safe mode for an operator, who gives up what is from the future."""
    return SafeMode(Off())


_BY_HAND = 'Use "hdfs dfsadmin -safemode leave" to turn safe mode off.'


def tip(mode: SafeMode, rules: SafeModeRules, counts: Counts, now: float) -> str:
    """Say what safe mode waits for, in Hadoop's words; empty where it is off."""
    if mode.low_resources:
        return (
            "Resources are low on NN. Please add or free up more resources then turn off safe "
            "mode manually. NOTE:  If you turn off safe mode before adding resources, the NN "
            f"will immediately return to safe mode. {_BY_HAND}"
        )
    if mode.by_hand:
        return f"It was turned on manually. {_BY_HAND}"
    if isinstance(mode.startup, Off):
        return ""
    return f"{_of_blocks(rules, counts)}{_of_datanodes(rules, counts)}" + _of_the_end(
        mode.startup, rules, counts, now
    )


def _of_blocks(rules: SafeModeRules, counts: Counts) -> str:
    needed, share = rules.needed(counts.total), f"{_single(rules.threshold):.4f}"
    if counts.safe < needed:
        return (
            f"The reported blocks {counts.safe} needs additional {needed - counts.safe} blocks "
            f"to reach the threshold {share} of total blocks {counts.total}.\n"
        )
    return (
        f"The reported blocks {counts.safe} has reached the threshold {share} of total blocks "
        f"{counts.total}. "
    )


def _of_datanodes(rules: SafeModeRules, counts: Counts) -> str:
    live, needed = counts.live_datanodes, rules.min_datanodes
    if live < needed:
        return (
            f"The number of live datanodes {live} needs an additional {needed - live} live "
            f"datanodes to reach the minimum number {needed}.\n"
        )
    return f"The number of live datanodes {live} has reached the minimum number {needed}. "


def _of_the_end(
    startup: Pending | Extension, rules: SafeModeRules, counts: Counts, now: float
) -> str:
    if counts.bytes_in_future:
        return (
            "Name node detected blocks with generation stamps in future. This means that Name "
            "node metadata is inconsistent. This can happen if Name node metadata files have been "
            "manually replaced. Exiting safe mode will cause loss of "
            f"{counts.bytes_in_future} byte(s). Please restart name node with right metadata or "
            'use "hdfs dfsadmin -safemode forceExit" if you are certain that the NameNode was '
            "started with the correct FsImage and edit logs. If you encountered this during a "
            "rollback, it is safe to exit with -safemode forceExit."
        )
    will = "Safe mode will be turned off automatically"
    match startup:
        case Pending():
            return f"{will} once the thresholds have been reached."
        case Extension(since):
            left = int(since + rules.extension_seconds - now)
            return f"In safe mode extension. {will} in {left} seconds."
    assert_never(startup)
