"""Asks for block tokens and keys, and makes them for what this DataNode sends to others.

See docs/reference/block-tokens.md.
"""

import base64
import binascii
import secrets
import time
from collections.abc import Callable, Iterable, Sequence

import structlog

from datanode.metrics import TOKENS_REFUSED
from ha.security.sasl.mechanism import Protection
from hadoop import block_tokens
from hadoop.block_tokens import BlockKey, Grant, Mode, TokenRefused
from hadoop.blocks import Block, PoolId
from hadoop.proto import block_tokens_pb2 as tokens
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire import handshake
from hadoop.wire.block_messages import block_id_of
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.errors import UnknownKey
from hadoop.wire.peer import NO_BUDGET, Peer

log = structlog.get_logger()


class BlockAccess:
    """The keys of all NameNodes of one pool, by their ids, and whether tokens are asked for.

    They are where all NameNodes have them on: the tokens of one that has not would be lacking.
    ``wanted``: they are until a NameNode has registered this DataNode.  ``needed`` is why nothing
    is served where one has them off, empty where it is served without.  Callers choose one of
    ``protections`` in a handshake; without any, none is asked for.  ``key_bits``: of AES, which
    encrypts connections with privacy whose callers offer it; 0: the layer of SASL does.
    ``algorithm``: all connections are encrypted by data encryption keys, ours by that cipher of
    SASL (empty: any); None: they are not.
    """

    def __init__(
        self, pool: PoolId, *, wanted: bool, needed: str = "",
        protections: Sequence[Protection] = (), key_bits: int = 0, algorithm: str | None = None,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:  # fmt: skip
        self.encrypts = algorithm is not None
        self.protections = (Protection.PRIVACY,) if self.encrypts else protections
        self.key_bits, self._algorithm = key_bits, algorithm
        self._pool, self._wanted, self._needed, self._wall_ms = pool, wanted, needed, wall_ms
        self._keys: dict[int, BlockKey] = {}
        self._current: BlockKey | None = None
        self._lifetime_ms = 0
        self._is_on: dict[str, bool] = {}

    @property
    def is_on(self) -> bool:
        """Whether every operation needs a token."""
        return all(self._is_on.values()) if self._is_on else self._wanted

    def learn(self, namenode: str, told: tokens.ExportedBlockKeysProto) -> None:
        """Take over the keys of a NameNode; those that have ended are forgotten."""
        now_ms = self._wall_ms()
        was_on, self._is_on[namenode] = self.is_on, told.isBlockTokenEnabled
        self._keys = {one.key_id: one for one in self._keys.values() if one.expiry_ms >= now_ms}
        if told.isBlockTokenEnabled:
            found = block_tokens.keys_of(told)
            self._keys |= {one.key_id: one for one in found}
            self._current, self._lifetime_ms = found[0] if found else None, told.tokenLifeTime
        if was_on != self.is_on or len(self._is_on) == 1:
            log.info("datanode.block_tokens", asked_for=self.is_on, namenode=namenode)

    def check(
        self, header: pb.BaseHeaderProto, mode: Mode, types: Iterable[int] = (),
        storages: Iterable[str] = (),
    ) -> None:  # fmt: skip
        """Check that a request may do this to its block, on storages of these types and ids.

        Raises:
            TokenRefused: it has no token that proves it.
        """
        block = header.block
        if not self.is_on and not self._needed:
            return
        names = tuple(hdfs.StorageTypeProto.Name(_type(one)) for one in types)
        wanted = Grant(
            "", block.poolId, block_id_of(block.blockId), frozenset({mode}), names, tuple(storages)
        )
        try:
            block_tokens.check(header.token, self._keys, wanted, self._wall_ms())
        except TokenRefused as refusal:
            TOKENS_REFUSED.labels(mode.lower()).inc()
            if self.is_on:
                raise
            raise TokenRefused(
                f"a NameNode gives no block tokens here, and {self._needed}"
            ) from refusal

    def password(self, user: str) -> bytes:
        """Return the password of a handshake.

        The user is a token's identifier in base64, or names a data encryption key.

        Raises:
            TokenRefused: it is no token or key of a NameNode of ours, or has ended.
            UnknownKey: it is a key, and is not known any more or not yet.
        """
        if self.encrypts:
            now_ms = self._wall_ms()
            return base64.b64encode(block_tokens.data_secret(user, self._pool, self._keys, now_ms))
        try:
            identifier = base64.b64decode(user, validate=True)
        except binascii.Error as problem:
            raise TokenRefused("the user is no block token") from problem
        _, password = block_tokens.read(identifier, self._keys, self._wall_ms())
        return base64.b64encode(password)

    def token(self, block: Block) -> hdfs.TokenProto:
        """Return the token with which another DataNode takes a copy of a block from this one."""
        if not self.is_on or self._current is None:
            return block_tokens.NO_TOKEN
        grant = Grant("", self._pool, block.block_id, frozenset({Mode.WRITE}))
        return block_tokens.token_of(grant, self._current, self._wall_ms() + self._lifetime_ms)

    async def connect(
        self, to: hdfs.DatanodeIDProto, token: hdfs.TokenProto, *, seconds: float,
        budget: ByteBudget = NO_BUDGET,
    ) -> Peer:  # fmt: skip
        """Connect to another DataNode, which has the same keys; raise as ``handshake.connect``."""
        key = self._data_key()
        return await handshake.connect(to, token, key=key, seconds=seconds, budget=budget)

    def _data_key(self) -> hdfs.DataEncryptionKeyProto | None:
        if self._algorithm is None:
            return None
        if self._current is None:
            raise UnknownKey("no NameNode has sent the keys of encrypted connections")
        nonce, until_ms = secrets.token_bytes(block_tokens.NONCE_BYTES), self._wall_ms()
        until_ms += self._lifetime_ms
        return block_tokens.data_key(self._current, self._pool, nonce, until_ms, self._algorithm)


def _type(number: int) -> hdfs.StorageTypeProto.ValueType:
    return hdfs.StorageTypeProto.ValueType(number)
