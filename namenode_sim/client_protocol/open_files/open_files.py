"""What calls about open files share: which file is meant, whose it is, how it is closed."""

from namenode_sim.client_protocol.words.errors import lease_expired, not_found
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.client_protocol.words.paths import Route, route_to
from namenode_sim.client_protocol.words.permissions import find
from namenode_sim.edits.ops import Close
from namenode_sim.edits.values import Block, Permission
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.retry_cache import Opened
from namenode_sim.namespace.snapshots.diffs import is_current
from namenode_sim.namespace.tree import components


def by_id(scene: Scene, path: str, file_id: int) -> Route:
    """Return the route to the file, which may have been renamed since it was opened."""
    if file_id == 0:
        return find(scene, path)
    node = scene.namespace.tree.inodes.get(file_id)
    if node is None:
        # Whatever is at the path by now, it is not this file.
        names = tuple(components(path))
        return Route(path, names, (scene.namespace.tree.root, *[None] * len(names)))
    return route_to(node)


def check_lease(scene: Scene, route: Route, holder: str, file_id: int) -> INodeFile:
    """Check that the caller holds the file's lease, and renew it (FSNamesystem.checkLease)."""
    files = scene.namespace.tree.leases.get(holder)
    lease = (
        f"[Lease.  Holder: {holder}, pending creates: {len(files)}]"
        if files
        else f"Holder {holder} does not have any open files."
    )
    where = f"{route.path} (inode {file_id}) {lease}"
    if route.last is None:
        raise not_found(f"File does not exist: {where}")
    if not isinstance(route.last, INodeFile):
        raise lease_expired(f"INode is not a regular file: {where}")
    writer = route.last.under_construction
    if writer is None:
        raise lease_expired(f"File is not open for writing: {where}")
    if not is_current(route.last):  # only a snapshot has it: no edit may name its path any more
        raise not_found(f"File is deleted: {where}")
    if writer.client_name != holder:
        raise lease_expired(
            f"Client (={holder}) is not the lease owner (={writer.client_name}: {where}"
        )
    scene.leases.renew(holder, scene.now)
    return route.last


def close_edit(
    file: INodeFile, path: str, now_ms: int, blocks: tuple[Block, ...] | None = None
) -> Close:
    """Return the edit that completes a file; ``blocks`` if they differ from the file's."""
    return Close(
        inode_id=0,
        path=path,
        replication=file.replication,
        mtime=now_ms,
        atime=file.atime,
        block_size=file.preferred_block_size,
        blocks=file.blocks if blocks is None else blocks,
        permission=Permission(file.user, file.group, file.mode),
    )


def opened_before(scene: Scene) -> INodeFile:
    answer = scene.namespace.retry_cache.find(scene.caller.rpc)
    assert isinstance(answer, Opened)
    return answer.file
