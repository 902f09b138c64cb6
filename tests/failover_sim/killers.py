"""Planted bugs that no drawn world is known to show: why not, and which other test kills each."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.elector import test_elector_core as election
from tests.elector import test_elector_work_order as order
from tests.zkfc import test_zkfc_core as candidacy
from tests.zkfc import test_zkfc_orders as orders

_ONE_AFTER_THE_OTHER: Final = (
    order.test_a_demotion_does_not_overtake_a_promotion_behind_a_takeover_that_was_called_off
)


@dataclass(frozen=True, slots=True)
class Killer:
    """A test that fails when the bug is planted."""

    test: Callable[..., Any]
    case: tuple[object, ...]
    why: str
    """What stands before the bug, so that the simulated cluster bears it."""

    def run(self) -> None:
        """Raises AssertionError where the test fails."""
        outcome = self.test(*self.case)
        if asyncio.iscoroutine(outcome):
            asyncio.run(outcome)


KILLERS: Final = {
    "news of an old session believed": Killer(
        election.test_event_table,
        ("created, told by a dead session",),
        "a session that is closed tells nothing any more, and an expired one has no request left "
        "that could be answered",
    ),
    "answers of an old attempt believed": Killer(
        election.test_event_table,
        ("fenced for an abandoned attempt",),
        "the work of an abandoned attempt is cancelled, and a session answers in order",
    ),
    "a reconnect is trusted": Killer(
        election.test_event_table,
        ("connected again: look, never create",),
        "the election looks at the lock each second all the same",
    ),
    "the lock goes before the breadcrumb": Killer(
        election.test_event_table,
        ("an active's clean quit deletes the breadcrumb while it holds the lock",),
        "the session sends both at once, and the next owner's breadcrumb has another version",
    ),
    "a record of any term counts": Killer(
        orders.test_a_record_of_an_earlier_term_says_nothing_of_the_present_owner,
        (),
        "a writer that the journal refuses ends within a beat: its lease seldom outlives the "
        "takeover in which its successor dies, and the record is a settled one only until then",
    ),
    "bad health is ignored": Killer(
        candidacy.test_decisions,
        ("ill while in: leave, keep the breadcrumb",),
        "whoever comes back as a standby contradicts its controller, which leaves for that",
    ),
    "work of the election overtakes": Killer(
        _ONE_AFTER_THE_OTHER,
        (),
        "a NameNode does one transition after the other, and a demotion is asked for again",
    ),
    "no demotion is sent": Killer(
        orders.test_a_namenode_whose_controller_has_no_lock_is_told_to_stand_by,
        (),
        "the next owner has fenced it, or the journal refuses it, and then it ends",
    ),
}
