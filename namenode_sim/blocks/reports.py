"""Full reports: compared with the map as a whole, so that only differences are judged one by one.

See docs/reference/blocks.md#full-reports.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from ha.record import dataclass
from namenode_sim.blocks.errors import BadReport
from namenode_sim.blocks.incremental_reports import note_gone, take_in
from namenode_sim.blocks.index import Ids, Mask, Slots
from namenode_sim.blocks.model import ReplicaState, Reported, Storage
from namenode_sim.blocks.state import BlockState

MAX_LENGTH: Final = 2**48 - 1
BAD_ROWS_PER_ROW: Final = 0.01
"""A report in which more rows than this share are impossible is refused as a whole."""

PART_ROWS: Final = 100_000
"""The number of rows that are compared in one turn of the event loop."""

LOWEST_ID: Final = -(2**63)
HIGHEST_ID: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Rows:
    """The replicas of one storage as its DataNode lists them."""

    ids: Ids
    lengths: npt.NDArray[np.int64]
    stamps: npt.NDArray[np.int64]
    states: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.ids)

    def only(self, chosen: Mask | npt.NDArray[np.int64]) -> "Rows":
        return Rows(
            self.ids[chosen], self.lengths[chosen], self.stamps[chosen], self.states[chosen]
        )


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of a report from one id up to, but not including, another."""

    rows: Rows
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Differences:
    """What is to be judged one by one: rows, and blocks that the report lacks.

    ``same`` rows say what the map says; ``taken`` ones were new, and nothing was odd with them.
    The report was made after ``made_after``.
    """

    rows: Rows
    absent: tuple[int, ...]
    same: int
    taken: int
    made_after: float

    def __len__(self) -> int:
        """Return how many steps ``settle`` takes."""
        return len(self.rows) + len(self.absent)


def in_order(rows: Rows) -> Rows:
    """Sort the possible rows by id; of rows with one id the one with the newest stamp is kept.

    Raises:
        BadReport: if too many rows are impossible.
    """
    possible = (
        (rows.lengths >= 0)
        & (rows.lengths <= MAX_LENGTH)
        & (rows.stamps >= 0)
        & (rows.states <= ReplicaState.TEMPORARY)
    )
    bad = len(rows) - int(possible.sum())
    if bad > BAD_ROWS_PER_ROW * len(rows):
        raise BadReport(bad, len(rows))
    if bad:
        rows = rows.only(possible)
    # No differences: that of a striped group's id and a block's is larger than 64 bits.
    if (rows.ids[1:] > rows.ids[:-1]).all():
        return rows
    rows = rows.only(np.lexsort((rows.stamps, rows.ids)))
    newest = np.append(rows.ids[1:] != rows.ids[:-1], True)[: len(rows)]
    return rows if newest.all() else rows.only(newest)


def parts(rows: Rows, most: int = PART_ROWS) -> Iterator[Part]:
    """Yield a report, as ``in_order`` returns it, in pieces that are compared one at a time."""
    low = LOWEST_ID
    for start in range(0, len(rows), most):
        end = start + most
        high = int(rows.ids[end]) if end < len(rows) else HIGHEST_ID + 1
        yield Part(rows.only(np.arange(start, min(end, len(rows)))), low, high)
        low = high
    if not len(rows):
        yield Part(rows, LOWEST_ID, HIGHEST_ID + 1)


def compare(state: BlockState, storage: Storage, part: Part, made_after: float) -> Differences:
    """Compare a piece of a report with the map, and take what is new and beyond doubt.

    Blocks of an incremental report that has come since ``made_after`` are left as they are: the
    full report may have been made before. A row with a newer stamp was not.
    """
    rows = part.rows
    newer = {number: stamp for number, (at, stamp) in storage.recent.items() if at >= made_after}
    if newer:
        rows = rows.only(~_overtaken(rows, newer))
    held, slots = state.map.held_by(storage)
    inner = (held >= part.low) & (held <= part.high - 1)
    held, slots = held[inner], slots[inner]
    order = np.argsort(held)
    held, slots = held[order], slots[order]
    places = np.searchsorted(held, rows.ids)
    known = np.zeros(len(rows), bool)
    inside = places < len(held)
    known[inside] = held[places[inside]] == rows.ids[inside]
    same = np.zeros(len(rows), bool)
    same[known] = _says_the_same(state, slots[places[known]], rows.only(known))
    same &= ~_odd(state, storage, rows)
    taken = _take_new(state, storage, rows, ~known)
    lacking = np.ones(len(held), bool)
    lacking[places[known]] = False
    waiting = state.postponed_reports.blocks_of(storage.number)
    gone = set(held[lacking].tolist())
    gone.update(number for number in waiting if part.low <= number < part.high)
    gone.difference_update(rows.ids.tolist() if gone else (), newer)
    left, absent = rows.only(~(same | taken)), tuple(sorted(gone))
    return Differences(left, absent, int(same.sum()), int(taken.sum()), made_after)


def _overtaken(rows: Rows, newer: Mapping[int, int]) -> Mask:
    """Return the rows about blocks of which this stamp, or a newer one, was reported since.

    The bad schedule: a writer goes on under a new stamp, which no DataNode reports, and the news of
    the old one is sent just before the report.
    """
    overtaken = np.isin(rows.ids, np.fromiter(newer, np.int64, len(newer)))
    told = np.array([newer[number] for number in rows.ids[overtaken].tolist()], np.int64)
    overtaken[overtaken] = rows.stamps[overtaken] <= told
    return overtaken


def _says_the_same(state: BlockState, slots: Slots, rows: Rows) -> Mask:
    """Rows that agree with complete blocks about which there is nothing else to say."""
    same: Mask = state.map.agree(slots, rows.stamps, rows.lengths) & (
        rows.states == ReplicaState.FINALIZED
    )
    return same


def _odd(state: BlockState, storage: Storage, rows: Rows) -> Mask:
    """Rows about blocks for which something waits, or which the storage is to delete."""
    odd = state.map.undecided_blocks(storage.number)
    if not odd:
        return np.zeros(len(rows), bool)
    return np.isin(rows.ids, np.array(sorted(odd), np.int64))


def _take_new(state: BlockState, storage: Storage, rows: Rows, new: Mask) -> Mask:
    """Take the rows of which the storage holds nothing yet, where nothing else is to be decided."""
    taken = np.zeros(len(rows), bool)
    places = np.flatnonzero(new & ~_odd(state, storage, rows))
    slots = state.map.find_all(rows.ids[places])
    places, slots = places[slots >= 0], slots[slots >= 0]
    fits = _says_the_same(state, slots, rows.only(places))
    places, slots = places[fits], slots[fits]
    taken[places[state.take_all(slots, storage)]] = True
    return taken


def settle(
    state: BlockState, storage: Storage, differences: Differences, start: int, end: int
) -> None:
    """Judge some of the differences, each as the map is now.

    The bad schedule: a call of the DataNode timed out, and while its report is still compared, an
    incremental one brings newer news of the same storage.
    """

    def is_overtaken(block_id: int, stamp: float = -math.inf) -> bool:
        told = storage.recent.get(block_id)
        return told is not None and told[0] >= differences.made_after and stamp <= told[1]

    absent = differences.absent
    for block_id in absent[start:end]:
        if is_overtaken(block_id):
            continue
        state.postponed_reports.forget(block_id, storage.number)
        slot = state.map.find(block_id)
        if slot is not None and state.map.holds(slot, storage.number):
            note_gone(storage, block_id, state.map.block(slot).stamp, differences.made_after)
            state.drop(slot, storage)
    first, last = max(start - len(absent), 0), max(end - len(absent), 0)
    rows = differences.rows
    listed = zip(
        rows.ids[first:last].tolist(),
        rows.states[first:last].tolist(),
        rows.stamps[first:last].tolist(),
        rows.lengths[first:last].tolist(),
        strict=True,
    )
    for block_id, replica_state, stamp, length in listed:
        if is_overtaken(block_id, stamp):
            continue
        told = Reported(ReplicaState(replica_state), stamp, length)
        take_in(state, storage, block_id, told, of_full_report=True)


def finish(
    state: BlockState,
    storage: Storage,
    *,
    after_claim: bool = True,
    made_after: float = math.inf,
) -> None:
    """Note that a report was taken in as a whole, which was made after ``made_after``.

    It confirms what the storage holds if it was made after its DataNode had heard that this
    NameNode is the active: replicas that the former one had deleted are not in it. What was
    reported and doubted since then it does not settle.
    """
    storage.reports += 1
    storage.needs_full_report = storage.doubted >= made_after
    storage.confirmed |= after_claim and storage.heartbeated and not storage.needs_full_report
    if storage.confirmed:
        state.rechecks.update_postponed(storage)
