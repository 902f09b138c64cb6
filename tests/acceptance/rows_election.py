"""Rows 8.1-8.5, 8.12 and 8.13: the controller, the elector, ZooKeeper and health."""

from typing import Final

_ELECTOR_ENSEMBLE = "ha/elector/test_ensemble.py::"
_ELECTOR_JAVA = "ha/elector/test_java.py::"
_ELECTOR_ZOOKEEPER = "ha/elector/test_zookeeper.py::"
_ROWS_8_12 = "ha/elector/test_rows_8_12.py::"
_ROWS_8_3 = "ha/elector/test_rows_8_3.py::"
_ROWS_8_4 = "ha/elector/test_rows_8_4.py::"
_FENCING_RUN = "fencing/test_run.py::"
_HEALTH_MONITOR = "ha/health/test_monitor.py::"
_ROWS_8_1 = "ha/zkfc/test_rows_8_1.py::"
_ROWS_8_2 = "ha/zkfc/test_rows_8_2.py::"
_ZKFC_COMMAND = "ha/zkfc/test_command.py::"
_ZKFC_FAILOVER = "ha/zkfc/test_failover.py::"
_ZKFC_HALF_WAY = "ha/zkfc/test_half_way.py::"
_ZKFC_HANDOVER = "ha/zkfc/test_handover.py::"
_ZKFC_STOP = "ha/zkfc/test_stop.py::"
_ZKFC_THREAD_DUMP = "ha/zkfc/test_thread_dump.py::"
_ZKFC_WEAKNESSES = "ha/zkfc/test_weaknesses.py::"

ROWS: Final[dict[str, tuple[str, ...]]] = {
    # 8.1: the controller on a real ZooKeeper
    "8.1 testFormatZK": (_ZKFC_COMMAND + "test_format_and_its_codes",),
    "8.1 testNoZK": (_ZKFC_COMMAND + "test_codes_come_in_hadoops_order",),
    "8.1 testFormatOneClusterLeavesOtherClustersAlone": (
        _ZKFC_COMMAND + "test_format_and_its_codes",
    ),
    "8.1 testWontRunWhenAutoFailoverDisabled": (
        _ZKFC_COMMAND + "test_codes_come_in_hadoops_order",
    ),
    "8.1 testFormatSetsAcls": (
        _ELECTOR_ZOOKEEPER + "test_format_sets_the_acl_and_strangers_see_nothing",
    ),
    "8.1 testFencingMustBeConfigured": (_ZKFC_COMMAND + "test_codes_come_in_hadoops_order",),
    "8.1 testAutoFailoverOnBadHealth": (_ROWS_8_1 + "test_row_8_1_auto_failover_on_bad_health",),
    "8.1 testAutoFailoverOnBadState": (_ROWS_8_1 + "test_row_8_1_auto_failover_on_bad_state",),
    "8.1 testAutoFailoverOnLostZKSession": (
        _ROWS_8_1 + "test_row_8_1_auto_failover_on_lost_session",
    ),
    "8.1 testDontFailoverToUnhealthyNode": (_ROWS_8_1 + "test_row_8_1_dont_failover_to_unhealthy",),
    "8.1 testBecomingActiveFails": (_ROWS_8_1 + "test_row_8_1_becoming_active_fails",),
    "8.1 testZooKeeperFailure": (_ROWS_8_1 + "test_row_8_1_zookeeper_failure",),
    "8.1 testCedeActive": (_ROWS_8_1 + "test_row_8_1_cede_active",),
    "8.1 testGracefulFailover": (_ROWS_8_1 + "test_row_8_1_graceful_failover",),
    "8.1 testGracefulFailoverToUnhealthy": (
        _ROWS_8_1 + "test_row_8_1_graceful_failover_to_unhealthy",
    ),
    "8.1 testGracefulFailoverFailBecomingActive": (
        _ROWS_8_1 + "test_row_8_1_graceful_failover_fail_becoming_active",
    ),
    "8.1 testGracefulFailoverFailBecomingStandby": (
        _ROWS_8_1 + "test_row_8_1_graceful_failover_fail_becoming_standby",
    ),
    "8.1 testGracefulFailoverFailBecomingStandbyAndFailFence": (
        _ROWS_8_1 + "test_row_8_1_graceful_failover_fail_becoming_standby_and_fail_fence",
    ),
    "8.1 testOneOfEverything": (_ROWS_8_1 + "test_row_8_1_one_of_everything",),
    "8.1 testGracefulFailoverMultipleZKfcs": (
        _ROWS_8_1 + "test_row_8_1_graceful_failover_multiple_zkfcs",
    ),
    # 8.2: the same under stress
    "8.2 testExpireBackAndForth": (_ROWS_8_2 + "test_row_8_2_expire_back_and_forth",),
    "8.2 testRandomExpirations": (_ROWS_8_2 + "test_row_8_2_random_expirations",),
    "8.2 testRandomHealthAndDisconnects": (
        _ROWS_8_2 + "test_row_8_2_random_health_and_disconnects",
    ),
    # 8.3: the elector's rules
    "8.3 testJoinElectionException": (_ROWS_8_3 + "test_row_8_3_join_election_exception",),
    "8.3 testJoinElection": (_ROWS_8_3 + "test_row_8_3_join_election",),
    "8.3 testCreateNodeResultBecomeActive": (
        _ROWS_8_3 + "test_row_8_3_create_node_result_become_active",
    ),
    "8.3 testFailToBecomeActive": (_ROWS_8_3 + "test_row_8_3_fail_to_become_active",),
    "8.3 testFailToBecomeActiveAfterZKDisconnect": (
        _ROWS_8_3 + "test_row_8_3_fail_to_become_active_after_zk_disconnect",
    ),
    "8.3 testFencesOldActive": (_ROWS_8_3 + "test_row_8_3_fences_old_active",),
    "8.3 testQuitElectionRemovesBreadcrumbNode": (
        _ROWS_8_3 + "test_row_8_3_quit_election_removes_breadcrumb_node",
    ),
    "8.3 testCreateNodeResultBecomeStandby": (
        _ROWS_8_3 + "test_row_8_3_create_node_result_become_standby",
    ),
    "8.3 testCreateNodeResultError": (_ROWS_8_3 + "test_row_8_3_create_node_result_error",),
    "8.3 testCreateNodeResultRetryBecomeActive": (
        _ROWS_8_3 + "test_row_8_3_create_node_result_retry_become_active",
    ),
    "8.3 testCreateNodeResultRetryBecomeStandby": (
        _ROWS_8_3 + "test_row_8_3_create_node_result_retry_become_standby",
    ),
    "8.3 testCreateNodeResultRetryNoNode": (
        _ROWS_8_3 + "test_row_8_3_create_node_result_retry_no_node",
    ),
    "8.3 testStatNodeRetry": (_ROWS_8_3 + "test_row_8_3_stat_node_retry",),
    "8.3 testStatNodeError": (_ROWS_8_3 + "test_row_8_3_stat_node_error",),
    "8.3 testProcessCallbackEventNone": (_ROWS_8_3 + "test_row_8_3_process_callback_event_none",),
    "8.3 testProcessCallbackEventNode": (_ROWS_8_3 + "test_row_8_3_process_callback_event_node",),
    "8.3 testSuccessiveStandbyCalls": (_ROWS_8_3 + "test_row_8_3_successive_standby_calls",),
    "8.3 testQuitElection": (_ROWS_8_3 + "test_row_8_3_quit_election",),
    "8.3 testGetActiveData": (_ROWS_8_4 + "test_row_8_3_get_active_data",),
    "8.3 testEnsureBaseNode": (_ROWS_8_4 + "test_row_8_3_ensure_base_node",),
    "8.3 testParentZNodeACLs": (_ROWS_8_4 + "test_row_8_3_parent_znode_acls",),
    "8.3 testEnsureBaseNodeFails": (_ROWS_8_4 + "test_row_8_3_ensure_base_node_fails",),
    "8.3 testWithoutZKServer": (_ROWS_8_4 + "test_row_8_3_without_zk_server",),
    "8.3 testBecomeActiveBeforeServiceHealthy": (
        _ROWS_8_3 + "test_row_8_3_become_active_before_service_healthy",
    ),
    # 8.4: electors on a real server
    "8.4 testActiveStandbyTransition": (_ROWS_8_4 + "test_row_8_4_active_standby_transition",),
    "8.4 testHandleSessionExpiration": (_ROWS_8_4 + "test_row_8_4_handle_session_expiration",),
    "8.4 testHandleSessionExpirationOfStandby": (
        _ROWS_8_4 + "test_row_8_4_handle_session_expiration_of_standby",
    ),
    "8.4 testDontJoinElectionOnDisconnectAndReconnect": (
        _ROWS_8_4 + "test_row_8_4_dont_join_election_on_disconnect_and_reconnect",
    ),
    "8.4 testSetZooKeeperACLsOnParentZnodeName": (
        _ROWS_8_4 + "test_row_8_4_set_zookeeper_acls_on_parent_znode_name",
    ),
    # 8.5: health
    "8.5 testMonitor": (_HEALTH_MONITOR + "test_row_8_5_monitor",),
    "8.5 testHealthMonitorDies": (
        _HEALTH_MONITOR + "test_row_8_5_a_monitor_that_dies_says_so_and_ends",
    ),
    "8.5 testCallbackThrowsRTE": (
        _HEALTH_MONITOR + "test_row_8_5_a_monitor_that_dies_says_so_and_ends",
    ),
    # 8.12: ACL and auth
    "8.12 empty-ACL": (_ROWS_8_12 + "test_row_8_12_empty_acl",),
    "8.12 null-ACL": (_ROWS_8_12 + "test_row_8_12_null_acl",),
    "8.12 ACL-without-two-colons": (_ROWS_8_12 + "test_row_8_12_acl_without_two_colons",),
    "8.12 ACL-with-a-bad-letter": (_ROWS_8_12 + "test_row_8_12_acl_with_a_bad_letter",),
    "8.12 two-SASL-ACLs": (_ROWS_8_12 + "test_row_8_12_two_sasl_acls",),
    "8.12 remove-permissions": (
        (
            "n/a: the helper serves YARN's ResourceManager only; the failover controller "
            "never takes permissions away from an ACL"
        ),
    ),
    "8.12 empty-auth": (_ROWS_8_12 + "test_row_8_12_empty_auth",),
    "8.12 null-auth": (_ROWS_8_12 + "test_row_8_12_null_auth",),
    "8.12 good-auth": (_ROWS_8_12 + "test_row_8_12_good_auth",),
    "8.12 indirection-none": (_ROWS_8_12 + "test_row_8_12_indirection_none",),
    "8.12 indirection-plain": (_ROWS_8_12 + "test_row_8_12_indirection_plain",),
    "8.12 indirection-file": (_ROWS_8_12 + "test_row_8_12_indirection_file",),
    "8.12 indirection-missing-file": (_ROWS_8_12 + "test_row_8_12_indirection_missing_file",),
    # 8.13: what upstream lacks
    "8.13 1": (
        _ZKFC_FAILOVER
        + "test_w1_8_13_1_a_breadcrumb_with_another_address_does_not_stop_a_takeover",
    ),
    "8.13 2": (
        _ZKFC_FAILOVER
        + "test_w4_8_13_2_a_session_lost_during_the_promotion_does_not_make_two_actives",
    ),
    "8.13 3": (
        _ZKFC_HALF_WAY
        + "test_w4_8_13_3_a_session_lost_while_fencing_is_noticed_and_the_fencing_stopped",
    ),
    "8.13 4": (
        _ZKFC_HALF_WAY + "test_w5_8_13_4_health_that_turns_bad_while_fencing_ends_the_takeover",
    ),
    "8.13 5": (_ZKFC_THREAD_DUMP + "test_8_13_5_hung_stacks_are_given_up_and_only_warned_of",),
    "8.13 6": (
        _ZKFC_WEAKNESSES
        + "test_w7_8_13_6_an_election_that_is_over_before_the_cede_is_answered_counts",
        _ZKFC_WEAKNESSES + "test_8_13_6_a_record_older_than_the_request_is_no_answer_to_it",
    ),
    "8.13 7": (_ZKFC_HANDOVER + "test_w8_8_13_7_a_dead_third_controller_does_not_block_it",),
    "8.13 8": (
        _ZKFC_WEAKNESSES + "test_w8_8_13_8_an_error_at_the_release_leaves_a_success_a_success",
    ),
    "8.13 9": (_FENCING_RUN + "test_the_deadline_kills_the_whole_process_group",),
    "8.13 10": (_ZKFC_STOP + "test_w14_8_13_10_sigterm_hands_over_first",),
    "8.13 11": (
        _ROWS_8_4 + "test_8_13_11_a_breadcrumb_that_changed_hands_is_not_deleted",
        _ROWS_8_4 + "test_8_13_11_a_breadcrumb_whose_deletion_is_lost_only_costs_a_fence",
    ),
    "8.13 12": (
        _ROWS_8_3 + "test_8_13_12_node_exists_after_a_lost_create_is_settled_by_the_owner",
        _ROWS_8_4 + "test_8_13_12_a_create_whose_answer_was_lost_is_found_to_be_ours",
    ),
    "8.13 13": (_ROWS_8_4 + "test_8_13_13_each_reconnect_arms_exactly_one_watch",),
    "8.13 14": (
        _ZKFC_WEAKNESSES + "test_8_13_14_a_promotion_that_succeeds_late_ends_with_a_polite_request",
        _ZKFC_WEAKNESSES + "test_8_13_14_a_promotion_that_succeeds_after_the_fencing_is_undone",
    ),
    "8.13 15": (_ZKFC_WEAKNESSES + "test_8_13_15_javas_minus_one_lets_a_controller_come_back",),
    "8.13 16": (
        _ELECTOR_JAVA + "test_8_13_16_each_takes_over_from_the_other",
        _ELECTOR_JAVA + "test_8_13_16_a_clean_quit_leaves_nothing_to_fence_either_way",
        _ELECTOR_JAVA + "test_8_13_16_a_session_that_ends_hands_over_either_way",
        _ELECTOR_JAVA + "test_8_13_16_java_fails_to_serve_and_we_take_over",
        _ELECTOR_JAVA + "test_8_13_16_java_clears_what_we_have_formatted",
    ),
    "8.13 17": (
        _ELECTOR_ENSEMBLE + "test_8_13_17_majority_lost_for_longer_than_a_session_and_back",
    ),
    "8.13 18": (
        _ZKFC_HALF_WAY + "test_8_13_18_a_namenode_that_was_restarted_unnoticed_is_elected_again",
    ),
    "8.13 19": (
        _ZKFC_WEAKNESSES
        + "test_8_13_19_a_fence_that_lies_leaves_the_old_active_to_its_own_controller",
    ),
    "8.13 20": (
        _ROWS_8_4 + "test_8_13_20_clocks_that_jump_move_nobody",
        _ZKFC_WEAKNESSES + "test_8_13_20_a_clock_that_jumps_changes_no_delay",
    ),
}
