"""The fields of every op in Hadoop's XML, in its order: one table for both directions.

Hadoop's FSEditLogOp has a toXml and a fromXml in each op; the element names are from there.  What
XML does not contain (docs/reference/formats.md#edits-as-xml) gets the default of the op's class.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from ha.record import dataclass
from namenode_sim.edits import ops
from namenode_sim.edits.values import Block, CacheDirective, CachePool, RenameOption, StorageType
from namenode_sim.oev import xml_values
from namenode_sim.oev.stanza import Stanza
from namenode_sim.oev.xml_values import group


@dataclass(frozen=True, slots=True)
class Field:
    """How a part of an op is written, and the op's attributes that are read from it."""

    write: Callable[[Any], str]
    read: Callable[[Stanza], dict[str, Any]]


def _field(name: str, write: Callable[[Any], str], read: Callable[[Stanza], object]) -> Field:
    get = attrgetter(name)
    return Field(lambda op: write(get(op)), lambda stanza: {name: read(stanza)})


def _constant(lines: str) -> Field:
    return Field(lambda _op: lines, lambda _stanza: {})


def _text(tag: str, name: str) -> Field:
    return _field(name, lambda value: xml_values.leaf(tag, value), lambda stanza: stanza.value(tag))


def _number(tag: str, name: str) -> Field:
    return _field(
        name, lambda value: xml_values.number(tag, value), lambda stanza: stanza.number(tag)
    )


def _flag(tag: str, name: str) -> Field:
    return _field(
        name,
        lambda value: xml_values.leaf(tag, "true" if value else "false"),
        lambda stanza: (stanza.value_or_none(tag) or "").lower() == "true",
    )


def _owner(tag: str, name: str) -> Field:
    """Return a field that is left out where the op does not change it."""
    return _field(
        name,
        lambda value: xml_values.leaf(tag, value) if value else "",
        lambda stanza: stanza.value_or_none(tag) or "",
    )


def _snapshot_time() -> Field:
    """Return a field that is left out where the layout has no time."""
    return _field(
        "mtime",
        lambda value: "" if value is None else xml_values.number("MTIME", value),
        lambda stanza: stanza.number_or_none("MTIME"),
    )


def _mode() -> Field:
    return _field(
        "mode",
        lambda value: xml_values.number("MODE", value & xml_values.MODE_BITS),
        xml_values.read_mode,
    )


def _storage_type() -> Field:
    return _field(
        "storage_type",
        lambda value: xml_values.number("STORAGETYPE", int(value)),
        lambda stanza: StorageType(stanza.number("STORAGETYPE")),
    )


def _options() -> Field:
    def read(stanza: Stanza) -> tuple[RenameOption, ...]:
        text = stanza.value("OPTIONS")
        names = text.split("|") if text else ()
        unknown = [name for name in names if name not in RenameOption.__members__]
        if unknown:
            raise ValueError(f"<OPTIONS> holds {unknown[0][:40]!r}, which is no rename option")
        return tuple(RenameOption[name] for name in names)

    def write(options: tuple[RenameOption, ...]) -> str:
        return xml_values.leaf("OPTIONS", "|".join(option.name for option in options))

    return _field("options", write, read)


def _sources() -> Field:
    def write(sources: tuple[str, ...]) -> str:
        numbered = enumerate(sources, start=1)
        return group(
            "SOURCES", "".join(xml_values.leaf(f"SOURCE{n}", s, "        ") for n, s in numbered)
        )

    def read(stanza: Stanza) -> tuple[str, ...]:
        found = stanza.one("SOURCES")
        sources: list[str] = []
        while (source := found.value_or_none(f"SOURCE{len(sources) + 1}")) is not None:
            sources.append(source)
        return tuple(sources)

    return _field("sources", write, read)


def _added_blocks() -> Field:
    def read(stanza: Stanza) -> dict[str, Any]:
        found = xml_values.read_blocks(stanza)
        if len(found) not in (1, 2):
            raise ValueError(f"a block is added with {len(found)} blocks; one or two belong here")
        return {"penultimate": found[0] if len(found) == 2 else None, "last": found[-1]}

    return Field(
        lambda op: xml_values.write_blocks([b for b in (op.penultimate, op.last) if b]), read
    )


def _cut_block() -> Field:
    def read(stanza: Stanza) -> Block | None:
        found = xml_values.read_blocks(stanza)
        if len(found) > 1:
            raise ValueError(f"a file is cut inside {len(found)} blocks; at most one belongs here")
        return found[0] if found else None

    return _field("block", lambda block: xml_values.write_blocks([block] if block else []), read)


def _write_directive(directive: CacheDirective) -> str:
    lines = xml_values.number("ID", directive.id)
    if directive.path is not None:
        lines += xml_values.leaf("PATH", directive.path)
    if directive.replication is not None:
        lines += xml_values.number("REPLICATION", directive.replication)
    if directive.pool is not None:
        lines += xml_values.leaf("POOL", directive.pool)
    if directive.expiration is not None:
        lines += xml_values.number("EXPIRATION", directive.expiration)
    return lines


def _read_directive(stanza: Stanza) -> CacheDirective:
    return CacheDirective(
        stanza.number("ID"),
        stanza.value_or_none("PATH"),
        stanza.number_or_none("REPLICATION"),
        stanza.value_or_none("POOL"),
        stanza.number_or_none("EXPIRATION"),
    )


def _write_pool(pool: CachePool) -> str:
    lines = xml_values.leaf("POOLNAME", pool.name)
    if pool.owner is not None:
        lines += xml_values.leaf("OWNERNAME", pool.owner)
    if pool.group is not None:
        lines += xml_values.leaf("GROUPNAME", pool.group)
    if pool.mode is not None:
        lines += xml_values.number("MODE", pool.mode & xml_values.MODE_BITS)
    if pool.limit is not None:
        lines += xml_values.number("LIMIT", pool.limit)
    if pool.max_relative_expiry is not None:
        lines += xml_values.number("MAXRELATIVEEXPIRY", pool.max_relative_expiry)
    if pool.default_replication is not None:
        lines += xml_values.number("DEFAULTREPLICATION", pool.default_replication)
    return lines


def _read_pool(stanza: Stanza) -> CachePool:
    return CachePool(
        stanza.value("POOLNAME"),
        stanza.value_or_none("OWNERNAME"),
        stanza.value_or_none("GROUPNAME"),
        xml_values.read_mode(stanza) if stanza.all("MODE") else None,
        stanza.number_or_none("LIMIT"),
        stanza.number_or_none("MAXRELATIVEEXPIRY"),
        stanza.number_or_none("DEFAULTREPLICATION"),
    )


_LENGTH: Final = _constant(
    xml_values.number("LENGTH", 0)
)  # of layouts before -40; Hadoop prints it still
_PATH: Final = _text("PATH", "path")
_SRC: Final = _text("SRC", "path")
_TIME: Final = _number("TIMESTAMP", "time")
_PERMISSION: Final = _field("permission", xml_values.write_permission, xml_values.read_permission)
_BLOCKS: Final = _field("blocks", xml_values.write_blocks, xml_values.read_blocks)
_ACL: Final = _field("acl", xml_values.write_acl, xml_values.read_acl)
_XATTRS: Final = _field("xattrs", xml_values.write_xattrs, xml_values.read_xattrs)
_IDS: Final = _field("rpc", xml_values.write_rpc_ids, xml_values.read_rpc_ids)
_TOKEN: Final = _field("token", xml_values.write_token, xml_values.read_token)
_EXPIRY: Final = _number("EXPIRY_TIME", "expiry_time")
_ROOT: Final = _text("SNAPSHOTROOT", "snapshot_root")
_SNAPSHOT: Final = (_ROOT, _text("SNAPSHOTNAME", "snapshot_name"), _snapshot_time(), _IDS)
_RENAMED: Final = (_LENGTH, _text("SRC", "src"), _text("DST", "dst"), _TIME)
_DIRECTIVE: Final = (_field("directive", _write_directive, _read_directive), _IDS)
_POOL: Final = (_field("pool", _write_pool, _read_pool), _IDS)
_POLICY_NAME: Final = (_text("POLICYNAME", "name"), _IDS)
_FILE: Final = (
    _LENGTH,
    _number("INODEID", "inode_id"),
    _PATH,
    _number("REPLICATION", "replication"),
    _number("MTIME", "mtime"),
    _number("ATIME", "atime"),
    _number("BLOCKSIZE", "block_size"),
)
_CLIENT: Final = (
    _text("CLIENT_NAME", "client_name"),
    _text("CLIENT_MACHINE", "client_machine"),
)

FIELDS: Final[dict[type[ops.Op], tuple[Field, ...]]] = {
    ops.Add: (
        *_FILE,
        *_CLIENT,
        _flag("OVERWRITE", "overwrite"),
        _BLOCKS,
        _PERMISSION,
        _ACL,
        _field(
            "ec_policy_id",
            lambda value: xml_values.number("ERASURE_CODING_POLICY_ID", value),
            lambda stanza: stanza.number_or_none("ERASURE_CODING_POLICY_ID") or 0,
        ),
        _IDS,
    ),
    ops.Close: (
        *_FILE,
        _constant(xml_values.leaf("CLIENT_NAME", "") + xml_values.leaf("CLIENT_MACHINE", "")),
        _constant(xml_values.leaf("OVERWRITE", "false")),
        _BLOCKS,
        _PERMISSION,
    ),
    ops.Append: (_PATH, *_CLIENT, _flag("NEWBLOCK", "new_block"), _IDS),
    ops.AddBlock: (_PATH, _added_blocks(), _IDS),
    ops.UpdateBlocks: (_PATH, _BLOCKS, _IDS),
    ops.Truncate: (
        _SRC,
        _text("CLIENTNAME", "client_name"),
        _text("CLIENTMACHINE", "client_machine"),
        _number("NEWLENGTH", "new_length"),
        _TIME,
        _cut_block(),
    ),
    ops.ConcatDelete: (_LENGTH, _text("TRG", "target"), _TIME, _sources(), _IDS),
    ops.SetReplication: (_PATH, _number("REPLICATION", "replication")),
    ops.ReassignLease: (
        _text("LEASEHOLDER", "lease_holder"),
        _PATH,
        _text("NEWHOLDER", "new_holder"),
    ),
    ops.SetGenstampV1: (_number("GENSTAMP", "generation_stamp"),),
    ops.SetGenstampV2: (_number("GENSTAMPV2", "generation_stamp"),),
    ops.AllocateBlockId: (_number("BLOCK_ID", "block_id"),),
    ops.RenameOld: (*_RENAMED, _IDS),
    ops.Rename: (*_RENAMED, _options(), _IDS),
    ops.Delete: (_LENGTH, _PATH, _TIME, _IDS),
    ops.Mkdir: (
        _LENGTH,
        _number("INODEID", "inode_id"),
        _PATH,
        _TIME,
        # The second time is the first again when Hadoop writes it, and is not shown.
        Field(lambda _op: "", lambda stanza: {"atime": stanza.number("TIMESTAMP")}),
        _PERMISSION,
        _ACL,
        _XATTRS,
    ),
    ops.Symlink: (
        _LENGTH,
        _number("INODEID", "inode_id"),
        _PATH,
        _text("VALUE", "target"),
        _number("MTIME", "mtime"),
        _number("ATIME", "atime"),
        _PERMISSION,
        _IDS,
    ),
    ops.SetPermissions: (_SRC, _mode()),
    ops.SetOwner: (_SRC, _owner("USERNAME", "user"), _owner("GROUPNAME", "group")),
    ops.Times: (_LENGTH, _PATH, _number("MTIME", "mtime"), _number("ATIME", "atime")),
    ops.SetNsQuota: (_SRC, _number("NSQUOTA", "ns_quota")),
    ops.ClearNsQuota: (_SRC,),
    ops.SetQuota: (_SRC, _number("NSQUOTA", "ns_quota"), _number("DSQUOTA", "ds_quota")),
    ops.SetQuotaByStorageType: (_SRC, _storage_type(), _number("DSQUOTA", "quota")),
    ops.SetStoragePolicy: (_PATH, _number("POLICYID", "policy_id")),
    ops.SetAcl: (_SRC, _field("entries", xml_values.write_acl, xml_values.read_acl)),
    ops.SetXAttr: (_SRC, _XATTRS, _IDS),
    ops.RemoveXAttr: (_SRC, _XATTRS, _IDS),
    ops.CreateSnapshot: _SNAPSHOT,
    ops.DeleteSnapshot: _SNAPSHOT,
    ops.RenameSnapshot: (
        _ROOT,
        _text("SNAPSHOTOLDNAME", "old_name"),
        _text("SNAPSHOTNEWNAME", "new_name"),
        _snapshot_time(),
        _IDS,
    ),
    ops.AllowSnapshot: (_ROOT,),
    ops.DisallowSnapshot: (_ROOT,),
    ops.GetDelegationToken: (_TOKEN, _EXPIRY),
    ops.RenewDelegationToken: (_TOKEN, _EXPIRY),
    ops.CancelDelegationToken: (_TOKEN,),
    ops.UpdateMasterKey: (_field("key", xml_values.write_key, xml_values.read_key),),
    ops.EndLogSegment: (),
    ops.StartLogSegment: (),
    ops.AddCacheDirective: _DIRECTIVE,
    ops.ModifyCacheDirective: _DIRECTIVE,
    ops.RemoveCacheDirective: (_number("ID", "directive_id"), _IDS),
    ops.AddCachePool: _POOL,
    ops.ModifyCachePool: _POOL,
    ops.RemoveCachePool: (_text("POOLNAME", "name"), _IDS),
    ops.RollingUpgradeStart: (_number("STARTTIME", "start_time"),),
    ops.RollingUpgradeFinalize: (_number("FINALIZETIME", "finalize_time"),),
    ops.AddErasureCodingPolicy: (
        _field("policy", xml_values.write_policy, xml_values.read_policy),
        _IDS,
    ),
    ops.EnableErasureCodingPolicy: _POLICY_NAME,
    ops.DisableErasureCodingPolicy: _POLICY_NAME,
    ops.RemoveErasureCodingPolicy: _POLICY_NAME,
}
"""The fields below <TXID>."""


def to_xml(txid: int, op: ops.Op, name: str) -> str:
    fields = "".join([field.write(op) for field in FIELDS[type(op)]])
    return (
        f"  <RECORD>\n    <OPCODE>{name}</OPCODE>\n    <DATA>\n      <TXID>{txid}</TXID>\n"
        f"{fields}    </DATA>\n  </RECORD>\n"
    )


def from_xml(op: type[ops.Op], data: Stanza) -> ops.Op:
    """Return the op that the elements below <DATA> describe.

    Raises:
        ValueError: if they do not fit the op.
    """
    attributes: dict[str, Any] = {}
    for field in FIELDS[op]:
        attributes.update(field.read(data))
    return op(**attributes)
