"""Directories that cannot be deleted or moved while not empty (fs.protected.directories)."""

from namenode_sim.client_protocol.words.errors import denied
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.client_protocol.words.paths import Route
from namenode_sim.namespace.inode import INode, INodeDirectory


def check_unprotected(scene: Scene, route: Route) -> None:
    """Refuse a path that is, or holds, a protected one (DFSUtil.checkProtectedDescendants).

    What is below the root does not matter: the root is neither deleted nor moved anyway.
    """
    if not _holds_something(route.last):
        return
    protected, path = scene.settings.protected, route.prefix(len(route.names))
    if path in protected:
        raise denied(f"Cannot delete/rename non-empty protected directory {path}")
    for below in sorted(protected):
        if below.startswith(f"{path}/") and _holds_something(scene.namespace.tree.find(below)):
            raise denied(f"Cannot delete/rename non-empty protected subdirectory {below}")
    if scene.settings.protected_below:
        _check_above(path, protected)


def _check_above(path: str, protected: frozenset[str]) -> None:
    while path:
        path = path.rpartition("/")[0]
        if path in protected:
            raise denied(f"Cannot delete/rename subdirectory under protected subdirectory {path}")


def _holds_something(node: INode | None) -> bool:
    return isinstance(node, INodeDirectory) and bool(node.children)
