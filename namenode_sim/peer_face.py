"""What this NameNode offers to other NameNodes: facts about its namespace, and its images."""

from collections.abc import Sequence

from aiohttp import web

from ha.conf import keys_namenode
from ha.conf.configuration import Configuration
from ha.rpc.protocol import RpcProtocol
from journal.model import TxId
from namenode_sim.image_server import ImageServer, TransferLimits
from namenode_sim.namenode import NameNode
from namenode_sim.namenode_protocol import Facts, namenode_protocol
from namenode_sim.storage import NameStorage


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


def image_routes(conf: Configuration, storage: NameStorage) -> Sequence[web.RouteDef]:
    """GET /imagetransfer over the images in the name directories."""
    limits = TransferLimits(
        bytes_per_second=conf.get(keys_namenode.IMAGE_TRANSFER_BANDWIDTH),
        bootstrap_bytes_per_second=conf.get(keys_namenode.IMAGE_BOOTSTRAP_BANDWIDTH),
    )
    server = ImageServer(storage.namespace_info, lambda: storage.directories, limits)
    return server.routes()
