"""A namespace with many blocks as an image, and what DataNodes report of it; as a process: both.

In a process of its own, so that the bench does not keep the namespace in its memory.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from namenode_sim.blocks import apply_edits
from namenode_sim.blocks.model import Slot
from namenode_sim.blocks.state import BlockState
from tests.campaigns.bench.formats_world import big_namespace, save

REPLICATION: Final = 3
STORAGES: Final = 30
"""With three replicas a storage has a tenth of the blocks."""

DATANODES: Final = 9
A_FILE: Final = "/day=000032/part-00007-of-00500.parquet"
"""In every image of at least some thousand files."""

_COLUMNS: Final = "columns.npy"
_VARINT_BYTES: Final = 10
Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Image:
    """The folder of an image, and its blocks: rows of id, length, stamp and state."""

    folder: Path
    blocks: npt.NDArray[np.int64]

    def reports(self) -> list[tuple[int, bytes]]:
        """Return each storage's block count and report; a block is on three DataNodes."""
        chance = np.random.default_rng(1)
        first = chance.integers(STORAGES, size=len(self.blocks))
        found = []
        for storage in range(STORAGES):
            mine = self.blocks[(storage - first) % STORAGES < REPLICATION]
            found.append((len(mine), encoded(mine)))
        return found


def datanode_of(storage: int) -> int:
    return storage % DATANODES


def encoded(rows: npt.NDArray[np.int64]) -> bytes:
    """Return a report's bytes; as ``report_bytes.encoded`` does, a hundred times as fast."""
    left = rows.astype(np.uint64)
    left[:, 0] = (rows[:, 0] << 1 ^ rows[:, 0] >> 63).astype(np.uint64)
    groups = np.zeros((*rows.shape, _VARINT_BYTES), np.uint8)
    used = np.zeros(groups.shape, np.bool_)
    used[:, :, 0] = True
    for place in range(_VARINT_BYTES):
        groups[:, :, place] = (left & np.uint64(0x7F)).astype(np.uint8)
        left >>= np.uint64(7)
        more = left > 0
        groups[:, :, place] |= more.astype(np.uint8) << 7
        if place + 1 < _VARINT_BYTES:
            used[:, :, place + 1] = more
    return groups[used].tobytes()


def made(blocks: int, folder: Path) -> Image:
    """Make an image of about ``blocks`` blocks in files of one each."""
    folder.mkdir()
    command = [sys.executable, "-m", __name__, str(blocks), str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return Image(folder, np.load(folder / _COLUMNS))


def main(arguments: Sequence[str]) -> None:
    blocks, folder = int(arguments[0]), Path(arguments[1])
    namespace, state = big_namespace(blocks), BlockState()
    save(namespace, folder)
    apply_edits.load(state, namespace)
    known = (state.map.block(Slot(slot)) for slot in range(state.map.slot_count()))
    rows = ((block.id, block.length, block.stamp, 0) for block in known)
    np.save(folder / _COLUMNS, np.fromiter(rows, np.dtype((np.int64, 4)), state.map.block_count()))


if __name__ == "__main__":
    main(sys.argv[1:])
