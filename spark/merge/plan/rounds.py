"""Plan and look up, again and again until no guess of the planner was wrong.  Pure."""

from collections.abc import Callable, Iterable
from typing import Final

from journal.model import TxId
from namenode_sim.edits.ops import Op
from spark.merge.errors import NeedsWholeNamespace
from spark.merge.model import BaseFacts, Looked, MergePlan
from spark.merge.plan.place_kinds import first_wrong_guess, kinds_of
from spark.merge.plan.planner import plan_edits
from spark.merge.trie import BaseTrie

MOST_ROUNDS: Final = 4
"""One is enough for the edits of a NameNode that is not very old."""


def plan_until_right(
    base: BaseFacts,
    edits: Callable[[], Iterable[tuple[TxId, Op]]],
    look_up: Callable[[BaseTrie], Looked],
    *,
    planner: Callable[..., MergePlan] = plan_edits,
) -> tuple[MergePlan, Looked]:
    """Return a plan whose guesses are all right, and what the image has at its places.

    Args:
        base: the image's figures.
        edits: gives the edits from the beginning, each time it is called.
        look_up: asks the image.
        planner: `plan_edits`; a test may put a wrong one in its place.

    Raises:
        NeedsWholeNamespace: if one process must do it.
        TxIdOutOfOrder: if an edit is missing.
    """
    plan = planner(edits(), base)
    place = b""
    for _ in range(MOST_ROUNDS):
        if plan.single_process_because is not None:
            raise NeedsWholeNamespace(plan.single_process_because)
        looked = look_up(plan.trie)
        wrong = first_wrong_guess(plan, looked)
        if wrong is None:
            return plan, looked
        place = plan.trie.path(wrong)
        plan = planner(edits(), base, trie=plan.trie, kinds=kinds_of(looked))
    raise NeedsWholeNamespace(
        "what the edits do depends again and again on what the image has, the last time at "
        + place.decode("utf-8", "replace")
    )
