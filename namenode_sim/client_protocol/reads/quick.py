"""The usual answer to getFileInfo, written without a message of protobuf, and what it takes.

It is what ``reads.get_file_info`` answers, byte for byte, of a file without rare traits below
folders without extended attributes, or of nothing there; of anything else it is None.
"""

from functools import lru_cache
from typing import Final, NewType

from ha.rpc.frames import varint
from hadoop.proto.client_namenode_pb2 import GetFileInfoRequestProto
from hadoop.proto.hdfs_types_pb2 import FsPermissionProto
from namenode_sim.client_protocol.words.model import Caller, Scene
from namenode_sim.client_protocol.words.permissions import EXECUTE, allows
from namenode_sim.namespace.file_numbers import PACKED_HEAD
from namenode_sim.namespace.inode import FileTraits, INode, INodeDirectory, INodeFile
from namenode_sim.namespace.namespace import Namespace

Missing = NewType("Missing", object)
MISSING: Final = Missing(object())
"""Nothing is there."""
_MOST_KEPT: Final = 4096
_FIRST_RARE: Final = FileTraits._fields.index("under_construction")
# The tags of HdfsFileStatusProto's fields, in their order; a path is empty, as the caller knows it.
_FILE_AND_LENGTH: Final = b"\x08\x02\x12\x00\x18"
_PERMISSION, _OWNER, _GROUP, _MTIME, ATIME = b"\x22", b"\x2a", b"\x32", b"\x38", b"\x40"
_REPLICATION, _BLOCK_SIZE, _ID = b"\x50", b"\x58", b"\x68"
NO_CHILDREN_AND_POLICY: Final = b"\x70\x00\x80\x01"
_STATUS: Final = b"\x0a"


def find(namespace: Namespace, caller: Caller, path: str) -> INode | Missing | None:
    """Return what is at a plain path below folders that the caller may enter; None: not sure."""
    if path[:1] != "/" or path[-1:] == "/" or "//" in path or "/." in path or not path.isascii():
        return None
    node: INode | None = namespace.tree.root
    for name in path[1:].encode().split(b"/"):
        if type(node) is not INodeDirectory or node.xattrs:
            return None
        if not caller.exempt and not allows(caller, node, EXECUTE):
            return None
        node = node.children.get(name)
        if node is None:
            return MISSING
    return node


def is_plain(traits: FileTraits) -> bool:
    """Return whether a file has no rare traits: a past, or other inodes, must not be kept."""
    return not (any(traits[_FIRST_RARE:]) or traits.ec_policy_id)


def file_info(scene: Scene, request: GetFileInfoRequestProto) -> bytes | None:
    """Return the answer to a request; None where it goes the usual way."""
    node = find(scene.namespace, scene.caller, request.src)
    if node is MISSING:
        return b""
    if type(node) is not INodeFile or not is_plain(node.traits):
        return None
    number, mtime, atime = PACKED_HEAD.unpack_from(node.numbers)
    if mtime < 0 or atime < 0:
        return None
    head, tail, policy = parts_of(node.traits)
    status = b"".join(
        (_FILE_AND_LENGTH, varint(node.length()), head, varint(mtime), ATIME, varint(atime), tail,
         varint(number), NO_CHILDREN_AND_POLICY, policy)
    )  # fmt: skip
    return _STATUS + varint(len(status)) + status


@lru_cache(_MOST_KEPT)
def parts_of(traits: FileTraits) -> tuple[bytes, bytes, bytes]:
    """Return what of a status depends on these alone."""
    mode = FsPermissionProto(perm=traits.mode).SerializeToString()
    user, group = traits.user.encode(), traits.group.encode()
    head = b"".join(
        (_PERMISSION, varint(len(mode)), mode, _OWNER, varint(len(user)), user,
         _GROUP, varint(len(group)), group, _MTIME)
    )  # fmt: skip
    replication, size = varint(traits.replication), varint(traits.preferred_block_size)
    tail = b"".join((_REPLICATION, replication, _BLOCK_SIZE, size, _ID))
    return head, tail, varint(traits.storage_policy_id)
