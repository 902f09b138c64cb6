"""What of one NameNode deals with DataNodes, put together from the configuration."""

import random
import secrets
from pathlib import Path
from typing import Final

from ha.conf.configuration import Configuration
from ha.conf.data_encryption import data_algorithm
from ha.conf.errors import ConfigurationError
from ha.conf.keys import blocks as keys
from ha.conf.keys import datanode as keys_datanode
from ha.conf.keys import files as keys_files
from ha.conf.keys import hosts as keys_hosts
from ha.conf.topology import namenode_ids, nameservice_of
from ha.rpc.java_names import RECONFIGURATION
from ha.rpc.protocol import RpcProtocol
from ha.service.reconfiguration import Reconfiguration
from hadoop.block_tokens import KEY_IDS, KeyRing, first_ring
from journal.model import NamespaceInfo
from namenode_sim.blocks.safemode import SafeModeRules
from namenode_sim.blocks.state import BlockState
from namenode_sim.datanode_protocol.block_keys import wall_ms
from namenode_sim.datanode_protocol.cache_watch import CacheRules
from namenode_sim.datanode_protocol.hosts import HostFiles
from namenode_sim.datanode_protocol.keeper import Keeper, KeeperRules, Standing
from namenode_sim.datanode_protocol.leaving import LeavingRules
from namenode_sim.datanode_protocol.racks import Racks, Script, Source, Table
from namenode_sim.datanode_protocol.service import DatanodeService
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.draining import DrainRules
from namenode_sim.datanodes.errors import BadHosts
from namenode_sim.datanodes.liveness import LivenessRules, dead_after
from namenode_sim.datanodes.redundancy_check import RedundancyRules
from namenode_sim.datanodes.registry import NamespaceIds, RegistryRules
from namenode_sim.datanodes.report_leases import LeaseRules
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.process.client_service import ClientService
from namenode_sim.process.client_settings import client_settings
from namenode_sim.term.namenode import NameNode
from namenode_sim.term.role import Role

LIVE_KEYS: Final = (
    keys_datanode.HEARTBEAT_INTERVAL, keys.RECHECK, keys.STALE_AFTER, keys.DELETIONS,
    keys.REPORT_LEASES, keys.REPORT_LEASE_LENGTH, keys.COPIES_A_ROUND, keys.EXCESS_TIMEOUT,
    keys.LATE_HEARTBEATS, keys.CORRUPT_AT_ONCE, keys_files.PROTECTED, keys_files.PROTECTED_BELOW,
)  # fmt: skip
"""What ``live_changes`` takes over while a NameNode runs."""
DEFAULT_DELETIONS: Final = 1000
DELETIONS_A_SECOND: Final = 20
SILENT_HEARTBEATS: Final = 3
"""The missed heartbeats after which a DataNode is stale at the earliest.

Its address may be another's from then on.
"""


def keeper_rules(conf: Configuration, info: NamespaceInfo) -> KeeperRules:
    """Return the limits of DataNodes, out of Hadoop's keys."""
    heartbeat = conf.get(keys_datanode.HEARTBEAT_INTERVAL)
    deletions = conf.get(keys.DELETIONS) or DEFAULT_DELETIONS
    return KeeperRules(
        registry=RegistryRules(
            namespace=NamespaceIds(info.namespace_id, info.cluster_id, info.ctime),
            oldest_version=conf.get(keys.OLDEST_VERSION),
            elsewhere_seconds=SILENT_HEARTBEATS * heartbeat,
        ),
        leases=LeaseRules(
            most=conf.get(keys.REPORT_LEASES), seconds=conf.get(keys.REPORT_LEASE_LENGTH)
        ),
        liveness=LivenessRules(
            stale_seconds=_stale_after(conf),
            dead_seconds=dead_after(heartbeat, conf.get(keys.RECHECK)),
        ),
        redundancy=RedundancyRules(
            work_per_node=conf.get(keys.COPIES_A_ROUND),
            pending_seconds=conf.get(keys.COPY_TIMEOUT),
            excess_seconds=conf.get(keys.EXCESS_TIMEOUT),
            late_seconds=conf.get(keys.LATE_HEARTBEATS) * heartbeat,
            delete_corrupt_at_once=conf.get(keys.CORRUPT_AT_ONCE),
            maintained_least=conf.get(keys_hosts.MAINTAINED_LEAST),
        ),
        draining=DrainRules(
            check=conf.get(keys.DRAIN_CHECK), quiet_seconds=conf.get(keys.QUIET_PERIOD)
        ),
        hosts=LeavingRules(
            replication=conf.get(keys_files.REPLICATION),
            maintained_least=conf.get(keys_hosts.MAINTAINED_LEAST),
            look_seconds=conf.get(keys_hosts.LOOK),
            most_at_once=conf.get(keys_hosts.MOST_AT_ONCE),
        ),
        cache=CacheRules(
            enabled=conf.get(keys.CACHING), interval_seconds=conf.get(keys.CACHE_SCAN)
        ),
        reject_unresolved=conf.get(keys_hosts.REJECT_UNRESOLVED),
        deletions_at_once=max(deletions, round(DELETIONS_A_SECOND * heartbeat)),
    )


async def keeper_of(
    conf: Configuration, info: NamespaceInfo, namenode: NameNode, cluster: Cluster
) -> Keeper:
    """Return the owner of blocks and DataNodes; raise ConfigurationError for a bad hosts file."""
    keeper = Keeper(
        cluster,
        keeper_rules(conf, info),
        lambda: standing_of(namenode),
        has_caught_up=lambda: namenode.tailer.trouble is None,
    )
    keeper.use_racks(Racks(rack_source(conf)))
    files = host_files(conf)
    if files is not None:
        keeper.hosts.read = files.read
        try:
            await keeper.hosts.refresh()
        except BadHosts as bad:
            raise ConfigurationError(str(bad)) from bad
    keeper.safe_mode.await_edits()
    namenode.listen_for_roles(keeper.role_changed)
    return keeper


def host_files(conf: Configuration) -> HostFiles | None:
    """Return where the lists of hosts are; None if there are none."""
    include, exclude = conf.get(keys_hosts.INCLUDE), conf.get(keys_hosts.EXCLUDE)
    combined = conf.get(keys_hosts.PROVIDER) == keys_hosts.JSON_HOSTS
    if not include and (combined or not exclude):
        return None
    return HostFiles(
        Path(include) if include else None,
        Path(exclude) if exclude and not combined else None,
        combined=combined,
    )


def rack_source(conf: Configuration) -> Source | None:
    """Return what knows the racks of hosts; None if all are on the default rack."""
    script, table = conf.get(keys_hosts.SCRIPT), conf.get(keys_hosts.TABLE)
    if script and conf.get(keys_hosts.MAPPING) == keys_hosts.SCRIPT_MAPPING:
        return Script(script, conf.get(keys_hosts.SCRIPT_ARGUMENTS))
    return Table(Path(table)) if table else None


def datanode_protocols(
    keeper: Keeper, info: NamespaceInfo, client_service: ClientService
) -> tuple[RpcProtocol, RpcProtocol]:
    """Return what DataNodes call; the end of a block's recovery is an edit: the clients' face's."""
    client_service.refresh_nodes = keeper.refresh_nodes
    face = DatanodeService(keeper, info, client_service.commit_block_synchronization)
    return face.protocol(), face.lifeline()


def live_changes(
    conf: Configuration, info: NamespaceInfo, keeper: Keeper, client_service: ClientService
) -> RpcProtocol:
    """Return ReconfigurationProtocol: what changes the rules of a running NameNode."""

    def use(found: Configuration) -> None:
        rules, settings = keeper_rules(found, info), client_settings(found)
        keeper.use_rules(rules)
        keeper.cluster.stale_seconds = _stale_after(found)
        client_service.settings = settings

    changes = Reconfiguration(conf, LIVE_KEYS, use)
    return RpcProtocol(RECONFIGURATION, changes.methods(client_service.check_superuser))


def cluster_of(
    conf: Configuration, info: NamespaceInfo, namespace: Namespace, own_id: str
) -> Cluster:
    """Return the record of where the namespace's blocks are."""
    blocks = BlockState(
        minimum=conf.get(keys_files.REPLICATION_MIN), safe_minimum=conf.get(keys.SAFE_REPLICATION)
    )
    rules = SafeModeRules(
        threshold=conf.get(keys.SAFE_SHARE),
        min_datanodes=conf.get(keys.SAFE_DATANODES),
        extension_seconds=conf.get(keys.SAFE_EXTENSION),
    )
    cluster = Cluster(info.block_pool_id, blocks, random.Random(), rules)
    cluster.stale_seconds = _stale_after(conf)
    cluster.block_keys = _block_keys(conf, own_id)
    unset = conf.get(keys_datanode.BLOCK_TOKENS) is None
    cluster.tokens_may_end = unset and data_algorithm(conf) is None
    cluster.belong_to(namespace)
    return cluster


def _block_keys(conf: Configuration, own_id: str) -> KeyRing | None:
    """Return the first keys of block tokens; None where DataNodes are to ask for none.

    Each NameNode numbers its keys in a range of its own, as in Hadoop: a DataNode keeps those of
    all of them by their numbers.
    """
    if conf.get(keys_datanode.BLOCK_TOKENS) is False:
        return None
    ids = namenode_ids(conf, nameservice_of(conf))
    width = KEY_IDS // len(ids)
    return first_ring(
        1 + ids.index(own_id) * width + secrets.randbelow(width // 2),
        wall_ms(),
        round(conf.get(keys_datanode.BLOCK_KEY_INTERVAL) * 1000),
        round(conf.get(keys_datanode.BLOCK_TOKEN_LIFETIME) * 1000),
        secrets.token_bytes,
    )


def _stale_after(conf: Configuration) -> float:
    """Return the seconds of silence after which a DataNode is avoided.

    A lost heartbeat or two do not count.
    """
    heartbeat = conf.get(keys_datanode.HEARTBEAT_INTERVAL)
    return max(conf.get(keys.STALE_AFTER), SILENT_HEARTBEATS * heartbeat)


def standing_of(namenode: NameNode) -> Standing:
    """Return what may be reported to DataNodes now.

    Only with the read lease may a NameNode say that it is the active: one that was stopped, and
    goes on, must not be obeyed by DataNodes that have not heard of its successor yet.
    """
    edit_log, writer = namenode.edit_log, namenode.writer
    if edit_log is None:
        return Standing(active=False, durable=namenode.namespace.last_applied)
    active = namenode.state.role is Role.ACTIVE and writer is not None
    leased = writer is not None and writer.read_lease.valid()
    return Standing(
        active=active and leased, durable=edit_log.committed_txid, lapsed=active and not leased
    )
