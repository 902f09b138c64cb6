"""Sections NS_INFO, SECRET_MANAGER, CACHE_MANAGER and ERASURE_CODING.

See docs/reference/formats.md#image-messages.
"""

from collections.abc import Iterator
from typing import Final

from hadoop.longs import signed
from journal.model import TxId
from namenode_sim.edits import values
from namenode_sim.edits.attributes import delimited
from namenode_sim.edits.values import DelegationKey
from namenode_sim.image.container import WriteBytes, next_message
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.unknown import check_texts, holds_unknown, keep_unknown, restore_unknown
from namenode_sim.namespace import state as namespace_state
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.state import ErasureCodingPolicy

ERASURE_CODING_LAYOUT: Final = -64
_MASK_64: Final = (1 << 64) - 1
_DEFAULT_REPLICATION: Final = 1


def read_ns_info(section: Iterator[bytes], namespace: Namespace) -> int:
    """Read counters and the last txid; return the namespace id."""
    raw = next_message(section)
    message = pb.NameSystemSection.FromString(raw)
    keep_unknown(namespace.unknown_fields, ("NS_INFO", ""), raw, message)
    counters = namespace.counters
    counters.generation_stamp_v1 = message.genstampV1
    counters.generation_stamp_v2 = message.genstampV2
    counters.generation_stamp_v1_limit = message.genstampV1Limit
    counters.last_block_id = message.lastAllocatedBlockId
    if message.HasField("lastAllocatedStripedBlockId"):
        counters.last_striped_block_id = signed(message.lastAllocatedStripedBlockId)
    if message.HasField("rollingUpgradeStartTime"):
        namespace.rolling_upgrade_start = message.rollingUpgradeStartTime
    namespace.last_applied = TxId(message.transactionId)
    return message.namespaceId


def write_ns_info(write: WriteBytes, namespace: Namespace, namespace_id: int, layout: int) -> None:
    counters = namespace.counters
    message = pb.NameSystemSection(
        namespaceId=namespace_id,
        genstampV1=counters.generation_stamp_v1,
        genstampV2=counters.generation_stamp_v2,
        genstampV1Limit=counters.generation_stamp_v1_limit,
        lastAllocatedBlockId=counters.last_block_id,
        transactionId=namespace.last_applied,
        rollingUpgradeStartTime=namespace.rolling_upgrade_start,
    )
    if (
        layout <= ERASURE_CODING_LAYOUT
        or counters.last_striped_block_id != namespace_state.NO_STRIPED_BLOCK_ID
    ):
        message.lastAllocatedStripedBlockId = counters.last_striped_block_id & _MASK_64
    restore_unknown(namespace.unknown_fields, ("NS_INFO", ""), message)
    write(delimited(message.SerializeToString()))


def read_secrets(section: Iterator[bytes], namespace: Namespace) -> None:
    raw = next_message(section)
    header = pb.SecretManagerSection.FromString(raw)
    secrets, kept = namespace.secrets, namespace.unknown_fields
    keep_unknown(kept, ("SECRET_MANAGER", ""), raw, header)
    secrets.current_key_id = header.currentId
    secrets.token_sequence_number = header.tokenSequenceNumber
    for _ in range(header.numKeys):
        raw = next_message(section)
        key = pb.DelegationKey.FromString(raw)
        keep_unknown(kept, ("DelegationKey", key.id), raw, key)
        content = key.key if key.HasField("key") else None
        secrets.keys[key.id] = DelegationKey(key.id, signed(key.expiryDate), content)
    for _ in range(header.numTokens):
        raw = next_message(section)
        token = pb.PersistToken.FromString(raw)
        keep_unknown(kept, ("PersistToken", token.sequenceNumber), raw, token)
        identifier = values.DelegationTokenIdentifier(
            token.owner,
            token.renewer,
            token.realUser,
            signed(token.issueDate),
            signed(token.maxDate),
            token.sequenceNumber,
            token.masterKeyId,
        )
        secrets.add(identifier, signed(token.expiryDate))


def write_secrets(write: WriteBytes, namespace: Namespace) -> None:
    secrets, kept = namespace.secrets, namespace.unknown_fields
    header = pb.SecretManagerSection(
        currentId=secrets.current_key_id,
        tokenSequenceNumber=secrets.token_sequence_number,
        numKeys=len(secrets.keys),
        numTokens=len(secrets.tokens),
    )
    restore_unknown(kept, ("SECRET_MANAGER", ""), header)
    write(delimited(header.SerializeToString()))
    for key in secrets.keys.values():
        record = pb.DelegationKey(id=key.key_id, expiryDate=key.expiry_date & _MASK_64, key=key.key)
        restore_unknown(kept, ("DelegationKey", key.key_id), record)
        write(delimited(record.SerializeToString()))
    for token, expiry in secrets.tokens.items():
        persisted = pb.PersistToken(
            owner=token.owner,
            renewer=token.renewer,
            realUser=token.real_user,
            issueDate=token.issue_date & _MASK_64,
            maxDate=token.max_date & _MASK_64,
            sequenceNumber=token.sequence_number,
            masterKeyId=token.master_key_id,
            expiryDate=expiry & _MASK_64,
        )
        restore_unknown(kept, ("PersistToken", token.sequence_number), persisted)
        write(delimited(persisted.SerializeToString()))


def read_cache(section: Iterator[bytes], namespace: Namespace) -> None:
    raw = next_message(section)
    header = pb.CacheManagerSection.FromString(raw)
    cache, kept = namespace.cache, namespace.unknown_fields
    keep_unknown(kept, ("CACHE_MANAGER", ""), raw, header)
    cache.next_directive_id = header.nextDirectiveId
    for _ in range(header.numPools):
        raw = next_message(section)
        pool = pb.CachePoolInfo.FromString(raw)
        keep_unknown(kept, ("CachePoolInfo", pool.poolName), raw, pool)
        replication = pool.defaultReplication if pool.HasField("defaultReplication") else None
        cache.pools[pool.poolName] = values.CachePool(
            pool.poolName,
            pool.ownerName,
            pool.groupName,
            pool.mode,
            pool.limit if pool.HasField("limit") else (1 << 63) - 1,
            pool.maxRelativeExpiry if pool.HasField("maxRelativeExpiry") else ((1 << 63) - 1) // 4,
            _DEFAULT_REPLICATION if replication is None else replication,
        )
    for _ in range(header.numDirectives):
        raw = next_message(section)
        found = pb.CacheDirectiveInfo.FromString(raw)
        keep_unknown(kept, ("CacheDirectiveInfo", found.id), raw, found)
        if found.HasField("expiration") and found.expiration.isRelative:
            raise ImageError(f"cache directive {found.id} has a relative expiry, expected a date")
        expiration = found.expiration.millis if found.HasField("expiration") else None
        cache.directives[found.id] = values.CacheDirective(
            found.id, found.path, found.replication, found.pool, expiration
        )


def write_cache(write: WriteBytes, namespace: Namespace) -> None:
    """Write cache pools and directives.

    Hadoop forgets a pool's default replication here; we write it where it says something, in the
    field that its message has for it.
    """
    cache, kept = namespace.cache, namespace.unknown_fields
    header = pb.CacheManagerSection(
        nextDirectiveId=cache.next_directive_id,
        numPools=len(cache.pools),
        numDirectives=len(cache.directives),
    )
    restore_unknown(kept, ("CACHE_MANAGER", ""), header)
    write(delimited(header.SerializeToString()))
    for pool in cache.pools.values():
        replication = pool.default_replication
        record = pb.CachePoolInfo(
            poolName=pool.name,
            ownerName=pool.owner,
            groupName=pool.group,
            mode=pool.mode,
            limit=pool.limit,
            maxRelativeExpiry=pool.max_relative_expiry,
            defaultReplication=None if replication == _DEFAULT_REPLICATION else replication,
        )
        restore_unknown(kept, ("CachePoolInfo", pool.name), record)
        write(delimited(record.SerializeToString()))
    for directive in cache.directives.values():
        entry = pb.CacheDirectiveInfo(
            id=directive.id,
            path=directive.path,
            replication=directive.replication,
            pool=directive.pool,
        )
        if directive.expiration is not None:
            entry.expiration.millis = directive.expiration
            entry.expiration.isRelative = False
        restore_unknown(kept, ("CacheDirectiveInfo", directive.id), entry)
        write(delimited(entry.SerializeToString()))


def read_erasure_coding(section: Iterator[bytes], namespace: Namespace) -> None:
    """Read erasure coding policies; of the system's own only id and state are stored."""
    raw = next_message(section)
    message = pb.ErasureCodingSection.FromString(raw)
    check_texts(message)
    if holds_unknown(pb.ErasureCodingSection.FromString(raw), raw):
        kept = namespace.unknown_fields
        for one in pb.ErasureCodingSection.FromString(raw).policies:
            kept["ErasureCodingPolicy", one.id] = one.SerializeToString()
        rest = pb.ErasureCodingSection.FromString(raw)
        rest.ClearField("policies")
        kept["ERASURE_CODING", ""] = rest.SerializeToString()
    for found in message.policies:
        namespace.ec_policies[found.id] = ec_policy(found)


def ec_policy(found: pb.ErasureCodingPolicy) -> ErasureCodingPolicy:
    """Return a policy of the image; the schema of the system's own is known, not stored."""
    state = namespace_state.EcState(found.state or namespace_state.EcState.DISABLED)
    known = namespace_state.system_ec_policies().get(found.id)
    if known is not None:
        known.state = state
        return known
    schema = found.schema
    options = tuple((option.key, option.value) for option in schema.options)
    policy = values.EcPolicy(
        schema.codecName, schema.dataUnits, schema.parityUnits, found.cellSize, options
    )
    return ErasureCodingPolicy(found.id, found.name, policy, state)


def write_erasure_coding(write: WriteBytes, namespace: Namespace) -> None:
    """Write erasure coding policies by id."""
    message = pb.ErasureCodingSection()
    for number in sorted(namespace.ec_policies):
        known = namespace.ec_policies[number]
        record = message.policies.add(id=number, state=known.state.value)
        if number >= namespace_state.FIRST_USER_EC_ID:
            record.name = known.name
            record.schema.codecName = known.policy.codec
            record.schema.dataUnits = known.policy.data_units
            record.schema.parityUnits = known.policy.parity_units
            for key, content in known.policy.options:
                record.schema.options.add(key=key, value=content)
            record.cellSize = known.policy.cell_size
        restore_unknown(namespace.unknown_fields, ("ErasureCodingPolicy", number), record)
    restore_unknown(namespace.unknown_fields, ("ERASURE_CODING", ""), message)
    write(delimited(message.SerializeToString()))
