"""What this NameNode offers to other NameNodes and to the ZKFC next to it.

The ZKFC knows no journal: this NameNode, which has connections to its nodes, reports for how long
the newest writer has been silent.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from ha.conf.configuration import Configuration
from ha.conf.keys import namenode as keys_namenode
from ha.conf.topology import NameNodeAddress
from ha.rpc.protocol import RpcProtocol
from ha.service.errors import ServiceFailed
from ha.service.journal_witness import journal_witness_protocol
from ha.service.model import WriterSilence
from journal.errors import JournalError
from journal.model import TxId
from journal.quorum import majority
from journal.silence import Silence
from namenode_sim.checkpoint.schedule import CheckpointRules
from namenode_sim.checkpoint.standby import StandbyCheckpointer, UploadSettings
from namenode_sim.process.balancer_service import BalancerService
from namenode_sim.process.client_service import ClientService
from namenode_sim.startup.identity import NameNodeIdentity
from namenode_sim.storage.storage import NameStorage
from namenode_sim.term.namenode import NameNode
from namenode_sim.transfer.namenode_protocol import Facts, namenode_protocol

log = structlog.get_logger()

WITHIN_SECONDS: Final = 0.2
"""A majority answers in a few milliseconds, or what it says would be old."""


def peer_protocol(
    namenode: NameNode, storage: NameStorage, client_service: ClientService
) -> RpcProtocol:
    """Return NamenodeProtocol, as far as a bootstrapping standby and balancers need it."""

    def facts() -> Facts:
        edit_log = namenode.edit_log
        applied = namenode.namespace.last_applied
        return Facts(
            namespace=storage.namespace_info,
            image_txid=storage.newest_txid(),
            # What is applied on the active may still vanish; what is committed may not.
            last_txid=applied if edit_log is None else TxId(edit_log.committed_txid),
            upgrade_finalized=not storage.upgrade_pending,
            rolling_upgrade=namenode.namespace.rolling_upgrade_start is not None,
        )

    of_balancers = BalancerService(client_service.admin()).methods()
    return namenode_protocol(facts, client_service.check_superuser, of_balancers)


def checkpointer(
    conf: Configuration, place: NameNodeIdentity, namenode: NameNode, storage: NameStorage
) -> StandbyCheckpointer | None:
    """Return the standby's checkpointer, or None if ``dfs.ha.standby.checkpoints`` is off."""
    if not conf.get(keys_namenode.STANDBY_CHECKPOINTS):
        return None
    return StandbyCheckpointer(
        namenode,
        storage,
        {peer.namenode: peer.http for peer in place.peers},
        rules=checkpoint_rules(conf, place.address),
        upload=upload_settings(conf),
    )


def checkpoint_rules(conf: Configuration, own: NameNodeAddress) -> CheckpointRules:
    """Return when this NameNode makes an image, out of Hadoop's keys."""
    scope = {"nameservice": own.nameservice, "namenode": own.namenode}
    return CheckpointRules(
        period_seconds=conf.get(keys_namenode.CHECKPOINT_PERIOD, **scope),
        edits=conf.get(keys_namenode.CHECKPOINT_TXNS, **scope),
        check_seconds=conf.get(keys_namenode.CHECKPOINT_CHECK, **scope),
        quiet_multiplier=conf.get(keys_namenode.CHECKPOINT_QUIET, **scope),
    )


def upload_settings(conf: Configuration) -> UploadSettings:
    """Return how an image is sent to the other NameNodes."""
    return UploadSettings(
        stall_seconds=conf.get(keys_namenode.IMAGE_TRANSFER_TIMEOUT),
        bytes_per_second=conf.get(keys_namenode.IMAGE_TRANSFER_BANDWIDTH),
    )


def forget_old(storage: NameStorage, namenode: NameNode, txid: TxId, copies: int) -> None:
    """Delete old images; old edits only once a majority of our directories has the new image."""
    first_needed = storage.purge()
    configured = len(storage.directories) + len(storage.failed)
    if copies < majority(configured):
        log.warning("checkpoint.edits_kept", txid=txid, directories=copies, configured=configured)
    elif namenode.writer is not None and first_needed > 0:
        try:
            namenode.writer.purge_logs(first_needed)
        except JournalError as refusal:
            log.warning("checkpoint.edits_kept", txid=txid, because=str(refusal))


def witness_protocol(silence: Callable[[float], Awaitable[Silence]]) -> RpcProtocol:
    """Return JournalWitness; ``silence`` asks the journal's nodes, within the given seconds."""

    async def tell() -> WriterSilence:
        try:
            told = await silence(WITHIN_SECONDS)
        except JournalError as failure:
            raise ServiceFailed(str(failure)) from failure
        return WriterSilence(
            nodes=told.nodes,
            witnesses=told.witnesses,
            epoch=told.epoch,
            silent_seconds=told.silent_seconds,
            lease_seconds=told.lease_seconds,
        )

    return journal_witness_protocol(tell)
