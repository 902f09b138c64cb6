"""The catalogue of the bugs that are planted into the journal, and what sees each."""

from typing import Final

from journal.core import effects
from tests.simulation.engine.mutants import Mutant
from tests.simulation.journal import planted_lanes as lanes
from tests.simulation.journal import planted_limits as limits
from tests.simulation.journal import planted_protocol as protocol
from tests.simulation.journal import planted_reads as reads
from tests.simulation.journal import planted_rules as rules
from tests.simulation.journal import planted_storage as storage
from tests.simulation.journal import planted_voters as voters

_SIM: Final = "tests/simulation/journal/test_"
_CORE: Final = "tests/journal/core/test_"
_STORAGE: Final = "tests/journal/storage/test_"
_WRITER: Final = "tests/journal/writer/test_"
_TABLES: Final = _SIM + "tables.py::test_2_10"
_X14: Final = _SIM + "writers.py::test_x14_a_crash_in_a_start_over_an_older_edit"
_CHECKS: Final = _CORE + "rules.py::test_the_first_failing_check_answers"
_LIMITS: Final = _CORE + "limits.py::test_it_is_refused_and_changes_nothing"
_WORD: Final = _SIM + "voters_word.py::test_"
_LEFT: Final = _CORE + "rejoin.py::test_a_twin_does_not_reopen_what_the_writer_has_left"
_LANE: Final = "tests/journal/node/test_lane.py::test_"
_LONE: Final = "tests/journal/reader/test_lone.py::test_"
_DURABLE: Final = "tests/journal/test_durable.py::test_"

_STRANGER: Final = "whoever has a writer's rights may shut a writer out anyway, and worlds allow it"
_NO_LIAR: Final = "no node there serves sound edits that are others than it says"
_HONEST_LANE: Final = "who writes on a lane there is a writer of ours; strangers come by gRPC"
_WIPED: Final = (
    "it takes a wiped node that votes again without a writer's word, and a recovery that it decides"
)
_OTHER_TAILS: Final = (
    "it takes nodes with other edits of one number behind what is committed, and a reader that "
    "asks in the midst of a recovery"
)

MUTANTS: Final = (
    # ---- which copy wins, and who must agree ----
    Mutant("longest before newest", protocol.longest_first(), 1500,
           _TABLES + "[2.10.6_stage_B-jn1+jn2]"),
    # Four writers in one order, of which the third dies between two of its calls; the worlds show
    # it at one in 1,500 of those about short lives (segments know their writers by now, so that
    # most older copies lose anyway).
    Mutant("accepted epoch ignored", protocol.accepted_ignored(), 5000,
           _TABLES + "[2.10.7-jn1+jn2]"),
    Mutant("writer epoch ignored", protocol.writer_epoch_ignored(), 1500,
           _TABLES + "[2.10.6_stage_B-jn1+jn2]"),
    # Masked by the order of a start's effects, so that order is planted with it.
    Mutant("ranked by the node's writer epoch", rules.ranks_by_the_nodes_writer(), 0,
           _X14 + "[killed]",
           why="it takes a crash inside a start, and a recovery that the same copy decides"),
    Mutant("majority off by one", protocol.majority_off_by_one()),
    Mutant("one node's write is an ack", protocol.one_write_is_enough()),
    Mutant("epoch from one node", protocol.one_is_enough("claiming")),
    Mutant("prepare from one node", protocol.one_is_enough("preparing")),
    Mutant("accept at one node", protocol.one_is_enough("accepting")),
    Mutant("finalize at one node", protocol.one_is_enough("finalizing")),
    # ---- the right to speak ----
    Mutant("stale epoch accepted", protocol.stale_epoch_accepted()),
    Mutant("serial unchecked: repeats count", protocol.serial_unchecked(), 1500),
    Mutant("equal epoch promised", protocol.equal_epoch_promised(), 500),
    Mutant("promise leaves the segment open", protocol.promise_leaves_segment_open()),
    Mutant("adopts for a superseded writer", protocol.adopts_for_a_superseded_writer(), 1500),
    Mutant("superseded writer's heartbeat accepted", rules.superseded_heartbeat_accepted(), 1500,
           _CHECKS),
    Mutant("upgrade, roll back and discard unfenced", rules.upgrades_unfenced(), 100,
           _CORE + "upgrade.py::test_no_step_is_for_a_fenced_writer"),
    Mutant("format over a newer writer", rules.format_over_a_writer(), 100,
           _STORAGE + "format_fence.py::test_a_writer_that_came_since_is_not_destroyed"),
    Mutant("any epoch is promised", limits.any_leap(), 100, _LIMITS),
    Mutant("a heartbeat promises", limits.everything_promises(), 0,
           _CORE + "limits.py::test_only_what_a_new_writer_begins_with_promises_its_epoch",
           why=_STRANGER),
    Mutant("any serial is taken", limits.any_serial(), 0, _LIMITS, why=_STRANGER),
    Mutant("any committed txid is taken", limits.any_committed(), 0, _LIMITS,
           why="what is said to be committed decides nothing where the edits are missing"),
    Mutant("claims about missing edits decide", limits.claims_decide(), 1500,
           _CORE + "limits.py::test_a_claim_beyond_the_edits_here_decides_nothing"),
    Mutant("another file system's requests are taken", limits.any_namespace(), 0, _LIMITS,
           why="those that strangers send there do no harm with the right number either"),
    Mutant("any read lease is granted", limits.any_lease(), 1500,
           "tests/journal/node/test_limits.py::test_a_stray_heartbeat_changes_nothing"),
    # ---- what is compared ----
    Mutant("digest ignored", protocol.digest_ignored(), 3000,
           _TABLES + "[2.10.6_prime-jn1+jn2]"),
    # A node must miss the acceptance, and get the finalization that follows: rare in worlds.
    Mutant("finalizes any length", protocol.finalizes_any_length(), 1500, _CHECKS),
    # ---- what is durable, and when ----
    Mutant("decision not persisted", storage.without(effects.PersistDecision)),
    Mutant("decision not forgotten", storage.without(effects.ForgetDecision), 500,
           _CORE + "syncing.py::test_the_decision_about_a_segment_ends_with_its_finalization"),
    Mutant("writer epoch not persisted", storage.without(effects.PersistWriter)),
    Mutant("older file left in the way", storage.without(effects.MoveAside), 5000,
           _X14 + "[killed]"),
    Mutant("segment's writer not recorded", storage.record_not_written()),
    Mutant("segment's record not durable", storage.record_not_durable()),
    Mutant("record after the adopted name", storage.record_after_adoption(), 100,
           _CORE + "rejoin.py::test_power_loss_between_the_effects_loses_nothing"),
    Mutant("no sync before the answer", storage.no_sync_before_ack()),
    Mutant("promise not durable", storage.promise_not_durable()),
    Mutant("small files not synced", storage.contents_not_synced()),
    Mutant("folders not synced", storage.folder_not_synced()),
    Mutant("finalize not synced", storage.finalize_not_synced()),
    Mutant("download not synced", storage.download_not_synced()),
    Mutant("download not verified", storage.download_not_verified()),
    Mutant("promise forgotten at restart", storage.promise_forgotten()),
    Mutant("decisions forgotten at restart", storage.decisions_forgotten(), 1500,
           _CORE + "purge.py::test_purge_logs_takes_decisions_with_them"),
    Mutant("decision not rolled forward", storage.no_roll_forward(), 1500),
    Mutant("load believes the page cache", storage.load_does_not_sync(), 5000),
    Mutant("answers before it is done", storage.answers_before_it_is_done()),
    # ---- learners ----
    Mutant("learner votes", rules.learner_votes(), 100,
           _CORE + "learner.py::test_a_learner_refuses_whatever_counts"),
    Mutant("learner admitted without data", rules.admitted_without_data(), 1500,
           _CORE + "learner.py::test_a_learner_that_lacks_something_is_not_admitted"),
    Mutant("learner admitted without the voters' word", rules.admitted_without_confirmation(), 0,
           _SIM + "learners.py::test_a_superseded_writer_admits_nobody",
           why="it takes a writer that is superseded just when it admits a learner"),
    Mutant("learner's write counts", rules.learners_write_counts(), 500,
           _WRITER + "window.py::test_a_learner_is_fed_and_counts_nowhere"),
    Mutant("learner's finalize counts", rules.learners_finalize_counts(), 0,
           _CORE + "learner.py::test_a_learner_finalizes_and_does_not_say_yes",
           why="it takes an end that a learner and a minority have, and a recovery then"),
    Mutant("purge point not learned from voters", rules.purge_point_is_not_learned(), 0,
           _SIM + "found.py::test_a_hole_below_the_purge_point_keeps_nobody_out",
           why="a learner only waits for longer: the next segment lets it in"),
    Mutant("newest segment let go of", rules.newest_segment_is_let_go_of(), 0,
           _SIM + "found.py::test_the_newest_segment_is_needed_wherever_the_purge_point_lies",
           why="it takes a purge up to the newest edit, and a learner that has none of it"),
    Mutant("voters' word without a mark", voters.no_mark(), 0,
           _WORD + "what_was_acknowledged_before_the_wipe_must_be_final",
           why=_WIPED),
    Mutant("voters' word under an older promise", voters.any_promise(), 0,
           _WORD + "a_late_start_of_a_superseded_writer_gives_no_vote",
           why=_WIPED),
    Mutant("voters' word while a claim may be under way", voters.no_wait(), 0,
           _WORD + "a_claim_from_before_the_wipe_has_been_given_up",
           why=_WIPED),
    Mutant("voters' word before a recovery is over", voters.no_start_heard(), 0,
           _CORE + "voters.py::test_a_learner_stays_one_because",
           why=_WIPED),
    Mutant("one voter's word", voters.one_voter(), 0,
           _SIM + "voters_word.py::test_without_a_majority_of_voters_nobody_votes",
           why=_WIPED),
    Mutant("voters' word without their segments", voters.nothing_required(), 0,
           _CORE + "voters.py::test_the_word_is_what_any_of_them_has_finalized",
           why="it takes an end that comes between the learner's last sync and the voters' word"),
    # ---- back in the open segment ----
    Mutant("resume begins anew", rules.resume_begins_anew(), 1500,
           _CORE + "rejoin.py::test_a_restarted_node_goes_on_behind_its_last_sound_edit"),
    Mutant("resume over a decision", rules.resume_over_a_decision(), 2000,
           _CORE + "rejoin.py::test_a_recovery_that_came_between_stands"),
    # The node stops: it has a finalized segment's name for a file that it would go on writing.
    Mutant("resume of what was left", rules.resume_whatever_was_left(), 1500, _LEFT),
    Mutant("catch-up takes acknowledged edits away", rules.catch_up_overtakes(), 0,
           _CORE + "rejoin.py::test_a_download_that_is_overtaken_takes_nothing_away",
           why="it takes a batch that overtakes a catch-up to the same node"),
    Mutant("catch-up without its digest", rules.download_unchecked(), 0,
           "tests/journal/node/test_transfer.py::test_a_catch_up_takes_no_other_edits",
           why=_NO_LIAR),
    Mutant("resume trusts the scan of the start", rules.resume_trusts_the_scan(), 0,
           _SIM + "found.py::test_what_rots_behind_the_scan_of_the_start_is_not_voted_with",
           why="it takes rot in an open segment between a node's start and its writer's return"),
    Mutant("damage refused by stopping", rules.damage_stops_the_node(), 0,
           _SIM + "found.py::test_what_rots_behind_the_scan_of_the_start_is_not_voted_with",
           why="a node that stops on a damaged disk breaks no promise there"),
    # ---- write lanes ----
    Mutant("lane takes any epoch", lanes.any_epoch(), 1500,
           _LANE + "a_fenced_writer_is_told_so_by_kind"),
    Mutant("lane takes any serial", lanes.any_serial(), 0,
           _LANE + "what_grpc_refuses_a_lane_refuses",
           why=_HONEST_LANE),
    Mutant("lane takes any file system", lanes.any_file_system(), 0,
           _LANE + "a_lane_of_another_file_system_writes_nothing",
           why=_HONEST_LANE),
    Mutant("lane takes any lease", lanes.any_lease(), 0,
           _LANE + "what_grpc_refuses_a_lane_refuses",
           why=_HONEST_LANE),
    Mutant("lane takes an older process's key", lanes.any_key(), 0,
           _LANE + "a_key_of_an_older_process_opens_nothing",
           why="it takes a lane that is opened to a process with what an older one has told"),
    Mutant("lane answers before the flush", lanes.answers_before_the_flush(), 1500,
           _SIM + "lanes.py::test_what_a_lane_has_acknowledged_survives_a_power_cut"),
    Mutant("lane does not wait for its turn", lanes.without_its_turn(), 100,
           "tests/journal/node/test_turn.py::test_a_thread_waits_while_the_loop_has_it"),
    Mutant("lane and stream at once", lanes.both_ways_at_once(), 1500,
           _SIM + "lanes.py::test_a_stream_carries_nothing_while_a_lane_is_open"),
    # ---- sync, damage, purge ----
    Mutant("sync takes other edits", rules.download_unchecked(), 0,
           "tests/journal/node/test_transfer.py::test_a_peer_that_lies_is_not_believed_by_the_syncer",
           why=_NO_LIAR),
    Mutant("sync compares ends only", rules.sync_compares_ends(), 0,
           _CORE + "syncing.py::test_contradictions_are_reported_and_nothing_is_touched",
           why=_NO_LIAR),
    Mutant("sync replaces the open segment", rules.sync_replaces_the_open_segment(), 0,
           _CORE + "syncing.py::test_the_open_segment_is_the_writers_business",
           why="it takes a look of the syncer while peers have closed what is open here"),
    Mutant("damaged copy votes", rules.damage_votes(), 0,
           _STORAGE + "records.py::test_x08_damage_in_an_unclosed_segment_has_no_vote",
           why="worlds damage a minority, and the majority that is left has the edits"),
    Mutant("damage that is found is ignored", rules.damage_ignored(), 100,
           "tests/journal/node/test_sync.py::test_damage_is_never_served"),
    Mutant("purge cuts into a segment", rules.purge_cuts_into_a_segment(), 100,
           _CORE + "purge.py::test_a_segment_that_reaches_the_minimum_stays"),
    Mutant("purge takes the open segment", rules.purge_takes_the_open_segment(), 0,
           _CORE + "purge.py::test_the_open_and_the_newest_segment_stay",
           why="a writer there asks for no purge beyond what it has finalized"),
    Mutant("purge of what may not be committed", rules.purge_uncommitted(), 0,
           _CORE + "purge.py::test_what_is_not_known_to_be_committed_stays",
           why="a writer there asks for no purge beyond what it has finalized"),
    # ---- the writer, its lease, and the readers ----
    Mutant("holes accepted", protocol.holes_accepted(), 1500),
    Mutant("recovery skipped", protocol.recovery_skipped()),
    Mutant("accept skipped", protocol.accept_skipped()),
    Mutant("reads unfinished edits", protocol.reads_unfinished(), 500),
    Mutant("lease counted from the reply", reads.lease_from_the_reply(), 0,
           _WRITER + "lease.py::test_a_reply_that_lay_in_a_socket_proves_nothing_new",
           why="it takes an answer that is late by a lease, and a newer writer"),
    Mutant("lease from one node", reads.lease_from_one_node(), 0,
           _WRITER + "lease.py::test_without_a_majority_the_lease_runs_out",
           why="it takes a writer that reaches one node alone, and a caller who saw a newer one"),
    Mutant("no wait for the older lease", reads.no_wait_for_the_lease(), 1500,
           _WRITER + "lease.py::test_a_new_writer_lets_the_old_lease_run_out_first"),
    Mutant("cache outlives its writer", reads.cache_outlives_its_writer(), 0,
           "tests/journal/node/test_recent_edits.py::"
           "test_a_new_epoch_takes_back_what_its_recovery_may_replace",
           why=_OTHER_TAILS),
    Mutant("edits counted, not compared", reads.counts_without_comparing(), 0,
           "tests/journal/test_durable.py::test_other_bytes_under_the_same_numbers_do_not_count",
           why=_OTHER_TAILS),
    Mutant("equal bytes are durable", reads.equal_bytes_are_enough(), 0,
           "tests/journal/test_durable.py::test_equal_bytes_of_a_half_finished_recovery_are_not_durable",
           why=_OTHER_TAILS),
    Mutant("late knowledge counts", reads.late_knowledge_counts(), 0,
           "tests/journal/test_durable.py::test_equal_bytes_of_a_half_finished_recovery_are_not_durable",
           why=_OTHER_TAILS),
    Mutant("one file is enough", reads.one_file_is_enough(), 0,
           "tests/journal/reader/test_tailing.py::test_one_file_of_an_edit_is_not_enough",
           why=_OTHER_TAILS),
    Mutant("one node's finalized segment is believed", reads.lone_segment_believed(), 0,
           _LONE + "a_forged_segment_at_the_end_is_not_believed",
           why=_NO_LIAR),
    Mutant("any copy vouches for a lone segment", reads.any_copy_vouches(), 0,
           _LONE + "a_copy_with_other_bytes_vouches_for_nothing",
           why=_NO_LIAR),
    Mutant("stale copies outvote a finalized one", reads.others_outvote(), 0,
           _LONE + "stale_copies_that_agree_do_not_outvote_the_finalized_one",
           why=_NO_LIAR),
    Mutant("files read beyond what is committed", reads.files_beyond_the_commit(), 0,
           "tests/journal/reader/test_tailing.py::test_tail_without_cache",
           why=_OTHER_TAILS),
)  # fmt: skip
