"""What the map of blocks is made of, and whether all that it says twice is the same.

``BlockState`` owns the parts and keeps them in agreement.  A sample of blocks is checked in
production.  See docs/reference/blocks.md#the-map.
"""

from namenode_sim.blocks import model
from namenode_sim.blocks.block_ids import BlockIds
from namenode_sim.blocks.columns import CELLS, CORRUPT, MORE, STRIPED, BlockColumns
from namenode_sim.blocks.constructions import Constructions
from namenode_sim.blocks.deletion_orders import Invalidations, PendingDeletions
from namenode_sim.blocks.errors import MapBroken
from namenode_sim.blocks.index import BlockIndex
from namenode_sim.blocks.needed import Needed, Priority
from namenode_sim.blocks.postponed_reports import PostponedReports
from namenode_sim.blocks.recheck_queue import RecheckQueue
from namenode_sim.blocks.replicas import CorruptMarks, Replicas, StoredReplicas
from namenode_sim.blocks.storages import Storages


class Parts:
    """Each part owns its own data; several have something to say about the same block."""

    def __init__(self, minimum: int, safe_minimum: int | None, postponed_limit: int) -> None:
        self.columns = BlockColumns()
        self.index = BlockIndex()
        self.replicas = Replicas(self.columns)
        self.storages = Storages()
        self.constructions = Constructions()
        self.corrupt = CorruptMarks(self.columns)
        self.pending_deletions = PendingDeletions()
        self.stored = StoredReplicas(
            self.replicas, self.columns, self.constructions, self.corrupt,
            self.pending_deletions, self.storages,
        )  # fmt: skip
        self.invalidations = Invalidations()
        self.needed = Needed(self.columns)
        self.rechecks = RecheckQueue()
        self.postponed_reports = PostponedReports(postponed_limit)
        self.ids = BlockIds()
        self.counts = model.SafeCounts(minimum, safe_minimum)


def check_slots(parts: Parts, start: int, count: int) -> list[str]:
    """Return what is wrong with the blocks of some slots; at most one finding for each."""
    found: list[str] = []
    for number in range(start, min(start + count, len(parts.columns.ids))):
        try:
            _check_slot(parts, model.Slot(number))
        except MapBroken as broken:
            found.append(str(broken))
    return found


def check(parts: Parts) -> None:
    """Compare everything.

    Raises:
        MapBroken: with the first difference.
    """
    slots = {slot: block_id for block_id, slot in parts.index}
    columns = parts.columns
    _ensure(len(slots) == len(columns), f"{len(slots)} ids, {len(columns)} rows")
    for slot, block_id in slots.items():
        _ensure(columns.ids[slot] == block_id, f"row of {block_id} has id {columns.ids[slot]}")
    for number in range(len(columns.ids)):
        _check_slot(parts, model.Slot(number))
    known = set(slots)
    _ensure(not known & set(columns.free), "a free row has a block")
    _ensure(set(parts.corrupt) <= known, "marks without a block")
    _ensure(set(parts.constructions) <= known, "constructions without a block")
    _ensure(set(parts.replicas.more) <= known, "more replicas without a block")
    _check_redundancy(parts, known)
    _check_lists(parts)
    _check_counts(parts, known)
    _check_postponed_reports(parts)


def _check_slot(parts: Parts, slot: model.Slot) -> None:
    columns = parts.columns
    block_id, flags = columns.ids[slot], columns.flags[slot]
    found, numbers = parts.index.get(block_id), parts.replicas.storages(slot)
    if found is None or (not block_id and found != slot):
        _ensure(not block_id, "block {} in slot {} is not in the index", block_id, slot)
        _ensure(not flags and not numbers, "slot {} has no block, and flags or replicas", slot)
        return
    _ensure(found == slot, "block {} is in slot {}, and listed in {}", block_id, slot, found)
    _check_row(parts, slot)
    _check_replicas(parts, slot, numbers)
    marks, construction = parts.corrupt.of(slot), parts.constructions.get(slot)
    _ensure(bool(flags & CORRUPT) == bool(marks), "{}: CORRUPT is wrong", block_id)
    _ensure(bool(flags & STRIPED) == (block_id < 0), "{}: STRIPED is wrong", block_id)
    _ensure(marks.keys() <= set(numbers), "{}: marks {} without a replica", block_id, marks)
    is_complete = columns.stage(slot) is model.Stage.COMPLETE
    _ensure(is_complete == (construction is None), "{}: construction is wrong", block_id)
    if construction is not None:
        locations = construction.locations
        places = {one.storage for one in locations}
        _ensure(len(places) == len(locations), "{}: a storage twice in {}", block_id, locations)
        final = {one.storage for one in locations if one.state is model.ReplicaState.FINALIZED}
        _ensure(final | marks.keys() == set(numbers), "{}: {}, on {}", block_id, final, numbers)
        _ensure(not marks.keys() & places, "{}: corrupt and being written", block_id)


def _check_row(parts: Parts, slot: model.Slot) -> None:
    """Check that the cells of a row are filled from the left, and all of them before there are
    more.
    """
    columns, has_more = parts.columns, slot in parts.replicas.more
    row = columns.storages[slot * CELLS : slot * CELLS + CELLS].tolist()
    filled, block_id = CELLS - row.count(model.NO_STORAGE), columns.ids[slot]
    _ensure(model.NO_STORAGE not in row[:filled], "{} has a gap in its cells {}", block_id, row)
    _ensure(not has_more or filled == CELLS, "{} has more than its cells {}", block_id, row)
    _ensure(bool(columns.flags[slot] & MORE) == has_more, "{}: MORE is wrong", block_id)


def _check_replicas(parts: Parts, slot: model.Slot, numbers: list[model.StorageNumber]) -> None:
    """Check that each replica is in its storage's list, at the place that the block's row names."""
    block_id, nodes = parts.columns.ids[slot], set[str]()
    for number in numbers:
        storage = parts.storages.known(number)
        if storage is None:
            raise MapBroken(f"{block_id} is on storage {number}, which is unknown")
        place, listed = parts.replicas.position(slot, number) or 0, storage.slots
        _ensure(
            place < len(listed) and listed[place] == slot,
            "{} in slot {} is not at position {} of storage {}", block_id, slot, place, number,
        )  # fmt: skip
        nodes.add(storage.node)
    _ensure(len(nodes) == len(numbers), "{} is twice on a DataNode: {}", block_id, numbers)


def _check_redundancy(parts: Parts, known: set[model.Slot]) -> None:
    for priority in Priority:
        flagged = {slot for slot in known if parts.needed.priority(slot) is priority}
        listed, size = parts.needed.listed(priority), parts.needed.size(priority)
        _ensure(flagged == set(listed), f"{priority.name}: {flagged} flagged, {listed} listed")
        _ensure(size == len(listed), f"{priority.name}: {size} counted, {listed} listed")
    for slot, number in parts.pending_deletions:
        _ensure(slot in known, f"slot {slot} is to go from {number} and has no block")
        _ensure(parts.replicas.holds(slot, number), f"slot {slot} is to go, not at {number}")
    _ensure(set(parts.rechecks.postponed) <= known, "postponed without a block")


def _check_lists(parts: Parts) -> None:
    """Check that each place in a storage's list is named by the row of the block that is there."""
    for storage in parts.storages:
        for position, number in enumerate(storage.slots):
            named = parts.replicas.position(model.Slot(number), storage.number)
            _ensure(
                named == position,
                f"storage {storage.number} has slot {number} at {position}, its row says {named}",
            )
    listed = sum(len(storage.slots) for storage in parts.storages)
    cells = sum(parts.replicas.count(slot) for _, slot in parts.index)
    _ensure(listed == cells, f"{listed} replicas in lists, {cells} in rows")


def _check_counts(parts: Parts, slots: set[model.Slot]) -> None:
    columns = parts.columns
    whole = [
        slot
        for slot in slots
        if columns.stage(slot) is model.Stage.COMPLETE and not columns.flags[slot] & STRIPED
    ]
    safe = sum(_live(parts, slot) >= parts.counts.safe_minimum for slot in whole)
    counts = parts.counts
    _ensure(counts.complete == len(whole), f"{counts.complete} counted, {len(whole)} complete")
    _ensure(counts.safe == safe, f"{counts.safe} counted, {safe} safe")


def _live(parts: Parts, slot: model.Slot) -> int:
    return parts.replicas.count(slot) - len(parts.corrupt.of(slot))


def _check_postponed_reports(parts: Parts) -> None:
    waiting = list(parts.postponed_reports)
    _ensure(len(waiting) == len(parts.postponed_reports), "the count of what waits is wrong")
    for block_id, number, _ in waiting:
        listed = parts.postponed_reports.blocks_of(number)
        _ensure(block_id in listed, f"{block_id} waits unlisted")


def _ensure(holds: bool, found: str, *values: object) -> None:  # noqa: FBT001 - what is checked
    if not holds:
        raise MapBroken(found.format(*values) if values else found)
