"""The catalogue of planted bugs of the control plane: each must be seen by some check."""

from typing import Final

from ha.elector import core as election_core
from ha.elector import runner
from ha.zkfc.candidacy import core as candidacy_core
from tests.simulation.engine.mutants import Mutant, Planting, all_of, replacing
from tests.simulation.failover import planted_beliefs as beliefs
from tests.simulation.failover import planted_control as control
from tests.simulation.failover import planted_elector as elector
from tests.simulation.failover import planted_guard as guard
from tests.simulation.failover import planted_witness as witness

_UNCHECKED: Final = all_of(
    replacing(election_core, "checked", lambda _before, _event, step: step),
    replacing(candidacy_core, "checked", lambda _before, _event, step: step),
    replacing(runner, "ensure_attempt", lambda _state, _attempt, _stage: None),
)
"""Its own invariants would end a controller before the world has shown what comes of the bug."""

_ELECTION: Final = "tests/ha/elector/test_core.py::test_"
_ONE_AFTER_THE_OTHER: Final = (
    "tests/ha/elector/test_work_order.py::"
    "test_a_demotion_does_not_overtake_a_promotion_behind_a_takeover_that_was_called_off"
)
_CANDIDACY: Final = "tests/ha/zkfc/test_core.py::test_"
_ORDERS: Final = "tests/ha/zkfc/test_orders.py::test_"
_GUARD: Final = "tests/ha/zkfc/test_guard.py::test_"
_MONITOR: Final = "tests/ha/health/test_monitor.py::test_"
_SUPERSEDED: Final = "tests/ha/zkfc/test_superseded.py::test_"
_WITNESS: Final = "tests/ha/zkfc/test_witness.py::test_"
_WITNESS_RUNNER: Final = "tests/ha/zkfc/test_witness_runner.py::test_"
_BY_ITSELF: Final = "tests/ha/zkfc/test_by_itself.py::test_"
_STANDING: Final = "tests/ha/zkfc/test_standing.py::test_"
_NO_WORLD: Final = "the simulated controllers run without the guard's thread, and never lag"
_PREDECESSOR: Final = "tests/ha/zkfc/test_predecessor.py::test_"


def _bug(name: str, plant: Planting, seeds: int = 300, killer: str = "", why: str = "") -> Mutant:
    return Mutant(name, plant, seeds, killer, why, beside=_UNCHECKED)


MUTANTS: Final = (
    # ---- the election ----
    _bug(
        "news of an old session believed",
        elector.stale_session_believed(),
        killer=_ELECTION + "event_table[created, told by a dead session]",
        why=(
            "a session that is closed tells nothing any more, and an expired one has no "
            "request left that could be answered"
        ),
    ),
    _bug(
        "NodeExists taken as won",
        elector.node_exists_is_won(),
        killer=_ELECTION + "event_table[taken: whose it is must be asked]",
        why="the look at the lock is answered before anybody is fenced, in all but 1 of 100 worlds",
    ),
    _bug("any lock is ours", elector.look_believes_anybody()),
    _bug(
        "answers of an old attempt believed",
        elector.stale_attempt_believed(),
        killer=_ELECTION + "event_table[fenced for an abandoned attempt]",
        why="the work of an abandoned attempt is cancelled, and a session answers in order",
    ),
    _bug(
        "a reconnect is trusted",
        elector.reconnect_is_trusted(),
        killer=_ELECTION + "event_table[connected again: look, never create]",
        why="the election looks at the lock each second all the same",
    ),
    _bug("an expiry is a reconnect", elector.expiry_is_a_reconnect()),
    _bug(
        "a lock lost for a moment was never lost",
        elector.gone_lock_keeps_serving(),
        killer=_ELECTION + "a_lock_that_was_gone_must_be_taken_over_again",
        why="it takes somebody who deletes the lock by hand; 1 of 80 worlds shows it",
    ),
    _bug("losing sight of ZooKeeper demotes", elector.neutral_demotes()),
    _bug("only watches tell", elector.never_looks_by_itself()),
    _bug(
        "our name in a doubtful breadcrumb spares everybody",
        elector.doubted_name_spares(),
        seeds=0,
        killer=_ELECTION + "event_table[our own breadcrumb, in doubt: whoever wrote it may spare "
        "another]",
        why="the drawn worlds have an open ACL, where nothing can be in doubt",
    ),
    _bug(
        "who could have written a breadcrumb is not asked",
        elector.nobody_doubts(),
        seeds=0,
        killer="tests/ha/elector/test_doubted.py::test_our_own_name_by_a_strangers_hand_spares_nobody",
        why="the drawn worlds have an open ACL, where nothing can be in doubt",
    ),
    _bug(
        "a takeover is not abandoned",
        elector.takeover_not_abandoned(),
        killer=_ONE_AFTER_THE_OTHER,
        why="what follows waits for it, and its answers count no more; 1 of 50 worlds shows it",
    ),
    # ---- the order of a takeover, and the breadcrumb ----
    _bug("active before the fence is done", elector.fence_not_awaited()),
    _bug("a breadcrumb that looks alike is ours", elector.alike_is_own()),
    _bug("the breadcrumb is only replaced", elector.unread_is_none()),
    _bug("promoted without a breadcrumb", elector.promotes_without_writing()),
    _bug("our name before the fence", elector.writes_before_fencing()),
    _bug("leaving always deletes the breadcrumb", elector.quit_forgets_the_breadcrumb()),
    _bug(
        "the lock goes before the breadcrumb",
        elector.release_before_the_breadcrumb(),
        killer=_ELECTION
        + "event_table[an active's clean quit deletes the breadcrumb while it holds the lock]",
        why="the session sends both at once, and the next owner's breadcrumb has another version",
    ),
    _bug(
        "the breadcrumb goes at any version",
        elector.any_version_is_deleted(),
        killer=_ORDERS + "a_breadcrumb_is_deleted_at_the_version_that_we_wrote",
        why="it takes somebody who deletes the lock by hand; 1 of 60 worlds shows it",
    ),
    _bug("ill, and no breadcrumb left", control.ill_leaves_no_breadcrumb()),
    # ---- fencing ----
    _bug("a fence that timed out succeeded", control.timeout_is_success()),
    _bug("a fence that failed succeeded", control.failure_is_fenced()),
    _bug("silence is taken for standby", control.silence_is_standby()),
    _bug("journal-epoch proves death", control.epoch_proves_death()),
    _bug(
        "a predecessor that never settled",
        control.unsettled_predecessor(),
        killer=_ORDERS + "one_that_answers_but_was_never_active_says_nothing_of_those_before_it",
        why="a writer that the journal refuses ends within a beat; 1 of 150 worlds shows it",
    ),
    _bug(
        "a death is guessed",
        control.death_is_guessed(),
        killer=_PREDECESSOR + "only_the_very_process_on_this_very_machine_is_seen_to_end",
        why="it takes a port that is closed by a process that lives; 1 of 150 worlds shows it",
    ),
    _bug(
        "a record of any term counts",
        control.any_term_counts(),
        killer=_ORDERS + "a_record_of_an_earlier_term_says_nothing_of_the_present_owner",
        why=(
            "a writer that the journal refuses ends within a beat: its lease seldom outlives "
            "the takeover in which its successor dies, and the record is a settled one only "
            "until then"
        ),
    ),
    _bug("nobody else serves, without proof", control.claims_nobody_serves()),
    _bug(
        "nobody else serves, and never will",
        control.claim_without_end(),
        killer=_ORDERS + "a_claim_about_predecessors_ends_with_what_is_known_of_our_lock",
        why="it takes a host that stops at the very promotion; 1 of 1,000 worlds shows it",
    ),
    # ---- cedes and hand-overs ----
    _bug("a cede never fences", control.cede_never_fences()),
    _bug("a cede without a demotion", control.cede_without_demotion()),
    _bug(
        "a cede forgets the promotion",
        control.cede_forgets_the_promotion(),
        killer=_ORDERS + "a_cede_half_way_through_a_takeover_leaves_the_breadcrumb[3]",
        why="it takes a demotion that is answered after the promotion; 1 of 500 worlds shows it",
    ),
    _bug("a cede ends at once", control.cede_ends_at_once()),
    _bug("a cede never ends", control.cede_never_ends()),
    _bug("peers are not released", control.peers_not_released()),
    _bug("an earlier hand-over's success counts", control.any_attempt_counts()),
    _bug("the lock is success", control.lock_is_success()),
    _bug("a hand-over waits in vain", control.waits_in_vain()),
    _bug("rivals stand back for each other", control.stands_back_for_a_rival(), seeds=1500),
    _bug(
        "one hand-over lets go for all",
        control.lets_go_for_all(),
        killer=_ORDERS + "of_two_hand_overs_one_does_not_let_go_whom_the_other_asked",
        why="it takes two hand-overs at once among three; 1 of 4,000 worlds shows it",
    ),
    _bug("a failed attempt is success", control.failure_is_success()),
    # ---- the controller's judgement ----
    _bug("the NameNode's word is ignored", control.reports_not_believed()),
    _bug(
        "bad health is ignored",
        control.bad_health_ignored(),
        seeds=600,
        killer=_CANDIDACY + "decisions[ill while in: leave, keep the breadcrumb]",
        why=(
            "whoever comes back as a standby contradicts its controller, which leaves for "
            "that; it takes one that is ill for long, and 1 of 500 worlds shows it"
        ),
    ),
    _bug("wall clock used", control.wall_clock()),
    _bug("a pause is not obeyed", control.pause_not_obeyed()),
    _bug(
        "work of the election overtakes",
        control.overtaking_demotion(),
        killer=_ONE_AFTER_THE_OTHER,
        why="a NameNode does one transition after the other, and a demotion is asked for again",
    ),
    _bug(
        "no demotion is sent",
        control.demotion_not_sent(),
        killer=_ORDERS + "a_namenode_whose_controller_has_no_lock_is_told_to_stand_by",
        why="the next owner has fenced it, or the journal refuses it, and then it ends",
    ),
    _bug(
        "a silent promotion succeeded",
        control.promotes_though_failed(),
        killer=_ORDERS + "a_promotion_without_an_answer_is_a_failed_takeover",
        why="the NameNode's reports contradict its controller soon; 1 of 50 worlds shows it",
    ),
    # ---- a controller that cannot act, and a process that hangs ----
    _bug(
        "the guard never fires",
        guard.guard_never_fires(),
        seeds=0,
        killer=_GUARD + "a_duty_that_is_not_done_is_found_after_its_time_and_the_patience",
        why=_NO_WORLD,
    ),
    _bug(
        "the guard believes its clock",
        guard.guard_believes_its_clock(),
        seeds=0,
        killer=_GUARD + "a_process_that_was_stopped_gets_its_turn_before_it_is_judged",
        why=_NO_WORLD,
    ),
    _bug(
        "an old lock is believed",
        guard.old_lock_believed(),
        seeds=0,
        killer=_ORDERS + "a_promotion_does_not_begin_under_a_lock_that_is_older_than_a_session",
        why="it takes a process that is stopped in the instant before its promotion",
    ),
    _bug(
        "our own delay is held against the NameNode",
        guard.own_delay_blamed(),
        seeds=0,
        killer=_MONITOR + "silence_while_we_stood_still_ourselves_is_not_held_against_it",
        why="a failover that was not needed breaks no promise",
    ),
    _bug(
        "our own delay excuses for ever",
        guard.own_delay_excuses_for_ever(),
        seeds=0,
        killer=_MONITOR + "a_namenode_that_hangs_is_found_though_we_are_late_each_time",
        why=_NO_WORLD,
    ),
    _bug("silence ends a process", guard.ended_without_successor()),
    _bug(
        "one silence ends a process",
        guard.ended_at_the_first_silence(),
        seeds=0,
        killer=_SUPERSEDED + "one_missed_deadline_ends_nobody",
        why="another is active then, and the process would end by itself at its next edit",
    ),
    # ---- another's lock, before its session has ended ----
    _bug("one JournalNode's word is enough", witness.one_node_is_enough(), seeds=1500),
    _bug("the writer's lease is forgotten", witness.lease_forgotten(), seeds=1500),
    _bug("the owner of the lock is not asked", witness.owner_not_asked(), seeds=1500),
    _bug("its controller is not asked", witness.controller_not_asked(), seeds=1500),
    _bug("the journal is not asked", witness.journal_not_asked(), seeds=1500),
    _bug("any writer sends heartbeats", witness.any_writer_beats(), seeds=1500),
    _bug("lock after lock is removed", witness.again_and_again(), seeds=1500),
    _bug(
        "the flapping rules do not hold for locks",
        witness.flapping_ignored(),
        seeds=1500,
        killer=_BY_ITSELF + "what_keeps_us_from_another_s_lock[flapping]",
        why="it takes three takeovers by one controller within the window, and a silent host then",
    ),
    _bug(
        "one look decides",
        witness.told_once(),
        seeds=1500,
        killer=_WITNESS + "the_lock_is_removed_when_and_only_when[told once]",
        why="it takes two nodes that were stopped, and an owner that is cut off just then",
    ),
    _bug(
        "a lock goes by its version",
        witness.any_lock_at_its_version(),
        seeds=1500,
        killer="tests/ha/elector/test_lock_keeper.py::"
        "test_a_lock_that_is_made_anew_in_the_last_moment_stands",
        why="it takes another lock between a look and what follows it at once",
    ),
    _bug(
        "old looks count",
        witness.old_looks_count(),
        seeds=1500,
        killer=_WITNESS_RUNNER + "what_our_namenode_told_before_we_were_stopped_is_old",
        why="it takes a controller that is stopped between two answers",
    ),
    # ---- what a controller believes, and the oracle does not ask it for ----
    _bug("a notice that is read is forgotten", beliefs.notices_forgotten()),
    _bug("a hand-over never ends", beliefs.asked_for_ever()),
    _bug("who gave way may always return", beliefs.may_always_return()),
    _bug("the end of a session is not heard", beliefs.end_of_session_unheard()),
    _bug("promoted in words only", beliefs.promoted_in_words()),
    _bug(
        "takeovers are not counted",
        beliefs.takeovers_forgotten(),
        seeds=0,
        killer=_STANDING + "w16_after_repeated_failovers_a_slow_active_is_kept_for_a_while",
        why="it takes three takeovers by one controller within the window, and a silent host then",
    ),
    _bug("a drained active stays", beliefs.drained_stays()),
    _bug("a pause bars the active as well", beliefs.pause_bars_the_active()),
    _bug(
        "a takeover is told a later lock",
        beliefs.later_lock_is_its_own(),
        seeds=1500,
        killer="tests/ha/zkfc/test_history.py::"
        "test_a_lock_that_was_made_after_a_takeover_is_not_called_its_lock",
        why="it takes two sessions that end one after the other, and a history that looks late",
    ),
    _bug(
        "the last word is taken for what is shown",
        beliefs.last_word_believed(),
        seeds=0,
        killer="tests/ha/notices/test_board.py::"
        "test_what_is_shown_is_what_stands_there_and_not_what_was_written_last",
        why="it takes a write without an answer, and a NameNode that is well again before the next",
    ),
)
