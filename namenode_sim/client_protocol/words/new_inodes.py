"""What every new inode needs: its id, its mode and ACL, its missing parents, room in quotas."""

from collections.abc import Iterator
from itertools import count

from ha.record import dataclass
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.words import paths, quotas
from namenode_sim.client_protocol.words.errors import DIRECTORY_ITEMS_EXCEEDED, FsError
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.edits.ops import Mkdir
from namenode_sim.edits.values import AclEntry, AclScope, AclType, Permission
from namenode_sim.namespace import inode
from namenode_sim.namespace.usage import Use

_MINIMAL = 3
_OWNER_WX = 0o300
_STICKY = 0o1000
MODE_BITS = 0o1777
"""The bits of a mode that HDFS knows (FsPermission.fromShort)."""


def new_ids(scene: Scene) -> Iterator[int]:
    """Return the inode ids after the last one given out.

    They are for the edits of one plan, which are applied before the next plan is made.
    """
    return count(scene.namespace.counters.last_inode_id + 1)


def inherit(
    parent_acl: tuple[AclEntry, ...] | None, mode: int, unmasked: int | None, *, directory: bool
) -> tuple[int, tuple[AclEntry, ...]]:
    """Return a new inode's mode and logical ACL, as the edit records them.

    They come from the parent's default ACL, if it has one (AclStorage.copyINodeDefaultAcl).

    With a default ACL the client's umask does not count: the mode it asked for before masking,
    ``unmasked``, is used where it is known.  Of a mode only the bits count that HDFS knows.
    """
    default = tuple(e for e in parent_acl or () if e.scope == AclScope.DEFAULT)
    if not default:
        return mode & MODE_BITS, ()
    asked = mode if unmasked is None else unmasked
    minimal = len(default) == _MINIMAL
    access = tuple(
        AclEntry(AclScope.ACCESS, e.type, e.name, e.permission & _limit(e, asked, minimal=minimal))
        for e in default
    )
    mode = (asked & _STICKY) | (
        access[0].permission << 6 | access[-2].permission << 3 | access[-1].permission
    )
    if directory:
        return mode, access + default
    return mode, () if minimal else access


def unmasked(
    scene: Scene, request: calls.CreateRequestProto | calls.MkdirsRequestProto
) -> int | None:
    """Return the mode before the client's umask, if the client sends it and it is to count."""
    if scene.settings.posix_acl_inheritance and request.HasField("unmasked"):
        return request.unmasked.perm
    return None


def _limit(entry: AclEntry, mode: int, *, minimal: bool) -> int:
    """Return what the mode asked for, in its last bits, leaves of an entry: owner, mask, others."""
    match entry.type:
        case AclType.USER:
            return mode >> 6 if entry.name is None else 7
        case AclType.GROUP:
            return mode >> 3 if minimal else 7
        case AclType.MASK:
            return mode >> 3
        case AclType.OTHER:
            return mode


@dataclass(frozen=True, slots=True)
class Modes:
    """The mode of the path's last directory, unmasked if known, and that of those above it."""

    last: int
    unmasked: int | None
    above: int


def make_directories(
    scene: Scene, ids: Iterator[int], route: paths.Route, upto: int, modes: Modes
) -> list[Mkdir]:
    """Return edits that create what is missing of a path's first ``upto`` names.

    The last existing one hands its group (the BSD rule) and its default ACL down to all of them. It
    must have room, and all that is new on the path, also behind ``upto``, an allowed name.
    """
    first = route.existing
    above = route.nodes[first]
    assert isinstance(above, inode.INodeDirectory)
    for index in range(first, len(route.names)):
        name = route.names[index]
        if paths.is_too_long(name, scene.settings):
            raise paths.too_long(name, route.prefix(index), scene.settings)
        paths.check_not_reserved(name, in_root=index == 0)
    check_room(scene, above, len(route.names) - first)
    made: list[Mkdir] = []
    for index in range(first, upto):
        asked = modes.last if index == len(route.names) - 1 else modes.above
        mode, acl = inherit(above.acl, asked, modes.unmasked, directory=True)
        permission = Permission(scene.caller.user, above.group, mode)
        path = route.prefix(index + 1)
        now = scene.now_ms
        made.append(Mkdir(next(ids), path, now, now, permission, acl=acl))
    return made


def passable(mode: int) -> int:
    """Return the mode of a directory created on the way, which its owner can always walk."""
    return mode | _OWNER_WX


def check_room(scene: Scene, directory: inode.INodeDirectory, added: int) -> None:
    """Check the limits on a directory that is about to get an entry of ``added`` inodes."""
    settings = scene.settings
    if len(directory.children) >= settings.max_directory_items:
        raise FsError(
            DIRECTORY_ITEMS_EXCEEDED,
            f"The directory item limit of {inode.full_path(directory)} is exceeded: "
            f"limit={settings.max_directory_items} items={len(directory.children)}",
        )
    quotas.check(scene, directory, Use(added))
