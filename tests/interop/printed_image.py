"""The tree that ``hdfs oiv -p XML`` prints, and our namespace said in the same words."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from namenode_sim.edits.ops import AclEntry, AclScope, StorageType
from namenode_sim.inode import (
    ROOT_ID,
    INode,
    INodeDirectory,
    INodeFile,
    INodeSymlink,
    full_path,
    subtree,
)
from namenode_sim.namespace import Namespace

Words = dict[str, object]
"""What is printed of one inode; a path tells which."""

_MANGLED = re.compile(r"\\([0-9a-f]{4,});")
_PLAIN = ("id", "type", "mtime", "atime", "permission", "replication", "preferredBlockSize")
_NUMBERS = ("nsquota", "dsquota", "storagePolicyId", "blockType", "erasureCodingPolicyId")


def printed_tree(xml: str) -> dict[str, Words]:
    """Every inode of the present tree by its path; not those that only snapshots have."""
    root = _parsed(xml)
    inodes = {_text(node, "id"): node for node in root.findall("INodeSection/inode")}
    referred = [_text(ref, "referredId") for ref in root.findall("INodeReferenceSection/ref")]
    children = {
        _text(directory, "parent"): [
            *(child.text or "" for child in directory.findall("child")),
            *(referred[int(ref.text or 0)] for ref in directory.findall("refChild")),
        ]
        for directory in root.findall("INodeDirectorySection/directory")
    }
    found = {}
    waiting = [("/", str(ROOT_ID))]
    while waiting:
        path, number = waiting.pop()
        found[path] = _printed(inodes[number])
        for child in children.get(number, ()):
            waiting.append((f"{path.rstrip('/')}/{_text(inodes[child], 'name')}", child))
    return found


def printed_counters(xml: str) -> dict[str, int]:
    """NameSection's numbers, and the last inode id."""
    root = _parsed(xml)
    numbers = {node.tag: int(node.text or 0) for node in root.findall("NameSection/*")}
    return numbers | {"lastInodeId": int(root.findtext("INodeSection/lastInodeId") or 0)}


def told_counters(namespace: Namespace, namespace_id: int) -> dict[str, int]:
    """The same of ours."""
    counters = namespace.counters
    told = {
        "namespaceId": namespace_id,
        "genstampV1": counters.generation_stamp_v1,
        "genstampV2": counters.generation_stamp_v2,
        "genstampV1Limit": counters.generation_stamp_v1_limit,
        "lastAllocatedBlockId": counters.last_block_id,
        "txid": namespace.last_applied,
        "lastInodeId": counters.last_inode_id,
    }
    if namespace.rolling_upgrade_start is not None:
        told["rollingUpgradeStartTime"] = namespace.rolling_upgrade_start
    return told


def _parsed(xml: str) -> ET.Element:
    # Hadoop leaves a carriage return as it is, for which an XML parser reads a line feed.
    return ET.fromstring(xml.replace("\r", "&#13;"))


def _text(node: ET.Element, name: str) -> str:
    mangled = node.findtext(name) or ""
    return _MANGLED.sub(lambda match: chr(int(match[1], 16)), mangled)


def _printed(node: ET.Element) -> Words:
    words: Words = {name: _text(node, name) for name in (*_PLAIN, *_NUMBERS) if _text(node, name)}
    words["blocks"] = [
        (_text(block, "id"), _text(block, "genstamp"), _text(block, "numBytes"))
        for block in node.findall("blocks/block")
    ]
    words["acl"] = [acl.text for acl in node.findall("acls/acl")]
    words["xattrs"] = [_printed_xattr(xattr) for xattr in node.findall("xattrs/xattr")]
    words["type quotas"] = [
        (_text(quota, "type"), _text(quota, "quota")) for quota in node.findall("typeQuota")
    ]
    writer = node.find("file-under-construction")
    if writer is not None:
        words["writer"] = (_text(writer, "clientName"), _text(writer, "clientMachine"))
    if _text(node, "type") == "SYMLINK":
        words["target"] = _text(node, "target")
    return words


def _printed_xattr(xattr: ET.Element) -> tuple[str, str, bytes]:
    value = _text(xattr, "val").encode()
    if hexadecimal := _text(xattr, "valHex"):
        value = bytes.fromhex(hexadecimal)
    return _text(xattr, "ns"), _text(xattr, "name"), value


def told_tree(namespace: Namespace) -> dict[str, Words]:
    """Every inode of ours by its path."""
    return {full_path(node): dict(_told(node)) for node in subtree(namespace.tree.root)}


def _told(node: INode) -> Iterator[tuple[str, object]]:
    yield "id", str(node.id)
    yield "mtime", str(node.mtime)
    yield "permission", f"{node.user}:{node.group}:{node.mode:04o}"
    yield "blocks", []
    yield "type quotas", []
    if isinstance(node, INodeSymlink):
        yield from (("type", "SYMLINK"), ("atime", str(node.atime)))
        yield "target", node.target.decode()
        yield from (("acl", []), ("xattrs", []))
        return
    yield "acl", [_acl_text(entry) for entry in node.acl or ()]
    yield "xattrs", [(x.namespace.name, x.name, x.value or b"") for x in node.xattrs or ()]
    if isinstance(node, INodeDirectory):
        yield from _told_directory(node)
    else:
        yield from _told_file(node)


def _told_directory(node: INodeDirectory) -> Iterator[tuple[str, object]]:
    yield "type", "DIRECTORY"
    yield "nsquota", str(node.quotas.namespace)
    yield "dsquota", str(node.quotas.space)
    yield (
        "type quotas",
        [(StorageType(kind).name, str(quota)) for kind, quota in node.quotas.by_type],
    )


def _told_file(node: INodeFile) -> Iterator[tuple[str, object]]:
    yield "type", "FILE"
    yield "atime", str(node.atime)
    # A striped file has no replication; Hadoop's viewer prints 1.
    yield "replication", "1" if node.block_type else str(node.replication)
    yield "preferredBlockSize", str(node.preferred_block_size)
    yield "storagePolicyId", str(node.storage_policy_id)
    yield (
        "blocks",
        [
            (str(block.block_id), str(block.generation_stamp), str(block.num_bytes))
            for block in node.blocks
        ],
    )
    if node.block_type:
        yield "blockType", "STRIPED"
        yield "erasureCodingPolicyId", str(node.ec_policy_id)
    if node.under_construction is not None:
        writer = node.under_construction
        yield "writer", (writer.client_name, writer.client_machine)


def _acl_text(entry: AclEntry) -> str:
    bits = "".join(c if entry.permission >> 2 - i & 1 else "-" for i, c in enumerate("rwx"))
    scope = "default:" if entry.scope is AclScope.DEFAULT else ""
    return f"{scope}{entry.type.name.lower()}:{entry.name or ''}:{bits}"
