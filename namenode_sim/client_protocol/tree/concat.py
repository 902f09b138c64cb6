"""concat: the blocks of files go to another's end (FSDirConcatOp).

See docs/reference/namenode.md#concat.
"""

from collections.abc import Iterator, Sequence

from ha.rpc.java_names import ILLEGAL_ARGUMENT
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.words import errors, permissions, quotas
from namenode_sim.client_protocol.words.model import EditPlan, Scene
from namenode_sim.client_protocol.words.paths import Route, as_file
from namenode_sim.client_protocol.words.permissions import find
from namenode_sim.edits.ops import ConcatDelete
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.snapshots.diffs import entry_of, in_latest, latest_snapshot
from namenode_sim.namespace.usage import Use, effective_policy_id, use_of_file

_UNSUPPORTED = ("/.reserved/raw", "/.reserved/.inodes")


def concat(scene: Scene, request: calls.ConcatRequestProto) -> EditPlan:
    """Move the blocks of files to the end of another in their directory; delete the files."""
    if not request.srcs:
        raise errors.FsError(ILLEGAL_ARGUMENT, "No sources given")
    for path in (request.trg, *request.srcs):
        if path.startswith(_UNSUPPORTED):
            raise errors.io_error(
                f"Concat operation doesn't support .reserved relative path : {path}"
            )
    target = find(scene, request.trg)
    permissions.check_path(scene.caller, target, permissions.WRITE)
    if as_file(target).under_construction is not None:
        raise errors.illegal_argument(f"concat: target file {target.path} is under construction")
    sources: list[Route] = []
    for path in request.srcs:
        source = find(scene, path)
        permissions.check_path(scene.caller, source, permissions.READ)
        permissions.check_parent(scene.caller, source, permissions.WRITE)
        for refusal in _refusals(scene, source, target):
            raise refusal
        sources.append(source)
    if len({as_file(route).id for route in sources}) < len(sources):
        raise errors.illegal_argument("concat: at least two of the source files are the same")
    _check_room(scene, as_file(target), [as_file(route) for route in sources])
    paths = tuple(route.path for route in sources)
    op = ConcatDelete(target.path, paths, scene.now_ms, scene.caller.rpc)
    return EditPlan((op,), calls.ConcatResponseProto)


def _check_room(scene: Scene, target: INodeFile, sources: Sequence[INodeFile]) -> None:
    """Check the quotas: the blocks get the target's replication and its storage policy."""
    directory = target.parent
    assert directory is not None
    added, policy_id = Use(), effective_policy_id(directory)
    packed = b"".join([target.packed_blocks, *(file.packed_blocks for file in sources)])
    added.add(use_of_file(target.changed(packed, target.traits), policy_id))
    for file in (target, *sources):
        added.add(use_of_file(file, policy_id), -1)
    quotas.check(scene, directory, added)


def _refusals(scene: Scene, source: Route, target: Route) -> Iterator[errors.FsError]:
    """Yield what speaks against one source; only the first is reported."""
    file, end, path = as_file(source), as_file(target), source.path
    if file.parent is not end.parent:
        yield errors.illegal_argument(
            f"Source file {path} is not in the same directory with the target {target.path}"
        )
    yield from _kept_by_snapshots(scene, path, file)
    if file is end:
        yield errors.illegal_argument(
            f"concat: the src file {path} is the same with the target file {target.path}"
        )
    if file.under_construction is not None or not file.blocks:
        yield errors.illegal_argument(
            f"concat: source file {path} is invalid or empty or underConstruction"
        )
    if file.preferred_block_size > end.preferred_block_size:
        yield errors.illegal_argument(
            f"concat: source file {path} has preferred block size {file.preferred_block_size} "
            "which is greater than the target file's preferred block size "
            f"{end.preferred_block_size}"
        )
    if file.ec_policy_id != end.ec_policy_id:
        yield errors.illegal_argument(
            f"Source file {path} and target file {target.path} have different erasure coding policy"
        )


def _kept_by_snapshots(scene: Scene, path: str, file: INodeFile) -> Iterator[errors.FsError]:
    """Refuse a source that is in a snapshot, which would lose its blocks."""
    if in_latest(entry_of(file), latest_snapshot(scene.namespace.tree, path)):
        yield errors.snapshot_error(f"Concat: the source file {path} is in snapshot")
    if file.reference is not None and file.reference.count() > 1:
        yield errors.snapshot_error(
            f"Concat: the source file {path} is referred by some other reference in some snapshot."
        )
