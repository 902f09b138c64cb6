"""Rows 8.6-8.11: failover by hand, fencing, haadmin, and real NameNodes."""

from typing import Final

_FAILOVER_BY_HAND = "ha/cli/test_failover_by_hand.py::"
_ROWS_HAADMIN = "ha/cli/test_rows_haadmin.py::"
_ROWS_NAMENODES = "ha/cli/test_rows_namenodes.py::"
_CLUSTER = "cluster/test_cluster.py::"
_FENCING_SPEC = "fencing/test_spec.py::"
_ROWS_FENCING = "fencing/test_rows_fencing.py::"
_ROWS_SSH = "fencing/test_rows_ssh.py::"
_INTEROP_HAADMIN = "interop/test_haadmin.py::"
_ROWS_8_1 = "ha/zkfc/test_rows_8_1.py::"
_ROWS_BIND = "ha/zkfc/test_rows_bind.py::"
_ZKFC_NOTICES = "ha/zkfc/test_notices.py::"
_ZKFC_THREAD_DUMP = "ha/zkfc/test_thread_dump.py::"
_REASON_1 = (
    "n/a: our NameNode has no observer role; transitionToObserver is refused and "
    "changes nothing (the controller's side of observers is in 8.1 and W25)"
)

ROWS: Final[dict[str, tuple[str, ...]]] = {
    # 8.6: failover without controllers
    "8.6 testFailoverAndFailback": (_FAILOVER_BY_HAND + "test_failover_and_failback",),
    "8.6 testFailoverFromStandbyToStandby": (
        _FAILOVER_BY_HAND + "test_failover_from_standby_to_standby",
    ),
    "8.6 testFailoverFromActiveToActive": (
        _FAILOVER_BY_HAND + "test_failover_from_active_to_active",
    ),
    "8.6 testFailoverWithoutPermission": (_FAILOVER_BY_HAND + "test_failover_without_permission",),
    "8.6 testFailoverToUnreadyService": (_FAILOVER_BY_HAND + "test_failover_to_unready_service",),
    "8.6 testFailoverToUnhealthyServiceFailsAndFailsback": (
        _FAILOVER_BY_HAND + "test_failover_to_unhealthy_service_fails_and_fails_back",
    ),
    "8.6 testFailoverFromFaultyServiceSucceeds": (
        _FAILOVER_BY_HAND + "test_failover_from_faulty_service_succeeds",
    ),
    "8.6 testFailoverFromFaultyServiceFencingFailure": (
        _FAILOVER_BY_HAND + "test_failover_from_faulty_service_fencing_failure",
    ),
    "8.6 testFencingFailureDuringFailover": (
        _FAILOVER_BY_HAND + "test_fencing_failure_during_failover",
    ),
    "8.6 testFailoverFromNonExistantServiceWithFencer": (
        _FAILOVER_BY_HAND + "test_failover_from_non_existent_service_with_fencer",
        _ROWS_HAADMIN + "test_row_8_6_a_frozen_service_is_asked_for_so_long_only_and_then_fenced",
    ),
    "8.6 testFailoverToNonExistantServiceFails": (
        _FAILOVER_BY_HAND + "test_failover_to_non_existent_service_fails",
    ),
    "8.6 testFailoverToFaultyServiceFailsbackOK": (
        _FAILOVER_BY_HAND + "test_failover_to_faulty_service_fails_back_ok",
    ),
    "8.6 testWeDontFailbackIfActiveWasFenced": (
        _FAILOVER_BY_HAND + "test_we_dont_fail_back_if_active_was_fenced",
    ),
    "8.6 testWeFenceOnFailbackIfTransitionToActiveFails": (
        _FAILOVER_BY_HAND + "test_we_fence_on_failback_if_transition_to_active_fails",
    ),
    "8.6 testFailureToFenceOnFailbackFailsTheFailback": (
        _FAILOVER_BY_HAND + "test_failure_to_fence_on_failback_fails_the_failback",
    ),
    "8.6 testFailbackToFaultyServiceFails": (
        _FAILOVER_BY_HAND + "test_failback_to_faulty_service_fails",
    ),
    "8.6 testSelfFailoverFails": (_FAILOVER_BY_HAND + "test_self_failover_fails",),
    # 8.7: the order of methods
    "8.7 testSingleFencer": (_ROWS_FENCING + "test_row_8_7_single_fencer",),
    "8.7 testMultipleFencers": (_ROWS_FENCING + "test_row_8_7_multiple_fencers",),
    "8.7 testWhitespaceAndCommentsInConfig": (
        _ROWS_FENCING + "test_row_8_7_whitespace_and_comments_in_config",
    ),
    "8.7 testArglessFencer": (_ROWS_FENCING + "test_row_8_7_argless_fencer",),
    "8.7 testShortNameShell": (_ROWS_FENCING + "test_row_8_7_short_name_shell",),
    "8.7 testShortNameSsh": (_ROWS_FENCING + "test_row_8_7_short_name_ssh",),
    "8.7 testShortNameSshWithUser": (_ROWS_FENCING + "test_row_8_7_short_name_ssh",),
    "8.7 testShortNameSshWithPort": (_ROWS_FENCING + "test_row_8_7_short_name_ssh",),
    "8.7 testShortNameSshWithUserPort": (_ROWS_FENCING + "test_row_8_7_short_name_ssh",),
    # 8.8: sshfence
    "8.8 testFence": (_ROWS_SSH + "test_row_8_8_fence",),
    "8.8 testConnectTimeout": (_ROWS_SSH + "test_row_8_8_connect_timeout",),
    "8.8 testArgsParsing": (_FENCING_SPEC + "test_parses",),
    "8.8 testBadArgsParsing": (_FENCING_SPEC + "test_refuses",),
    "8.8 fuser0": (_ROWS_SSH + "test_row_8_8_return_codes",),
    "8.8 fuser1-nc0": (_ROWS_SSH + "test_row_8_8_return_codes",),
    "8.8 fuser1-nc1": (_ROWS_SSH + "test_row_8_8_return_codes",),
    "8.8 fuser1-nc127": (_ROWS_SSH + "test_row_8_8_return_codes",),
    "8.8 fuser2": (_ROWS_SSH + "test_row_8_8_return_codes",),
    "8.8 hang": (_ROWS_SSH + "test_row_8_8_hang",),
    "8.8 key-refused": (_ROWS_SSH + "test_row_8_8_key_refused",),
    # 8.9: shell
    "8.9 testBasicSuccessFailure": (_ROWS_FENCING + "test_row_8_9_basic_success_failure",),
    "8.9 testCheckNoArgs": (_ROWS_FENCING + "test_row_8_9_check_no_args",),
    "8.9 testCheckParensNoArgs": (_ROWS_FENCING + "test_row_8_9_check_parens_no_args",),
    "8.9 testStdoutLogging": (_ROWS_FENCING + "test_row_8_9_stdout_and_stderr_logging",),
    "8.9 testStderrLogging": (_ROWS_FENCING + "test_row_8_9_stdout_and_stderr_logging",),
    "8.9 testConfAsEnvironment": (_ROWS_FENCING + "test_row_8_9_conf_as_environment",),
    "8.9 testTargetAsEnvironment": (_ROWS_FENCING + "test_row_8_9_target_as_environment",),
    "8.9 testSubprocessInputIsClosed": (_ROWS_FENCING + "test_row_8_9_subprocess_input_is_closed",),
    "8.9 testCommandAbbreviation": (_ROWS_FENCING + "test_row_8_9_command_abbreviation",),
    "8.9 testEnvironmentWithPeer": (
        (
            "n/a: no command is split at its commas (W13), so there is no second, "
            "source-side script; the old active is always target_*"
        ),
    ),
    # 8.10: haadmin
    "8.10 testAdminUsage": (_ROWS_HAADMIN + "test_row_8_10_admin_usage",),
    "8.10 testHelp": (_ROWS_HAADMIN + "test_row_8_10_help",),
    "8.10 testNameserviceOption": (_ROWS_HAADMIN + "test_row_8_10_nameservice_option",),
    "8.10 testNamenodeResolution": (_ROWS_HAADMIN + "test_row_8_10_namenode_resolution",),
    "8.10 testGetAllServiceState": (_ROWS_HAADMIN + "test_row_8_10_get_all_service_state",),
    "8.10 testTransitionToActive": (_ROWS_HAADMIN + "test_row_8_10_transition_to_active",),
    "8.10 testMutativeOperationsWithAutoHaEnabled": (
        _ROWS_HAADMIN + "test_row_8_10_mutative_operations_with_auto_ha_enabled",
    ),
    "8.10 testMonitoringOperationsWithAutoHaEnabled": (
        _ROWS_HAADMIN + "test_row_8_10_monitoring_operations_with_auto_ha_enabled",
    ),
    "8.10 testTransitionToStandby": (_ROWS_HAADMIN + "test_row_8_10_transition_to_standby",),
    "8.10 testFailoverWithNoFencerConfigured": (
        _ROWS_HAADMIN + "test_row_8_10_failover_with_no_fencer_configured",
    ),
    "8.10 testFailoverWithFencerConfigured": (_ROWS_HAADMIN + "test_row_8_10_with_a_fencer",),
    "8.10 testFailoverWithFencerAndNameservice": (_ROWS_HAADMIN + "test_row_8_10_with_a_fencer",),
    "8.10 testFailoverWithFencerConfiguredAndForce": (
        _ROWS_HAADMIN + "test_row_8_10_with_a_fencer",
    ),
    "8.10 testFailoverWithForceActive": (_ROWS_HAADMIN + "test_row_8_10_with_a_fencer",),
    "8.10 testFailoverWithInvalidFenceArg": (_ROWS_HAADMIN + "test_row_8_10_refused",),
    "8.10 testFailoverWithFenceButNoFencer": (_ROWS_HAADMIN + "test_row_8_10_refused",),
    "8.10 testFailoverWithFenceAndBadFencer": (_ROWS_HAADMIN + "test_row_8_10_refused",),
    "8.10 testFailoverWithAutoHa": (_ROWS_HAADMIN + "test_row_8_10_failover_with_auto_ha",),
    "8.10 testForceFenceOptionListedBeforeArgs": (_ROWS_HAADMIN + "test_row_8_10_with_a_fencer",),
    "8.10 testGetServiceStatus": (_ROWS_HAADMIN + "test_row_8_10_get_service_status",),
    "8.10 testCheckHealth": (_ROWS_HAADMIN + "test_row_8_10_check_health",),
    "8.10 testFencingConfigPerNameNode": (
        _ROWS_HAADMIN + "test_row_8_10_fencing_config_per_name_node",
    ),
    # 8.11: real NameNodes
    "8.11 MC.testGetServiceState": (_ROWS_NAMENODES + "test_row_8_11_mc_get_service_state",),
    "8.11 MC.testStateTransition": (_ROWS_NAMENODES + "test_row_8_11_mc_state_transition",),
    "8.11 MC.testTryFailoverToSafeMode": (
        _ROWS_NAMENODES + "test_row_8_11_mc_try_failover_to_one_that_is_not_ready",
    ),
    "8.11 MC.testFencer": (_ROWS_NAMENODES + "test_row_8_11_mc_fencer",),
    "8.11 MC.testCheckHealth": (_ROWS_NAMENODES + "test_row_8_11_mc_check_health",),
    "8.11 MC.testTransitionToActiveWhenOtherNamenodeisActive": (
        _ROWS_NAMENODES + "test_row_8_11_mc_transition_to_active_when_other_namenode_is_active",
    ),
    "8.11 MC.testObserverTransition": (
        _ROWS_NAMENODES + "test_row_8_11_mc_observer_is_refused_and_changes_nothing",
    ),
    "8.11 MC.testObserverIllegalTransition": (
        _ROWS_NAMENODES + "test_row_8_11_mc_observer_is_refused_and_changes_nothing",
    ),
    "8.11 MC.safemode-and-observer": (_REASON_1,),
    "8.11 ZK.testThreadDumpCaptureAfterNNStateChange": (
        _ZKFC_THREAD_DUMP + "test_row_8_11_zk_thread_dump_capture_after_nn_state_change",
    ),
    "8.11 ZK.testFailoverAndBackOnNNShutdown": (
        _CLUSTER + "test_a_killed_active_is_replaced_and_nothing_acknowledged_is_missing",
        _ROWS_8_1 + "test_row_8_1_auto_failover_on_bad_health",
    ),
    "8.11 ZK.testManualFailover": (_ROWS_8_1 + "test_row_8_1_graceful_failover",),
    "8.11 ZK.testManualFailoverWithDFSHAAdmin": (
        _CLUSTER + "test_a_failover_on_request_goes_back_and_forth",
        _INTEROP_HAADMIN + "test_the_same_to_the_last_byte",
    ),
    "8.11 ZK.testWithoutBindAddressSet": (_ROWS_BIND + "test_row_8_11_zk_bind_address",),
    "8.11 ZK.testWithBindAddressSet": (_ROWS_BIND + "test_row_8_11_zk_bind_address",),
    "8.11 ZK.TestDFSZKFCRespectsBindHostKeys": (_ROWS_BIND + "test_row_8_11_zk_bind_address",),
    "8.11 ZK.testObserverRejectZkfcCall": (_REASON_1,),
    "8.11 ZK.testElectionOnObserver": (_ZKFC_NOTICES + "test_row_8_11_zk_election_on_observer",),
    "8.11 ZK.testZFFCStartsWithCredentialProviderReferencingHDFS": (
        (
            "n/a: Java credential providers are not read; a secret stands in the "
            "configuration or in a file that @ names"
        ),
    ),
    "8.11 HC.testNNHealthCheck": (_ROWS_NAMENODES + "test_row_8_11_hc_nn_health_check",),
    "8.11 HC.testNNHealthCheckWithLifelineAddress": (
        _ROWS_NAMENODES + "test_row_8_11_hc_nn_health_check",
    ),
    "8.11 HC.testNNHealthCheckWithSafemodeAsUnhealthy": (
        (
            "n/a: our NameNode has no safe mode: it holds no blocks to wait for; one that "
            "has not read the journal is not ready instead (MC.testTryFailoverToSafeMode)"
        ),
    ),
    "8.11 HC.testNNHAServiceTargetWithProvidedAddr": (
        ("n/a: a Java constructor's arguments; our addresses come from the configuration only"),
    ),
}
