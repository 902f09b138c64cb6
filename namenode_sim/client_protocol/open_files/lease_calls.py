"""Calls about leases themselves, and what the NameNode does about leases by itself."""

from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.open_files.lease_recovery import force_lease
from namenode_sim.client_protocol.open_files.lease_release import (
    Released,
    is_stalled,
    release_lease,
)
from namenode_sim.client_protocol.words.model import EditPlan, Scene, no_edits
from namenode_sim.client_protocol.words.paths import as_file, route_to
from namenode_sim.client_protocol.words.permissions import WRITE, check_path, find
from namenode_sim.leases.expiry import expired
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.snapshots.diffs import is_current


def recover_lease(scene: Scene, request: calls.RecoverLeaseRequestProto) -> EditPlan:
    """Take a file from its writer; true once it is closed."""
    route = find(scene, request.src)
    if as_file(route).under_construction is None:
        return no_edits(calls.RecoverLeaseResponseProto(result=True))
    check_path(scene.caller, route, WRITE)
    released = force_lease(scene, route, request.clientName)

    def answer() -> calls.RecoverLeaseResponseProto:
        released.then()
        return calls.RecoverLeaseResponseProto(result=released.closed)

    return EditPlan(released.ops, answer)


def renew_lease(scene: Scene, request: calls.RenewLeaseRequestProto) -> EditPlan:
    """Note that a client lives, unless it writes no file."""
    if request.clientName in scene.namespace.tree.leases:
        scene.leases.renew(request.clientName, scene.now)
    return no_edits(calls.RenewLeaseResponseProto())


def due_files(scene: Scene) -> list[int]:
    """Return the ids of files that the NameNode should release now, of the longest silent first.

    Behind them come the files whose last block waits for a recovery that no DataNode leads any
    more.
    """
    tree = scene.namespace.tree
    heard = scene.leases.last_heard(tree.leases, scene.now)
    silent = expired(heard, scene.now, scene.settings.hard_lease_seconds)
    files = [number for holder in silent for number in sorted(tree.leases[holder])]
    state = scene.cluster.blocks
    stalled = {
        block.file_id
        for block in map(state.map.block, state.map.unfinished())
        if is_stalled(scene, block.id)
    }
    return files + sorted(stalled.difference(files))


def release_due(scene: Scene, file_id: int) -> Released | None:
    """Release one of these files, which may have changed since; None if nothing is to be done.

    Raises:
        FsError: if only reports of DataNodes can help.
    """
    node = scene.namespace.tree.inodes.get(file_id)
    if not isinstance(node, INodeFile) or node.under_construction is None:
        return None
    if not is_current(node):
        return None  # a snapshot holds it as it was, and it is never closed there
    silent = scene.leases.idle_seconds(node.under_construction.client_name, scene.now)
    if silent > scene.settings.hard_lease_seconds:
        own = scene.leases.own_holder(scene.now, scene.now_ms, scene.settings.hard_lease_seconds)
        return release_lease(scene, node, route_to(node).path, own)
    if node.blocks and is_stalled(scene, node.blocks[-1].block_id):
        return release_lease(scene, node, route_to(node).path)
    return None
