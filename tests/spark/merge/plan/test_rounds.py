"""How often the image is asked until no guess of the planner was wrong."""

from collections.abc import Callable, Iterable

import pytest

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from spark.merge.errors import NeedsWholeNamespace
from spark.merge.model import BaseFacts, Looked, MergePlan
from spark.merge.plan.place_kinds import Kinds, first_wrong_guess
from spark.merge.plan.planner import plan_edits
from spark.merge.plan.rounds import plan_until_right
from spark.merge.trie import BaseTrie
from tests.spark.merge.memory import MemoryImage
from tests.spark.merge.script import WHO, Script


def _script(path: str) -> Script:
    """Make a directory at a path; the planner guesses that nothing is there."""
    script = Script()
    script.mkdirs("/there")
    script.image()
    script.write(ops.Mkdir(16387, path, script.now, script.now, WHO, ()))
    return script


def _heeding_answers_from_round(first: int) -> Callable[..., MergePlan]:
    """Return the planner, but its first rounds hear nothing of what the image has."""
    rounds = 0

    def plan(
        edits: Iterable[tuple[TxId, Op]],
        base: BaseFacts,
        *,
        trie: BaseTrie | None = None,
        kinds: Kinds | None = None,
    ) -> MergePlan:
        nonlocal rounds
        rounds += 1
        heard = kinds if rounds >= first else None
        return plan_edits(edits, base, trie=trie, kinds=heard)

    return plan


@pytest.mark.parametrize(
    ("path", "heeding_from_round", "looks"),
    [
        pytest.param("/new", 1, 1, id="the guess is right"),
        pytest.param("/there", 1, 2, id="the guess is wrong"),
        pytest.param("/there", 3, 3, id="wrong once more"),
        pytest.param("/there", 4, 4, id="wrong but for the last time"),
    ],
)
def test_it_is_planned_again_until_every_guess_is_right(
    path: str, heeding_from_round: int, looks: int
) -> None:
    plan, looked, asked = _ask(_script(path), heeding_from_round)
    assert first_wrong_guess(plan, looked) is None
    assert len(asked) == looks
    assert len({id(trie) for trie in asked}) == 1


def test_after_four_wrong_plans_one_process_must_do_it() -> None:
    with pytest.raises(NeedsWholeNamespace, match=r"the last time at /there$"):
        _ask(_script("/there"), heeding_from_round=5)


def _ask(script: Script, heeding_from_round: int) -> tuple[MergePlan, Looked, list[BaseTrie]]:
    image = MemoryImage.of(script.data)
    asked: list[BaseTrie] = []

    def look_up(trie: BaseTrie) -> Looked:
        asked.append(trie)
        return image.look_up(trie)

    plan, looked = plan_until_right(
        image.base.facts,
        lambda: iter(script.edits),
        look_up,
        planner=_heeding_answers_from_round(heeding_from_round),
    )
    return plan, looked, asked
