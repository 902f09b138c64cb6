"""W1-W27 of hadoop-ha.md 9: the tests that show a weakness gone, and what is left of it."""

from typing import Final

_FAILOVER = "zkfc/test_zkfc_failover.py::"
_HANDOVER = "zkfc/test_zkfc_handover.py::"
_HALF_WAY = "zkfc/test_zkfc_half_way.py::"
_COMMAND = "zkfc/test_zkfc_command.py::"
_HAADMIN = "cli/test_haadmin.py::"
_RUN = "fencing/test_fencing_run.py::"
_SSH = "fencing/test_fencing_ssh.py::"
_ROWS_SSH = "fencing/test_rows_ssh.py::"
_LOCAL = "fencing/test_fencing_local.py::"
_UNDONE = "open: nothing of ours shows yet that this weakness is gone"

ROWS: Final[dict[str, tuple[str, ...]]] = {
    "W1": (_FAILOVER + "test_a_breadcrumb_with_another_address_does_not_stop_a_takeover",),
    "W2": (_UNDONE,),
    "W3": (_LOCAL + "test_journal_epoch_fences_edits_and_proves_nothing_about_reads",),
    "W4": (
        _FAILOVER + "test_a_session_lost_during_the_promotion_does_not_make_two_actives",
        _HALF_WAY + "test_a_session_lost_while_fencing_is_noticed_and_the_fencing_stopped",
    ),
    "W5": (_HALF_WAY + "test_health_that_turns_bad_while_fencing_ends_the_takeover",),
    "W6": (_UNDONE,),
    "W7": (_UNDONE,),
    "W8": (_HANDOVER + "test_a_dead_third_controller_does_not_block_it",),
    "W9": (
        _HAADMIN
        + "test_a_controller_that_falls_silent_after_acting_is_a_success_when_it_can_be_seen",
        _HAADMIN + "test_a_controller_that_falls_silent_leaves_the_outcome_unknown",
    ),
    "W10": (
        _RUN + "test_the_deadline_kills_the_whole_process_group",
        _RUN + "test_the_total_limit_ends_the_later_methods",
        _SSH + "test_the_method_as_a_whole_has_a_limit",
        _ROWS_SSH + "test_w10_a_hung_method_leaves_the_rest_of_the_time_to_the_next",
    ),
    "W11": (
        _SSH + "test_every_usual_kind_of_key_gets_in",
        _SSH + "test_an_encrypted_key_opens_with_its_passphrase_file",
        _SSH + "test_an_unknown_host_key_is_refused_or_remembered",
        _SSH + "test_a_changed_host_key_is_refused",
        _ROWS_SSH + "test_w11_a_key_from_the_agent_only_if_that_is_configured",
    ),
    "W12": (
        _ROWS_SSH + "test_w12_neither_nc_nor_anything_else_to_look_with",
        _ROWS_SSH + "test_row_8_8_return_codes",
    ),
    "W13": ("fencing/test_rows_fencing.py::test_w13_a_comma_belongs_to_the_command",),
    "W14": (_FAILOVER + "test_a_stopped_controller_hands_over_politely",),
    "W15": (
        "cluster/test_metrics_pages.py::test_w15_a_scrape_says_what_the_logs_alone_said_in_hadoop",
        "cluster/test_metrics_pages.py::test_every_documented_metric_is_there_with_help_and_type",
    ),
    "W16": ("health/test_health_core.py::test_outcomes",),
    "W17": ("service/test_service_faces.py::test_silence_says_whether_anything_was_sent",),
    "W18": (_UNDONE,),
    "W19": (_UNDONE,),
    "W20": ("zkfc/test_rows_8_1.py::test_row_8_1_zookeeper_failure",),
    "W21": (_COMMAND + "test_format_and_its_codes", _HAADMIN + "test_forcemanual_warns_and_asks"),
    "W22": (_UNDONE,),
    "W23": (_UNDONE,),
    "W24": (_UNDONE,),
    "W25": (_UNDONE,),
    "W26": (_UNDONE,),
    "W27": (
        "elector/test_elector_transcripts.py::test_scenario",
        "zkfc/test_zkfc_core.py::test_joins_and_leaves_alternate_only_the_fit_join_and_nobody_is_forgotten",
    ),
}
