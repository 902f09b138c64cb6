"""Connects to DataNodes, with the key of encrypted connections where a cluster has them."""

from typing import Protocol

from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire import handshake
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.errors import UnknownKey
from hadoop.wire.peer import NO_BUDGET, Peer


class DataKeys(Protocol):
    """Gives the keys of connections to DataNodes."""

    async def data_key(
        self, refused: hdfs.DataEncryptionKeyProto | None = None
    ) -> hdfs.DataEncryptionKeyProto | None:
        """Return a key, another one than a DataNode has ``refused``; None: nothing is encrypted.

        Raises:
            FilesError: no NameNode gives one.
        """


async def connect(
    keys: DataKeys,
    to: hdfs.DatanodeIDProto,
    token: hdfs.TokenProto,
    *,
    seconds: float,
    budget: ByteBudget = NO_BUDGET,
) -> Peer:
    """Connect to a DataNode; one that does not know our key is asked once more with a new one.

    Raises:
        PeerLost, MalformedTransfer: as ``handshake.connect``.
        FilesError: as ``data_key``.
    """
    key = await keys.data_key()
    try:
        return await handshake.connect(to, token, key=key, seconds=seconds, budget=budget)
    except UnknownKey:
        key = await keys.data_key(refused=key)
        return await handshake.connect(to, token, key=key, seconds=seconds, budget=budget)
