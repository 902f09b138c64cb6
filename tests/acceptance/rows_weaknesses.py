"""W1-W27 of hadoop-ha.md 9: the tests that show a weakness gone, and what is left of it."""

from typing import Final

_FENCING_SHOWN = "ha/cli/test_fencing_shown.py::"
_HAADMIN = "ha/cli/test_haadmin.py::"
_METRICS_PAGES = "cluster/test_metrics_pages.py::"
_CONFIGURATION_KEYS = "ha/conf/test_keys.py::"
_TOPOLOGY = "ha/conf/test_topology.py::"
_ELECTOR_BYTES = "ha/elector/test_bytes.py::"
_ELECTOR_CORE = "ha/elector/test_core.py::"
_ELECTOR_TRANSCRIPTS = "ha/elector/test_transcripts.py::"
_PROGRESS = "ha/cli/test_progress.py::"
_ROWS_8_3 = "ha/elector/test_rows_8_3.py::"
_FENCING_LOCAL = "fencing/test_local.py::"
_FENCING_RUN = "fencing/test_run.py::"
_FENCING_SSH = "fencing/test_ssh.py::"
_ROWS_FENCING = "fencing/test_rows_fencing.py::"
_ROWS_SSH = "fencing/test_rows_ssh.py::"
_HEALTH_CORE = "ha/health/test_core.py::"
_NOTICES_BOARD = "ha/notices/test_board.py::"
_PID_FILE = "ha/health/test_pid_file.py::"
_SERVICE_FACES = "ha/service/test_service_faces.py::"
_ROWS_8_1 = "ha/zkfc/test_rows_8_1.py::"
_ROWS_BIND = "ha/zkfc/test_rows_bind.py::"
_ZKFC_ABSENCE = "ha/zkfc/test_absence.py::"
_ZKFC_COMMAND = "ha/zkfc/test_command.py::"
_ZKFC_CORE = "ha/zkfc/test_core.py::"
_ZKFC_FAILBACK = "ha/zkfc/test_failback.py::"
_ZKFC_FAILOVER = "ha/zkfc/test_failover.py::"
_ZKFC_HALF_WAY = "ha/zkfc/test_half_way.py::"
_ZKFC_HANDOVER = "ha/zkfc/test_handover.py::"
_ZKFC_HANDOVER_PAGE = "ha/zkfc/test_handover_page.py::"
_ZKFC_NAMESAKE = "ha/zkfc/test_namesake.py::"
_ZKFC_NOTICES = "ha/zkfc/test_notices.py::"
_ZKFC_PREPARE = "ha/zkfc/test_prepare.py::"
_ZKFC_STANDING = "ha/zkfc/test_standing.py::"
_ZKFC_STOP = "ha/zkfc/test_stop.py::"
_ZKFC_THREAD_DUMP = "ha/zkfc/test_thread_dump.py::"
_ZKFC_WEAKNESSES = "ha/zkfc/test_weaknesses.py::"
_ZKFC_ZOOKEEPER_AWAY = "ha/zkfc/test_zookeeper_away.py::"

ROWS: Final[dict[str, tuple[str, ...]]] = {
    "W1": (
        _ZKFC_FAILOVER
        + "test_w1_8_13_1_a_breadcrumb_with_another_address_does_not_stop_a_takeover",
    ),
    "W2": (
        _ZKFC_NOTICES
        + "test_w2_the_ready_one_takes_over_and_an_unready_one_only_when_nobody_else_does",
        _ZKFC_STANDING + "test_w2_one_report_of_being_unready_does_not_cost_a_standby_its_place",
    ),
    "W3": (
        _FENCING_LOCAL + "test_journal_epoch_fences_edits_and_proves_nothing_about_reads",
        _FENCING_SHOWN + "test_w3_the_status_says_so_where_nothing_proves_the_old_active_gone",
        _FENCING_SHOWN + "test_w3_it_says_nothing_where_some_method_could",
        _FENCING_SHOWN + "test_w3_a_dead_host_does_not_block_the_failover_and_nothing_is_claimed",
        (
            "open: fencers for power switches, clouds and pods are not ours: they are left "
            "to shell(...) (docs/fencing.md)"
        ),
    ),
    "W4": (
        _ZKFC_FAILOVER
        + "test_w4_8_13_2_a_session_lost_during_the_promotion_does_not_make_two_actives",
        _ZKFC_HALF_WAY
        + "test_w4_8_13_3_a_session_lost_while_fencing_is_noticed_and_the_fencing_stopped",
    ),
    "W5": (
        _ZKFC_HALF_WAY + "test_w5_8_13_4_health_that_turns_bad_while_fencing_ends_the_takeover",
    ),
    "W6": (
        _ZKFC_THREAD_DUMP + "test_w6_a_dump_is_bounded_in_bytes",
        _ZKFC_THREAD_DUMP + "test_w6_a_dump_waits_until_the_election_is_left",
        _ZKFC_THREAD_DUMP + "test_w6_hung_stacks_do_not_delay_the_failover",
    ),
    "W7": (
        _ZKFC_WEAKNESSES
        + "test_w7_8_13_6_an_election_that_is_over_before_the_cede_is_answered_counts",
    ),
    "W8": (
        _ZKFC_HANDOVER + "test_w8_8_13_7_a_dead_third_controller_does_not_block_it",
        _ZKFC_WEAKNESSES + "test_w8_8_13_8_an_error_at_the_release_leaves_a_success_a_success",
        _ZKFC_WEAKNESSES + "test_w8_everybody_is_let_go_when_the_takeover_fails",
        _ZKFC_WEAKNESSES + "test_w8_w17_a_silent_third_controller_costs_a_planned_failover_little",
    ),
    "W9": (
        _HAADMIN
        + "test_a_controller_that_falls_silent_after_acting_is_a_success_when_it_can_be_seen",
        _HAADMIN + "test_a_controller_that_falls_silent_leaves_the_outcome_unknown",
        _ZKFC_WEAKNESSES + "test_w9_w17_a_hand_over_has_one_limit_which_the_cli_outlasts",
        _PROGRESS + "test_w9_each_step_is_told_when_it_happens",
        _PROGRESS + "test_w9_it_is_told_on_stderr_and_stdout_stays_as_it_was",
        _ZKFC_HANDOVER_PAGE + "test_w9_the_status_page_shows_a_hand_over_while_it_lasts",
    ),
    "W10": (
        _FENCING_RUN + "test_the_deadline_kills_the_whole_process_group",
        _FENCING_RUN + "test_the_total_limit_ends_the_later_methods",
        _FENCING_SSH + "test_the_method_as_a_whole_has_a_limit",
        _ROWS_SSH + "test_w10_a_hung_method_leaves_the_rest_of_the_time_to_the_next",
    ),
    "W11": (
        _FENCING_SSH + "test_every_usual_kind_of_key_gets_in",
        _FENCING_SSH + "test_an_encrypted_key_opens_with_its_passphrase_file",
        _FENCING_SSH + "test_an_unknown_host_key_is_refused_or_remembered",
        _FENCING_SSH + "test_a_changed_host_key_is_refused",
        _ROWS_SSH + "test_w11_a_key_from_the_agent_only_if_that_is_configured",
    ),
    "W12": (
        _ROWS_SSH + "test_w12_neither_nc_nor_anything_else_to_look_with",
        _ROWS_SSH + "test_row_8_8_return_codes",
    ),
    "W13": (_ROWS_FENCING + "test_w13_a_comma_belongs_to_the_command",),
    "W14": (
        _ZKFC_FAILOVER + "test_a_stopped_controller_hands_over_politely",
        _ZKFC_STOP + "test_w14_8_13_10_sigterm_hands_over_first",
        _ZKFC_STOP + "test_w14_sigterm_of_a_standby_moves_nothing",
        _ZKFC_STOP + "test_w14_with_nobody_fit_the_namenode_stays_active",
        _ZKFC_STOP + "test_w14_the_key_switches_it_off",
        _ZKFC_STOP + "test_w14_a_successor_that_hangs_costs_no_more_than_the_limit",
        _ZKFC_STOP + "test_w14_w19_in_a_pause_a_controller_is_restarted_without_failover",
        _ZKFC_STOP + "test_w14_a_killed_controller_that_is_back_spares_its_active",
    ),
    "W15": (
        _METRICS_PAGES + "test_w15_a_scrape_says_what_the_logs_alone_said_in_hadoop",
        _METRICS_PAGES + "test_every_documented_metric_is_there_with_help_and_type",
    ),
    "W16": (
        _HEALTH_CORE + "test_outcomes",
        _HEALTH_CORE + "test_w16_refused_and_slow_are_told_apart_with_a_reason",
        _HEALTH_CORE + "test_w16_fewer_failures_than_the_limit_never_cost_a_healthy_namenode",
        _PID_FILE + "test_w16_a_dead_process_is_noticed_at_once_though_its_sockets_live",
        _PID_FILE + "test_w16_a_living_process_that_does_not_listen_is_another_matter",
        _ZKFC_STANDING + "test_w16_after_repeated_failovers_a_slow_active_is_kept_for_a_while",
        _ZKFC_STANDING + "test_w16_recovery_in_time_costs_nothing_and_counts_anew",
        _ZKFC_STANDING + "test_w16_a_dead_active_or_a_rare_failover_waits_for_nothing",
        _ZKFC_STANDING + "test_w16_old_failovers_are_forgotten",
        _ZKFC_STANDING + "test_w16_a_slow_active_that_dies_while_it_is_kept_is_left_at_once",
        _HEALTH_CORE + "test_w16_the_reason_counts_where_one_probe_is_not_enough",
    ),
    "W17": (
        _SERVICE_FACES + "test_silence_says_whether_anything_was_sent",
        _ZKFC_WEAKNESSES
        + "test_w17_a_former_active_that_never_answers_does_not_hold_up_its_successor",
        _ZKFC_WEAKNESSES + "test_w9_w17_a_hand_over_has_one_limit_which_the_cli_outlasts",
        _ZKFC_WEAKNESSES + "test_w8_w17_a_silent_third_controller_costs_a_planned_failover_little",
    ),
    "W18": (
        _ZKFC_WEAKNESSES
        + "test_w18_a_namenode_that_does_not_stand_by_is_asked_again_and_is_no_candidate",
    ),
    "W19": (
        _ZKFC_NOTICES + "test_w19_in_a_pause_a_dead_active_is_not_replaced_until_the_pause_ends",
        _ZKFC_NOTICES
        + "test_w19_an_active_may_be_restarted_in_a_pause_and_is_replaced_only_after_it",
        _ZKFC_NOTICES
        + "test_w19_in_a_pause_nobody_takes_a_free_lock_but_the_active_takes_its_own_again",
        _ZKFC_NOTICES + "test_w19_an_operator_may_hand_over_in_a_pause",
        _ZKFC_STOP + "test_w14_w19_in_a_pause_a_controller_is_restarted_without_failover",
    ),
    "W20": (
        _ROWS_8_1 + "test_row_8_1_zookeeper_failure",
        _ZKFC_ZOOKEEPER_AWAY + "test_w20_nothing_moves_however_long_zookeeper_is_away",
        _ZKFC_ZOOKEEPER_AWAY
        + "test_w20_an_active_steps_down_after_the_time_that_the_operator_has_set",
        _ZKFC_ZOOKEEPER_AWAY + "test_w20_a_zookeeper_that_is_back_in_time_makes_nobody_step_down",
        _ZKFC_ABSENCE + "test_w20_it_is_told_once_in_each_absence",
        _ZKFC_ABSENCE + "test_w20_whoever_is_back_in_time_or_out_of_the_election_is_left_alone",
        _ZKFC_ABSENCE + "test_w20_by_default_it_may_last_for_ever",
    ),
    "W21": (
        _ZKFC_COMMAND + "test_format_and_its_codes",
        _HAADMIN + "test_forcemanual_warns_and_asks",
        _ZKFC_PREPARE + "test_w21_nothing_is_formatted_or_cleared_under_a_held_lock",
        _ZKFC_PREPARE + "test_w21_the_prompt_takes_yes_no_and_the_end_of_input",
        _ZKFC_PREPARE + "test_w21_others_below_the_same_parent_are_left_alone",
        _ZKFC_PREPARE + "test_w21_check_tells_what_lies_there_and_whether_we_may_write",
    ),
    "W22": (
        _TOPOLOGY + "test_the_local_namenode_is_named_or_found_by_its_address",
        _ROWS_BIND + "test_row_8_11_zk_bind_address",
        _ZKFC_FAILOVER
        + "test_w1_8_13_1_a_breadcrumb_with_another_address_does_not_stop_a_takeover",
        _NOTICES_BOARD + "test_w22_another_living_zkfc_of_the_same_name_is_left_alone",
        _NOTICES_BOARD + "test_w22_of_several_that_start_at_once_exactly_one_may_stand",
        _NOTICES_BOARD + "test_what_an_earlier_process_left_behind_is_replaced_before_it_expires",
        _ZKFC_NAMESAKE
        + "test_w22_a_second_controller_waits_and_takes_its_place_when_the_first_ends",
    ),
    "W23": (
        _ZKFC_PREPARE + "test_w23_an_acl_open_to_the_world_is_warned_of",
        _ZKFC_PREPARE + "test_w23_or_refused_where_the_operator_wants_that",
        (
            "open: ZooKeeper is reached by TLS, SASL or digest, but callers of our own RPC "
            "and HTTP are believed (docs/operations.md, Whom the daemons believe)"
        ),
    ),
    "W24": (
        _ELECTOR_CORE + "test_event_table",
        _ELECTOR_BYTES + "test_bytes_that_name_nobody_are_told_as_such",
        _CONFIGURATION_KEYS + "test_a_required_key_that_is_missing_is_named_with_its_suffix",
        _ZKFC_CORE + "test_joins_and_leaves_alternate_only_the_fit_join_and_nobody_is_forgotten",
        _ROWS_8_3 + "test_w24_an_elector_that_left_is_not_brought_back_by_an_expiry",
    ),
    "W25": (_ZKFC_STANDING + "test_w25_an_observer_is_never_a_candidate_whoever_asks",),
    "W26": (
        _ZKFC_NOTICES + "test_w26_the_preferred_of_two_standbys_takes_over",
        _ZKFC_NOTICES
        + "test_w26_a_preferred_one_that_does_not_take_the_lock_is_waited_for_no_longer",
        _ZKFC_FAILBACK + "test_w26_it_never_takes_the_role_back_where_anything_is_against_it",
        _ZKFC_FAILBACK + "test_w26_when_it_takes_the_role_back",
        _ZKFC_FAILBACK + "test_w26_after_repeated_failovers_it_stays_until_they_are_long_ago",
        _ZKFC_FAILBACK + "test_w26_a_preferred_namenode_that_is_back_takes_the_role_by_a_hand_over",
    ),
    "W27": (
        _ELECTOR_TRANSCRIPTS + "test_scenario",
        _ZKFC_CORE + "test_joins_and_leaves_alternate_only_the_fit_join_and_nobody_is_forgotten",
    ),
}
