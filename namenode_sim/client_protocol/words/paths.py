"""From a path in a request to the inodes along it, with Hadoop's checks of its form."""

from ha.record import record
from ha.rpc.java_names import PARENT_NOT_DIRECTORY, PATH_IS_NOT_DIRECTORY
from namenode_sim.client_protocol.words import errors
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.namespace.inode import INode, INodeDirectory, INodeFile, INodeSymlink, full_path
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots.diffs import attributes_at
from namenode_sim.namespace.snapshots.view import SnapshotView, view_root
from namenode_sim.namespace.tree import Tree, components

MAX_PATH_CHARACTERS = 8000
MAX_PATH_DEPTH = 1000
"""HdfsServerConstants: no key sets these two."""

DOT_SNAPSHOT = b".snapshot"
_RESERVED = b".reserved"
_INODES = b".inodes"
_RAW = b"raw"
_MOST_ID_DIGITS = len(str(2**63 - 1))


@record
class Route:
    """A path and the inode at each step of it: ``nodes[0]`` is the root, missing ones are None.

    ``.snapshot`` and a snapshot's name are one step.  With ``in_snapshot`` the path leads into a
    snapshot (``sight`` is what is there) or to the ``.snapshot`` of a directory.
    """

    path: str
    names: tuple[bytes, ...]
    nodes: tuple[INode | None, ...]
    in_snapshot: bool = False
    sight: SnapshotView | None = None

    @property
    def last(self) -> INode | None:
        return self.nodes[-1]

    @property
    def is_dot_snapshot(self) -> bool:
        """Whether it is the directory of all snapshots of a directory."""
        return self.in_snapshot and self.names[-1] == DOT_SNAPSHOT

    @property
    def is_reserved(self) -> bool:
        """Whether it is the directory of paths that lead to inodes by other ways."""
        return self.names == (_RESERVED,)

    @property
    def name(self) -> bytes:
        """The last name on the path; empty for the root."""
        return self.names[-1] if self.names else b""

    @property
    def parent(self) -> INode | None:
        """The inode before the last, if there is one."""
        return self.nodes[-2] if self.names else None

    @property
    def parent_path(self) -> str:
        return self.prefix(len(self.names) - 1)

    def prefix(self, length: int) -> str:
        return "/" + text(b"/".join(self.names[:length]))

    @property
    def existing(self) -> int:
        """The index of the last node that exists."""
        index = len(self.nodes) - 1
        while self.nodes[index] is None:  # the root always exists
            index -= 1
        return index


def text(name: bytes) -> str:
    """Return a name as the client writes it."""
    return name.decode("utf-8", "replace")


def is_valid_name(path: str) -> bool:
    """Return whether a path is absolute, has no empty part but at the end, no ``.`` and no colon.

    ``..`` may come behind the id in ``/.reserved/.inodes/ID``.
    """
    if not path.startswith("/"):
        return False
    if not ("/." in path or "//" in path or ":" in path):
        return True  # nearly every path
    parts = path.rstrip("/").split("/")[1:]
    by_id = len(parts) > 3 and parts[:2] == [".reserved", ".inodes"]
    return not any(
        part in {"", "."} or (part == ".." and not by_id) or ":" in part for part in parts
    )


def check_length(method: str, path: str) -> None:
    """Check a path's length and depth (NameNodeRpcServer.checkPathLength)."""
    if len(path) <= MAX_PATH_DEPTH:
        return  # it cannot have more levels than characters
    depth = len([part for part in path.split("/") if part])
    if len(path) > MAX_PATH_CHARACTERS or depth > MAX_PATH_DEPTH:
        raise errors.io_error(
            f"{method}: Pathname too long.  Limit {MAX_PATH_CHARACTERS} characters, "
            f"{MAX_PATH_DEPTH} levels."
        )


def check_new_name(name: bytes, parent: INodeDirectory, settings: Settings) -> None:
    """Check a name that is about to appear in a directory."""
    if is_too_long(name, settings):
        raise too_long(name, full_path(parent), settings)
    check_not_reserved(name, in_root=parent.parent is None)


def check_not_reserved(name: bytes, *, in_root: bool) -> None:
    """Refuse the name by which snapshots are seen and, in the root, that of inodes."""
    if name == DOT_SNAPSHOT:
        raise errors.illegal_argument(f'"{text(name)}" is a reserved name.')
    if name == _RESERVED and in_root:
        raise errors.illegal_argument(
            f'File name "{text(name)}" is reserved and cannot be created. If this is during '
            "upgrade change the name of the existing file or directory to another name before "
            "upgrading to the new release."
        )


def is_reserved(path: str) -> bool:
    """Return whether a path is ``/.reserved``, or below it without a meaning of its own."""
    first, *below = path.split("/")[1:]
    return first == ".reserved" and below[:1] not in (["raw"], [".inodes"])


def check_not_the_reserved(path: str) -> None:
    """Refuse ``/.reserved`` itself: it has a status, but no inode to change."""
    if path == "/.reserved":
        raise errors.invalid_path(path)


def is_too_long(name: bytes, settings: Settings) -> bool:
    """Return whether one name is over its limit, in bytes; 0 means no limit."""
    return 0 < settings.max_component_bytes < len(name)


def too_long(name: bytes, parent_path: str, settings: Settings) -> errors.FsError:
    return errors.FsError(
        errors.NAME_TOO_LONG,
        f"The maximum path component name limit of {text(name)} in directory {parent_path} is "
        f"exceeded: limit={settings.max_component_bytes} length={len(name)}",
    )


def resolve(namespace: Namespace, path: str) -> Route:
    """Return the inodes along a path.

    ``/.reserved/.inodes/ID`` means the inode of that id, and ``/.reserved/raw`` all that follows it
    as it is stored, which differs in Hadoop's encryption zones only.
    """
    tree = namespace.tree
    if not path.startswith("/"):
        raise errors.invalid_path(path)
    names = components(path)
    if names[:1] == [_RESERVED]:
        path, names = _resolve_reserved(tree, path, names)
    nodes = tree.along(names)
    end = len(nodes) - 2
    if nodes[-1] is None and names[end] == DOT_SNAPSHOT:
        directory = nodes[end]
        if isinstance(directory, INodeDirectory) and _may_have_snapshots(namespace, directory):
            return _into_snapshot(namespace, path, names, nodes[:-1])
    nodes += [None] * (len(names) + 1 - len(nodes))
    return Route(path, tuple(names), tuple(nodes))


def _may_have_snapshots(namespace: Namespace, directory: INodeDirectory) -> bool:
    """Return whether it may have snapshots; the root too, as in Hadoop, though it has none."""
    return directory.parent is None or directory.id in namespace.snapshots.snapshottable


def _into_snapshot(
    namespace: Namespace, path: str, names: list[bytes], nodes: list[INode | None]
) -> Route:
    """Return the route from a directory's ``.snapshot`` on; ``nodes`` lead to the directory."""
    directory = nodes[-1]
    assert isinstance(directory, INodeDirectory)
    before, rest = names[: len(nodes) - 1], names[len(nodes) :]
    if not rest:
        return Route(path, (*before, DOT_SNAPSHOT), (*nodes, None), in_snapshot=True)
    taken = namespace.snapshots.snapshottable.get(directory.id, [])
    found = next((snapshot for snapshot in taken if snapshot.root.name == rest[0]), None)
    sight = None if found is None else view_root(directory, found)
    seen: list[INode | None] = [sight.node if sight is not None else None]
    for name in rest[1:]:
        sight = sight.child(name) if sight is not None else None
        seen.append(sight.node if sight is not None else None)
    steps = (*before, DOT_SNAPSHOT + b"/" + rest[0], *rest[1:])
    if found is not None:  # the modes and ACLs of then count, not those of now
        nodes = [attributes_at(node, found.id) for node in nodes if node is not None]
    return Route(path, steps, (*nodes, *seen), in_snapshot=True, sight=sight)


def route_to(node: INode) -> Route:
    nodes: list[INode] = [node]
    while (parent := nodes[-1].parent) is not None:
        nodes.append(parent)
    nodes.reverse()
    return Route(full_path(node), tuple(step.name for step in nodes[1:]), tuple(nodes))


def _resolve_reserved(tree: Tree, path: str, names: list[bytes]) -> tuple[str, list[bytes]]:
    if is_raw(names) and names[2:] != [_RESERVED]:
        return _join(names[2:]), names[2:]
    if names[1:2] != [_INODES] or len(names) < 3:
        return path, names
    digits = names[2].decode("ascii", "replace")
    if not digits.isdecimal() or len(digits) > _MOST_ID_DIGITS:
        raise errors.not_found(f"Invalid inode path: {path}")
    node = tree.inodes.get(int(digits))
    if node is None:
        raise errors.not_found(f"File for given inode path does not exist: {path}")
    rest = names[3:]
    if rest[:1] == [b".."]:  # nothing behind it counts
        node, rest = node.parent or node, []
    found = [*components(full_path(node)), *rest]
    return _join(found), found


def is_raw(names: list[bytes]) -> bool:
    return names[:2] == [_RESERVED, _RAW]


def _join(names: list[bytes]) -> str:
    return "/" + "/".join(text(name) for name in names)


def check_is_directory(route: Route, index: int) -> None:
    """Check that an existing step is a directory (FSPermissionChecker.checkIsDirectory)."""
    node = route.nodes[index]
    if isinstance(node, INodeSymlink):
        raise unresolved(route, index, node)
    if not isinstance(node, INodeDirectory):
        raise errors.FsError(PARENT_NOT_DIRECTORY, f"{route.prefix(index)} (is not a directory)")


def check_not_symlink(route: Route) -> None:
    """Refuse a symlink as the last step: the client has to resolve its target itself."""
    if isinstance(route.last, INodeSymlink):
        raise unresolved(route, len(route.names), route.last)


def unresolved(route: Route, index: int, link: INodeSymlink) -> errors.FsError:
    """Return an UnresolvedPathException: where the link is and what lies behind it."""
    target = text(link.target)
    rest = "/".join(text(name) for name in route.names[index:])
    found = target if target.startswith("/") else f"{route.prefix(index - 1).rstrip('/')}/{target}"
    return errors.FsError(errors.UNRESOLVED_PATH, f"{found}/{rest}" if rest else found)


def as_file(route: Route) -> INodeFile:
    """Return the file a path leads to (INodeFile.valueOf)."""
    if route.last is None:
        raise errors.not_found(f"File does not exist: {route.path}")
    if not isinstance(route.last, INodeFile):
        raise errors.not_found(f"Path is not a file: {route.path}")
    return route.last


def as_directory(route: Route) -> INodeDirectory:
    """Return the directory that a path leads to (INodeDirectory.valueOf)."""
    if route.last is None:
        raise errors.not_found(f"Directory does not exist: {route.path}")
    if not isinstance(route.last, INodeDirectory):
        raise errors.FsError(PATH_IS_NOT_DIRECTORY, f"`{route.path}': Is not a directory")
    return route.last


def check_parent_exists(route: Route) -> None:
    """Check that a path's parent is there (FSDirectory.verifyParentDir); not for the root."""
    if route.parent is None:
        raise errors.not_found(f"Parent directory doesn't exist: {route.parent_path}")
