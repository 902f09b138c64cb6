"""The map of blocks of a large namespace, filled by reports; as a process: its figures as JSON."""

import json
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np

from ha.daemon.process import lean_heap
from namenode_sim.blocks import follow, incoming, reports
from namenode_sim.blocks.check import check
from namenode_sim.blocks.index import Slots
from namenode_sim.blocks.model import ReplicaState, Reported, Storage
from namenode_sim.blocks.report_rows import from_buffers
from namenode_sim.blocks.state import BlockState
from tests.campaigns.bench.formats_load import resident_bytes
from tests.campaigns.bench.formats_world import big_namespace
from tests.namenode_sim.blocks.report_bytes import encoded

REPLICATION = 3
STORAGES = 9
REPORT_ROWS = 100_000


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


def rows_of(state: BlockState, slots: Slots) -> reports.Rows:
    columns = state.columns
    return reports.Rows(
        np.frombuffer(columns.ids, np.int64)[slots],
        np.frombuffer(columns.lengths, np.int64)[slots],
        np.frombuffer(columns.stamps, np.int64)[slots],
        np.zeros(len(slots), np.uint8),
    )


def take_in(state: BlockState, storage: Storage, rows: reports.Rows) -> float:
    """Take in a full report; return the CPU seconds of the loop."""
    ordered = reports.in_order(rows)
    begun = time.process_time()
    for part in reports.parts(ordered):
        found = reports.compare(state, storage, part, made_after=0.0)
        reports.settle(state, storage, found, 0, len(found))
    reports.finish(state, storage)
    return time.process_time() - begun


def decoding(rows: reports.Rows) -> float:
    """Return the CPU seconds that the bytes of a report take."""
    columns = (rows.ids, rows.lengths, rows.stamps, rows.states)
    data = encoded(zip(*(column.tolist() for column in columns), strict=True))
    begun = time.process_time()
    from_buffers([data[start : start + 65536] for start in range(0, len(data), 65536)], len(rows))
    return time.process_time() - begun


def increments(state: BlockState, storage: Storage, slots: Slots) -> float:
    """Return how many replicas a second an incremental report of a hundred brings."""
    columns = state.columns
    told = [
        (
            columns.ids[slot],
            Reported(ReplicaState.FINALIZED, columns.stamps[slot], columns.lengths[slot]),
        )
        for slot in slots.tolist()
    ]
    begun = time.process_time()
    for start in range(0, len(told), 100):
        incoming.receive(state, storage, told[start : start + 100], now=0.0)
    return len(told) / (time.process_time() - begun)


def measure(blocks: int) -> Figures:
    """Load a namespace's blocks, and let nine storages report three replicas of each."""
    namespace, state, chance = big_namespace(blocks), BlockState(), np.random.default_rng(1)
    warm, storages = BlockState(), [state.storages.add(f"n{n}", "s") for n in range(STORAGES)]
    take_in(warm, warm.storages.add("n", "s"), rows_of(warm, np.zeros(0, np.int64)))
    lean_heap()
    before = resident_bytes()
    begun = time.process_time()
    follow.load(state, namespace)
    load_seconds = time.process_time() - begun
    count = len(state.columns)
    places = np.argsort(chance.random((count, STORAGES), np.float32), axis=1)[:, :REPLICATION]
    for number, storage in enumerate(storages):
        take_in(state, storage, rows_of(state, np.flatnonzero((places == number).any(axis=1))))
    del places
    lean_heap()  # as a daemon does once it has loaded
    memory = resident_bytes() - before
    check(state)
    # A storage is lost, and another one has the same replicas.
    slots = np.array(storages[0].slots, np.int64)
    state.empty_storage(storages[0])
    rows = rows_of(state, chance.permutation(slots)[:REPORT_ROWS])
    other = state.storages.add("another", "s")
    first = take_in(state, other, rows)
    same = min(take_in(state, other, rows) for _ in range(3))
    third = state.storages.add("yet another", "s")
    state.empty_storage(storages[1])
    rate = increments(state, third, chance.permutation(slots)[:REPORT_ROWS])
    decode = decoding(rows)
    return Figures(count, memory / count, load_seconds, first, same, rate, decode)


if __name__ == "__main__":
    print(json.dumps(asdict(measure(int(sys.argv[1])))))  # noqa: T201 - the answer
