"""What every new inode needs: its id, its mode and ACL, its missing parents, room in quotas."""

from dataclasses import dataclass, field

from ha.rpc.java_names import NAMESPACE_QUOTA_EXCEEDED
from namenode_sim.client_protocol.errors import DIRECTORY_ITEMS_EXCEEDED, FsError
from namenode_sim.client_protocol.model import Scene
from namenode_sim.client_protocol.paths import Route, check_new_name, is_too_long, too_long
from namenode_sim.edits.ops import Mkdir
from namenode_sim.edits.values import AclEntry, AclScope, AclType, Permission
from namenode_sim.namespace.inode import (
    QUOTA_DONT_SET,
    INode,
    INodeDirectory,
    INodeFile,
    full_path,
)
from namenode_sim.proto import client_namenode_pb2 as calls

_MINIMAL = 3
_OWNER_WX = 0o300


@dataclass(slots=True)
class NewIds:
    """Inode ids for the edits of one plan, which are applied before the next plan is made."""

    last: int

    def next(self) -> int:
        self.last += 1
        return self.last


def new_ids(scene: Scene) -> NewIds:
    """Ids after the last one given out."""
    return NewIds(scene.namespace.counters.last_inode_id)


@dataclass(frozen=True, slots=True)
class Inherited:
    """A new inode's mode and logical ACL, as the edit records them."""

    mode: int
    acl: tuple[AclEntry, ...] = ()


def inherit(
    parent_acl: tuple[AclEntry, ...] | None, mode: int, unmasked: int | None, *, directory: bool
) -> Inherited:
    """Apply the parent's default ACL (AclStorage.copyINodeDefaultAcl).

    With a default ACL the client's umask does not count: the mode it asked for before masking,
    ``unmasked``, is used where it is known.
    """
    default = tuple(e for e in parent_acl or () if e.scope == AclScope.DEFAULT)
    if not default:
        return Inherited(mode)
    asked = mode if unmasked is None else unmasked
    minimal = len(default) == _MINIMAL
    access = tuple(
        AclEntry(AclScope.ACCESS, e.type, e.name, e.permission & _limit(e, asked, minimal=minimal))
        for e in default
    )
    mode = (asked & ~0o777) | (
        access[0].permission << 6 | access[-2].permission << 3 | access[-1].permission
    )
    if directory:
        return Inherited(mode, access + default)
    return Inherited(mode, () if minimal else access)


def unmasked(
    scene: Scene, request: calls.CreateRequestProto | calls.MkdirsRequestProto
) -> int | None:
    """The mode before the client's umask, if the client tells it and it is to count."""
    if scene.settings.posix_acl_inheritance and request.HasField("unmasked"):
        return request.unmasked.perm
    return None


def inherited_by_file(
    scene: Scene, request: calls.CreateRequestProto, parent_acl: tuple[AclEntry, ...] | None
) -> Inherited:
    """The mode and ACL of a new file below a directory with that ACL."""
    return inherit(parent_acl, request.masked.perm, unmasked(scene, request), directory=False)


def _limit(entry: AclEntry, mode: int, *, minimal: bool) -> int:
    """What the asked-for mode leaves of a default entry: it limits owner, mask and others."""
    match entry.type:
        case AclType.USER:
            return mode >> 6 & 7 if entry.name is None else 7
        case AclType.GROUP:
            return mode >> 3 & 7 if minimal else 7
        case AclType.MASK:
            return mode >> 3 & 7
        case AclType.OTHER:
            return mode & 7


@dataclass(slots=True)
class NewDirectories:
    """The directories that a plan creates above (or as) its target."""

    group: str
    acl: tuple[AclEntry, ...] | None
    ops: list[Mkdir] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Modes:
    """The mode of the path's last directory, unmasked if known, and that of those above it."""

    last: int
    unmasked: int | None
    above: int

    def at(self, *, last: bool) -> int:
        """The mode for the last directory or for one above it."""
        return self.last if last else self.above


def make_directories(
    scene: Scene, ids: NewIds, route: Route, upto: int, modes: Modes
) -> NewDirectories:
    """Edits that create the missing directories among the first ``upto`` names of a path.

    Each takes its group from the one above (the BSD rule); the last existing one must have room.
    """
    first = route.existing
    above = route.nodes[first]
    assert isinstance(above, INodeDirectory)
    check_new_name(route.names[first], above, scene.settings)
    check_room(scene, above, len(route.names) - first)
    made = NewDirectories(above.group, above.acl)
    for index in range(first, upto):
        if is_too_long(route.names[index], scene.settings):
            raise too_long(route.names[index], route.prefix(index), scene.settings)
        mode = modes.at(last=index == len(route.names) - 1)
        result = inherit(made.acl, mode, modes.unmasked, directory=True)
        permission = Permission(scene.caller.user, made.group, result.mode)
        path = route.prefix(index + 1)
        now = scene.now_ms
        made.ops.append(Mkdir(ids.next(), path, now, now, permission, acl=result.acl))
        made.acl = result.acl or None
    return made


def passable(mode: int) -> int:
    """The mode of a directory that is created on the way: its owner can always walk it."""
    return mode | _OWNER_WX


def check_room(scene: Scene, directory: INodeDirectory, added: int) -> None:
    """The limits on a directory that is about to get an entry with ``added`` inodes in all."""
    settings = scene.settings
    if len(directory.children) >= settings.max_directory_items:
        raise FsError(
            DIRECTORY_ITEMS_EXCEEDED,
            f"The directory item limit of {full_path(directory)} is exceeded: "
            f"limit={settings.max_directory_items} items={len(directory.children)}",
        )
    check_quotas(scene, directory, added)


def check_quotas(
    scene: Scene, directory: INodeDirectory, added: int, *, stop: INode | None = None
) -> None:
    """The name quotas of a directory and those above it, up to (without) ``stop``."""
    step: INodeDirectory | None = directory
    while step is not None and step is not stop:
        quota = step.quotas.namespace
        if 0 <= quota < QUOTA_DONT_SET:
            count = scene.namespace.tree.count(step) + added
            if count > quota:
                raise FsError(
                    NAMESPACE_QUOTA_EXCEEDED,
                    "The NameSpace quota (directories and files) of directory "
                    f"{full_path(step)} is exceeded: quota={quota} file count={count}",
                )
        step = step.parent


def described(file: INodeFile) -> Permission:
    """A file's owner, group and mode, as its Close records them."""
    return Permission(file.user, file.group, file.mode)
