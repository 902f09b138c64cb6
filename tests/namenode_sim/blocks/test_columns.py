"""A row of the columns has what was reported of its block, and nothing of one before it."""

from typing import Final

import numpy as np
import pytest

from namenode_sim.blocks.columns import CELLS, CORRUPT, MORE, NEEDED, STAGE, STRIPED, BlockColumns
from namenode_sim.blocks.model import NO_STORAGE, Stage

Row = tuple[int, int, int, int, int, int]

FIRST: Final = (2**30 + 1, 700, 1001, 16386, 3, CORRUPT | Stage.COMMITTED)
SECOND: Final = (2**30 + 2, 2**40, 2**41, 2**42, 65535, MORE | STRIPED)
THIRD: Final = (-(2**62), 900, 1003, 16388, 4, int(Stage.UNDER_RECOVERY))
"""Of each block its id, length, stamp, file, expected replicas and flags."""


def row(columns: BlockColumns, slot: int) -> Row:
    return (
        columns.ids[slot],
        columns.lengths[slot],
        columns.stamps[slot],
        columns.files[slot],
        columns.expected[slot],
        columns.flags[slot],
    )


def cells(columns: BlockColumns, slot: int) -> list[tuple[int, int]]:
    part = slice(slot * CELLS, slot * CELLS + CELLS)
    return list(zip(columns.storages[part], columns.positions[part], strict=True))


def test_each_block_has_a_row_of_its_own() -> None:
    columns = BlockColumns()
    slots = [columns.add(*block) for block in (FIRST, SECOND, THIRD)]
    assert slots == [0, 1, 2]
    assert [row(columns, slot) for slot in slots] == [FIRST, SECOND, THIRD]
    assert [cells(columns, slot) for slot in slots] == [[(NO_STORAGE, 0)] * 3] * 3
    assert len(columns) == 3


def test_a_row_that_is_given_back_is_used_again_and_says_only_what_its_new_block_is() -> None:
    columns = BlockColumns()
    columns.add(*FIRST)
    freed = columns.add(*SECOND)
    columns.release(freed)
    assert (len(columns), columns.ids[freed], columns.flags[freed]) == (1, 0, 0)
    assert columns.add(*THIRD) == freed
    assert [row(columns, slot) for slot in (0, 1)] == [FIRST, THIRD]
    assert columns.add(*SECOND) == 2
    assert len(columns) == 3


def test_many_complete_blocks_at_once_have_the_rows_behind_the_others() -> None:
    columns = BlockColumns()
    columns.add(*FIRST)
    ids, lengths, stamps, files, expected, _ = np.array([SECOND, THIRD, (0, 2, 3, 4, 5, 6)]).T
    first = columns.extend(ids, lengths, stamps, files, expected.astype(np.uint16))
    assert (first, len(columns)) == (1, 4)
    assert [row(columns, slot) for slot in range(4)] == [
        FIRST,
        (*SECOND[:5], 0),
        (*THIRD[:5], STRIPED),
        (0, 2, 3, 4, 5, 0),
    ]
    assert [cells(columns, slot) for slot in range(4)] == [[(NO_STORAGE, 0)] * 3] * 4


@pytest.mark.parametrize("many", [False, True], ids=["one by one", "many at once"])
def test_a_block_costs_53_bytes(*, many: bool) -> None:
    columns, count = BlockColumns(), 7
    if many:
        numbers = np.arange(count)
        columns.extend(numbers, numbers, numbers, numbers, numbers.astype(np.uint16))
    else:
        for number in range(count):
            columns.add(number, number, number, number, number, 0)
    arrays = list(vars(columns).values())
    assert sum(len(array) * array.itemsize for array in arrays) == 53 * count


@pytest.mark.parametrize("flag", [CORRUPT, STRIPED, MORE], ids=["corrupt", "striped", "more"])
@pytest.mark.parametrize("before", [0, 0xFF], ids=["nothing odd", "everything odd"])
def test_a_flag_is_set_and_cleared_beside_the_others(flag: int, before: int) -> None:
    columns = BlockColumns()
    slot = columns.add(1, 2, 3, 4, 5, before)
    columns.set_flag(slot, flag, on=True)
    assert columns.flags[slot] == before | flag
    columns.set_flag(slot, flag, on=False)
    assert columns.flags[slot] == before & ~flag


@pytest.mark.parametrize("stage", Stage)
@pytest.mark.parametrize("before", Stage)
def test_a_stage_takes_the_place_of_another_beside_the_flags(before: Stage, stage: Stage) -> None:
    columns, others = BlockColumns(), 0xFF & ~STAGE
    slots = [columns.add(1, 2, 3, 4, 5, flags | before) for flags in (0, others)]
    for slot in slots:
        columns.set_stage(slot, stage)
        assert columns.stage(slot) is stage
    assert [columns.flags[slot] for slot in slots] == [stage, others | stage]


def test_the_flags_of_a_row_share_no_bit_and_fill_a_byte() -> None:
    parts = (STAGE, NEEDED, CORRUPT, STRIPED, MORE)
    assert sum(parts) == 0xFF
    assert sum(part.bit_count() for part in parts) == 8
