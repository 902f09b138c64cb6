"""The map of blocks of a large namespace, filled by reports; as a process: its figures as JSON."""

import json
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np

from ha.daemon.process import lean_heap
from namenode_sim.blocks import apply_edits, incremental_reports, reports
from namenode_sim.blocks.index import Slots
from namenode_sim.blocks.model import ReplicaState, Reported, Slot, Storage
from namenode_sim.blocks.report_rows import from_buffers
from namenode_sim.blocks.state import BlockState
from tests.campaigns.bench.formats_load import resident_bytes
from tests.campaigns.bench.formats_world import big_namespace
from tests.namenode_sim.blocks.report_bytes import encoded

REPLICATION = 3
STORAGES = 9
REPORT_ROWS = 100_000
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Figures:
    """What a map of some blocks costs, in bytes and CPU seconds.

    Of a report only that part is counted which the event loop has to do; decoding is a thread's.
    """

    blocks: int
    bytes_per_block: float
    load_seconds: float
    first_report_seconds: float
    same_report_seconds: float
    increments_per_second: float
    decode_seconds: float


def all_rows(state: BlockState) -> reports.Rows:
    count = state.map.slot_count()
    known = (state.map.block(Slot(slot)) for slot in range(count))
    numbers = ((block.id, block.length, block.stamp) for block in known)
    ids, lengths, stamps = np.fromiter(numbers, np.dtype((np.int64, 3)), count).T.copy()
    return reports.Rows(ids, lengths, stamps, np.zeros(count, np.uint8))


def take_in(state: BlockState, storage: Storage, rows: reports.Rows) -> float:
    """Take in a full report; return the CPU seconds of the loop.

    The rows come in order and in parts to it: ``ListedStorage.decoded`` does that in a thread.
    """
    parts = list(reports.parts(reports.in_order(rows)))
    begun = time.process_time()
    for part in parts:
        found = reports.compare(state, storage, part, made_after=0.0)
        reports.settle(state, storage, found, 0, len(found))
    reports.finish(state, storage)
    return time.process_time() - begun


def decoding(rows: reports.Rows) -> float:
    """Return the CPU seconds that a thread needs for a report: its bytes to rows in order."""
    columns = (rows.ids, rows.lengths, rows.stamps, rows.states)
    data = encoded(zip(*(column.tolist() for column in columns), strict=True))
    begun = time.process_time()
    buffers = [data[start : start + 65536] for start in range(0, len(data), 65536)]
    list(reports.parts(reports.in_order(from_buffers(buffers, len(rows)))))
    return time.process_time() - begun


def increments(state: BlockState, storage: Storage, slots: Slots) -> float:
    """Return how many replicas a second an incremental report of a hundred brings."""
    blocks = [state.map.block(slot) for slot in slots.tolist()]
    told = [
        (block.id, Reported(ReplicaState.FINALIZED, block.stamp, block.length)) for block in blocks
    ]
    begun = time.process_time()
    for start in range(0, len(told), 100):
        incremental_reports.receive(state, storage, told[start : start + 100], now=0.0)
    return len(told) / (time.process_time() - begun)


def lost(state: BlockState, storage: Storage, chance: np.random.Generator) -> Slots:
    """Lose as many replicas of a storage as a report has rows; return their slots."""
    slots = chance.permutation(np.array(storage.slots, np.int64))[:REPORT_ROWS]
    for slot in slots.tolist():
        state.lose(Slot(slot), storage)
    return slots


def measure(blocks: int) -> Figures:
    """Load a namespace's blocks, and let nine storages report three replicas of each."""
    namespace, state, chance = big_namespace(blocks), BlockState(), np.random.default_rng(1)
    warm, storages = BlockState(), [state.add_storage(f"n{n}", "s") for n in range(STORAGES)]
    take_in(warm, warm.add_storage("n", "s"), all_rows(warm))
    lean_heap()
    before = resident_bytes()
    begun = time.process_time()
    apply_edits.load(state, namespace)
    load_seconds = time.process_time() - begun
    count = state.map.block_count()
    rows = all_rows(state)
    places = np.argsort(chance.random((count, STORAGES), np.float32), axis=1)[:, :REPLICATION]
    for number, storage in enumerate(storages):
        take_in(state, storage, rows.only((places == number).any(axis=1)))
    del places, rows
    lean_heap()  # as a daemon does once it has loaded
    memory = resident_bytes() - before
    state.map.check()
    # Replicas are lost, and others come in their place.
    firsts, sames = list[float](), list[float]()
    every = all_rows(state)
    for number, storage in enumerate(storages[:ROUNDS]):
        rows = every.only(lost(state, storage, chance))
        other = state.add_storage(f"another {number}", "s")
        firsts.append(take_in(state, other, rows))
        sames.append(take_in(state, other, rows))
    slots = lost(state, storages[ROUNDS], chance)
    rate = increments(state, state.add_storage("yet another", "s"), slots)
    decode = decoding(every.only(slots))
    return Figures(count, memory / count, load_seconds, min(firsts), min(sames), rate, decode)


if __name__ == "__main__":
    print(json.dumps(asdict(measure(int(sys.argv[1])))))  # noqa: T201 - the answer
