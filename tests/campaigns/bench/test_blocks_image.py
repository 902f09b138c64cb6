"""What the bench's DataNodes report: the bytes of its fast encoder, and who has which block."""

from collections import Counter
from pathlib import Path

import numpy as np

from namenode_sim.blocks.report_rows import from_buffers
from tests.campaigns.bench.blocks_image import Image, datanode_of, encoded
from tests.namenode_sim.blocks import report_bytes

ROWS = [
    (2**30 + 5, 7_654_321, 1001, 0),
    (1, 0, 5, 4),
    (-5, 127, 128, 0),
    (-(2**63), 2**47, 2**40, 1),
    (2**63 - 1, 128, 16_383, 3),
]


def test_the_fast_encoder_writes_the_same_bytes() -> None:
    assert encoded(np.array(ROWS, np.int64)) == report_bytes.encoded(ROWS)


def test_each_block_is_reported_by_three_datanodes(tmp_path: Path) -> None:
    blocks = np.array([(2**30 + n, 100 + n, 1000 + n, 0) for n in range(500)], np.int64)
    holders: dict[int, set[int]] = {number: set() for number in blocks[:, 0].tolist()}
    reported: Counter[int] = Counter()
    for storage, (count, data) in enumerate(Image(tmp_path, blocks).reports()):
        rows = from_buffers([data], count)
        for number in rows.ids.tolist():
            holders[number].add(datanode_of(storage))
            reported[number] += 1
    assert {len(one) for one in holders.values()} == {3}
    assert set(reported.values()) == {3}
