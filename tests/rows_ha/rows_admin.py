"""Rows 8.6-8.11: failover by hand, fencing, haadmin, and real NameNodes."""

from typing import Final

_BY_HAND = "cli/test_failover_by_hand.py::"
_HAADMIN = "cli/test_rows_haadmin.py::"
_SPEC = "fencing/test_fencing_spec.py::"
_FENCING = "fencing/test_rows_fencing.py::"
_ROWS_SSH = "fencing/test_rows_ssh.py::"
_UNDONE = "open: no test of ours stands for this row yet"
_NO_OBSERVER = (
    "n/a: our NameNode has no observer role; transitionToObserver is refused and changes nothing "
    "(the controller's side of observers is in 8.1 and W25)"
)

ROWS: Final[dict[str, tuple[str, ...]]] = {
    # 8.6: failover without controllers
    "8.6 testFailoverAndFailback": (_BY_HAND + "test_failover_and_failback",),
    "8.6 testFailoverFromStandbyToStandby": (_BY_HAND + "test_failover_from_standby_to_standby",),
    "8.6 testFailoverFromActiveToActive": (_BY_HAND + "test_failover_from_active_to_active",),
    "8.6 testFailoverWithoutPermission": (_BY_HAND + "test_failover_without_permission",),
    "8.6 testFailoverToUnreadyService": (_BY_HAND + "test_failover_to_unready_service",),
    "8.6 testFailoverToUnhealthyServiceFailsAndFailsback": (
        _BY_HAND + "test_failover_to_unhealthy_service_fails_and_fails_back",
    ),
    "8.6 testFailoverFromFaultyServiceSucceeds": (
        _BY_HAND + "test_failover_from_faulty_service_succeeds",
    ),
    "8.6 testFailoverFromFaultyServiceFencingFailure": (
        _BY_HAND + "test_failover_from_faulty_service_fencing_failure",
    ),
    "8.6 testFencingFailureDuringFailover": (_BY_HAND + "test_fencing_failure_during_failover",),
    "8.6 testFailoverFromNonExistantServiceWithFencer": (
        _BY_HAND + "test_failover_from_non_existent_service_with_fencer",
    ),
    "8.6 testFailoverToNonExistantServiceFails": (
        _BY_HAND + "test_failover_to_non_existent_service_fails",
    ),
    "8.6 testFailoverToFaultyServiceFailsbackOK": (
        _BY_HAND + "test_failover_to_faulty_service_fails_back_ok",
    ),
    "8.6 testWeDontFailbackIfActiveWasFenced": (
        _BY_HAND + "test_we_dont_fail_back_if_active_was_fenced",
    ),
    "8.6 testWeFenceOnFailbackIfTransitionToActiveFails": (
        _BY_HAND + "test_we_fence_on_failback_if_transition_to_active_fails",
    ),
    "8.6 testFailureToFenceOnFailbackFailsTheFailback": (
        _BY_HAND + "test_failure_to_fence_on_failback_fails_the_failback",
    ),
    "8.6 testFailbackToFaultyServiceFails": (_BY_HAND + "test_failback_to_faulty_service_fails",),
    "8.6 testSelfFailoverFails": (_BY_HAND + "test_self_failover_fails",),
    # 8.7: the order of methods
    "8.7 testSingleFencer": (_FENCING + "test_row_8_7_single_fencer",),
    "8.7 testMultipleFencers": (_FENCING + "test_row_8_7_multiple_fencers",),
    "8.7 testWhitespaceAndCommentsInConfig": (
        _FENCING + "test_row_8_7_whitespace_and_comments_in_config",
    ),
    "8.7 testArglessFencer": (_FENCING + "test_row_8_7_argless_fencer",),
    "8.7 testShortNameShell": (_FENCING + "test_row_8_7_short_name_shell",),
    "8.7 testShortNameSsh": (_FENCING + "test_row_8_7_short_name_ssh",),
    "8.7 testShortNameSshWithUser": (_FENCING + "test_row_8_7_short_name_ssh",),
    "8.7 testShortNameSshWithPort": (_FENCING + "test_row_8_7_short_name_ssh",),
    "8.7 testShortNameSshWithUserPort": (_FENCING + "test_row_8_7_short_name_ssh",),
    # 8.8: sshfence
    "8.8 testFence": (_ROWS_SSH + "test_row_8_8_fence",),
    "8.8 testConnectTimeout": (_ROWS_SSH + "test_row_8_8_connect_timeout",),
    "8.8 testArgsParsing": (_SPEC + "test_parses",),
    "8.8 testBadArgsParsing": (_SPEC + "test_refuses",),
    "8.8 fuser0": (_ROWS_SSH + "test_row_8_8_return_codes",),
    "8.8 fuser1-nc0": (_ROWS_SSH + "test_row_8_8_return_codes",),
    "8.8 fuser1-nc1": (_ROWS_SSH + "test_row_8_8_return_codes",),
    "8.8 fuser1-nc127": (_ROWS_SSH + "test_row_8_8_return_codes",),
    "8.8 fuser2": (_ROWS_SSH + "test_row_8_8_return_codes",),
    "8.8 hang": (_ROWS_SSH + "test_row_8_8_hang",),
    "8.8 key-refused": (_ROWS_SSH + "test_row_8_8_key_refused",),
    # 8.9: shell
    "8.9 testBasicSuccessFailure": (_FENCING + "test_row_8_9_basic_success_failure",),
    "8.9 testCheckNoArgs": (_FENCING + "test_row_8_9_check_no_args",),
    "8.9 testCheckParensNoArgs": (_FENCING + "test_row_8_9_check_parens_no_args",),
    "8.9 testStdoutLogging": (_FENCING + "test_row_8_9_stdout_and_stderr_logging",),
    "8.9 testStderrLogging": (_FENCING + "test_row_8_9_stdout_and_stderr_logging",),
    "8.9 testConfAsEnvironment": (_FENCING + "test_row_8_9_conf_as_environment",),
    "8.9 testTargetAsEnvironment": (_FENCING + "test_row_8_9_target_as_environment",),
    "8.9 testSubprocessInputIsClosed": (_FENCING + "test_row_8_9_subprocess_input_is_closed",),
    "8.9 testCommandAbbreviation": (_FENCING + "test_row_8_9_command_abbreviation",),
    "8.9 testEnvironmentWithPeer": (
        "n/a: no command is split at its commas (W13), so there is no second, source-side script; "
        "the old active is always target_*",
    ),
    # 8.10: haadmin
    "8.10 testAdminUsage": (_HAADMIN + "test_row_8_10_admin_usage",),
    "8.10 testHelp": (_HAADMIN + "test_row_8_10_help",),
    "8.10 testNameserviceOption": (_HAADMIN + "test_row_8_10_nameservice_option",),
    "8.10 testNamenodeResolution": (_HAADMIN + "test_row_8_10_namenode_resolution",),
    "8.10 testGetAllServiceState": (_HAADMIN + "test_row_8_10_get_all_service_state",),
    "8.10 testTransitionToActive": (_HAADMIN + "test_row_8_10_transition_to_active",),
    "8.10 testMutativeOperationsWithAutoHaEnabled": (
        _HAADMIN + "test_row_8_10_mutative_operations_with_auto_ha_enabled",
    ),
    "8.10 testMonitoringOperationsWithAutoHaEnabled": (
        _HAADMIN + "test_row_8_10_monitoring_operations_with_auto_ha_enabled",
    ),
    "8.10 testTransitionToStandby": (_HAADMIN + "test_row_8_10_transition_to_standby",),
    "8.10 testFailoverWithNoFencerConfigured": (
        _HAADMIN + "test_row_8_10_failover_with_no_fencer_configured",
    ),
    "8.10 testFailoverWithFencerConfigured": (_HAADMIN + "test_row_8_10_with_a_fencer",),
    "8.10 testFailoverWithFencerAndNameservice": (_HAADMIN + "test_row_8_10_with_a_fencer",),
    "8.10 testFailoverWithFencerConfiguredAndForce": (_HAADMIN + "test_row_8_10_with_a_fencer",),
    "8.10 testFailoverWithForceActive": (_HAADMIN + "test_row_8_10_with_a_fencer",),
    "8.10 testFailoverWithInvalidFenceArg": (_HAADMIN + "test_row_8_10_refused",),
    "8.10 testFailoverWithFenceButNoFencer": (_HAADMIN + "test_row_8_10_refused",),
    "8.10 testFailoverWithFenceAndBadFencer": (_HAADMIN + "test_row_8_10_refused",),
    "8.10 testFailoverWithAutoHa": (_HAADMIN + "test_row_8_10_failover_with_auto_ha",),
    "8.10 testForceFenceOptionListedBeforeArgs": (_HAADMIN + "test_row_8_10_with_a_fencer",),
    "8.10 testGetServiceStatus": (_HAADMIN + "test_row_8_10_get_service_status",),
    "8.10 testCheckHealth": (_HAADMIN + "test_row_8_10_check_health",),
    "8.10 testFencingConfigPerNameNode": (_HAADMIN + "test_row_8_10_fencing_config_per_name_node",),
    # 8.11: real NameNodes
    "8.11 MC.testGetServiceState": (_UNDONE,),
    "8.11 MC.testStateTransition": (_UNDONE,),
    "8.11 MC.testTryFailoverToSafeMode": (_UNDONE,),
    "8.11 MC.testFencer": (_UNDONE,),
    "8.11 MC.testCheckHealth": (_UNDONE,),
    "8.11 MC.testTransitionToActiveWhenOtherNamenodeisActive": (_UNDONE,),
    "8.11 MC.testObserverTransition": (_NO_OBSERVER,),
    "8.11 MC.testObserverIllegalTransition": (_NO_OBSERVER,),
    "8.11 MC.safemode-and-observer": (_NO_OBSERVER,),
    "8.11 ZK.testThreadDumpCaptureAfterNNStateChange": (_UNDONE,),
    "8.11 ZK.testFailoverAndBackOnNNShutdown": (_UNDONE,),
    "8.11 ZK.testManualFailover": (_UNDONE,),
    "8.11 ZK.testManualFailoverWithDFSHAAdmin": (
        "cluster/test_cluster.py::test_a_failover_on_request_goes_back_and_forth",
    ),
    "8.11 ZK.testWithoutBindAddressSet": (_UNDONE,),
    "8.11 ZK.testWithBindAddressSet": (_UNDONE,),
    "8.11 ZK.TestDFSZKFCRespectsBindHostKeys": (_UNDONE,),
    "8.11 ZK.testObserverRejectZkfcCall": (_NO_OBSERVER,),
    "8.11 ZK.testElectionOnObserver": (_UNDONE,),
    "8.11 ZK.testZFFCStartsWithCredentialProviderReferencingHDFS": (
        "n/a: Java credential providers are not read; a secret stands in the configuration or in a "
        "file that @ names",
    ),
    "8.11 HC.testNNHealthCheck": (_UNDONE,),
    "8.11 HC.testNNHealthCheckWithLifelineAddress": (_UNDONE,),
    "8.11 HC.testNNHealthCheckWithSafemodeAsUnhealthy": (_UNDONE,),
    "8.11 HC.testNNHAServiceTargetWithProvidedAddr": (
        "n/a: a Java constructor's arguments; our addresses come from the configuration only",
    ),
}
