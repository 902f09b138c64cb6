"""The rows of the control plane's acceptance list: hadoop-ha.md section 8, and W1-W27 of 9."""

from typing import Final

SECTIONS: Final[dict[str, str]] = {
    "8.1": (
        "testFormatZK testNoZK testFormatOneClusterLeavesOtherClustersAlone "
        "testWontRunWhenAutoFailoverDisabled testFormatSetsAcls testFencingMustBeConfigured "
        "testAutoFailoverOnBadHealth testAutoFailoverOnBadState testAutoFailoverOnLostZKSession "
        "testDontFailoverToUnhealthyNode testBecomingActiveFails testZooKeeperFailure "
        "testCedeActive testGracefulFailover testGracefulFailoverToUnhealthy "
        "testGracefulFailoverFailBecomingActive testGracefulFailoverFailBecomingStandby "
        "testGracefulFailoverFailBecomingStandbyAndFailFence testOneOfEverything "
        "testGracefulFailoverMultipleZKfcs"
    ),
    "8.2": "testExpireBackAndForth testRandomExpirations testRandomHealthAndDisconnects",
    "8.3": (
        "testJoinElectionException testJoinElection testCreateNodeResultBecomeActive "
        "testFailToBecomeActive testFailToBecomeActiveAfterZKDisconnect testFencesOldActive "
        "testQuitElectionRemovesBreadcrumbNode testCreateNodeResultBecomeStandby "
        "testCreateNodeResultError testCreateNodeResultRetryBecomeActive "
        "testCreateNodeResultRetryBecomeStandby testCreateNodeResultRetryNoNode "
        "testStatNodeRetry testStatNodeError testProcessCallbackEventNone "
        "testProcessCallbackEventNode testSuccessiveStandbyCalls testQuitElection "
        "testGetActiveData testEnsureBaseNode testParentZNodeACLs testEnsureBaseNodeFails "
        "testWithoutZKServer testBecomeActiveBeforeServiceHealthy"
    ),
    "8.4": (
        "testActiveStandbyTransition testHandleSessionExpiration "
        "testHandleSessionExpirationOfStandby testDontJoinElectionOnDisconnectAndReconnect "
        "testSetZooKeeperACLsOnParentZnodeName"
    ),
    "8.5": "testMonitor testHealthMonitorDies testCallbackThrowsRTE",
    "8.6": (
        "testFailoverAndFailback testFailoverFromStandbyToStandby testFailoverFromActiveToActive "
        "testFailoverWithoutPermission testFailoverToUnreadyService "
        "testFailoverToUnhealthyServiceFailsAndFailsback testFailoverFromFaultyServiceSucceeds "
        "testFailoverFromFaultyServiceFencingFailure testFencingFailureDuringFailover "
        "testFailoverFromNonExistantServiceWithFencer testFailoverToNonExistantServiceFails "
        "testFailoverToFaultyServiceFailsbackOK testWeDontFailbackIfActiveWasFenced "
        "testWeFenceOnFailbackIfTransitionToActiveFails "
        "testFailureToFenceOnFailbackFailsTheFailback testFailbackToFaultyServiceFails "
        "testSelfFailoverFails"
    ),
    "8.7": (
        "testSingleFencer testMultipleFencers testWhitespaceAndCommentsInConfig testArglessFencer "
        "testShortNameShell testShortNameSsh testShortNameSshWithUser testShortNameSshWithPort "
        "testShortNameSshWithUserPort"
    ),
    "8.8": (
        "testFence testConnectTimeout testArgsParsing testBadArgsParsing "
        "fuser0 fuser1-nc0 fuser1-nc1 fuser1-nc127 fuser2 hang key-refused"
    ),
    "8.9": (
        "testBasicSuccessFailure testCheckNoArgs testCheckParensNoArgs testStdoutLogging "
        "testStderrLogging testConfAsEnvironment testTargetAsEnvironment "
        "testSubprocessInputIsClosed testCommandAbbreviation testEnvironmentWithPeer"
    ),
    "8.10": (
        "testAdminUsage testHelp testNameserviceOption testNamenodeResolution "
        "testGetAllServiceState testTransitionToActive testMutativeOperationsWithAutoHaEnabled "
        "testMonitoringOperationsWithAutoHaEnabled testTransitionToStandby "
        "testFailoverWithNoFencerConfigured testFailoverWithFencerConfigured "
        "testFailoverWithFencerAndNameservice testFailoverWithFencerConfiguredAndForce "
        "testFailoverWithForceActive testFailoverWithInvalidFenceArg "
        "testFailoverWithFenceButNoFencer testFailoverWithFenceAndBadFencer "
        "testFailoverWithAutoHa testForceFenceOptionListedBeforeArgs testGetServiceStatus "
        "testCheckHealth testFencingConfigPerNameNode"
    ),
    "8.11": (
        "MC.testGetServiceState MC.testStateTransition MC.testTryFailoverToSafeMode MC.testFencer "
        "MC.testCheckHealth MC.testTransitionToActiveWhenOtherNamenodeisActive "
        "MC.testObserverTransition MC.testObserverIllegalTransition MC.safemode-and-observer "
        "ZK.testThreadDumpCaptureAfterNNStateChange ZK.testFailoverAndBackOnNNShutdown "
        "ZK.testManualFailover ZK.testManualFailoverWithDFSHAAdmin ZK.testWithoutBindAddressSet "
        "ZK.testWithBindAddressSet ZK.TestDFSZKFCRespectsBindHostKeys "
        "ZK.testObserverRejectZkfcCall ZK.testElectionOnObserver "
        "ZK.testZFFCStartsWithCredentialProviderReferencingHDFS HC.testNNHealthCheck "
        "HC.testNNHealthCheckWithLifelineAddress HC.testNNHealthCheckWithSafemodeAsUnhealthy "
        "HC.testNNHAServiceTargetWithProvidedAddr"
    ),
    "8.12": (
        "empty-ACL null-ACL ACL-without-two-colons ACL-with-a-bad-letter two-SASL-ACLs "
        "remove-permissions empty-auth null-auth good-auth indirection-none indirection-plain "
        "indirection-file indirection-missing-file"
    ),
    "8.13": " ".join(map(str, range(1, 21))),
}
"""The rows of each section; where one row of the document holds several tests, each of them."""

ROWS: Final = frozenset(
    f"{section} {name}" for section, names in SECTIONS.items() for name in names.split()
)
WEAKNESSES: Final = frozenset(f"W{number}" for number in range(1, 28))
ALL: Final = ROWS | WEAKNESSES
"""What the table must speak of."""
