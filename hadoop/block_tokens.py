"""Block tokens: what proves to a DataNode that a NameNode lets its caller use a block.  Pure.

A token is an identifier (a user, a block, what may be done with it, until when) and its HMAC-SHA1
under a key that NameNodes and DataNodes share.  The bytes are those of Hadoop's
``BlockTokenIdentifier`` and ``BlockTokenSecretManager``.

See docs/reference/block-tokens.md.
"""

import base64
import hmac
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from google.protobuf.message import DecodeError

from ha.record import dataclass
from hadoop import writable
from hadoop.longs import signed
from hadoop.proto import block_tokens_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.errors import DataNodeError, UnknownKey

KIND: Final = "HDFS_BLOCK_TOKEN"
MAX_NAMES: Final = 64
"""Storages in one token; a pipeline has at most as many DataNodes."""
_SECRET_BYTES: Final = 20
NONCE_BYTES: Final = 8
KEY_IDS: Final = 0x7FFFFFFF
"""Keys are numbered from 1 to this."""
_MASK_32: Final = 0xFFFFFFFF


class Mode(StrEnum):
    """What a token allows; the names are Hadoop's."""

    READ = "READ"
    WRITE = "WRITE"
    COPY = "COPY"
    REPLACE = "REPLACE"


class TokenRefused(DataNodeError):
    """A token does not prove what the caller asks for."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token says.  ``storage_types`` and ``storage_ids`` are empty where any will do."""

    user: str
    pool: str
    block_id: int
    modes: frozenset[Mode]
    storage_types: tuple[str, ...] = ()
    storage_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockKey:
    """A key that signs tokens; ``expiry_ms`` is Unix milliseconds."""

    key_id: int
    expiry_ms: int
    secret: bytes

    def message(self) -> pb.BlockKeyProto:
        return pb.BlockKeyProto(
            keyId=self.key_id & _MASK_32, expiryDate=self.expiry_ms, keyBytes=self.secret
        )


NO_KEY: Final = BlockKey(0, 0, b"")
NO_TOKEN: Final = hdfs.TokenProto(identifier=b"", password=b"", kind="", service="")
NO_KEYS: Final = pb.ExportedBlockKeysProto(
    isBlockTokenEnabled=False, keyUpdateInterval=0, tokenLifeTime=0, currentKey=NO_KEY.message()
)
"""What stands for "no block tokens" (ExportedBlockKeys.DUMMY_KEYS)."""


def token_of(grant: Grant, key: BlockKey, expiry_ms: int) -> hdfs.TokenProto:
    """Return a token that is good until ``expiry_ms``, signed with a key."""
    identifier = b"".join((
        writable.vlong(expiry_ms),
        writable.vint(key.key_id),
        _encode_owner(grant.user, grant.pool),
        writable.vlong(grant.block_id),
        _encode_scope(grant.modes, grant.storage_types, grant.storage_ids),
    ))  # fmt: skip
    return hdfs.TokenProto(
        identifier=identifier, password=_sign(identifier, key.secret), kind=KIND, service=""
    )


@lru_cache(maxsize=4096)
def _encode_owner(user: str, pool: str) -> bytes:
    """Return what all tokens of a user have in common: a listing has thousands of them."""
    return writable.long_string(user) + writable.long_string(pool)


@lru_cache(maxsize=4096)
def _encode_scope(
    modes: frozenset[Mode], storage_types: tuple[str, ...], storage_ids: tuple[str, ...]
) -> bytes:
    return b"".join((
        _texts(mode for mode in Mode if mode in modes),
        _texts(storage_types),
        writable.vint(len(storage_ids)),
        *map(writable.long_string, storage_ids),
    ))  # fmt: skip


def _texts(names: Iterable[str]) -> bytes:
    texts = [writable.text(name) for name in names]
    return b"".join((writable.vint(len(texts)), *texts))


def _sign(identifier: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, identifier, "sha1")


def check(
    token: hdfs.TokenProto, keys: Mapping[int, BlockKey], wanted: Grant, now_ms: int
) -> Grant:
    """Return what a token says, if it allows what is wanted (``wanted.modes`` is one mode).

    A refusal says nothing of a token whose signature is wrong, but that it has ended.

    Raises:
        TokenRefused: the token is none, is not signed with a key of ours, is of another block, has
            ended, or does not allow this.
    """
    grant, password = read(token.identifier, keys, now_ms)
    if not hmac.compare_digest(password, token.password):
        raise TokenRefused("the block token's signature is wrong")
    if (grant.pool, grant.block_id) != (wanted.pool, wanted.block_id):
        raise TokenRefused(f"the block token of {grant.user} is for block {grant.block_id}")
    if not wanted.modes <= grant.modes:
        raise TokenRefused(f"the block token of {grant.user} does not allow {min(wanted.modes)}")
    _check_names("storage types", grant.storage_types, wanted.storage_types)
    _check_names("storages", grant.storage_ids, wanted.storage_ids)
    return grant


def read(identifier: bytes, keys: Mapping[int, BlockKey], now_ms: int) -> tuple[Grant, bytes]:
    """Return what a token says that has not ended, and its password; raise TokenRefused."""
    if not identifier:
        raise TokenRefused("the request has no block token")
    try:
        expiry_ms, key_id, grant = decode(identifier)
    except (ValueError, IndexError, DecodeError) as problem:
        raise TokenRefused(f"the block token makes no sense: {problem}") from problem
    key = keys.get(key_id)
    if key is None or key.expiry_ms < now_ms:
        raise TokenRefused(f"the block token is signed with key {key_id}, which is not known here")
    if expiry_ms < now_ms:
        raise TokenRefused("the block token has ended")
    return grant, _sign(identifier, key.secret)


def _check_names(what: str, granted: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    """Refuse storages that a token does not name; one that names none allows all."""
    left = list(granted)
    for name in wanted if granted else ():
        if name not in left:
            raise TokenRefused(f"the block token's {what} do not fit the request")
        left.remove(name)


def decode(identifier: bytes) -> tuple[int, int, Grant]:
    """Return when an identifier ends (Unix milliseconds), the id of its key, and what it says.

    Both of Hadoop's forms are read: a protobuf begins with a positive byte, a Writable does not.
    What stands behind the fields (the secret of a handshake) is passed over, as in Hadoop.

    Raises:
        ValueError, IndexError, DecodeError: for bytes that make no sense.
    """
    if 0 < identifier[0] < 128:
        return _decode_protobuf(identifier)
    expiry_ms, pos = writable.read_vlong(identifier, 0)
    key_id, pos = writable.read_vint(identifier, pos)
    user, pos = writable.read_long_string(identifier, pos)
    pool, pos = writable.read_long_string(identifier, pos)
    block_id, pos = writable.read_vlong(identifier, pos)
    modes, pos = _names(identifier, pos, writable.read_text)
    types, pos = _names(identifier, pos, writable.read_text)
    storages, pos = _names(identifier, pos, writable.read_long_string)
    grant = Grant(user, pool, block_id, frozenset(map(Mode, modes)), types, storages)
    return expiry_ms, key_id, grant


def _names(
    data: bytes, pos: int, read: Callable[[bytes, int], tuple[str, int]]
) -> tuple[tuple[str, ...], int]:
    count, pos = writable.read_vint(data, pos)
    if not 0 <= count <= MAX_NAMES:
        raise ValueError(f"{count} names, at most {MAX_NAMES}")
    names = []
    for _ in range(count):
        name, pos = read(data, pos)
        names.append(name)
    return tuple(names), pos


def _decode_protobuf(identifier: bytes) -> tuple[int, int, Grant]:
    told = pb.BlockTokenSecretProto.FromString(identifier)
    if max(len(told.modes), len(told.storageTypes), len(told.storageIds)) > MAX_NAMES:
        raise ValueError(f"more than {MAX_NAMES} names")
    block_id = signed(told.blockId)
    modes = frozenset(Mode(pb.AccessModeProto.Name(mode)) for mode in told.modes)
    types = tuple(hdfs.StorageTypeProto.Name(one) for one in told.storageTypes)
    grant = Grant(told.userId, told.blockPoolId, block_id, modes, types, tuple(told.storageIds))
    return told.expiryDate, _signed_id(told.keyId), grant


# ---- keys of encrypted connections ----


def data_key(
    key: BlockKey, pool: str, nonce: bytes, expiry_ms: int, algorithm: str
) -> hdfs.DataEncryptionKeyProto:
    """Return what both ends of an encrypted connection prove: the HMAC of a nonce.

    ``algorithm`` is the cipher of DIGEST-MD5 that the one who calls is to take; empty: any.
    """
    return hdfs.DataEncryptionKeyProto(
        keyId=key.key_id & _MASK_32, blockPoolId=pool, nonce=nonce, expiryDate=expiry_ms,
        encryptionKey=_sign(nonce, key.secret), encryptionAlgorithm=algorithm or None,
    )  # fmt: skip


def data_secret(user: str, pool: str, keys: Mapping[int, BlockKey], now_ms: int) -> bytes:
    """Return the secret of the data encryption key that the user of a handshake names.

    Raises:
        UnknownKey: it was made with a block key that is not known here, or has ended.
        TokenRefused: the user names no such key, or one of another pool.
    """
    try:
        number, named, text = user.split(" ")
        key_id, nonce = int(number), base64.b64decode(text, validate=True)
    except ValueError as problem:
        raise TokenRefused("the user names no data encryption key") from problem
    # Another length could be a block token's identifier, whose HMAC its holder has.
    if named != pool or len(nonce) != NONCE_BYTES:
        raise TokenRefused("the data encryption key is none of this block pool")
    key = keys.get(key_id)
    if key is None or key.expiry_ms < now_ms:
        raise UnknownKey(
            f"the data encryption key was made with key {key_id}, which is not known here"
        )
    return _sign(nonce, key.secret)


# ---- the keys of a NameNode ----


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys of one NameNode: it signs with ``current``; ``known`` has the next and older ones.

    DataNodes have the next one before it signs, so that no token comes before its key.
    """

    current: BlockKey
    following: BlockKey
    known: Mapping[int, BlockKey]
    rolled_ms: int
    interval_ms: int
    lifetime_ms: int

    def message(self) -> pb.ExportedBlockKeysProto:
        """Return all keys, for DataNodes and balancers."""
        return pb.ExportedBlockKeysProto(
            isBlockTokenEnabled=True,
            keyUpdateInterval=self.interval_ms,
            tokenLifeTime=self.lifetime_ms,
            currentKey=self.current.message(),
            allKeys=[key.message() for key in self.known.values()],
        )

    def token(self, grant: Grant, now_ms: int) -> hdfs.TokenProto:
        return token_of(grant, self.current, now_ms + self.lifetime_ms)

    def data_key(
        self, pool: str, nonce: bytes, now_ms: int, algorithm: str
    ) -> hdfs.DataEncryptionKeyProto:
        return data_key(self.current, pool, nonce, now_ms + self.lifetime_ms, algorithm)


def first_ring(
    serial: int, now_ms: int, interval_ms: int, lifetime_ms: int, secret: Callable[[int], bytes]
) -> KeyRing:
    """Return the keys of a NameNode that starts.

    ``serial`` is drawn from a range that no other NameNode of the nameservice draws from: two keys
    of one id would make the tokens of one of them wrong.  ``secret`` draws random bytes.
    """
    current = BlockKey(serial, now_ms + 2 * interval_ms + lifetime_ms, secret(_SECRET_BYTES))
    following = BlockKey(
        _after(serial), now_ms + 3 * interval_ms + lifetime_ms, secret(_SECRET_BYTES)
    )
    known = MappingProxyType({key.key_id: key for key in (current, following)})
    return KeyRing(current, following, known, now_ms, interval_ms, lifetime_ms)


def rolled(ring: KeyRing, now_ms: int, secret: Callable[[int], bytes]) -> KeyRing:
    """Return a NameNode's keys as they are now: after an interval the next one signs.

    Clocks are set back: keys are rolled by the time that has passed since, whatever its sign.
    """
    if abs(now_ms - ring.rolled_ms) < ring.interval_ms:
        return ring
    interval_ms, lifetime_ms = ring.interval_ms, ring.lifetime_ms
    retired = BlockKey(ring.current.key_id, now_ms + interval_ms + lifetime_ms, ring.current.secret)
    current = BlockKey(
        ring.following.key_id, now_ms + 2 * interval_ms + lifetime_ms, ring.following.secret
    )
    following = BlockKey(
        _after(current.key_id), now_ms + 3 * interval_ms + lifetime_ms, secret(_SECRET_BYTES)
    )
    known = {key.key_id: key for key in ring.known.values() if key.expiry_ms >= now_ms}
    known |= {key.key_id: key for key in (retired, current, following)}
    return KeyRing(current, following, MappingProxyType(known), now_ms, interval_ms, lifetime_ms)


def _signed_id(number: int) -> int:
    """Return a key's id as Java has it, whose messages carry it without a sign."""
    return number - (1 << 32) if number >> 31 else number


def _after(serial: int) -> int:
    return serial + 1 if serial < KEY_IDS else 1


def keys_of(message: pb.ExportedBlockKeysProto) -> tuple[BlockKey, ...]:
    """Return the keys of a NameNode's message, the one that signs now first."""
    return tuple(
        BlockKey(_signed_id(key.keyId), key.expiryDate, key.keyBytes)
        for key in (message.currentKey, *message.allKeys)
        if key.keyBytes
    )
