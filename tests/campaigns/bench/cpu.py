"""What a commit costs in CPU time: the process that writes, and the nodes."""

import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from journal.node.owner.disk_wait import Patience
from tests.campaigns.bench.load import ReadyOps
from tests.campaigns.bench.report import Row
from tests.campaigns.bench.world import World

_HAND_OVERS: Final = 2000
_RUNS: Final = 5


@dataclass(slots=True)
class Cost:
    """Milliseconds of CPU a commit; a node's are the mean of all nodes."""

    writer: float = 0.0
    node: float = 0.0


def cpu_seconds(pid: int) -> float:
    """Return a process's CPU time, ended threads included; clock as clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


@contextmanager
def costing(system: ReadyOps, nodes: Sequence[int]) -> Iterator[Cost]:
    cost, first = Cost(), system.next_txid
    before = time.process_time(), [cpu_seconds(pid) for pid in nodes]
    yield cost
    commits = max(1, system.next_txid - first)
    cost.writer = (time.process_time() - before[0]) * 1000 / commits
    used = [cpu_seconds(pid) - began for pid, began in zip(nodes, before[1], strict=True)]
    cost.node = statistics.mean(used) * 1000 / commits if used else 0.0


def hand_over(_world: World) -> list[Row]:
    """Give a journal's thread nothing to do and wait for it, as the node does for a sync."""
    patience, found = Patience(), []
    with ThreadPoolExecutor(1) as thread:
        for _ in range(_RUNS):
            began = time.process_time()
            for _ in range(_HAND_OVERS):
                patience.run(thread, _nothing)
            found.append((time.process_time() - began) * 1000 / _HAND_OVERS)
    row = Row("CPU of a hand-over to a thread", statistics.median(found), "ms", "-", None, "-")
    return [row]


def _nothing() -> None:
    pass
