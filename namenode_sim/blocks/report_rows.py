"""The rows of a full report from their bytes; work for a thread, as it needs no map.

See docs/reference/blocks.md#rows-of-a-full-report.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from namenode_sim.blocks.errors import MalformedReport
from namenode_sim.blocks.model import ReplicaState
from namenode_sim.blocks.reports import Rows

NUMBERS: Final = 4
"""A row is an id, a length, a stamp and a state."""

MAX_VARINT_BYTES: Final = 10
MAX_ROWS: Final = 10_000_000
LENGTH_BITS: Final = 48
STATE_BITS: Final = 4
FINALIZED_LONGS: Final = 3

Numbers = npt.NDArray[np.uint64]


def from_buffers(buffers: Sequence[bytes], count: int) -> Rows:
    """Read rows of numbers of varying size; a row may go on in the next buffer.

    Raises:
        MalformedReport: if there are not exactly ``count`` rows, or a number is too long.
    """
    if not 0 <= count <= MAX_ROWS:
        raise MalformedReport(f"it announces {count} rows, at most {MAX_ROWS}")
    numbers = _varints(b"".join(buffers))
    if len(numbers) != NUMBERS * count:
        raise MalformedReport(
            f"it announces {count} rows and has {len(numbers)} numbers, which are "
            f"{NUMBERS} for each row"
        )
    ids, lengths, stamps, states = numbers.reshape(count, NUMBERS).T
    return _check(
        (ids >> np.uint64(1)).astype(np.int64) ^ -(ids & np.uint64(1)).astype(np.int64),
        (lengths & np.uint64(2**LENGTH_BITS - 1)).astype(np.int64),
        stamps.astype(np.int64),
        (states & np.uint64(2**STATE_BITS - 1)).astype(np.uint8),
    )


def _varints(data: bytes) -> Numbers:
    """Return all base-128 numbers of a text, in which the least group of each stands first."""
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets < 0x80)
    if len(octets) and (not len(ends) or ends[-1] != len(octets) - 1):
        raise MalformedReport("its last number ends nowhere")
    sizes = np.diff(ends, prepend=-1)
    starts = ends - sizes + 1
    longest = int(sizes.max(initial=0))
    if longest > MAX_VARINT_BYTES:
        raise MalformedReport(f"a number takes {longest} bytes, at most {MAX_VARINT_BYTES}")
    found = np.zeros(len(ends), np.uint64)
    left = np.arange(len(ends))
    for place in range(longest):
        left = left[sizes[left] > place]
        groups = (octets[starts[left] + place] & 0x7F).astype(np.uint64)
        found[left] |= groups << np.uint64(7 * place)
    return found


def from_longs(longs: Sequence[int]) -> Rows:
    """Rows as DataNodes without the capability for buffers send them.

    First two counts, then three numbers for each finalized replica, three of -1, and four numbers
    for each other one.

    Raises:
        MalformedReport: if the counts do not fit the numbers.
    """
    if len(longs) < 2:
        raise MalformedReport(f"it has {len(longs)} numbers, and no counts")
    # Unsigned on the wire, signed in Java.
    table = np.array([number % 2**64 for number in longs], np.uint64).astype(np.int64)
    finalized, others = int(table[0]), int(table[1])
    if min(finalized, others) < 0 or finalized + others > MAX_ROWS:
        raise MalformedReport(f"it announces {finalized} and {others} rows, at most {MAX_ROWS}")
    end = 2 + FINALIZED_LONGS * finalized
    if len(longs) != end + FINALIZED_LONGS + NUMBERS * others:
        raise MalformedReport(
            f"it announces {finalized} and {others} rows and has {len(longs)} numbers"
        )
    if (table[end : end + FINALIZED_LONGS] != -1).any():
        raise MalformedReport("no row of -1 parts the finalized replicas from the others")
    whole = table[2:end].reshape(finalized, FINALIZED_LONGS)
    rest = table[end + FINALIZED_LONGS :].reshape(others, NUMBERS)
    states = np.concatenate((np.zeros(finalized, np.int64), rest[:, 3]))
    return _check(
        np.concatenate((whole[:, 0], rest[:, 0])),
        np.concatenate((whole[:, 1], rest[:, 1])),
        np.concatenate((whole[:, 2], rest[:, 2])),
        np.where((states >= 0) & (states < 2**STATE_BITS), states, 2**STATE_BITS - 1).astype(
            np.uint8
        ),
    )


def _check(
    ids: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    stamps: npt.NDArray[np.int64],
    states: npt.NDArray[np.uint8],
) -> Rows:
    highest = int(states.max(initial=0))
    if highest > ReplicaState.TEMPORARY:
        raise MalformedReport(f"a replica has state {highest}, which is none")
    return Rows(ids, lengths, stamps, states)
