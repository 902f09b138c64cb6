"""The composite fields of ops in Hadoop's XML: blocks, permissions, ACLs, tokens and the like.

Each ``write_*`` gives the lines of its elements, indented for their place below <DATA>; each
``read_*`` takes them out of a stanza again and raises ValueError where they do not fit.
"""

import uuid
from base64 import b64decode
from collections.abc import Iterable
from typing import Final

from namenode_sim.edits import values
from namenode_sim.oev.stanza import Stanza
from namenode_sim.oev.xml_text import escape

FIELD: Final = "      "
"""Indentation of a field of an op."""
INNER: Final = FIELD + "  "
"""Indentation of what stands inside a field."""

MODE_BITS: Final = 0o1777
"""What Hadoop's FsPermission keeps of the 16 bits."""
_TOKEN_KIND: Final = "HDFS_DELEGATION_TOKEN"
_SYMBOLS: Final = ("---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx")


def leaf(tag: str, text: str, indent: str = FIELD) -> str:
    return f"{indent}<{tag}>{escape(text)}</{tag}>\n" if text else f"{indent}<{tag}/>\n"


def number(tag: str, value: int, indent: str = FIELD) -> str:
    return f"{indent}<{tag}>{value}</{tag}>\n"


def group(tag: str, content: str) -> str:
    return f"{FIELD}<{tag}>\n{content}{FIELD}</{tag}>\n" if content else f"{FIELD}<{tag}/>\n"


def write_blocks(blocks: Iterable[values.Block]) -> str:
    """Write one <BLOCK> each."""
    return "".join([
        f"{FIELD}<BLOCK>\n{INNER}<BLOCK_ID>{block.block_id}</BLOCK_ID>\n"
        f"{INNER}<NUM_BYTES>{block.num_bytes}</NUM_BYTES>\n"
        f"{INNER}<GENSTAMP>{block.generation_stamp}</GENSTAMP>\n{FIELD}</BLOCK>\n"
        for block in blocks
    ])  # fmt: skip


def read_blocks(stanza: Stanza) -> tuple[values.Block, ...]:
    return tuple(
        values.Block(found.number("BLOCK_ID"), found.number("NUM_BYTES"), found.number("GENSTAMP"))
        for found in stanza.all("BLOCK")
    )


def write_permission(value: values.Permission) -> str:
    inside = leaf("USERNAME", value.user, INNER) + leaf("GROUPNAME", value.group, INNER)
    return group("PERMISSION_STATUS", inside + number("MODE", value.mode & MODE_BITS, INNER))


def read_permission(stanza: Stanza) -> values.Permission:
    found = stanza.one("PERMISSION_STATUS")
    return values.Permission(found.value("USERNAME"), found.value("GROUPNAME"), read_mode(found))


def read_mode(stanza: Stanza) -> int:
    return stanza.number("MODE") & MODE_BITS


def write_acl(entries: Iterable[values.AclEntry]) -> str:
    parts = []
    for entry in entries:
        inside = leaf("SCOPE", entry.scope.name, INNER) + leaf("TYPE", entry.type.name, INNER)
        if entry.name:
            inside += leaf("NAME", entry.name, INNER)
        parts.append(group("ENTRY", inside + leaf("PERM", _SYMBOLS[entry.permission], INNER)))
    return "".join(parts)


def read_acl(stanza: Stanza) -> tuple[values.AclEntry, ...]:
    entries = []
    for found in stanza.all("ENTRY"):
        symbol = found.value("PERM")
        if symbol not in _SYMBOLS:
            raise ValueError(f"<PERM> holds {symbol[:40]!r}, which is no permission")
        scope, kind = found.name("SCOPE", values.AclScope), found.name("TYPE", values.AclType)
        name = found.value_or_none("NAME") or None
        entries.append(values.AclEntry(scope, kind, name, _SYMBOLS.index(symbol)))
    return tuple(entries)


def write_xattrs(xattrs: Iterable[values.XAttr]) -> str:
    parts = []
    for xattr in xattrs:
        inside = leaf("NAMESPACE", xattr.namespace.name, INNER) + leaf("NAME", xattr.name, INNER)
        if xattr.value is not None:
            inside += leaf("VALUE", f"0x{xattr.value.hex()}", INNER)
        parts.append(group("XATTR", inside))
    return "".join(parts)


def read_xattrs(stanza: Stanza) -> tuple[values.XAttr, ...]:
    return tuple(
        values.XAttr(found.name("NAMESPACE", values.XAttrNamespace), found.value("NAME"),
                  _xattr_value(found.value_or_none("VALUE")))
        for found in stanza.all("XATTR")
    )  # fmt: skip


def _xattr_value(text: str | None) -> bytes | None:
    """Decode a value as Hadoop's XAttrCodec: hexadecimal, base 64, quoted or plain text."""
    if text is None:
        return None
    kind, rest = text[:2].lower(), text[2:]
    if kind == "0x":
        return bytes.fromhex(rest)
    if kind == "0s":
        return b64decode(rest, validate=True)
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1].encode()
    return text.encode()


def write_rpc_ids(ids: values.RpcIds) -> str:
    client = ids.client_id
    shown = str(uuid.UUID(bytes=client)) if len(client) == 16 else client.hex()
    return leaf("RPC_CLIENTID", shown) + number("RPC_CALLID", ids.call_id)


def read_rpc_ids(stanza: Stanza) -> values.RpcIds:
    """Read <RPC_CLIENTID> and <RPC_CALLID>; each may be absent."""
    shown = stanza.value_or_none("RPC_CLIENTID") or ""
    call_id = stanza.number_or_none("RPC_CALLID")
    client = bytes.fromhex(shown.replace("-", ""))
    return values.RpcIds(client, values.NO_RPC_IDS.call_id if call_id is None else call_id)


def write_token(token: values.DelegationTokenIdentifier) -> str:
    return group("DELEGATION_TOKEN_IDENTIFIER", "".join((
        leaf("KIND", _TOKEN_KIND, INNER),
        number("SEQUENCE_NUMBER", token.sequence_number, INNER),
        leaf("OWNER", token.owner, INNER),
        leaf("RENEWER", token.renewer, INNER),
        leaf("REALUSER", token.real_user, INNER),
        number("ISSUE_DATE", token.issue_date, INNER),
        number("MAX_DATE", token.max_date, INNER),
        number("MASTER_KEY_ID", token.master_key_id, INNER),
    )))  # fmt: skip


def read_token(stanza: Stanza) -> values.DelegationTokenIdentifier:
    found = stanza.one("DELEGATION_TOKEN_IDENTIFIER")
    kind = found.value("KIND")
    if kind != _TOKEN_KIND:
        raise ValueError(f"a delegation token of kind {kind[:40]!r}")
    return values.DelegationTokenIdentifier(
        owner=found.value("OWNER"),
        renewer=found.value("RENEWER"),
        real_user=found.value("REALUSER"),
        issue_date=found.number("ISSUE_DATE"),
        max_date=found.number("MAX_DATE"),
        sequence_number=found.number("SEQUENCE_NUMBER"),
        master_key_id=found.number("MASTER_KEY_ID"),
    )


def write_key(key: values.DelegationKey) -> str:
    inside = number("KEY_ID", key.key_id, INNER) + number("EXPIRY_DATE", key.expiry_date, INNER)
    if key.key is not None:
        inside += leaf("KEY", key.key.hex(), INNER)
    return group("DELEGATION_KEY", inside)


def read_key(stanza: Stanza) -> values.DelegationKey:
    found = stanza.one("DELEGATION_KEY")
    key = found.value_or_none("KEY")
    raw = None if key is None else bytes.fromhex(key)
    return values.DelegationKey(found.number("KEY_ID"), found.number("EXPIRY_DATE"), raw)


def write_policy(policy: values.EcPolicy) -> str:
    """Write the fields of an erasure coding policy, and one <EXTRAOPTION> for each option."""
    parts = [
        leaf("CODEC", policy.codec),
        number("DATAUNITS", policy.data_units),
        number("PARITYUNITS", policy.parity_units),
        number("CELLSIZE", policy.cell_size),
        number("EXTRAOPTIONS", len(policy.options)),
    ]
    for name, content in policy.options:
        parts.append(group("EXTRAOPTION", leaf("KEY", name, INNER) + leaf("VALUE", content, INNER)))
    return "".join(parts)


def read_policy(stanza: Stanza) -> values.EcPolicy:
    wanted = stanza.number("EXTRAOPTIONS")
    options = tuple((o.value("KEY"), o.value("VALUE")) for o in stanza.all("EXTRAOPTION"))
    if len(options) != wanted:
        raise ValueError(f"<EXTRAOPTIONS> holds {wanted}, but there are {len(options)}")
    return values.EcPolicy(
        codec=stanza.value("CODEC"),
        data_units=stanza.number("DATAUNITS"),
        parity_units=stanza.number("PARITYUNITS"),
        cell_size=stanza.number("CELLSIZE"),
        options=options,
    )
