"""The journal client's limits and deadlines as the operator's configuration sets them."""

from collections.abc import Sequence

from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import journal as keys
from ha.conf.keys.namenode import TAIL_RPC_MAX_TXNS
from ha.conf.keys.security import SECURITY_MODE, Mode
from journal.links.grpc_link import GrpcLink
from journal.links.hadoop_link import HadoopLink
from journal.links.link import LinkFactory
from journal.links.settings import MIB, ReaderSettings, WriterSettings


def writer_settings(conf: Configuration) -> WriterSettings:
    """Return a writer's settings, from Hadoop's ``dfs.qjournal.*`` keys."""
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


def writer_link(conf: Configuration, nodes: Sequence[tuple[str, int]]) -> LinkFactory:
    """Return what makes a writer's links to the nodes (``nnha.journal.transport``).

    All nodes listen for Hadoop RPC on one port, that of their common configuration; whatever is
    said of a node still names it by its address in the shared edits.

    Raises:
        ConfigurationError: no key says where the nodes listen, or two of them share a host.
    """
    key = f"{keys.TRANSPORT.name}={conf.get(keys.TRANSPORT)}"
    if conf.get(keys.TRANSPORT) == "grpc":
        return GrpcLink
    listen = conf.get(keys.HADOOP_RPC)
    if listen is None:
        raise ConfigurationError(
            f"{key}, and {keys.HADOOP_RPC.name} is not set. Set it for NameNodes and JournalNodes: "
            "its port is that of every JournalNode."
        )
    if len({host for host, _ in nodes}) < len(nodes):
        raise ConfigurationError(
            f"{key} takes one port on each host ({keys.HADOOP_RPC.name}), and two JournalNodes "
            "share a host. Use grpc."
        )
    return lambda host, _grpc_port: HadoopLink(host, listen.port)


def reader_settings(conf: Configuration) -> ReaderSettings:
    """Return a reader's settings, from Hadoop's keys and ours."""
    return ReaderSettings(
        select_input_streams_timeout_seconds=conf.get(keys.SELECT_TIMEOUT),
        http_open_timeout_seconds=conf.get(keys.HTTP_OPEN_TIMEOUT),
        http_read_timeout_seconds=conf.get(keys.HTTP_READ_TIMEOUT),
        rpc_max_txns=conf.get(TAIL_RPC_MAX_TXNS),
        refuse_unconfirmed=conf.get(SECURITY_MODE) is Mode.STRICT,
    )
