"""Calls that reopen files and take leases (FSNamesystem's lease checks)."""

from ha.rpc.java_names import ALREADY_BEING_CREATED
from namenode_sim.client_protocol.errors import (
    HADOOP_ILLEGAL_ARGUMENT,
    RECOVERY_IN_PROGRESS,
    FsError,
    no_datanodes,
)
from namenode_sim.client_protocol.leases import SOFT_LIMIT_SECONDS
from namenode_sim.client_protocol.model import EditPlan, Scene, no_edits
from namenode_sim.client_protocol.open_files import close_edit, opened_before
from namenode_sim.client_protocol.paths import Route, as_file, route_to
from namenode_sim.client_protocol.permissions import WRITE, check_path, find
from namenode_sim.client_protocol.status import status_of
from namenode_sim.edits.ops import Append, Close, Op
from namenode_sim.proto import client_namenode_pb2 as calls

NEW_BLOCK = 32


def recover_lease_for(scene: Scene, route: Route, client: str, op: str) -> tuple[Op, ...]:
    """Refuse while another writes the file; closing edits if its lease has run out.

    FSNamesystem.recoverLeaseInternal.  A holder silent for longer than the soft limit loses the
    file at once if it has no block; one with blocks needs DataNodes to agree on its length.
    """
    file = as_file(route)
    writer = file.under_construction
    if writer is None:
        return ()
    caller = f"Failed to {op} {route.path} for {client} on {scene.caller.host} because"
    if writer.client_name == client:
        raise FsError(
            ALREADY_BEING_CREATED, f"{caller} {client} is already the current lease holder."
        )
    silent = scene.leases.idle_seconds(writer.client_name, scene.now)
    if silent <= SOFT_LIMIT_SECONDS:
        raise FsError(
            ALREADY_BEING_CREATED,
            f"{caller} this file lease is currently owned by {writer.client_name} on "
            f"{writer.client_machine}",
        )
    if file.blocks:
        raise FsError(
            RECOVERY_IN_PROGRESS, f"{caller} lease recovery is in progress. Try again later."
        )
    return (close_edit(file, route.path, scene.now_ms),)


def recover_lease(scene: Scene, request: calls.RecoverLeaseRequestProto) -> EditPlan:
    """Take a file from its writer; true once it is closed."""
    route = find(scene, request.src)
    file = as_file(route)
    if file.under_construction is None:
        return no_edits(calls.RecoverLeaseResponseProto(result=True))
    check_path(scene.caller, route, WRITE)
    if file.blocks:
        return no_edits(calls.RecoverLeaseResponseProto(result=False))
    op = close_edit(file, route.path, scene.now_ms)
    return EditPlan((op,), lambda: calls.RecoverLeaseResponseProto(result=True))


def renew_lease(scene: Scene, request: calls.RenewLeaseRequestProto) -> EditPlan:
    if request.clientName in scene.namespace.tree.leases:
        scene.leases.renew(request.clientName, scene.now)
    return no_edits(calls.RenewLeaseResponseProto())


def append(scene: Scene, request: calls.AppendRequestProto) -> EditPlan:
    """Reopen an empty file; one with blocks would need DataNodes."""
    route = find(scene, request.src)
    file = as_file(route)
    check_path(scene.caller, route, WRITE)
    closing = recover_lease_for(scene, route, request.clientName, "APPEND_FILE")
    if file.blocks:
        raise no_datanodes(route.path)
    scene.leases.renew(request.clientName, scene.now)
    op = Append(
        route.path,
        request.clientName,
        scene.caller.host,
        new_block=bool(request.flag & NEW_BLOCK),
        rpc=scene.caller.rpc,
    )
    return EditPlan((*closing, op), lambda: appended(scene, route.path))


def appended(scene: Scene, path: str) -> calls.AppendResponseProto:
    """The answer to append: no block to go on with, so the client asks for a new one."""
    file = scene.namespace.tree.file(path)
    return calls.AppendResponseProto(stat=status_of(scene.namespace, file))


def appended_before(scene: Scene) -> calls.AppendResponseProto:
    """The answer to an append that was carried out already."""
    return calls.AppendResponseProto(stat=status_of(scene.namespace, opened_before(scene)))


def truncate(scene: Scene, request: calls.TruncateRequestProto) -> EditPlan:
    """Only to the length that the file already has; cutting blocks needs DataNodes."""
    route = find(scene, request.src)
    file = as_file(route)
    check_path(scene.caller, route, WRITE)
    closing = recover_lease_for(scene, route, request.clientName, "TRUNCATE_FILE")
    length = file.length()
    if request.newLength > length:
        raise FsError(
            HADOOP_ILLEGAL_ARGUMENT,
            f"Cannot truncate to a larger file size. Current size: {length}, "
            f"truncate size: {request.newLength}.",
        )
    if request.newLength < length:
        raise no_datanodes(route.path)
    return EditPlan(closing, lambda: calls.TruncateResponseProto(result=True))


def expired_leases(scene: Scene) -> list[Close]:
    """The edits that close the empty files of writers silent beyond the hard limit."""
    tree, found = scene.namespace.tree, []
    for holder, files in tree.leases.items():
        if scene.leases.idle_seconds(holder, scene.now) <= scene.settings.hard_lease_seconds:
            continue
        for number in sorted(files):
            file = as_file(route_to(tree.inodes[number]))
            if not file.blocks:
                found.append(close_edit(file, route_to(file).path, scene.now_ms))
    return found
