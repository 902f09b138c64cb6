"""PostponedReports reports: what is listed, counted and known of each storage after every step."""

from collections.abc import Callable

import pytest

from namenode_sim.blocks.model import Deleted, ReplicaState, Reported, StorageNumber
from namenode_sim.blocks.postponed_reports import PostponedReports

ONE, OTHER = StorageNumber(1), StorageNumber(2)
OLD, NEW = Reported(ReplicaState.RBW, 1001, 0), Deleted(1002)

Listed = list[tuple[int, StorageNumber, Reported | Deleted]]


def three(limit: int = 10) -> PostponedReports:
    """Two reports of one storage, and between them one of another about the first block."""
    waiting = PostponedReports(limit)
    waiting.put(7, ONE, OLD)
    waiting.put(7, OTHER, OLD)
    waiting.put(5, ONE, OLD)
    return waiting


FIRST, SECOND, THIRD = (7, ONE, OLD), (7, OTHER, OLD), (5, ONE, OLD)

STEPS: dict[str, tuple[Callable[[PostponedReports], object], object, Listed]] = {
    "a newer report takes the place of the one before": (
        lambda waiting: waiting.put(5, ONE, NEW), set(), [FIRST, SECOND, (5, ONE, NEW)],
    ),
    "a report is forgotten": (
        lambda waiting: waiting.forget(7, ONE), None, [SECOND, THIRD],
    ),
    "the only report about a block is forgotten": (
        lambda waiting: waiting.forget(5, ONE), None, [FIRST, SECOND],
    ),
    "nothing waits from this storage": (
        lambda waiting: waiting.forget(5, OTHER), None, [FIRST, SECOND, THIRD],
    ),
    "what waits for a block is taken out": (
        lambda waiting: waiting.pop(7), [(ONE, OLD), (OTHER, OLD)], [THIRD],
    ),
    "nothing waits for a block": (
        lambda waiting: waiting.pop(6), [], [FIRST, SECOND, THIRD],
    ),
    "everything is taken out": (PostponedReports.pop_all, [FIRST, SECOND, THIRD], []),
    "a storage is gone": (lambda waiting: waiting.drop_storage(ONE), None, [SECOND]),
}  # fmt: skip


def ensure(waiting: PostponedReports, listed: Listed) -> None:
    """Fail unless the list, the count and the blocks of each storage agree."""
    assert (list(waiting), len(waiting)) == (listed, len(listed))
    for number in (ONE, OTHER):
        assert waiting.blocks_of(number) == {block for block, of, _ in listed if of == number}


@pytest.mark.parametrize(("step", "answer", "left"), STEPS.values(), ids=STEPS.keys())
def test_a_step_changes_list_count_and_storages_alike(
    step: Callable[[PostponedReports], object], answer: object, left: Listed
) -> None:
    waiting = three()
    ensure(waiting, [FIRST, SECOND, THIRD])
    assert step(waiting) == answer
    ensure(waiting, left)


def test_for_want_of_room_the_oldest_block_goes_with_all_its_reports() -> None:
    waiting = three(limit=3)
    assert waiting.put(5, ONE, NEW) == set()
    assert waiting.put(9, OTHER, OLD) == {ONE, OTHER}
    ensure(waiting, [(5, ONE, NEW), (9, OTHER, OLD)])
