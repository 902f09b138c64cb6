"""How an abandoned file is closed, row by row and in every combination of its last two blocks."""

from itertools import product

import pytest

from namenode_sim.blocks.model import Stage
from namenode_sim.leases.release import (
    BlocksWait,
    CloseFile,
    DropLastAndClose,
    Impossible,
    LastBlock,
    RecoverLast,
    RecoveryRuns,
    ReportsWait,
    Step,
    release,
)

TIMEOUT = 90.0


def block(stage: Stage, *, length: int = 100, enough: bool = True, places: int = 3) -> LastBlock:
    return LastBlock(stage, length, enough, places)


COMPLETE = block(Stage.COMPLETE)
COMMITTED, SHORT = block(Stage.COMMITTED), block(Stage.COMMITTED, enough=False)
OPEN, RECOVERING = block(Stage.UNDER_CONSTRUCTION), block(Stage.UNDER_RECOVERY)
UNTOUCHED = block(Stage.UNDER_CONSTRUCTION, length=0, enough=False, places=0)

CASES: dict[str, tuple[list[LastBlock], float | None, Step]] = {
    "a file without blocks": ([], None, CloseFile()),
    "all blocks are complete": ([COMPLETE, COMPLETE], None, CloseFile()),
    "the last is committed and has its replicas": ([COMPLETE, COMMITTED], None, CloseFile()),
    "the last two are committed and have theirs": ([COMMITTED, COMMITTED], None, CloseFile()),
    "the last but one waits for replicas": ([SHORT, COMMITTED], None, BlocksWait()),
    "the last waits for replicas": ([COMPLETE, SHORT], None, RecoverLast()),
    "nobody connected to the last": ([COMPLETE, UNTOUCHED], None, DropLastAndClose()),
    "nobody connected to the last, and the one before waits for replicas": (
        [SHORT, UNTOUCHED], None, BlocksWait(),
    ),
    "the only one is untouched": ([UNTOUCHED], None, DropLastAndClose()),
    "somebody is expected to have the last": (
        [block(Stage.UNDER_CONSTRUCTION, length=0, places=3)], None, RecoverLast(),
    ),
    "a reader was told a length": (
        [block(Stage.UNDER_CONSTRUCTION, length=9, places=0)], None, RecoverLast(),
    ),
    "the last is being written": ([COMPLETE, OPEN], None, RecoverLast()),
    "a recovery runs": ([RECOVERING], 10.0, RecoveryRuns(10.0)),
    "a recovery has had its time": ([RECOVERING], 90.0, RecoverLast()),
    "the one before the last is open": ([OPEN, OPEN], None, Impossible(2)),
    "three are not complete": ([COMMITTED, COMMITTED, OPEN], None, Impossible(3)),
}  # fmt: skip


@pytest.mark.row("B24")
@pytest.mark.parametrize(("blocks", "recovering", "step"), CASES.values(), ids=CASES.keys())
def test_a_step(blocks: list[LastBlock], recovering: float | None, step: Step) -> None:
    assert release(blocks, recovering, TIMEOUT) == step


def test_no_block_is_dropped_before_all_datanodes_have_told() -> None:
    assert release([COMPLETE, UNTOUCHED], None, TIMEOUT, all_reported=False) == ReportsWait()


def test_a_file_is_closed_only_with_blocks_that_are_known() -> None:
    kinds = [
        LastBlock(*each)
        for each in product(Stage, (0, 100), (False, True), (0, 2))
        if each[0] is not Stage.COMPLETE or each[2]
    ]
    for count in (1, 2):
        for blocks in product(kinds, repeat=count):
            step = release(blocks, None, TIMEOUT)
            known = [each.stage in {Stage.COMPLETE, Stage.COMMITTED} for each in blocks]
            if isinstance(step, CloseFile):
                assert all(known)
                assert all(each.enough for each in blocks)
            if isinstance(step, DropLastAndClose):
                assert (blocks[-1].length, blocks[-1].places, known[-1]) == (0, 0, False)
            assert isinstance(step, Impossible) != all(known[:-1])


def simple(blocks: list[LastBlock], recovering: float | None) -> type[Step]:
    """Ask the table of docs/reference/blocks.md#releasing-a-lease from its end to its front."""
    stages = [one.stage for one in blocks]
    step: type[Step] = RecoverLast
    if recovering is not None and recovering < TIMEOUT:
        step = RecoveryRuns
    if blocks and stages[-1] in WRITTEN and (blocks[-1].places, blocks[-1].length) == (0, 0):
        step = DropLastAndClose
        if len(blocks) > 1 and not blocks[-2].enough:
            step = BlocksWait
    if blocks and stages[-1] not in WRITTEN:
        if blocks[-1].enough or stages[-1] is Stage.COMPLETE:
            step = CloseFile
        if len(blocks) > 1 and not blocks[-2].enough:
            step = BlocksWait
    if set(stages[-2:-1]) & WRITTEN or set(stages[:-2]) - {Stage.COMPLETE}:
        step = Impossible
    if set(stages) <= {Stage.COMPLETE}:
        step = CloseFile
    return step


WRITTEN = {Stage.UNDER_CONSTRUCTION, Stage.UNDER_RECOVERY}


def test_every_file_is_released_as_the_table_says() -> None:
    kinds = [LastBlock(*each) for each in product(Stage, (0, 100), (False, True), (0, 2))]
    times = (None, 0.0, TIMEOUT - 0.1, TIMEOUT)
    for count in (0, 1, 2):
        for blocks, seconds in product(product(kinds, repeat=count), times):
            assert type(release(blocks, seconds, TIMEOUT)) is simple(list(blocks), seconds)
    few = [COMPLETE, COMMITTED, SHORT, OPEN, RECOVERING, UNTOUCHED]
    for blocks, seconds in product(product(few, repeat=3), times):
        assert type(release(blocks, seconds, TIMEOUT)) is simple(list(blocks), seconds)
