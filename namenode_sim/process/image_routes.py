"""Where a NameNode gives and takes images by HTTP; loaded with aiohttp, when that is needed."""

from collections.abc import Sequence
from functools import partial

from aiohttp import web

from ha.conf.configuration import Configuration
from ha.conf.keys import namenode as keys_namenode
from journal.model import TxId
from namenode_sim.checkpoint.image_receive import ImageReceiver, Recipient
from namenode_sim.process.peer_service import checkpoint_rules, forget_old
from namenode_sim.startup.identity import NameNodeIdentity
from namenode_sim.storage.storage import NameStorage
from namenode_sim.term.namenode import NameNode
from namenode_sim.term.role import Role
from namenode_sim.transfer.image_server import ImageServer, TransferLimits


def image_routes(
    conf: Configuration, place: NameNodeIdentity, storage: NameStorage, namenode: NameNode
) -> Sequence[web.RouteDef]:
    """Return GET and PUT /imagetransfer over the images in the name directories."""
    rules = checkpoint_rules(conf, place.address)
    server = ImageServer(storage.namespace_info, lambda: storage.directories, image_limits(conf))
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
        period_seconds=rules.period_seconds,
        edits=rules.edits,
        stall_seconds=conf.get(keys_namenode.IMAGE_TRANSFER_TIMEOUT),
    )
    return (*server.routes(), receiver.route())


def image_limits(conf: Configuration) -> TransferLimits:
    """Return how fast images are sent to those that ask for them."""
    return TransferLimits(
        bytes_per_second=conf.get(keys_namenode.IMAGE_TRANSFER_BANDWIDTH),
        bootstrap_bytes_per_second=conf.get(keys_namenode.IMAGE_BOOTSTRAP_BANDWIDTH),
    )


def _follows_to(conf: Configuration, namenode: NameNode) -> TxId | None:
    """Return how far a standby has come that makes no images, and so accepts others'."""
    makes_none = not conf.get(keys_namenode.STANDBY_CHECKPOINTS)
    if makes_none and namenode.state.role is Role.STANDBY:
        return namenode.namespace.last_applied
    return None


def _fewest_inodes(conf: Configuration, namenode: NameNode) -> int:
    """Return half of the present inodes: an image with fewer would mean too many deletions."""
    if conf.get(keys_namenode.IMAGE_ACCEPT_SHRINK):
        return 0
    return len(namenode.namespace.tree.inodes) // 2
