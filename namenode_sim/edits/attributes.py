"""ACLs and extended attributes as Hadoop's edit log writes them.

Add and Mkdir hold ACLs in a packed form, SetAcl in a protobuf message; extended attributes are a
message everywhere.  As in ``primitives``, bad bytes raise ValueError, IndexError, struct.error or
protobuf's DecodeError.

See docs/reference/formats.md#primitive-types.
"""

from typing import Final

from namenode_sim.edits.primitives import I32, read_string, string
from namenode_sim.edits.proto.edits_pb2 import AclEditLogProto, XAttrEditLogProto
from namenode_sim.edits.values import AclEntry, AclScope, AclType, XAttr, XAttrNamespace

_SCOPES: Final = tuple(AclScope)
_TYPES: Final = tuple(AclType)
_NAMESPACES: Final = tuple(XAttrNamespace)
_NAME_BIT: Final = 0x40
_NO_ENTRIES: Final = I32.pack(0)


def read_acl(data: bytes, pos: int) -> tuple[tuple[AclEntry, ...], int]:
    """Read ``acl``: a count and packed entries."""
    (count,) = I32.unpack_from(data, pos)
    pos += 4
    if count == 0:
        return (), pos
    if not 0 < count <= len(data) - pos:
        raise ValueError(f"{count} ACL entries, but {len(data) - pos} bytes are left")
    entries = []
    for _ in range(count):
        bits = data[pos]
        if bits & 0x80:
            raise ValueError(f"an ACL entry has unknown bits: {bits:#x}")
        name, pos = read_string(data, pos + 1) if bits & _NAME_BIT else (None, pos + 1)
        entries.append(AclEntry(_SCOPES[bits >> 5 & 1], _TYPES[bits >> 3 & 3], name, bits & 7))
    return tuple(entries), pos


def acl(entries: tuple[AclEntry, ...]) -> bytes:
    """Encode ``acl``: a count and packed entries."""
    if not entries:
        return _NO_ENTRIES
    parts = [I32.pack(len(entries))]
    for entry in entries:
        if not 0 <= entry.permission <= 7:
            raise ValueError(f"{entry.permission} is no permission of an ACL entry")
        bits = entry.scope << 5 | entry.type << 3 | entry.permission
        if entry.name is None:
            parts.append(bytes((bits,)))
        else:
            parts.append(bytes((bits | _NAME_BIT,)) + string(entry.name))
    return b"".join(parts)


def _read_delimited(data: bytes, pos: int) -> tuple[bytes, int]:
    """Read ``pbdelim``: a protobuf varint and that many bytes."""
    size = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise ValueError("the length of a message does not fit in 32 bits")
    end = pos + size
    if end > len(data):
        raise ValueError(f"a message of {size} bytes, but {len(data) - pos} are left")
    return data[pos:end], end


def delimited(message: bytes) -> bytes:
    """Encode ``pbdelim``: a protobuf varint and that many bytes."""
    size = len(message)
    head = bytearray()
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + message


def read_xattrs(data: bytes, pos: int) -> tuple[str, tuple[XAttr, ...], int]:
    """Read ``xae``: a path (empty in Add and Mkdir) and attributes."""
    if data[pos] == 0:
        return "", (), pos + 1
    raw, pos = _read_delimited(data, pos)
    message = XAttrEditLogProto.FromString(raw)
    if not message.IsInitialized():
        raise ValueError("an extended attribute lacks its namespace or name")
    found = tuple(
        XAttr(_NAMESPACES[x.namespace], x.name, x.value if x.HasField("value") else None)
        for x in message.xAttrs
    )
    return message.src, found, pos


def xattrs(path: str | None, found: tuple[XAttr, ...]) -> bytes:
    """Encode ``xae``; the path is None in Add and Mkdir."""
    if path is None and not found:
        return b"\x00"
    message = XAttrEditLogProto(src=path)
    for xattr in found:
        message.xAttrs.add(namespace=xattr.namespace.value, name=xattr.name, value=xattr.value)
    return delimited(message.SerializeToString())


def read_acl_edit(data: bytes, pos: int) -> tuple[str, tuple[AclEntry, ...], int]:
    """Read ``acle``: a path and its new ACL."""
    raw, pos = _read_delimited(data, pos)
    message = AclEditLogProto.FromString(raw)
    if not message.IsInitialized():
        raise ValueError("an ACL lacks its path, or an entry lacks its type, scope or permission")
    entries = []
    for e in message.entries:
        if e.permissions > 7:
            raise ValueError(f"{e.permissions} is no permission of an ACL entry")
        name = e.name if e.HasField("name") else None
        entries.append(AclEntry(_SCOPES[e.scope], _TYPES[e.type], name, e.permissions))
    return message.src, tuple(entries), pos


def acl_edit(path: str, entries: tuple[AclEntry, ...]) -> bytes:
    """Encode ``acle``: a path and its new ACL."""
    message = AclEditLogProto(src=path)
    for entry in entries:
        message.entries.add(
            type=entry.type.value,
            scope=entry.scope.value,
            permissions=entry.permission,
            name=entry.name,
        )
    return delimited(message.SerializeToString())
