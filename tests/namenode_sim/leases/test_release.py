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


@pytest.mark.parametrize(("blocks", "recovering", "step"), CASES.values(), ids=CASES.keys())
def test_a_step(blocks: list[LastBlock], recovering: float | None, step: Step) -> None:
    assert release(blocks, recovering, TIMEOUT) == step


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
