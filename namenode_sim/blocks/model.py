"""The words about blocks and replicas.

See docs/reference/blocks.md#states.
"""

import math
from array import array
from collections import OrderedDict
from collections.abc import Iterator
from enum import Enum, IntEnum
from typing import Final, NewType, Protocol, TypeVar

from ha.record import dataclass, field, record

Slot = NewType("Slot", int)
"""A block's place in the columns of this process; it means nothing outside of it."""

StorageNumber = NewType("StorageNumber", int)
"""A storage's number in this process, of 16 bits."""

NO_STORAGE: Final = StorageNumber(0xFFFF)

RACKS: Final = 2
"""The replicas of a block that is to have two or more stand on at least this number of racks."""

SCHEDULED_SECONDS: Final = 600.0

T_co = TypeVar("T_co", covariant=True)


class Listing(Protocol[T_co]):
    """What can be counted and listed, and is changed by its owner only."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...


class Stage(IntEnum):
    """How far the writing of a block is."""

    COMPLETE = 0
    UNDER_CONSTRUCTION = 1
    UNDER_RECOVERY = 2
    COMMITTED = 3


class ReplicaState(IntEnum):
    """A replica's state on its DataNode, as numbered on the wire."""

    FINALIZED = 0
    RBW = 1
    RWR = 2
    RUR = 3
    TEMPORARY = 4


class Role(Enum):
    """How reports are judged: a standby waits where its edits may be older than a report."""

    STANDBY = "standby"
    ACTIVE = "active"


class Reason(Enum):
    """Why a replica is corrupt."""

    GENSTAMP_MISMATCH = "its generation stamp is not the block's"
    SIZE_MISMATCH = "its length is not the block's"
    INVALID_STATE = "its state cannot be that of a replica of this block"
    CORRUPTION_REPORTED = "a reader or its DataNode found it damaged"


@record
class BlockInfo:
    """A block at one moment; ``length`` is in bytes, ``expected`` replicas are wanted."""

    id: int
    length: int
    stamp: int
    file_id: int
    expected: int
    stage: Stage


@dataclass(frozen=True, slots=True)
class Reported:
    """What a DataNode says of one replica."""

    state: ReplicaState
    stamp: int
    length: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a DataNode says of a replica that it no longer has."""

    stamp: int


@dataclass(frozen=True, slots=True)
class CorruptMark:
    """Why a storage's replica is corrupt; ``stamp`` is the replica's own, by which it is deleted.

    None: its stamp was not reported.
    """

    reason: Reason
    stamp: int | None


@dataclass(frozen=True, slots=True)
class Location:
    """A replica of a block that is being written: expected, or reported."""

    storage: StorageNumber
    state: ReplicaState
    stamp: int
    length: int


def newness(told: Reported | Location) -> tuple[int, bool]:
    """Return a key: a replica goes from RBW to FINALIZED, and back only under a newer stamp."""
    return told.stamp, told.state is ReplicaState.FINALIZED


@dataclass(frozen=True, slots=True)
class Cut:
    """What a truncation makes of a block: its length then, and its stamp.

    ``source_id`` is the block that is cut: itself, or another whose beginning is copied.
    """

    length: int
    stamp: int
    source_id: int


@dataclass(frozen=True, slots=True)
class Construction:
    """What is known of a block that is not complete, in addition to its columns.

    ``recovery_stamp`` is the stamp that a block recovery gives it, if one runs; it was ordered at
    ``recovery_began``, in monotonic seconds, or no DataNode could be ordered to lead it (None).
    ``tried`` are the storages whose DataNodes were asked to lead a recovery of it. ``lost`` are
    those that had it, or were to have it, and are gone since the pipeline was set up; they may come
    back.
    """

    locations: tuple[Location, ...] = ()
    recovery_stamp: int | None = None
    recovery_began: float | None = None
    tried: frozenset[StorageNumber] = frozenset()
    cut: Cut | None = None
    lost: frozenset[StorageNumber] = frozenset()

    def at(self, storage: StorageNumber) -> Location | None:
        return next((one for one in self.locations if one.storage == storage), None)


@dataclass(slots=True, eq=False)
class Scheduled:
    """Counts replicas on their way to a storage, which are awaited for one to two periods.

    ``now`` is monotonic, in seconds.  See docs/reference/datanodes.md#replicas-on-their-way.
    """

    _recent: int = 0
    _before: int = 0
    _since: float = 0.0

    def add(self, now: float) -> None:
        self._turn(now)
        self._recent += 1

    def take(self, now: float) -> None:
        """Note that a replica came, or will not come."""
        self._turn(now)
        if self._before:
            self._before -= 1
        elif self._recent:
            self._recent -= 1

    def count(self, now: float) -> int:
        self._turn(now)
        return self._recent + self._before

    def _turn(self, now: float) -> None:
        periods = int((now - self._since) / SCHEDULED_SECONDS)
        if periods:
            self._before = self._recent if periods == 1 else 0
            self._recent = 0
            self._since = now


@dataclass(slots=True, eq=False)
class Storage:
    """A storage of a DataNode, and the slots of the blocks that it holds replicas of.

    ``reports`` counts full reports since the DataNode registered. ``confirmed``: a full report has
    come that was made after the DataNode obeyed this NameNode as the active; before, replicas may
    be listed here that the former active has ordered to be deleted. ``recent`` are the blocks of
    the last incremental reports: when each was reported, and its newest stamp. ``gone`` are
    replicas that were reported to be gone: when, and the stamp of each. ``doubted`` is when one of
    them was last reported to have come: another one, or late news of the first.
    """

    number: StorageNumber
    node: str
    uuid: str
    reports: int = 0
    heartbeated: bool = False
    confirmed: bool = False
    needs_full_report: bool = False
    slots: "array[int]" = field(default_factory=lambda: array("I"))
    # A plain dictionary looks for its oldest entry among all that were ever deleted from its front.
    recent: OrderedDict[int, tuple[float, int]] = field(default_factory=OrderedDict)
    gone: OrderedDict[int, tuple[float, int]] = field(default_factory=OrderedDict)
    doubted: float = -math.inf
    scheduled: Scheduled = field(default_factory=Scheduled)

    def doubt(self, now: float) -> None:
        """Note that late news may have come; a full report made after ``now`` settles it."""
        self.confirmed, self.needs_full_report, self.doubted = False, True, now

    def forget_reports(self) -> None:
        """Forget what was reported: the DataNode registers anew, or the storage is empty."""
        self.reports = 0
        self.confirmed = self.heartbeated = False
        self.recent.clear()


class SafeCounts:
    """The blocks that safe mode waits for, and the live replicas that a block needs to count.

    A committed block is complete with ``minimum`` live replicas, and a complete one is safe with
    ``safe_minimum``.  Striped groups are counted neither as complete nor as safe.
    ``bytes_in_future`` are in replicas that are newer than all edits.
    """

    def __init__(self, minimum: int, safe_minimum: int | None) -> None:
        self.minimum = minimum
        self.safe_minimum = minimum if safe_minimum is None else safe_minimum
        if min(self.minimum, self.safe_minimum) < 1:
            raise ValueError(
                f"a block is complete with {minimum} and safe with {safe_minimum} replicas; "
                f"both must be at least 1"
            )
        self.complete = 0
        self.safe = 0
        self.bytes_in_future = 0

    def add(self, live: int, sign: int) -> None:
        """Count a complete block with ``live`` replicas once more, or once less."""
        self.complete += sign
        if live >= self.safe_minimum:
            self.safe += sign
