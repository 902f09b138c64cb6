"""The rows of a full block report as bytes.

See docs/reference/datanode.md#full-reports.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from datanode.model import Replica, reported_state

BUFFER_BYTES: Final = 64 * 1024
_GROUPS: Final = 10
"""Groups of seven bits in the longest number."""
_SHIFTS: Final = np.arange(0, 7 * _GROUPS, 7, dtype=np.uint64)


def encode_rows(replicas: Iterable[Replica]) -> tuple[int, Sequence[bytes]]:
    """Return the number of replicas to report, and their rows in buffers."""
    numbers = np.fromiter(_numbers(replicas), dtype=np.uint64)
    rows = _varints(numbers)
    buffers = [rows[at : at + BUFFER_BYTES] for at in range(0, len(rows), BUFFER_BYTES)]
    return len(numbers) // 4, buffers


def _numbers(replicas: Iterable[Replica]) -> Iterator[int]:
    for replica in replicas:
        state = reported_state(replica)
        if state is not None:
            block = replica.block
            yield block.block_id << 1 ^ block.block_id >> 63
            yield replica.length
            yield block.stamp
            yield state


def _varints(numbers: "np.ndarray[tuple[int], np.dtype[np.uint64]]") -> bytes:
    """Encode all numbers one after the other, each with its least groups first."""
    rest = numbers[:, None] >> _SHIFTS
    follows = np.zeros(rest.shape, dtype=bool)
    follows[:, :-1] = rest[:, 1:] != 0
    groups = rest.astype(np.uint8)
    groups[follows] |= 0x80  # elsewhere the eighth bit is 0: nothing is left
    kept = np.ones(rest.shape, dtype=bool)
    kept[:, 1:] = follows[:, :-1]
    return groups[kept].tobytes()
