"""The journal client's limits and deadlines as the operator's configuration sets them."""

from ha.conf import keys_journal as keys
from ha.conf.configuration import Configuration
from ha.conf.keys_namenode import TAIL_RPC_MAX_TXNS
from journal.client.settings import MIB, ReaderSettings, WriterSettings


def writer_settings(conf: Configuration) -> WriterSettings:
    """What a writer is told, from Hadoop's ``dfs.qjournal.*`` keys."""
    return WriterSettings(
        get_journal_state_timeout_seconds=conf.get(keys.GET_STATE_TIMEOUT),
        new_epoch_timeout_seconds=conf.get(keys.NEW_EPOCH_TIMEOUT),
        prepare_recovery_timeout_seconds=conf.get(keys.PREPARE_TIMEOUT),
        accept_recovery_timeout_seconds=conf.get(keys.ACCEPT_TIMEOUT),
        finalize_segment_timeout_seconds=conf.get(keys.FINALIZE_TIMEOUT),
        start_segment_timeout_seconds=conf.get(keys.START_SEGMENT_TIMEOUT),
        write_txns_timeout_seconds=conf.get(keys.WRITE_TIMEOUT),
        operations_timeout_seconds=conf.get(keys.OPERATIONS_TIMEOUT),
        read_lease_seconds=conf.get(keys.READ_LEASE),
        queued_edits_limit_bytes=conf.get(keys.QUEUED_EDITS_LIMIT_MB) * MIB,
    )


def reader_settings(conf: Configuration) -> ReaderSettings:
    """What a reader is told."""
    return ReaderSettings(
        select_input_streams_timeout_seconds=conf.get(keys.SELECT_TIMEOUT),
        http_open_timeout_seconds=conf.get(keys.HTTP_OPEN_TIMEOUT),
        http_read_timeout_seconds=conf.get(keys.HTTP_READ_TIMEOUT),
        rpc_max_txns=conf.get(TAIL_RPC_MAX_TXNS),
    )
