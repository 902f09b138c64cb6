"""Bytes of the ops about no path."""

from collections.abc import Mapping
from typing import Any, Final

from hadoop import writable
from namenode_sim.edits import fields, ops, primitives, values
from namenode_sim.edits.fields import I16, I32, I64, MODE, RPC_IDS, STRING, TEXT, VINT, VLONG

MAX_KEY_BYTES: Final = 1024 * 1024
MAX_OPTIONS: Final = 1024 * 1024


_TOKEN_FIELDS: Final = fields.record_of(
    values.DelegationTokenIdentifier, TEXT, TEXT, TEXT, VLONG, VLONG, VINT, VINT
)


def _read_token(data: bytes, pos: int) -> tuple[Any, int]:
    """Read a token's identifier behind its version (AbstractDelegationTokenIdentifier)."""
    if data[pos] != 0:
        raise ValueError(f"a delegation token of version {data[pos]}; only 0 is known")
    return _TOKEN_FIELDS.read(data, pos + 1)


def _read_key(data: bytes, pos: int) -> tuple[bytes | None, int]:
    """Read the bytes of a master key; the length -1 stands for none."""
    size, behind = writable.read_vint(data, pos)
    return (None, behind) if size == -1 else writable.read_sized(data, pos, MAX_KEY_BYTES)


def _key(key: bytes | None) -> bytes:
    return writable.vint(-1) if key is None else writable.vint(len(key)) + key


def _read_option(data: bytes, pos: int) -> tuple[tuple[str, str], int]:
    name, pos = primitives.read_string(data, pos)
    content, pos = primitives.read_string(data, pos)
    return (name, content), pos


def _option(option: tuple[str, str]) -> bytes:
    return b"".join(map(primitives.string, option))


TOKEN: Final = fields.Field(_read_token, lambda token: b"\x00" + _TOKEN_FIELDS.write(token))
MASTER_KEY: Final = fields.record_of(
    values.DelegationKey, VINT, VLONG, fields.Field(_read_key, _key)
)
DIRECTIVE: Final = fields.flagged_record_of(values.CacheDirective, I64, STRING, I16, STRING, I64)
POOL: Final = fields.flagged_record_of(
    values.CachePool, STRING, STRING, STRING, MODE, I64, I64, I16
)
OPTIONS: Final = fields.list_of(fields.Field(_read_option, _option), 4, MAX_OPTIONS, "options")
EC_POLICY: Final = fields.record_of(values.EcPolicy, STRING, I32, I32, I32, OPTIONS)

ADMIN_CODECS: Final[Mapping[type[ops.Op], tuple[fields.Reader, fields.Writer]]] = {
    op: fields.codec_of(op, *parts)
    for op, parts in {
        ops.GetDelegationToken: (TOKEN, I64),
        ops.RenewDelegationToken: (TOKEN, I64),
        ops.CancelDelegationToken: (TOKEN,),
        ops.UpdateMasterKey: (MASTER_KEY,),
        ops.EndLogSegment: (),
        ops.StartLogSegment: (),
        ops.AddCacheDirective: (DIRECTIVE, RPC_IDS),
        ops.ModifyCacheDirective: (DIRECTIVE, RPC_IDS),
        ops.RemoveCacheDirective: (I64, RPC_IDS),
        ops.AddCachePool: (POOL, RPC_IDS),
        ops.ModifyCachePool: (POOL, RPC_IDS),
        ops.RemoveCachePool: (STRING, RPC_IDS),
        ops.RollingUpgradeStart: (I64,),
        ops.RollingUpgradeFinalize: (I64,),
        ops.AddErasureCodingPolicy: (EC_POLICY, RPC_IDS),
        ops.EnableErasureCodingPolicy: (STRING, RPC_IDS),
        ops.DisableErasureCodingPolicy: (STRING, RPC_IDS),
        ops.RemoveErasureCodingPolicy: (STRING, RPC_IDS),
    }.items()
}
