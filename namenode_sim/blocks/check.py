"""Whether all that the map says twice is the same; for tests and simulations.

See docs/reference/blocks.md#the-map.
"""

from collections import Counter

from namenode_sim.blocks.columns import CELLS, CORRUPT, MORE, STRIPED
from namenode_sim.blocks.errors import MapBroken
from namenode_sim.blocks.model import NO_STORAGE, ReplicaState, Slot, Stage
from namenode_sim.blocks.needed import Priority
from namenode_sim.blocks.state import BlockState


def check(state: BlockState) -> None:
    """Compare columns, lists, flags and counts.

    Raises:
        MapBroken: with the first difference.
    """
    slots = {slot: block_id for block_id, slot in state.index}
    columns = state.columns
    _ensure(len(slots) == len(columns), f"{len(slots)} ids, {len(columns)} rows")
    for slot, block_id in slots.items():
        _ensure(columns.ids[slot] == block_id, f"row of {block_id} has id {columns.ids[slot]}")
        _ensure(state.index.get(block_id) == slot, f"{block_id} is not found where it is listed")
        _check_row(state, slot)
    _ensure(not slots.keys() & set(columns.free), "a free row has a block")
    known = set(slots)
    _ensure(set(state.corrupt) <= known, "marks without a block")
    _ensure(set(state.constructions) <= known, "constructions without a block")
    _ensure(set(state.replicas.more) <= known, "more replicas without a block")
    _check_redundancy(state, known)
    _check_lists(state)
    _check_counts(state, known)
    _check_waiting(state)


def _ensure(holds: bool, found: str) -> None:  # noqa: FBT001 - what is checked
    if not holds:
        raise MapBroken(found)


def _check_row(state: BlockState, slot: Slot) -> None:
    columns, block_id = state.columns, state.columns.ids[slot]
    row = columns.storages[slot * CELLS : slot * CELLS + CELLS].tolist()
    filled = [number for number in row if number != NO_STORAGE]
    _ensure(row[: len(filled)] == filled, f"{block_id} has a gap in its cells {row}")
    storages = state.replicas.storages(slot)
    _ensure(len(set(storages)) == len(storages), f"{block_id} is twice on a storage: {storages}")
    nodes = Counter(state.storages.at(number).node for number in storages)
    _ensure(all(count == 1 for count in nodes.values()), f"{block_id} is twice on a node: {nodes}")
    flags = columns.flags[slot]
    _ensure(bool(flags & MORE) == (slot in state.replicas.more), f"{block_id}: MORE is wrong")
    _ensure(bool(flags & CORRUPT) == (slot in state.corrupt), f"{block_id}: CORRUPT is wrong")
    _ensure(bool(flags & STRIPED) == (block_id < 0), f"{block_id}: STRIPED is wrong")
    marks = set(state.corrupt.get(slot, ()))
    _ensure(marks <= set(storages), f"{block_id}: marks {marks} without a replica")
    is_complete = columns.stage(slot) is Stage.COMPLETE
    _ensure(is_complete == (slot not in state.constructions), f"{block_id}: construction is wrong")
    if not is_complete:
        locations = state.constructions[slot].locations
        places = [one.storage for one in locations]
        _ensure(len(set(places)) == len(places), f"{block_id}: a storage twice in {locations}")
        finalized = {one.storage for one in locations if one.state is ReplicaState.FINALIZED}
        _ensure(finalized | marks == set(storages), f"{block_id}: {finalized} against {storages}")
        _ensure(not marks & set(places), f"{block_id}: corrupt and being written")


def _check_redundancy(state: BlockState, known: set[Slot]) -> None:
    for priority in Priority:
        flagged = {slot for slot in known if state.needed.priority(slot) is priority}
        listed = state.needed.listed(priority)
        _ensure(flagged == set(listed), f"{priority.name}: {flagged} flagged, {listed} listed")
        size = state.needed.size(priority)
        _ensure(size == len(listed), f"{priority.name}: {size} counted, {listed} listed")
    for slot, number in state.doomed:
        _ensure(slot in known, f"slot {slot} is to go from {number} and has no block")
        _ensure(state.replicas.holds(slot, number), f"slot {slot} is to go, but not at {number}")
    _ensure(set(state.postponed) <= known, "postponed without a block")


def _check_lists(state: BlockState) -> None:
    for storage in state.storages:
        for position, number in enumerate(storage.slots):
            slot = Slot(number)
            named = _position(state, slot, storage.number)
            _ensure(
                named == position,
                f"storage {storage.number} has slot {slot} at {position}, its row says {named}",
            )
    listed = sum(len(storage.slots) for storage in state.storages)
    cells = sum(state.replicas.count(slot) for _, slot in state.index)
    _ensure(listed == cells, f"{listed} replicas in lists, {cells} in rows")


def _position(state: BlockState, slot: Slot, number: int) -> int | None:
    for cell in range(slot * CELLS, slot * CELLS + CELLS):
        if state.columns.storages[cell] == number:
            return state.columns.positions[cell]
    more = {int(key): position for key, position in state.replicas.more.get(slot, {}).items()}
    return more.get(number)


def _check_counts(state: BlockState, slots: set[Slot]) -> None:
    columns = state.columns
    whole = [
        slot
        for slot in slots
        if columns.stage(slot) is Stage.COMPLETE and not columns.flags[slot] & STRIPED
    ]
    safe = sum(state.live(slot) >= state.safe_minimum for slot in whole)
    _ensure(state.complete == len(whole), f"{state.complete} counted, {len(whole)} complete")
    _ensure(state.safe == safe, f"{state.safe} counted, {safe} safe")


def _check_waiting(state: BlockState) -> None:
    waiting = list(state.waiting)
    _ensure(len(waiting) == len(state.waiting), "the count of what waits is wrong")
    for block_id, number, _ in waiting:
        _ensure(block_id in state.waiting.blocks_of(number), f"{block_id} waits unlisted")
