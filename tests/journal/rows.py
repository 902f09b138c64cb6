"""Which test of ours stands for which row of the acceptance list (qjm 8.1-8.9), or why none does.

A test is named ``file::function``, from the tests folder on; ``[...]`` behind it is for readers.
``PENDING`` rows have their part built, but no test that says so yet; the list must shrink only.
"""

from typing import Final

NOT_OURS: Final = "n/a: "
PENDING: Final = "pending: "

_STATE = "journal/test_jn_state_rows.py::"
_ROWS_STATE = "journal/test_rows_state.py::"
_ROWS_QUORUM = "journal/test_rows_quorum.py::"
_RULES = "journal/test_jn_rules.py::"
_FILES = "journal/test_jn_files.py::"
_RECORDS = "journal/test_jn_records.py::"
_LEARNER = "journal/test_jc_learner.py::"
_SERVICE = "journal/test_jn_service.py::"
_PROCESS = "journal/test_jn_process.py::"
_TRANSFER = "journal/test_jn_transfer.py::"
_DISK = "journal/test_jn_disk.py::"
_SYNC = "journal/test_jn_sync.py::"
_PEERS = "journal/test_jn_sync_peers.py::"
_SYNCING = "journal/test_jn_syncing_rules.py::"
_PURGE = "journal/test_jn_purge.py::"
_CACHE = "journal/test_edits_cache.py::"
_RECENT = "journal/test_recent_edits.py::"
_TAILING = "journal/test_tailing.py::"
_WRITER = "journal/test_jc_writer.py::"
_SCENES = "journal/test_jc_scenarios.py::"
_CALL = "journal/test_jc_call.py::"
_QUORUM = "journal/test_jc_quorum.py::"
_REJOIN = "journal/test_jc_rejoin.py::"
_WINDOW = "journal/test_jc_window.py::"
_READER = "journal/test_jc_reader.py::"
_CHOICE = "journal/test_jc_recovery.py::"
_TABLES = "simulation/test_sim_tables.py::test_2_10"
_MATRIX = "simulation/test_sim_crash_matrix.py::test_x6_a_crash_anywhere_in_an_acceptance"
_PAIRS = "simulation/test_sim_exhaustive.py::test_every_pair_of_faults_loses_nothing"
_SEEDS = "simulation/test_sim_worlds.py::test_nothing_acknowledged_is_lost_and_one_history_stands"
_POWER = "journal/test_power_loss.py::test_x7_power_loss_after_any_operation_of_a_real_process"
_STANDBY = "namenode/test_in_progress_tail.py::"

ROWS: Final[dict[str, str]] = {
    # 8.1
    "8.1 testScanEditLog": _ROWS_STATE + "test_scan_edit_log",
    "8.1 testEmptyEditsInProgressMovedAside": _ROWS_STATE
    + "test_empty_edits_in_progress_moved_aside",
    "8.1 testEpochHandling": _STATE + "test_epoch_handling",
    "8.1 testMaintainCommittedTxId": _ROWS_STATE + "test_maintain_committed_tx_id",
    "8.1 testRestartJournal": _ROWS_STATE + "test_restart_journal",
    "8.1 testFormatResetsCachedValues": _ROWS_STATE + "test_format_resets_cached_values",
    "8.1 testNewEpochAtBeginningOfSegment": _ROWS_STATE + "test_new_epoch_at_beginning_of_segment",
    "8.1 testJournalLocking": _ROWS_STATE + "test_journal_locking",
    "8.1 testFinalizeWhenEditsAreMissed": _ROWS_STATE + "test_finalize_when_edits_are_missed",
    "8.1 testFinalizeMissingSegment": _STATE + "test_finalize_missing_segment",
    "8.1 testAbortOldSegmentIfFinalizeIsMissed": _STATE
    + "test_abort_old_segment_if_finalize_is_missed",
    "8.1 testStartLogSegmentWhenAlreadyExists": _STATE
    + "test_start_log_segment_when_already_exists",
    "8.1 testNamespaceVerification": _STATE + "test_namespace_verification",
    "8.1 testFormatNonEmptyStorageDirectories": _FILES
    + "test_format_refuses_and_by_force_resets_everything",
    "8.1 testReadFromCache": _RECENT + "test_read_from_cache",
    "8.1 HDFS-17710": _RECENT + "test_edits_whose_write_failed_are_never_served",
    # 8.2
    "8.2 testJournalDirPerNameSpace": _SERVICE + "test_a_nameservice_may_have_its_own_folder",
    "8.2 testJournalMetricTags": _DISK + "test_journal_metric_tags",
    "8.2 testJournal": _TRANSFER + "test_status_health_and_metrics_tell_of_the_journal",
    "8.2 testReturnsSegmentInfoAtEpochTransition": _STATE
    + "test_returns_segment_info_at_epoch_transition",
    "8.2 testHttpServer": _TRANSFER + "test_a_finalized_segment_is_served_and_nothing_else",
    "8.2 testAcceptRecoveryBehavior": _RULES + "test_prepare_answers_the_disk_or_the_decision",
    "8.2 testFailToStartWithBadConfig": _PROCESS + "test_bad_folders_are_named",
    "8.2 testPerformance": NOT_OURS + "a benchmark: ./run bench journal",
    "8.2 testJournalNodeStartupFailsCleanly": _PROCESS
    + "test_taken_ports_are_named_and_nothing_is_left_behind",
    "8.2 syncer start set": _PEERS + "test_start_set",
    "8.2 testConfNormalHandlerNumber": NOT_OURS + "one event loop serves all calls; no handlers",
    "8.2 TestJournalNodeMXBean": _DISK + "test_jmx_shows_what_hadoop_shows",
    "8.2 TestJournalNodeRespectsBindHostKeys": _PROCESS
    + "test_settings_listen_on_the_loopback_unless_told_otherwise",
    "8.2 TestGetJournalEditServlet": NOT_OURS + "no Kerberos here; security is not in this issue",
    "8.2 TestJournalNodeHttpServerXFrame": NOT_OURS + "no pages that a browser could frame",
    "8.2 TestMiniJournalCluster": NOT_OURS + "Hadoop's own fixture; ours is jc_cluster",
    # 8.3
    "8.3 testJournalNodeSync": _SYNC + "test_deleted_segments_return",
    "8.3 MultipleMissingLogs": _SYNC + "test_deleted_segments_return",
    "8.3 MultipleJournalsMissingLogs": _SYNC + "test_deleted_segments_return",
    "8.3 RandomJournalMissingLogs": _SYNC + "test_random_deletions_return",
    "8.3 SyncAfterJNdowntime": _SYNC + "test_a_node_that_was_down_gets_what_it_missed",
    "8.3 WithoutQJournalQueue": _SYNC
    + "test_a_node_that_comes_back_to_an_idle_journal_is_made_whole",
    "8.3 SyncAfterJNformat": _SYNC + "test_a_formatted_node_gets_everything",
    "8.3 SyncDuringRollingUpgrade": PENDING + "with the upgrade family",
    "8.3 ExcludesSelfMultiplePorts": _PEERS + "test_excludes_self_multiple_ports",
    "8.3 ExcludesSelfWildCard": _PEERS + "test_excludes_self_wildcard",
    "8.3 testFormatWithSyncer": _SYNC + "test_a_formatted_node_gets_everything",
    # 8.4
    "8.4 testSingleWriter": _WRITER + "test_single_writer",
    "8.4 testFormat": _WRITER + "test_format_says_what_is_there",
    "8.4 testReaderWhileAnotherWrites": _WRITER + "test_reader_while_another_writes",
    "8.4 testOneJNMissingSegments": _WRITER + "test_a_node_that_misses_segments_is_no_loss",
    "8.4 testSelectInputStreamsMajorityDown": _WRITER + "test_a_majority_down_is_named_at_once",
    "8.4 testCrashAtBeginningOfSegment": _WRITER + "test_crash_at_the_beginning_of_a_segment",
    "8.4 testOutOfSyncAtBeginningOfSegment0": _ROWS_QUORUM
    + "test_out_of_sync_at_beginning_of_segment0",
    "8.4 testOutOfSyncAtBeginningOfSegment1": _ROWS_QUORUM
    + "test_out_of_sync_at_beginning_of_segment1",
    "8.4 testOutOfSyncAtBeginningOfSegment2": _ROWS_QUORUM
    + "test_out_of_sync_at_beginning_of_segment2",
    "8.4 testChangeWritersLogsInSync": _ROWS_QUORUM + "test_change_writers_logs_in_sync",
    "8.4 testChangeWritersLogsOutOfSync1": _ROWS_QUORUM + "test_change_writers_logs_out_of_sync1",
    "8.4 testChangeWritersLogsOutOfSync2": _ROWS_QUORUM + "test_change_writers_logs_out_of_sync2",
    "8.4 testChangeWritersLogsOutOfSync3": _ROWS_QUORUM + "test_change_writers_logs_out_of_sync3",
    "8.4 testMissFinalizeAndNextStart": _ROWS_QUORUM + "test_miss_finalize_and_next_start",
    "8.4 testRecoverAfterIncompleteRecovery": _ROWS_QUORUM
    + "test_recover_after_incomplete_recovery",
    "8.4 testNewerVersionOfSegmentWins": _ROWS_QUORUM + "test_newer_version_of_segment_wins",
    "8.4 testNewerVersionOfSegmentWins2": _ROWS_QUORUM + "test_newer_version_of_segment_wins2",
    "8.4 testCrashBetweenSyncLogAndPersistPaxosData": _ROWS_QUORUM
    + "test_crash_between_sync_log_and_persist_paxos_data",
    "8.4 testPurgeLogs": _PURGE + "test_purge_logs",
    "8.4 testToString": NOT_OURS + "we name nodes in every error instead",
    "8.4 testSelectInputStreamsNotOnBoundary": _TAILING
    + "test_select_input_streams_not_on_boundary",
    "8.4 testInProgressRecovery": _TAILING + "test_in_progress_recovery",
    "8.4 testSelectViaRpcWithDurableTransactions": _TAILING
    + "test_select_via_rpc_with_durable_transactions",
    "8.4 WithoutDurableTransactions": NOT_OURS + "only what a majority holds is ever handed out",
    "8.4 OneDeadJN": _TAILING + "test_select_via_rpc_one_dead_jn",
    "8.4 TwoDeadJNs": _TAILING + "test_select_via_rpc_two_dead_jns",
    "8.4 TwoJNsError": _TAILING + "test_select_via_rpc_two_jns_error_streams",
    "8.4 AfterJNRestart": _TAILING + "test_select_via_rpc_after_jn_restart_streams",
    "8.4 AfterJNJitter": _TAILING + "test_select_via_rpc_after_jn_jitter",
    "8.4 testSelectThreadCounts": _TAILING + "test_select_thread_counts",
    "8.4 testSelectLatestEditsWithoutStreaming": _TAILING
    + "test_select_latest_edits_without_streaming",
    "8.4 testGetJournalAddressListWithResolution": NOT_OURS + "one name is one node; names are "
    "resolved again on each connection",
    # 8.5
    "8.5 AllLoggersStartOk": _CALL + "test_it_ends_with_the_majority",
    "8.5 QuorumOfLoggersStartOk": _CALL + "test_it_ends_with_the_majority",
    "8.5 QuorumOfLoggersFail": _CALL + "test_a_lost_call_says_who_and_why",
    "8.5 QuorumOutputStreamReport": NOT_OURS + "a text of Hadoop's web page",
    "8.5 WriteEdits": "namenode/test_edit_log.py::"
    "test_edits_that_arrive_during_a_write_share_the_next_one",
    "8.5 WriteEditsOneSlow": _SCENES + "test_a_node_that_hangs_delays_nothing_and_holds_little",
    "8.5 SetOutputBufferCapacityTooLarge": PENDING + "the buffer key is not checked against the "
    "message limit",
    "8.5 FSEditLogAutoSyncToQuorumStream": NOT_OURS + "no fixed buffer: what waits goes together",
    "8.5 ReadRpcInputStreams": _TAILING + "test_select_via_rpc_lengths_differ",
    "8.5 IPCLoggerChannel.SimpleCall": _WRITER + "test_single_writer",
    "8.5 IPCLoggerChannel.QueueLimiting": _REJOIN + "test_queue_limiting",
    "8.5 IPCLoggerChannel.StopSendingEditsWhenOutOfSync": _REJOIN
    + "test_stop_sending_edits_when_out_of_sync",
    "8.5 IPCLoggerChannel.MetricsRemovedOnClose": PENDING + "the channel forgets them; no test",
    "8.5 QuorumCall.Quorums": _QUORUM + "test_the_verdict_is_what_every_possible_future_agrees_on",
    "8.5 QuorumCall.FailsWithoutResponse": _CALL + "test_silence_is_named_when_patience_ends",
    "8.5 QuorumCall.SucceedsWithLongPause": _CALL + "test_our_own_pause_is_not_the_nodes_fault",
    "8.5 SegmentRecoveryComparator.Comparisons": _CHOICE + "test_known_cases",
    "8.5 EpochsAreUnique": _WRITER + "test_contenders_end_with_one_writer",
    "8.5 TestJournaledEditsCache": _CACHE + "test_cache_single_segment",
    # 8.6
    "8.6 determineMaxIpcNumber": "simulation/test_sim_exhaustive.py::"
    "test_the_workload_asks_every_kind_of_question",
    "8.6 testRecoverAfterDoubleFailures": _PAIRS,
    "8.6 testUnresolvableHostName": _WRITER + "test_a_name_that_does_not_resolve_stops_nobody",
    "8.6 testRandomized": _SEEDS,
    # 8.7
    "8.7 NNWithQJM.NewNamenodeTakesOverWriter": _WRITER
    + "test_an_older_writer_is_told_who_fenced_it",
    "8.7 NNWithQJM.MismatchedNNIsRejected": "journal/test_jn_bad_input.py::"
    "test_another_cluster_is_refused",
    "8.7 SecureNNWithQJM": NOT_OURS + "no Kerberos here; security is not in this issue",
    "8.7 StandbyInProgressTail.Default": _STANDBY
    + "test_default_sees_nothing_before_a_roll_and_then_everything",
    "8.7 StandbyInProgressTail.Setup": _STANDBY
    + "test_edits_arrive_before_across_and_after_rolls_without_failover",
    "8.7 UndertailingWhileFailover": _STANDBY + "test_undertailing_while_failover_loses_nothing",
    "8.7 NonUniformConfig": _STANDBY + "test_non_uniform_configuration_still_delivers",
    "8.7 EditsServedViaCache": _STANDBY + "test_edits_are_served_via_the_cache",
    "8.7 CorruptJournalCache": _TAILING + "test_corrupt_journal_cache",
    "8.7 TailWithoutCache": _TAILING + "test_tail_without_cache",
    "8.7 HAWithInProgressTail": _STANDBY
    + "test_a_takeover_with_an_empty_and_a_lagging_node_loses_nothing",
    "8.7 DFSUpgradeWithHA": PENDING + "the fenced upgrade family",
    "8.7 BootstrapStandbyWithQJM": "startup/test_bootstrap.py::"
    "test_ids_and_image_are_copied_into_every_directory",
    "8.7 RollingUpgradeRollback": PENDING + "the fenced discard",
    "8.7 FailureToReadEdits": _READER + "test_damage_everywhere_is_told_with_every_node",
    # 8.8
    "8.8 2.10.1": _TABLES,
    "8.8 2.10.2": _TABLES,
    "8.8 2.10.3": _TABLES,
    "8.8 2.10.4": _TABLES,
    "8.8 2.10.5": _TABLES,
    "8.8 2.10.6": _TABLES,
    "8.8 2.10.6'": _TABLES,
    "8.8 2.10.7": _TABLES,
    # 8.9
    "X1": _TABLES,
    "X2": _SCENES + "test_a_stale_copy_is_not_finalized_when_its_replacement_was_lost",
    "X3": _LEARNER + "test_x03_a_wiped_node_does_not_outvote_what_was_acknowledged",
    "X4": _TAILING + "test_only_the_newer_writer_s_edits_are_seen",
    "X5": _WINDOW + "test_two_failures_of_three_are_told_at_once",
    "X6": _MATRIX,
    "X7": _POWER,
    "X8": _RECORDS + "test_x08_damage_in_an_unclosed_segment_has_no_vote",
    "X9": _SYNC + "test_a_finalized_segment_replaces_the_abandoned_one",
    "X10": _DISK + "test_a_failed_disk_is_visible_and_stops_one_journal_only",
    "X11": _TRANSFER + "test_a_source_that_lies_changes_nothing_and_the_next_is_asked",
    "X12": _TRANSFER + "test_a_source_that_lies_changes_nothing_and_the_next_is_asked",
    "X13": _STATE + "test_x13_an_empty_segment_of_an_older_writer_makes_room",
    "X14": _RECORDS + "test_x14_an_older_writers_edit_never_inherits_a_newer_epoch",
    "X15": _SEEDS,
    "X16": _SERVICE + "test_a_cancelled_call_is_carried_out_whole",
    "X17": _WRITER + "test_contenders_end_with_one_writer",
    "X18": _RECORDS + "test_x18_a_lost_committed_txid_breaks_no_recovery",
    "X19": _QUORUM + "test_the_verdict_is_what_every_possible_future_agrees_on",
    "X20": _CALL + "test_our_own_pause_is_not_the_nodes_fault",
    "X21": _PURGE + "test_a_purge_during_a_recovery_leaves_the_recovery_whole",
    "X22": _WRITER + "test_an_older_writer_is_told_who_fenced_it",
}

HADOOP: Final = {
    "X1": "keeps the stale bytes: acceptRecovery skips the download when the ends are equal",
    "X2": "finalizes the stale copy: only the end is compared, never the bytes",
    "X3": "a wiped node votes as an empty one, and an acknowledged edit can be lost",
    "X5": "waits for the third node's answer or the timeout, after two have failed",
}
"""What Hadoop does in the scenarios where ours must be better (qjm 0, 10)."""
