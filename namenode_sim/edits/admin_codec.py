"""Bytes of the ops about no path.  ``file_codec`` explains how they work."""

from struct import Struct
from typing import Final

from namenode_sim.edits import ops, primitives, values
from namenode_sim.edits.file_codec import Read, Reader, Writer

MAX_KEY_BYTES: Final = 1024 * 1024

_EC_NUMBERS = Struct(">iii")  # data units, parity units, cell size


def _read_token(data: bytes, pos: int) -> tuple[values.DelegationTokenIdentifier, int]:
    if data[pos] != 0:
        raise ValueError(f"a delegation token of version {data[pos]}; only 0 is known")
    owner, pos = primitives.read_text(data, pos + 1)
    renewer, pos = primitives.read_text(data, pos)
    real_user, pos = primitives.read_text(data, pos)
    issued, pos = primitives.read_vlong(data, pos)
    max_date, pos = primitives.read_vlong(data, pos)
    sequence, pos = primitives.read_vint(data, pos)
    key_id, pos = primitives.read_vint(data, pos)
    token = values.DelegationTokenIdentifier(
        owner, renewer, real_user, issued, max_date, sequence, key_id
    )
    return token, pos


def _token(token: values.DelegationTokenIdentifier) -> bytes:
    return b"".join((
        b"\x00",
        primitives.text(token.owner),
        primitives.text(token.renewer),
        primitives.text(token.real_user),
        primitives.vlong(token.issue_date),
        primitives.vlong(token.max_date),
        primitives.vint(token.sequence_number),
        primitives.vint(token.master_key_id),
    ))  # fmt: skip


def read_get_token(data: bytes, pos: int, _layout: int) -> Read:
    """Read OP_GET_DELEGATION_TOKEN (18)."""
    token, pos = _read_token(data, pos)
    expiry, pos = primitives.read_i64(data, pos)
    return ops.GetDelegationToken(token, expiry), pos


def read_renew_token(data: bytes, pos: int, _layout: int) -> Read:
    """Read OP_RENEW_DELEGATION_TOKEN (19)."""
    token, pos = _read_token(data, pos)
    expiry, pos = primitives.read_i64(data, pos)
    return ops.RenewDelegationToken(token, expiry), pos


def write_token(op: ops.GetDelegationToken | ops.RenewDelegationToken, _layout: int) -> bytes:
    """Write OP_GET_DELEGATION_TOKEN (18) and OP_RENEW_DELEGATION_TOKEN (19)."""
    return _token(op.token) + primitives.I64.pack(op.expiry_time)


def read_cancel_token(data: bytes, pos: int, _layout: int) -> Read:
    """Read OP_CANCEL_DELEGATION_TOKEN (20)."""
    token, pos = _read_token(data, pos)
    return ops.CancelDelegationToken(token), pos


def write_cancel_token(op: ops.CancelDelegationToken, _layout: int) -> bytes:
    """Write OP_CANCEL_DELEGATION_TOKEN (20)."""
    return _token(op.token)


def read_master_key(data: bytes, pos: int, _layout: int) -> Read:
    key_id, pos = primitives.read_vint(data, pos)
    expiry, pos = primitives.read_vlong(data, pos)
    size, behind = primitives.read_vint(data, pos)
    if size == -1:
        return ops.UpdateMasterKey(values.DelegationKey(key_id, expiry, None)), behind
    key, pos = primitives.read_sized(data, pos, MAX_KEY_BYTES)
    return ops.UpdateMasterKey(values.DelegationKey(key_id, expiry, key)), pos


def write_master_key(op: ops.UpdateMasterKey, _layout: int) -> bytes:
    key = op.key.key
    head = primitives.vint(op.key.key_id) + primitives.vlong(op.key.expiry_date)
    return head + (primitives.vint(-1) if key is None else primitives.vint(len(key)) + key)


def read_end_log_segment(_data: bytes, pos: int, _layout: int) -> Read:
    return ops.EndLogSegment(), pos


def read_start_log_segment(_data: bytes, pos: int, _layout: int) -> Read:
    return ops.StartLogSegment(), pos


def write_nothing(_op: ops.StartLogSegment | ops.EndLogSegment, _layout: int) -> bytes:
    """Write nothing: segment marks have no body."""
    return b""


def _read_directive(data: bytes, pos: int) -> tuple[values.CacheDirective, int]:
    directive_id, pos = primitives.read_i64(data, pos)
    flags, pos = primitives.read_i32(data, pos)
    if flags & ~0xF:
        raise ValueError(f"a cache directive has unknown flags: {flags:#x}")
    path = replication = pool = expiration = None
    if flags & 1:
        path, pos = primitives.read_string(data, pos)
    if flags & 2:
        (replication,) = primitives.I16.unpack_from(data, pos)
        pos += 2
    if flags & 4:
        pool, pos = primitives.read_string(data, pos)
    if flags & 8:
        expiration, pos = primitives.read_i64(data, pos)
    return values.CacheDirective(directive_id, path, replication, pool, expiration), pos


def _directive(directive: values.CacheDirective) -> bytes:
    flags, parts = 0, []
    if directive.path is not None:
        flags |= 1
        parts.append(primitives.string(directive.path))
    if directive.replication is not None:
        flags |= 2
        parts.append(primitives.I16.pack(directive.replication))
    if directive.pool is not None:
        flags |= 4
        parts.append(primitives.string(directive.pool))
    if directive.expiration is not None:
        flags |= 8
        parts.append(primitives.I64.pack(directive.expiration))
    return primitives.I64.pack(directive.id) + primitives.I32.pack(flags) + b"".join(parts)


def read_add_directive(data: bytes, pos: int, _layout: int) -> Read:
    directive, pos = _read_directive(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.AddCacheDirective(directive, ids), pos


def read_modify_directive(data: bytes, pos: int, _layout: int) -> Read:
    """Read OP_MODIFY_CACHE_DIRECTIVE (39)."""
    directive, pos = _read_directive(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.ModifyCacheDirective(directive, ids), pos


def write_directive(op: ops.AddCacheDirective | ops.ModifyCacheDirective, _layout: int) -> bytes:
    """Write OP_ADD_CACHE_DIRECTIVE (34) and OP_MODIFY_CACHE_DIRECTIVE (39)."""
    return _directive(op.directive) + primitives.rpc_ids(op.rpc)


def read_remove_directive(data: bytes, pos: int, _layout: int) -> Read:
    """Read OP_REMOVE_CACHE_DIRECTIVE (35)."""
    directive_id, pos = primitives.read_i64(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.RemoveCacheDirective(directive_id, ids), pos


def write_remove_directive(op: ops.RemoveCacheDirective, _layout: int) -> bytes:
    """Write OP_REMOVE_CACHE_DIRECTIVE (35)."""
    return primitives.I64.pack(op.directive_id) + primitives.rpc_ids(op.rpc)


def _read_pool(data: bytes, pos: int) -> tuple[values.CachePool, int]:
    name, pos = primitives.read_string(data, pos)
    flags, pos = primitives.read_i32(data, pos)
    if flags & ~0x3F:
        raise ValueError(f"a cache pool has unknown flags: {flags:#x}")
    owner = group = bits = limit = expiry = replication = None
    if flags & 1:
        owner, pos = primitives.read_string(data, pos)
    if flags & 2:
        group, pos = primitives.read_string(data, pos)
    if flags & 4:
        bits, pos = primitives.read_mode(data, pos)
    if flags & 8:
        limit, pos = primitives.read_i64(data, pos)
    if flags & 0x10:
        expiry, pos = primitives.read_i64(data, pos)
    if flags & 0x20:
        (replication,) = primitives.I16.unpack_from(data, pos)
        pos += 2
    return values.CachePool(name, owner, group, bits, limit, expiry, replication), pos


def _pool(pool: values.CachePool) -> bytes:
    flags, parts = 0, []
    if pool.owner is not None:
        flags |= 1
        parts.append(primitives.string(pool.owner))
    if pool.group is not None:
        flags |= 2
        parts.append(primitives.string(pool.group))
    if pool.mode is not None:
        flags |= 4
        parts.append(primitives.mode(pool.mode))
    if pool.limit is not None:
        flags |= 8
        parts.append(primitives.I64.pack(pool.limit))
    if pool.max_relative_expiry is not None:
        flags |= 0x10
        parts.append(primitives.I64.pack(pool.max_relative_expiry))
    if pool.default_replication is not None:
        flags |= 0x20
        parts.append(primitives.I16.pack(pool.default_replication))
    return primitives.string(pool.name) + primitives.I32.pack(flags) + b"".join(parts)


def read_add_pool(data: bytes, pos: int, _layout: int) -> Read:
    pool, pos = _read_pool(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.AddCachePool(pool, ids), pos


def read_modify_pool(data: bytes, pos: int, _layout: int) -> Read:
    pool, pos = _read_pool(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.ModifyCachePool(pool, ids), pos


def write_pool(op: ops.AddCachePool | ops.ModifyCachePool, _layout: int) -> bytes:
    """Write OP_ADD_CACHE_POOL (36) and OP_MODIFY_CACHE_POOL (37)."""
    return _pool(op.pool) + primitives.rpc_ids(op.rpc)


def read_remove_pool(data: bytes, pos: int, _layout: int) -> Read:
    name, pos = primitives.read_string(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.RemoveCachePool(name, ids), pos


def read_upgrade_start(data: bytes, pos: int, _layout: int) -> Read:
    """Read OP_ROLLING_UPGRADE_START (41)."""
    return ops.RollingUpgradeStart(primitives.I64.unpack_from(data, pos)[0]), pos + 8


def write_upgrade_start(op: ops.RollingUpgradeStart, _layout: int) -> bytes:
    """Write OP_ROLLING_UPGRADE_START (41)."""
    return primitives.I64.pack(op.start_time)


def read_upgrade_finalize(data: bytes, pos: int, _layout: int) -> Read:
    """Read OP_ROLLING_UPGRADE_FINALIZE (42)."""
    return ops.RollingUpgradeFinalize(primitives.I64.unpack_from(data, pos)[0]), pos + 8


def write_upgrade_finalize(op: ops.RollingUpgradeFinalize, _layout: int) -> bytes:
    """Write OP_ROLLING_UPGRADE_FINALIZE (42)."""
    return primitives.I64.pack(op.finalize_time)


def read_add_ec_policy(data: bytes, pos: int, _layout: int) -> Read:
    """Read OP_ADD_ERASURE_CODING_POLICY (49)."""
    codec, pos = primitives.read_string(data, pos)
    data_units, parity_units, cell_size = _EC_NUMBERS.unpack_from(data, pos)
    count, pos = primitives.read_i32(data, pos + 12)
    # An option takes at least the four bytes of its two lengths.
    if not 0 <= count * 4 <= len(data) - pos:
        raise ValueError(f"{count} options, but {len(data) - pos} bytes are left")
    options = []
    for _ in range(count):
        name, pos = primitives.read_string(data, pos)
        content, pos = primitives.read_string(data, pos)
        options.append((name, content))
    ids, pos = primitives.read_rpc_ids(data, pos)
    policy = values.EcPolicy(codec, data_units, parity_units, cell_size, tuple(options))
    return ops.AddErasureCodingPolicy(policy, ids), pos


def write_add_ec_policy(op: ops.AddErasureCodingPolicy, _layout: int) -> bytes:
    """Write OP_ADD_ERASURE_CODING_POLICY (49)."""
    policy = op.policy
    numbers = _EC_NUMBERS.pack(policy.data_units, policy.parity_units, policy.cell_size)
    options = b"".join(
        primitives.string(name) + primitives.string(content) for name, content in policy.options
    )
    head = primitives.string(policy.codec) + numbers + primitives.I32.pack(len(policy.options))
    return head + options + primitives.rpc_ids(op.rpc)


def read_enable_ec_policy(data: bytes, pos: int, _layout: int) -> Read:
    """Read OP_ENABLE_ERASURE_CODING_POLICY (50)."""
    name, pos = primitives.read_string(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.EnableErasureCodingPolicy(name, ids), pos


def read_disable_ec_policy(data: bytes, pos: int, _layout: int) -> Read:
    """Read OP_DISABLE_ERASURE_CODING_POLICY (51)."""
    name, pos = primitives.read_string(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.DisableErasureCodingPolicy(name, ids), pos


def read_remove_ec_policy(data: bytes, pos: int, _layout: int) -> Read:
    """Read OP_REMOVE_ERASURE_CODING_POLICY (52)."""
    name, pos = primitives.read_string(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.RemoveErasureCodingPolicy(name, ids), pos


def write_name(
    op: ops.RemoveCachePool
    | ops.EnableErasureCodingPolicy
    | ops.DisableErasureCodingPolicy
    | ops.RemoveErasureCodingPolicy,
    _layout: int,
) -> bytes:
    """Write the name in ops 38, 50, 51 and 52."""
    return primitives.string(op.name) + primitives.rpc_ids(op.rpc)


ADMIN_CODECS: Final[dict[type[ops.Op], tuple[Reader, Writer]]] = {
    ops.GetDelegationToken: (read_get_token, write_token),
    ops.RenewDelegationToken: (read_renew_token, write_token),
    ops.CancelDelegationToken: (read_cancel_token, write_cancel_token),
    ops.UpdateMasterKey: (read_master_key, write_master_key),
    ops.EndLogSegment: (read_end_log_segment, write_nothing),
    ops.StartLogSegment: (read_start_log_segment, write_nothing),
    ops.AddCacheDirective: (read_add_directive, write_directive),
    ops.ModifyCacheDirective: (read_modify_directive, write_directive),
    ops.RemoveCacheDirective: (read_remove_directive, write_remove_directive),
    ops.AddCachePool: (read_add_pool, write_pool),
    ops.ModifyCachePool: (read_modify_pool, write_pool),
    ops.RemoveCachePool: (read_remove_pool, write_name),
    ops.RollingUpgradeStart: (read_upgrade_start, write_upgrade_start),
    ops.RollingUpgradeFinalize: (read_upgrade_finalize, write_upgrade_finalize),
    ops.AddErasureCodingPolicy: (read_add_ec_policy, write_add_ec_policy),
    ops.EnableErasureCodingPolicy: (read_enable_ec_policy, write_name),
    ops.DisableErasureCodingPolicy: (read_disable_ec_policy, write_name),
    ops.RemoveErasureCodingPolicy: (read_remove_ec_policy, write_name),
}
