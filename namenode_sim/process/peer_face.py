"""What this NameNode offers to other NameNodes: facts about its namespace, and its images."""

from collections.abc import Sequence
from functools import partial

import structlog
from aiohttp import web

from ha.conf.configuration import Configuration
from ha.conf.keys import namenode as keys_namenode
from ha.rpc.protocol import RpcProtocol
from journal.errors import JournalError
from journal.model import TxId
from journal.quorum import majority
from namenode_sim.checkpoint.image_receive import ImageReceiver, Recipient
from namenode_sim.checkpoint.schedule import CheckpointRules
from namenode_sim.checkpoint.standby import StandbyCheckpointer, UploadSettings
from namenode_sim.startup.identity import NameNodeIdentity
from namenode_sim.storage.storage import NameStorage
from namenode_sim.term.namenode import NameNode
from namenode_sim.term.role import Role
from namenode_sim.transfer.image_server import ImageServer, TransferLimits
from namenode_sim.transfer.namenode_protocol import Facts, namenode_protocol

log = structlog.get_logger()


def peer_protocol(namenode: NameNode, storage: NameStorage, superuser: str) -> RpcProtocol:
    """NamenodeProtocol, as far as a bootstrapping standby needs it."""

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

    return namenode_protocol(facts, superuser)


def image_routes(
    conf: Configuration, storage: NameStorage, namenode: NameNode
) -> Sequence[web.RouteDef]:
    """GET and PUT /imagetransfer over the images in the name directories."""
    limits = TransferLimits(
        bytes_per_second=conf.get(keys_namenode.IMAGE_TRANSFER_BANDWIDTH),
        bootstrap_bytes_per_second=conf.get(keys_namenode.IMAGE_BOOTSTRAP_BANDWIDTH),
    )
    server = ImageServer(storage.namespace_info, lambda: storage.directories, limits)
    receiver = ImageReceiver(
        storage,
        Recipient(
            active=lambda: namenode.state.role is Role.ACTIVE,
            epoch=lambda: namenode.epoch,
            written_to=lambda: namenode.namespace.last_applied,
            received=partial(forget_old, storage, namenode),
            follows_to=partial(_follows_to, conf, namenode),
            fewest_inodes=partial(_fewest_inodes, conf, namenode),
        ),
        period_seconds=conf.get(keys_namenode.CHECKPOINT_PERIOD),
        edits=conf.get(keys_namenode.CHECKPOINT_TXNS),
        stall_seconds=conf.get(keys_namenode.IMAGE_TRANSFER_TIMEOUT),
    )
    return (*server.routes(), receiver.route())


def _follows_to(conf: Configuration, namenode: NameNode) -> TxId | None:
    """How far a standby has come that makes no images itself, so that others' are welcome."""
    makes_none = not conf.get(keys_namenode.STANDBY_CHECKPOINTS)
    if makes_none and namenode.state.role is Role.STANDBY:
        return namenode.namespace.last_applied
    return None


def _fewest_inodes(conf: Configuration, namenode: NameNode) -> int:
    """Half of what is there now: so much was not deleted since the image's last edit."""
    if conf.get(keys_namenode.IMAGE_ACCEPT_SHRINK):
        return 0
    return len(namenode.namespace.tree.inodes) // 2


def checkpointer(
    conf: Configuration, place: NameNodeIdentity, namenode: NameNode, storage: NameStorage
) -> StandbyCheckpointer | None:
    """The standby's checkpoints, unless ``dfs.ha.standby.checkpoints`` is off."""
    if not conf.get(keys_namenode.STANDBY_CHECKPOINTS):
        return None
    scope = {"nameservice": place.address.nameservice, "namenode": place.address.namenode}
    return StandbyCheckpointer(
        namenode,
        storage,
        {peer.namenode: peer.http for peer in place.peers},
        rules=CheckpointRules(
            period_seconds=conf.get(keys_namenode.CHECKPOINT_PERIOD, **scope),
            edits=conf.get(keys_namenode.CHECKPOINT_TXNS, **scope),
            check_seconds=conf.get(keys_namenode.CHECKPOINT_CHECK, **scope),
            quiet_multiplier=conf.get(keys_namenode.CHECKPOINT_QUIET, **scope),
        ),
        upload=UploadSettings(
            stall_seconds=conf.get(keys_namenode.IMAGE_TRANSFER_TIMEOUT),
            bytes_per_second=conf.get(keys_namenode.IMAGE_TRANSFER_BANDWIDTH),
        ),
    )


def forget_old(storage: NameStorage, namenode: NameNode, txid: TxId, copies: int) -> None:
    """Old images may go; old edits only once a majority of our directories has the new image."""
    first_needed = storage.purge()
    configured = len(storage.directories) + len(storage.failed)
    if copies < majority(configured):
        log.warning("checkpoint.edits_kept", txid=txid, directories=copies, configured=configured)
    elif namenode.writer is not None and first_needed > 0:
        try:
            namenode.writer.purge_logs(first_needed)
        except JournalError as refusal:
            log.warning("checkpoint.edits_kept", txid=txid, because=str(refusal))
