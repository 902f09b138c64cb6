"""Which tests of ours stand for which row of the acceptance list (qjm 8.1-8.9), or why none does.

A test is named ``file::function``, from the tests folder on.  Its name says the row: the one where
it does not has a reason in ``ALIASES``.
"""

from typing import Final

NOT_OURS: Final = "n/a: "

_JN_STATE_ROWS = "journal/core/test_state.py::"
_ROWS_STATE = "journal/core/test_rows_state.py::"
_ROWS_NODE = "journal/node/test_rows_node.py::"
_ROWS_QUORUM = "journal/writer/test_rows_quorum.py::"
_ROWS_CLIENT = "journal/writer/test_rows_client.py::"
_ROWS_EXTRA = "journal/node/test_rows_extra.py::"
_ROWS_DELIVERY = "journal/writer/test_rows_delivery.py::"
_ROWS_NAMENODE = "namenode_sim/term/test_rows_namenode.py::"
_RECENT_EDITS = "journal/node/test_recent_edits.py::"
_JN_DISK = "journal/storage/test_disk.py::"
_JN_SYNC_PEERS = "journal/node/test_sync_peers.py::"
_JN_SYNC = "journal/node/test_sync.py::"
_JC_WRITER = "journal/writer/test_writer.py::"
_JN_PURGE = "journal/core/test_purge.py::"
_TAILING = "journal/reader/test_tailing.py::"
_JC_CALL = "journal/links/test_quorum_call.py::"
_JC_REJOIN = "journal/writer/test_rejoin.py::"
_EDITS_CACHE = "journal/node/test_edits_cache.py::"
_JC_QUORUM = "journal/test_quorum.py::"
_JC_RECOVERY = "journal/test_recovery.py::"
_JC_SCENARIOS = "journal/writer/test_scenarios.py::"
_JC_WINDOW = "journal/writer/test_window.py::"
_JC_LEARNER = "journal/writer/test_learner.py::"
_JN_RECORDS = "journal/storage/test_records.py::"
_JN_TRANSFER = "journal/node/test_transfer.py::"
_JN_SERVICE = "journal/node/test_service.py::"
_JN_CRASHES = "journal/storage/test_crashes.py::"
_JN_UPGRADE = "journal/core/test_upgrade.py::"
_JC_UPGRADE = "journal/writer/test_upgrade.py::"
_POWER_LOSS = "journal/storage/test_power_loss.py::"
_POWER_LOSS_UPKEEP = "journal/storage/test_power_loss_upkeep.py::"
_IN_PROGRESS_TAIL = "namenode_sim/term/test_in_progress_tail.py::"
_SIM_TABLES = "simulation/journal/test_tables.py::"
_SIM_CRASH_MATRIX = "simulation/journal/test_crash_matrix.py::"
_SIM_EXHAUSTIVE = "simulation/journal/test_exhaustive.py::"
_SIM_WORLDS = "simulation/journal/test_worlds.py::"
_BOOTSTRAP = "namenode_sim/startup/test_bootstrap.py::"

ROWS: Final[dict[str, str | tuple[str, ...]]] = {
    # 8.1
    "8.1 testScanEditLog": _ROWS_STATE + "test_scan_edit_log",
    "8.1 testEmptyEditsInProgressMovedAside": _ROWS_STATE
    + "test_empty_edits_in_progress_moved_aside",
    "8.1 testEpochHandling": _JN_STATE_ROWS + "test_epoch_handling",
    "8.1 testMaintainCommittedTxId": _ROWS_STATE + "test_maintain_committed_tx_id",
    "8.1 testRestartJournal": _ROWS_STATE + "test_restart_journal",
    "8.1 testFormatResetsCachedValues": _ROWS_STATE + "test_format_resets_cached_values",
    "8.1 testNewEpochAtBeginningOfSegment": _ROWS_STATE + "test_new_epoch_at_beginning_of_segment",
    "8.1 testJournalLocking": _ROWS_STATE + "test_journal_locking",
    "8.1 testFinalizeWhenEditsAreMissed": _ROWS_STATE + "test_finalize_when_edits_are_missed",
    "8.1 testFinalizeMissingSegment": _JN_STATE_ROWS + "test_finalize_missing_segment",
    "8.1 testAbortOldSegmentIfFinalizeIsMissed": _JN_STATE_ROWS
    + "test_abort_old_segment_if_finalize_is_missed",
    "8.1 testStartLogSegmentWhenAlreadyExists": _JN_STATE_ROWS
    + "test_start_log_segment_when_already_exists",
    "8.1 testNamespaceVerification": _JN_STATE_ROWS + "test_namespace_verification",
    "8.1 testFormatNonEmptyStorageDirectories": _ROWS_STATE
    + "test_format_non_empty_storage_directories",
    "8.1 testReadFromCache": _RECENT_EDITS + "test_read_from_cache",
    "8.1 HDFS-17710": _RECENT_EDITS + "test_edits_whose_write_failed_are_never_served",
    # 8.2
    "8.2 testJournalDirPerNameSpace": _ROWS_NODE + "test_journal_dir_per_name_space",
    "8.2 testJournalMetricTags": _JN_DISK + "test_journal_metric_tags",
    "8.2 testJournal": _ROWS_NODE + "test_journal",
    "8.2 testReturnsSegmentInfoAtEpochTransition": _JN_STATE_ROWS
    + "test_returns_segment_info_at_epoch_transition",
    "8.2 testHttpServer": _ROWS_NODE + "test_http_server",
    "8.2 testAcceptRecoveryBehavior": _ROWS_NODE + "test_accept_recovery_behavior",
    "8.2 testFailToStartWithBadConfig": _ROWS_NODE + "test_fail_to_start_with_bad_config",
    "8.2 testPerformance": NOT_OURS + "a benchmark: ./run bench journal",
    "8.2 testJournalNodeStartupFailsCleanly": _ROWS_NODE
    + "test_journal_node_startup_fails_cleanly",
    "8.2 syncer start set": _JN_SYNC_PEERS + "test_syncer_start_set",
    "8.2 testConfNormalHandlerNumber": NOT_OURS + "one event loop serves all calls; no handlers",
    "8.2 TestJournalNodeMXBean": _JN_DISK + "test_journal_node_mx_bean",
    "8.2 TestJournalNodeRespectsBindHostKeys": _ROWS_NODE
    + "test_journal_node_respects_bind_host_keys",
    "8.2 TestGetJournalEditServlet": NOT_OURS + "no Kerberos here; security is not in this issue",
    "8.2 TestJournalNodeHttpServerXFrame": NOT_OURS + "no pages that a browser could frame",
    "8.2 TestMiniJournalCluster": NOT_OURS + "Hadoop's own fixture; ours is jc_cluster",
    # 8.3
    "8.3 testJournalNodeSync": _JN_SYNC + "test_journal_node_sync_returns_deleted_segments",
    "8.3 MultipleMissingLogs": _JN_SYNC + "test_journal_node_sync_returns_deleted_segments",
    "8.3 DiscontinuousMissingLogs": _JN_SYNC + "test_journal_node_sync_returns_deleted_segments",
    "8.3 MultipleJournalsMissingLogs": _JN_SYNC + "test_journal_node_sync_returns_deleted_segments",
    "8.3 MultipleJournalsMultipleMissingLogs": _JN_SYNC
    + "test_journal_node_sync_returns_deleted_segments",
    "8.3 RandomJournalMissingLogs": _JN_SYNC + "test_random_journal_missing_logs",
    "8.3 SyncAfterJNdowntime": _JN_SYNC + "test_sync_after_jn_downtime",
    "8.3 WithoutQJournalQueue": _ROWS_NODE + "test_sync_after_jn_downtime_without_qjournal_queue",
    "8.3 SyncAfterJNformat": _JN_SYNC + "test_sync_after_jn_format",
    "8.3 SyncDuringRollingUpgrade": _ROWS_NODE + "test_sync_during_rolling_upgrade",
    "8.3 ExcludesSelfMultiplePorts": _JN_SYNC_PEERS + "test_excludes_self_multiple_ports",
    "8.3 ExcludesSelfWildCard": _JN_SYNC_PEERS + "test_excludes_self_wildcard",
    "8.3 testFormatWithSyncer": _ROWS_NODE + "test_format_with_syncer",
    # 8.4
    "8.4 testSingleWriter": _JC_WRITER + "test_single_writer",
    "8.4 testFormat": _JC_WRITER + "test_format_says_what_is_there",
    "8.4 testReaderWhileAnotherWrites": _JC_WRITER + "test_reader_while_another_writes",
    "8.4 testOneJNMissingSegments": _JC_WRITER + "test_one_jn_missing_segments_is_no_loss",
    "8.4 testSelectInputStreamsMajorityDown": _JC_WRITER
    + "test_select_input_streams_majority_down_is_named_at_once",
    "8.4 testCrashAtBeginningOfSegment": _JC_WRITER + "test_crash_at_beginning_of_segment",
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
    "8.4 testPurgeLogs": (
        _JN_PURGE + "test_purge_logs",
        _JN_PURGE + "test_purge_logs_takes_decisions_with_them",
    ),
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
    "8.4 testGetJournalAddressListWithResolution": NOT_OURS
    + "one name is one node; names are resolved again on each connection",
    # 8.5
    "8.5 AllLoggersStartOk": _ROWS_CLIENT + "test_all_loggers_start_ok",
    "8.5 QuorumOfLoggersStartOk": _ROWS_CLIENT + "test_quorum_of_loggers_start_ok",
    "8.5 QuorumOfLoggersFail": _ROWS_CLIENT + "test_quorum_of_loggers_fail",
    "8.5 QuorumOutputStreamReport": NOT_OURS + "a text of Hadoop's web page",
    "8.5 WriteEdits": _ROWS_CLIENT + "test_write_edits",
    "8.5 WriteEditsOneSlow": _ROWS_CLIENT + "test_write_edits_one_slow",
    "8.5 SetOutputBufferCapacityTooLarge": _ROWS_CLIENT
    + "test_set_output_buffer_capacity_too_large",
    "8.5 FSEditLogAutoSyncToQuorumStream": NOT_OURS + "no fixed buffer: what waits goes together",
    "8.5 ReadRpcInputStreams": _ROWS_CLIENT + "test_read_rpc_input_streams",
    "8.5 ReadRpcInputStreamsMismatched": _ROWS_CLIENT + "test_read_rpc_input_streams_mismatched",
    "8.5 ReadRpcInputStreamsOneSlow": _ROWS_CLIENT + "test_read_rpc_input_streams_one_slow",
    "8.5 ReadRpcInputStreamsOneException": _ROWS_CLIENT
    + "test_read_rpc_input_streams_one_exception",
    "8.5 ReadRpcInputStreamsNoNewEdits": _ROWS_CLIENT + "test_read_rpc_input_streams_no_new_edits",
    "8.5 IPCLoggerChannel.SimpleCall": _ROWS_CLIENT + "test_simple_call",
    "8.5 IPCLoggerChannel.QueueLimiting": _JC_REJOIN + "test_queue_limiting",
    "8.5 IPCLoggerChannel.StopSendingEditsWhenOutOfSync": _JC_REJOIN
    + "test_stop_sending_edits_when_out_of_sync",
    "8.5 IPCLoggerChannel.MetricsRemovedOnClose": _ROWS_CLIENT + "test_metrics_removed_on_close",
    "8.5 QuorumCall.Quorums": _JC_QUORUM
    + "test_quorums_the_verdict_is_what_every_possible_future_agrees_on",
    "8.5 QuorumCall.FailsWithoutResponse": _JC_CALL
    + "test_fails_without_response_and_names_who_was_silent",
    "8.5 QuorumCall.SucceedsWithLongPause": _JC_CALL
    + "test_x20_succeeds_with_long_pause_of_our_own",
    "8.5 SegmentRecoveryComparator.Comparisons": _JC_RECOVERY + "test_comparisons_of_known_cases",
    "8.5 EpochsAreUnique": _ROWS_CLIENT + "test_epochs_are_unique",
    "8.5 TestJournaledEditsCache": (
        _EDITS_CACHE + "test_cache_single_segment",
        _EDITS_CACHE + "test_cache_batches_on_and_off_their_boundaries",
        _EDITS_CACHE + "test_cache_above_capacity_serves_the_tail_only",
        _EDITS_CACHE + "test_cache_single_add_over_capacity_empties_it",
        _EDITS_CACHE + "test_cache_with_a_future_layout_scans_it",
        _EDITS_CACHE + "test_cache_layout_change_ends_an_answer",
        _EDITS_CACHE + "test_cache_edits_with_a_gap_begins_anew",
        _EDITS_CACHE + "test_cache_uninitialized_is_a_miss",
        _EDITS_CACHE + "test_cache_malformed_input_start_before_everything_is_a_miss",
        _EDITS_CACHE + "test_cache_capacity_from_bytes_or_fraction",
    ),
    # 8.6
    "8.6 determineMaxIpcNumber": _SIM_EXHAUSTIVE + "test_the_workload_asks_every_kind_of_question",
    "8.6 testRecoverAfterDoubleFailures": _SIM_EXHAUSTIVE
    + "test_every_pair_of_faults_loses_nothing",
    "8.6 testUnresolvableHostName": _JC_WRITER + "test_unresolvable_host_name_stops_nobody",
    "8.6 testRandomized": _SIM_WORLDS + "test_nothing_acknowledged_is_lost_and_one_history_stands",
    # 8.7
    "8.7 NNWithQJM.LogAndRestart": _ROWS_NAMENODE + "test_log_and_restart",
    "8.7 NNWithQJM.NewNamenodeTakesOverWriter": _ROWS_NAMENODE
    + "test_new_namenode_takes_over_writer",
    "8.7 NNWithQJM.MismatchedNNIsRejected": _ROWS_NAMENODE + "test_mismatched_nn_is_rejected",
    "8.7 SecureNNWithQJM": NOT_OURS + "no Kerberos here; security is not in this issue",
    "8.7 StandbyInProgressTail.Default": _IN_PROGRESS_TAIL
    + "test_default_sees_nothing_before_a_roll_and_then_everything",
    "8.7 StandbyInProgressTail.Setup": _IN_PROGRESS_TAIL
    + "test_edits_arrive_before_across_and_after_rolls_without_failover",
    "8.7 UndertailingWhileFailover": _IN_PROGRESS_TAIL
    + "test_undertailing_while_failover_loses_nothing",
    "8.7 NonUniformConfig": _IN_PROGRESS_TAIL + "test_non_uniform_configuration_still_delivers",
    "8.7 EditsServedViaCache": _IN_PROGRESS_TAIL + "test_edits_are_served_via_the_cache",
    "8.7 CorruptJournalCache": _TAILING + "test_corrupt_journal_cache",
    "8.7 TailWithoutCache": _TAILING + "test_tail_without_cache",
    "8.7 HAWithInProgressTail": _IN_PROGRESS_TAIL
    + "test_a_takeover_with_an_empty_and_a_lagging_node_loses_nothing",
    "8.7 DFSUpgradeWithHA": (
        _JC_UPGRADE + "test_upgrade_and_roll_back_on_all_nodes",
        _JC_UPGRADE + "test_finalize_and_discard",
        _JN_UPGRADE + "test_upgrade_keeps_the_way_back_and_finalize_gives_it_up",
        _JN_UPGRADE + "test_roll_back_drops_edits_and_forgets_no_promise",
    ),
    "8.7 BootstrapStandbyWithQJM": (
        _BOOTSTRAP + "test_ids_and_image_are_copied_into_every_directory",
        _BOOTSTRAP + "test_edits_that_the_journal_lacks_are_6_unless_not_asked_for",
    ),
    "8.7 RollingUpgradeRollback": (
        _JN_UPGRADE + "test_rolling_upgrade_rollback_discards_what_is_behind_the_marker",
        _JC_UPGRADE + "test_rolling_upgrade_with_qjm_discards_on_all_nodes_and_goes_on",
    ),
    "8.7 RollingUpgradeWithQJM": _JC_UPGRADE
    + "test_rolling_upgrade_with_qjm_discards_on_all_nodes_and_goes_on",
    "8.7 FailureToReadEdits": (
        _ROWS_NAMENODE + "test_failure_to_read_edits_skips_none",
        _ROWS_NAMENODE + "test_failure_to_read_edits_aborts_the_transition",
    ),
    # 8.8
    "8.8 2.10.1": _SIM_TABLES + "test_2_10",
    "8.8 2.10.2": _SIM_TABLES + "test_2_10",
    "8.8 2.10.3": _SIM_TABLES + "test_2_10",
    "8.8 2.10.4": _SIM_TABLES + "test_2_10",
    "8.8 2.10.5": _SIM_TABLES + "test_2_10",
    "8.8 2.10.6": _SIM_TABLES + "test_2_10",
    "8.8 2.10.6'": _SIM_TABLES + "test_2_10",
    "8.8 2.10.7": _SIM_TABLES + "test_2_10",
    # 8.9
    "X1": _JC_SCENARIOS + "test_x1_a_stale_copy_of_equal_length_is_replaced",
    "X2": _JC_SCENARIOS + "test_x2_a_stale_copy_is_not_finalized_when_its_replacement_was_lost",
    "X3": _JC_LEARNER + "test_x03_a_wiped_node_does_not_outvote_what_was_acknowledged",
    "X4": _TAILING + "test_x4_only_the_newer_writer_s_edits_are_seen",
    "X5": (
        _JC_SCENARIOS + "test_x5_two_failures_end_the_wait_for_a_node_that_hangs",
        _JC_WINDOW + "test_x5_two_failures_of_three_are_told_at_once",
    ),
    "X6": _SIM_CRASH_MATRIX + "test_x6_a_crash_anywhere_in_an_acceptance",
    "X7": (
        _POWER_LOSS + "test_x7_power_loss_after_any_operation_of_a_real_process",
        _POWER_LOSS_UPKEEP + "test_x7_power_loss_after_any_operation_of_upkeep",
    ),
    "X8": _JN_RECORDS + "test_x08_damage_in_an_unclosed_segment_has_no_vote",
    "X9": _JN_SYNC + "test_x9_a_finalized_segment_replaces_the_abandoned_one",
    "X10": (
        _JN_DISK + "test_x10_a_failed_disk_is_visible_and_stops_one_journal_only",
        _JN_CRASHES + "test_x10_after_any_failed_operation_the_journal_stops_and_says_why",
    ),
    "X11": _JN_TRANSFER + "test_x11_a_source_that_lies_changes_nothing_and_the_next_is_asked",
    "X12": _ROWS_EXTRA + "test_x12_a_source_that_dies_between_prepare_and_accept",
    "X13": _JN_STATE_ROWS + "test_x13_an_empty_segment_of_an_older_writer_makes_room",
    "X14": _JN_RECORDS + "test_x14_an_older_writers_edit_never_inherits_a_newer_epoch",
    "X15": (
        _ROWS_DELIVERY + "test_x15_what_is_delivered_again_has_no_second_effect",
        _ROWS_DELIVERY + "test_x15_what_arrives_out_of_order_changes_nothing_that_was_answered",
        _JC_REJOIN + "test_x15_an_answer_that_was_lost_takes_effect_once",
    ),
    "X16": (
        _ROWS_DELIVERY + "test_x16_a_cancelled_request_is_carried_out_whole_or_not_at_all",
        _JN_SERVICE + "test_x16_a_cancelled_call_is_carried_out_whole",
        _JC_REJOIN + "test_x16_a_write_whose_caller_gives_up_is_written_all_the_same",
    ),
    "X17": _ROWS_EXTRA + "test_x17_contenders_in_lock_step_end_with_one_writer",
    "X18": (
        _JN_RECORDS + "test_x18_a_lost_committed_txid_breaks_no_recovery",
        _ROWS_STATE + "test_x18_a_committed_txid_file_of_any_length",
    ),
    "X19": (
        _ROWS_EXTRA + "test_x19_any_number_of_nodes",
        _ROWS_EXTRA + "test_x19_every_two_failures_of_five",
    ),
    "X20": (
        _JC_CALL + "test_x20_succeeds_with_long_pause_of_our_own",
        _JC_WINDOW + "test_x20_our_own_pause_is_not_the_nodes_fault",
    ),
    "X21": (
        _JN_PURGE + "test_x21_a_purge_during_a_recovery_leaves_the_recovery_whole",
        _JN_PURGE + "test_x21_a_download_that_is_open_survives_a_purge",
        _ROWS_EXTRA + "test_x21_a_download_that_is_open_survives_a_discard",
    ),
    "X22": (
        _ROWS_EXTRA + "test_x22_a_stale_writer_is_fenced_whatever_the_order",
        _ROWS_EXTRA + "test_x22_an_idle_stale_writer_hears_it_from_a_heartbeat",
        _JC_REJOIN + "test_x22_a_superseded_writer_is_told_by_any_node_that_comes_back",
    ),
}

ALIASES: Final[dict[str, str]] = {
    "8.1 HDFS-17710": "the row has a number for a name; the test names it in its docstring",
    "8.3 MultipleMissingLogs": (
        "a case of the one test, which deletes as each of these rows says and then compares bytes"
    ),
    "8.3 DiscontinuousMissingLogs": (
        "a case of the one test, which deletes as each of these rows says and then compares bytes"
    ),
    "8.3 MultipleJournalsMissingLogs": (
        "a case of the one test, which deletes as each of these rows says and then compares bytes"
    ),
    "8.3 MultipleJournalsMultipleMissingLogs": (
        "a case of the one test, which deletes as each of these rows says and then compares bytes"
    ),
    "8.5 TestJournaledEditsCache": "eleven tests; ours have the cache and the case in their names",
    "8.6 determineMaxIpcNumber": "the explorer counts calls; the test: all kinds come up",
    "8.6 testRecoverAfterDoubleFailures": (
        "the pairs are of any two faults at any nodes, which includes Hadoop's double failures"
    ),
    "8.6 testRandomized": "the simulator's seeded worlds; the name says what they must hold to",
    "8.7 StandbyInProgressTail.Setup": (
        "four of Hadoop's set-ups in one: the standby begins before, in and behind a segment"
    ),
    "8.7 EditsServedViaCache": "the row's name with its verb and article",
    "8.7 HAWithInProgressTail": (
        "the row's name is that of a Hadoop class with one scenario, which the test's name tells"
    ),
    "8.7 DFSUpgradeWithHA": (
        "four rows of one class: upgrade, finalize, finalize from the second NameNode, "
        "roll back; each test names its step"
    ),
    "8.7 BootstrapStandbyWithQJM": (
        "of its five, what concerns the journal: the ids to read it by, and whether it "
        "has the edits behind the image; the states of a NameNode's own upgrade are not "
        "the journal's"
    ),
    "8.8 2.10.1": "one test for all tables; its cases are named by the table and the quorum",
    "8.8 2.10.2": "one test for all tables; its cases are named by the table and the quorum",
    "8.8 2.10.3": "one test for all tables; its cases are named by the table and the quorum",
    "8.8 2.10.4": "one test for all tables; its cases are named by the table and the quorum",
    "8.8 2.10.5": "one test for all tables; its cases are named by the table and the quorum",
    "8.8 2.10.6": "one test for all tables; its cases are named by the table and the quorum",
    "8.8 2.10.6'": "one test for all tables; its cases are named by the table and the quorum",
    "8.8 2.10.7": "one test for all tables; its cases are named by the table and the quorum",
}
"""Rows whose tests have other names, and why that is right."""

HADOOP: Final = {
    "X1": "keeps the stale bytes: acceptRecovery skips the download when the ends are equal",
    "X2": "finalizes the stale copy: only the end is compared, never the bytes",
    "X3": "a wiped node votes as an empty one, and an acknowledged edit can be lost",
    "X5": "waits for the third node's answer or the timeout, after two have failed",
}
"""What Hadoop does in the scenarios where ours must be better (qjm 0, 10)."""
