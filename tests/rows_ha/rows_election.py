"""Rows 8.1-8.5, 8.12 and 8.13: the controller, the elector, ZooKeeper and health."""

from typing import Final

_ROWS = "zkfc/test_rows_8_1.py::"
_STRESS = "zkfc/test_rows_8_2.py::"
_COMMAND = "zkfc/test_zkfc_command.py::"
_FAILOVER = "zkfc/test_zkfc_failover.py::"
_HANDOVER = "zkfc/test_zkfc_handover.py::"
_HALF_WAY = "zkfc/test_zkfc_half_way.py::"
_CORE = "elector/test_elector_core.py::"
_SAFETY = "elector/test_elector_safety.py::"
_REAL = "elector/test_elector_zookeeper.py::"
_BYTES = "elector/test_elector_bytes.py::"
_TRANSCRIPTS = "elector/test_elector_transcripts.py::"
_HEALTH = "health/test_health_monitor.py::"
_UNDONE = "open: no test of ours stands for this row yet"

ROWS: Final[dict[str, tuple[str, ...]]] = {
    # 8.1: the controller on a real ZooKeeper
    "8.1 testFormatZK": (_COMMAND + "test_format_and_its_codes",),
    "8.1 testNoZK": (_COMMAND + "test_codes_come_in_hadoops_order",),
    "8.1 testFormatOneClusterLeavesOtherClustersAlone": (_COMMAND + "test_format_and_its_codes",),
    "8.1 testWontRunWhenAutoFailoverDisabled": (_COMMAND + "test_codes_come_in_hadoops_order",),
    "8.1 testFormatSetsAcls": (_REAL + "test_format_sets_the_acl_and_strangers_see_nothing",),
    "8.1 testFencingMustBeConfigured": (_COMMAND + "test_codes_come_in_hadoops_order",),
    "8.1 testAutoFailoverOnBadHealth": (_ROWS + "test_row_8_1_auto_failover_on_bad_health",),
    "8.1 testAutoFailoverOnBadState": (_ROWS + "test_row_8_1_auto_failover_on_bad_state",),
    "8.1 testAutoFailoverOnLostZKSession": (_ROWS + "test_row_8_1_auto_failover_on_lost_session",),
    "8.1 testDontFailoverToUnhealthyNode": (_ROWS + "test_row_8_1_dont_failover_to_unhealthy",),
    "8.1 testBecomingActiveFails": (_ROWS + "test_row_8_1_becoming_active_fails",),
    "8.1 testZooKeeperFailure": (_ROWS + "test_row_8_1_zookeeper_failure",),
    "8.1 testCedeActive": (_ROWS + "test_row_8_1_cede_active",),
    "8.1 testGracefulFailover": (_ROWS + "test_row_8_1_graceful_failover",),
    "8.1 testGracefulFailoverToUnhealthy": (_ROWS + "test_row_8_1_graceful_failover_to_unhealthy",),
    "8.1 testGracefulFailoverFailBecomingActive": (
        _ROWS + "test_row_8_1_graceful_failover_fail_becoming_active",
    ),
    "8.1 testGracefulFailoverFailBecomingStandby": (
        _ROWS + "test_row_8_1_graceful_failover_fail_becoming_standby",
    ),
    "8.1 testGracefulFailoverFailBecomingStandbyAndFailFence": (
        _ROWS + "test_row_8_1_graceful_failover_fail_becoming_standby_and_fail_fence",
    ),
    "8.1 testOneOfEverything": (_ROWS + "test_row_8_1_one_of_everything",),
    "8.1 testGracefulFailoverMultipleZKfcs": (
        _ROWS + "test_row_8_1_graceful_failover_multiple_zkfcs",
    ),
    # 8.2: the same under stress
    "8.2 testExpireBackAndForth": (_STRESS + "test_row_8_2_expire_back_and_forth",),
    "8.2 testRandomExpirations": (_STRESS + "test_row_8_2_random_expirations",),
    "8.2 testRandomHealthAndDisconnects": (_STRESS + "test_row_8_2_random_health_and_disconnects",),
    # 8.3: the elector's core, one case of the event table for each answer
    "8.3 testJoinElectionException": (
        _CORE + "test_joining_without_data_is_a_mistake_of_the_caller",
    ),
    "8.3 testJoinElection": (_CORE + "test_event_table",),
    "8.3 testCreateNodeResultBecomeActive": (_CORE + "test_event_table",),
    "8.3 testFailToBecomeActive": (_REAL + "test_a_failed_takeover_leaves_the_election",),
    "8.3 testFailToBecomeActiveAfterZKDisconnect": (_TRANSCRIPTS + "test_scenario",),
    "8.3 testFencesOldActive": (_TRANSCRIPTS + "test_scenario",),
    "8.3 testQuitElectionRemovesBreadcrumbNode": (
        _CORE + "test_the_version_we_wrote_is_the_one_we_delete",
    ),
    "8.3 testCreateNodeResultBecomeStandby": (_CORE + "test_event_table",),
    "8.3 testCreateNodeResultError": (_CORE + "test_event_table",),
    "8.3 testCreateNodeResultRetryBecomeActive": (_TRANSCRIPTS + "test_scenario",),
    "8.3 testCreateNodeResultRetryBecomeStandby": (_CORE + "test_event_table",),
    "8.3 testCreateNodeResultRetryNoNode": (_CORE + "test_event_table",),
    "8.3 testStatNodeRetry": (_CORE + "test_event_table",),
    "8.3 testStatNodeError": (_CORE + "test_event_table",),
    "8.3 testProcessCallbackEventNone": (_CORE + "test_event_table",),
    "8.3 testProcessCallbackEventNode": (_CORE + "test_event_table",),
    "8.3 testSuccessiveStandbyCalls": (_CORE + "test_event_table",),
    "8.3 testQuitElection": (
        _CORE + "test_quitting_and_joining_again_uses_a_new_session_and_attempt",
    ),
    "8.3 testGetActiveData": (_REAL + "test_who_is_active_is_read_from_the_lock",),
    "8.3 testEnsureBaseNode": (
        _REAL + "test_an_existing_parent_gets_our_acl_and_the_one_above_keeps_its_own",
    ),
    "8.3 testParentZNodeACLs": (
        _REAL + "test_an_existing_parent_gets_our_acl_and_the_one_above_keeps_its_own",
    ),
    "8.3 testEnsureBaseNodeFails": (_UNDONE,),
    "8.3 testWithoutZKServer": (_REAL + "test_no_server_is_told_within_the_deadline",),
    "8.3 testBecomeActiveBeforeServiceHealthy": (_CORE + "test_event_table",),
    # 8.4: electors on a real server
    "8.4 testActiveStandbyTransition": (_REAL + "test_active_and_standby_change_places",),
    "8.4 testHandleSessionExpiration": (
        _REAL + "test_an_expired_session_reports_that_once_and_is_over",
        _REAL + "test_after_quitting_there_is_no_lock_and_nobody_returns",
    ),
    "8.4 testHandleSessionExpirationOfStandby": (_UNDONE,),
    "8.4 testDontJoinElectionOnDisconnectAndReconnect": (_UNDONE,),
    "8.4 testSetZooKeeperACLsOnParentZnodeName": (_UNDONE,),
    # 8.5: health
    "8.5 testMonitor": (_HEALTH + "test_states_follow_the_switches",),
    "8.5 testHealthMonitorDies": (_UNDONE,),
    "8.5 testCallbackThrowsRTE": (_UNDONE,),
    # 8.12: ACL and auth
    "8.12 empty-ACL": (_BYTES + "test_acls",),
    "8.12 null-ACL": (_BYTES + "test_acls",),
    "8.12 ACL-without-two-colons": (_BYTES + "test_bad_acls_name_the_item",),
    "8.12 ACL-with-a-bad-letter": (_BYTES + "test_bad_acls_name_the_item",),
    "8.12 two-SASL-ACLs": (_BYTES + "test_acls",),
    "8.12 remove-permissions": (
        "n/a: the helper serves YARN's ResourceManager only; the failover controller never takes "
        "permissions away from an ACL",
    ),
    "8.12 empty-auth": (_BYTES + "test_auth_splits_at_the_first_colon_only",),
    "8.12 null-auth": (_BYTES + "test_auth_splits_at_the_first_colon_only",),
    "8.12 good-auth": (_BYTES + "test_auth_splits_at_the_first_colon_only",),
    "8.12 indirection-none": (_UNDONE,),
    "8.12 indirection-plain": (_UNDONE,),
    "8.12 indirection-file": (_UNDONE,),
    "8.12 indirection-missing-file": (_UNDONE,),
    # 8.13: what upstream lacks
    "8.13 1": (_FAILOVER + "test_a_breadcrumb_with_another_address_does_not_stop_a_takeover",),
    "8.13 2": (_FAILOVER + "test_a_session_lost_during_the_promotion_does_not_make_two_actives",),
    "8.13 3": (_HALF_WAY + "test_a_session_lost_while_fencing_is_noticed_and_the_fencing_stopped",),
    "8.13 4": (_HALF_WAY + "test_health_that_turns_bad_while_fencing_ends_the_takeover",),
    "8.13 5": (_UNDONE,),
    "8.13 6": (_UNDONE,),
    "8.13 7": (_HANDOVER + "test_a_dead_third_controller_does_not_block_it",),
    "8.13 8": (_UNDONE,),
    "8.13 9": ("fencing/test_fencing_run.py::test_the_deadline_kills_the_whole_process_group",),
    "8.13 10": (_FAILOVER + "test_a_stopped_controller_hands_over_politely",),
    "8.13 11": (_UNDONE,),
    "8.13 12": (_CORE + "test_event_table", _TRANSCRIPTS + "test_scenario"),
    "8.13 13": (_REAL + "test_looking_often_leaves_one_watch",),
    "8.13 14": (_UNDONE,),
    "8.13 15": ("service/test_service_faces.py::test_javas_minus_one_is_understood",),
    "8.13 16": (_BYTES + "test_the_golden_vector_reads_and_writes_back",),
    "8.13 17": (_UNDONE,),
    "8.13 18": (_HALF_WAY + "test_a_namenode_that_was_restarted_unnoticed_is_elected_again",),
    "8.13 19": (_UNDONE,),
    "8.13 20": (_UNDONE,),
}
