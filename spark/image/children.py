"""The ids of the children of many directories at once."""

import numpy as np

from namenode_sim.image.errors import ImageError
from spark.image.directories import ODD, parsed
from spark.image.side import DirectoryIndex
from spark.image.spans import RangeReader
from spark.image.varints import Numbers, packed_numbers, window_of


def children_of(
    reader: RangeReader, index: DirectoryIndex, rows: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the children of the entries in ``rows``, in one list, and each one's count.

    Raises:
        ImageError: if an entry is malformed; names file and offset.
    """
    starts, ends = index.child_starts[rows], index.child_ends[rows]
    odd = starts == ODD
    if odd.any():
        return _parse(reader, index, rows)
    data = reader.spans(starts, ends)
    return split_numbers(data, ends - starts, reader.item.where(0))


def split_numbers(data: bytes, sizes: Numbers, where: str) -> tuple[Numbers, Numbers]:
    """Return the numbers of several packed lists, in one list, and each list's count."""
    try:
        numbers = packed_numbers(data)
    except ImageError as problem:
        raise ImageError(f"{where} and behind it: {problem}") from problem
    octets = window_of(data).octets[: len(data)]
    # A list ends with the last byte of a number, so that counting last bytes counts numbers.
    before = np.concatenate([[0], np.cumsum(octets < 0x80)])
    edges = np.concatenate([[0], np.cumsum(sizes)])
    return numbers, np.diff(before[edges])


def _parse(reader: RangeReader, index: DirectoryIndex, rows: Numbers) -> tuple[Numbers, Numbers]:
    lists = []
    for row in rows.tolist():
        start, end = index.starts[row : row + 1], index.ends[row : row + 1]
        message = parsed(reader.spans(start, end), int(start[0]))
        lists.append(np.array(message.children, np.uint64).astype(np.int64))
    sizes = np.array([found.size for found in lists], np.int64)
    return np.concatenate([np.empty(0, np.int64), *lists]), sizes
