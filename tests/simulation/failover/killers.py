"""Planted bugs that drawn worlds show never or seldom: why, and which other test kills each."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.ha.elector import test_core as election
from tests.ha.elector import test_work_order as order
from tests.ha.zkfc import test_core as candidacy
from tests.ha.zkfc import test_orders as orders
from tests.ha.zkfc import test_predecessor as predecessor

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
        "whoever comes back as a standby contradicts its controller, which leaves for that; it "
        "takes one that is ill for long, and 1 of 500 worlds shows it",
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
    "NodeExists taken as won": Killer(
        election.test_event_table,
        ("taken: whose it is must be asked",),
        "the look at the lock is answered before anybody is fenced, in all but 1 of 100 worlds",
    ),
    "a takeover is not abandoned": Killer(
        _ONE_AFTER_THE_OTHER,
        (),
        "what follows waits for it, and its answers count no more; 1 of 50 worlds shows it",
    ),
    "a lock lost for a moment was never lost": Killer(
        election.test_a_lock_that_was_gone_must_be_taken_over_again,
        (),
        "it takes somebody who deletes the lock by hand; 1 of 80 worlds shows it",
    ),
    "a predecessor that never settled": Killer(
        orders.test_one_that_answers_but_was_never_active_says_nothing_of_those_before_it,
        (),
        "a writer that the journal refuses ends within a beat; 1 of 150 worlds shows it",
    ),
    "a death is guessed": Killer(
        predecessor.test_only_the_very_process_on_this_very_machine_is_seen_to_end,
        (),
        "it takes a port that is closed by a process that lives; 1 of 150 worlds shows it",
    ),
    "nobody else serves, and never will": Killer(
        orders.test_a_claim_about_predecessors_ends_with_what_is_known_of_our_lock,
        (),
        "it takes a host that stops at the very promotion; 1 of 1,000 worlds shows it",
    ),
    "a cede forgets the promotion": Killer(
        orders.test_a_cede_half_way_through_a_takeover_leaves_the_breadcrumb,
        (3,),
        "it takes a demotion that is answered after the promotion; 1 of 500 worlds shows it",
    ),
    "a silent promotion succeeded": Killer(
        orders.test_a_promotion_without_an_answer_is_a_failed_takeover,
        (),
        "the NameNode's reports contradict its controller soon; 1 of 50 worlds shows it",
    ),
    "the breadcrumb goes at any version": Killer(
        orders.test_a_breadcrumb_is_deleted_at_the_version_that_we_wrote,
        (),
        "it takes somebody who deletes the lock by hand; 1 of 60 worlds shows it",
    ),
}
