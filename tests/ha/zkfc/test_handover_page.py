"""A hand-over as the status page of its target's controller shows it."""

import asyncio
import json

import pytest

from ha.console.switchover_hints import steps_of
from ha.zkfc.process.command import status_page
from tests.ha.zkfc.test_notices import ask_to_take_over
from tests.ha.zkfc.zkfc_world import Node, World

pytestmark = pytest.mark.zookeeper


def _page(node: Node) -> dict[str, object]:
    page: dict[str, object] = json.loads(json.dumps(status_page(node.zkfc)))
    return page


@pytest.mark.row("W9")
async def test_w9_the_status_page_shows_a_hand_over_while_it_lasts(here: World) -> None:
    _, two = here.nodes
    before = _page(two)
    two.namenode.hold_promotion = asyncio.Event()
    asked = asyncio.create_task(ask_to_take_over(two))
    await here.until(lambda: two.namenode.active_transitions, "promoting")
    during = _page(two)
    steps = steps_of(during)
    assert [name for name, _ in steps.done] == ["lock", "promoting"]
    assert (steps.asking, steps.holds_lock) == ("nn1", True)
    two.namenode.hold_promotion.set()
    await asked
    after = _page(two)
    assert list(before) == list(during) == list(after)
    assert [(one["handing_over_from"], one["takeover"]) for one in (before, after)] == [
        (None, None),
        (None, None),
    ]
    # A reader that looks only now sees in the last attempt what had still to come.
    last = steps_of(after)
    assert (last.attempt, last.done[:2]) == (steps.attempt, steps.done)


async def test_the_status_page_keeps_the_newest_judgements_of_health(here: World) -> None:
    _, two = here.nodes

    def changes() -> list[tuple[str, str]]:
        told = _page(two)["health_changes"]
        assert isinstance(told, list)
        assert all(one["at"].endswith("Z") for one in told)
        return [(one["health"], one["reason"]) for one in told]

    assert changes()[0][0] == "healthy"
    two.namenode.healthy = False
    await here.until(lambda: changes()[0][0] == "unhealthy", "unhealthy")
    assert changes()[0][1] != ""
    assert changes()[1][0] == "healthy"
