"""NamenodeProtocol: reports to another NameNode the namespace, and how far it goes.

What balancers ask on the same protocol is given to it.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from ha.conf.topology import HostPort
from ha.record import dataclass
from ha.rpc.client import RpcConnection
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import NAMENODE_PROTOCOL, NO_SUCH_METHOD
from ha.rpc.protocol import Call, Method, RpcProtocol
from hadoop.proto import namenode_protocol_pb2 as pb
from journal.model import NamespaceInfo, TxId

SOFTWARE_VERSION: Final = "3.5.0"
"""The Hadoop release whose protocols we speak; a Java NameNode compares it."""
_BUILD: Final = "nnha"
_MASK_32: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Facts:
    """What a NameNode says of its namespace.

    Args:
        namespace: its ids and layout.
        image_txid: the newest image it can serve.
        last_txid: the last edit that is durable.
        upgrade_finalized: whether no upgrade waits for its end.
        rolling_upgrade: whether a rolling upgrade runs.
    """

    namespace: NamespaceInfo
    image_txid: TxId
    last_txid: TxId
    upgrade_finalized: bool
    rolling_upgrade: bool


def namenode_protocol(
    facts: Callable[[], Facts],
    check: Callable[[Call], Awaitable[None]],
    more: Mapping[str, Method] | None = None,
) -> RpcProtocol:
    """Return the server's side, with ``more`` methods.

    ``facts`` is asked anew for each call; ``check`` raises RemoteFault for who may not call.
    """

    async def version(call: Call, _: pb.VersionRequestProto) -> pb.VersionResponseProto:
        await check(call)
        return pb.VersionResponseProto(info=info_to_wire(facts().namespace))

    async def last_txid(
        call: Call, _: pb.GetTransactionIdRequestProto
    ) -> pb.GetTransactionIdResponseProto:
        await check(call)
        return pb.GetTransactionIdResponseProto(txId=facts().last_txid)

    async def image_txid(
        call: Call, _: pb.GetMostRecentCheckpointTxIdRequestProto
    ) -> pb.GetMostRecentCheckpointTxIdResponseProto:
        await check(call)
        return pb.GetMostRecentCheckpointTxIdResponseProto(txId=facts().image_txid)

    async def upgrade_finalized(
        call: Call, _: pb.IsUpgradeFinalizedRequestProto
    ) -> pb.IsUpgradeFinalizedResponseProto:
        await check(call)
        return pb.IsUpgradeFinalizedResponseProto(isUpgradeFinalized=facts().upgrade_finalized)

    async def rolling_upgrade(
        call: Call, _: pb.IsRollingUpgradeRequestProto
    ) -> pb.IsRollingUpgradeResponseProto:
        await check(call)
        return pb.IsRollingUpgradeResponseProto(isRollingUpgrade=facts().rolling_upgrade)

    return RpcProtocol(
        NAMENODE_PROTOCOL,
        {
            "versionRequest": Method(pb.VersionRequestProto, version),
            "getTransactionId": Method(pb.GetTransactionIdRequestProto, last_txid),
            "getMostRecentCheckpointTxId": Method(
                pb.GetMostRecentCheckpointTxIdRequestProto, image_txid
            ),
            "isUpgradeFinalized": Method(pb.IsUpgradeFinalizedRequestProto, upgrade_finalized),
            "isRollingUpgrade": Method(pb.IsRollingUpgradeRequestProto, rolling_upgrade),
            **(more or {}),
        },
    )


async def ask_facts(address: HostPort, *, deadline_seconds: float) -> Facts:
    """Ask the NameNode at ``address``, ours or Hadoop's.

    Raises:
        RpcError: if it does not answer, or refuses.
    """
    connection = await RpcConnection.open(
        address.host,
        address.port,
        protocol=NAMENODE_PROTOCOL,
        deadline_seconds=deadline_seconds,
    )
    try:
        return await _ask(connection, deadline_seconds)
    finally:
        await connection.close()


async def _ask(connection: RpcConnection, deadline: float) -> Facts:
    version = await connection.call(
        "versionRequest",
        pb.VersionRequestProto(),
        pb.VersionResponseProto,
        deadline_seconds=deadline,
    )
    finalized = await connection.call(
        "isUpgradeFinalized",
        pb.IsUpgradeFinalizedRequestProto(),
        pb.IsUpgradeFinalizedResponseProto,
        deadline_seconds=deadline,
    )
    # The image before the end: then every edit that we ask the journal for is behind the image.
    image = await connection.call(
        "getMostRecentCheckpointTxId",
        pb.GetMostRecentCheckpointTxIdRequestProto(),
        pb.GetMostRecentCheckpointTxIdResponseProto,
        deadline_seconds=deadline,
    )
    last = await connection.call(
        "getTransactionId",
        pb.GetTransactionIdRequestProto(),
        pb.GetTransactionIdResponseProto,
        deadline_seconds=deadline,
    )
    return Facts(
        namespace=_info_from_wire(version.info),
        image_txid=TxId(image.txId),
        last_txid=TxId(last.txId),
        upgrade_finalized=finalized.isUpgradeFinalized,
        rolling_upgrade=await _rolling(connection, deadline),
    )


async def _rolling(connection: RpcConnection, deadline: float) -> bool:
    try:
        answer = await connection.call(
            "isRollingUpgrade",
            pb.IsRollingUpgradeRequestProto(),
            pb.IsRollingUpgradeResponseProto,
            deadline_seconds=deadline,
        )
    except RemoteFault as fault:
        if fault.java_class != NO_SUCH_METHOD:
            raise
        return False  # Hadoop before 3.4 has no such question
    return answer.isRollingUpgrade


def info_to_wire(info: NamespaceInfo) -> pb.NamespaceInfoProto:
    """Return the message that names a namespace to NameNodes and DataNodes."""
    return pb.NamespaceInfoProto(
        buildVersion=_BUILD,
        unused=0,
        blockPoolID=info.block_pool_id,
        softwareVersion=SOFTWARE_VERSION,
        storageInfo=pb.StorageInfoProto(
            layoutVersion=info.layout_version & _MASK_32,
            namespceID=info.namespace_id,
            clusterID=info.cluster_id,
            cTime=info.ctime,
        ),
    )


def _info_from_wire(message: pb.NamespaceInfoProto) -> NamespaceInfo:
    stored = message.storageInfo
    layout = stored.layoutVersion
    return NamespaceInfo(
        layout_version=layout - (1 << 32) if layout >= 1 << 31 else layout,
        namespace_id=stored.namespceID,
        cluster_id=stored.clusterID,
        ctime=stored.cTime,
        block_pool_id=message.blockPoolID,
    )
