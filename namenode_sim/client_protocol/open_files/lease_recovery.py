"""Taking a file from the client that writes it, or wrote it (FSNamesystem.recoverLeaseInternal).

See docs/reference/blocks.md#taking-a-lease.
"""

from collections.abc import Callable
from typing import Final, NoReturn

from ha.record import dataclass
from ha.rpc.java_names import ALREADY_BEING_CREATED
from namenode_sim.blocks.model import Stage
from namenode_sim.client_protocol.open_files.lease_release import Released, release_lease
from namenode_sim.client_protocol.words.block_locations import stage_of
from namenode_sim.client_protocol.words.errors import RECOVERY_IN_PROGRESS, FsError
from namenode_sim.client_protocol.words.model import EditPlan, Scene
from namenode_sim.client_protocol.words.paths import Route, as_file
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import Block
from namenode_sim.leases.taking import Caller, Granted, Intent, Refusal, Writer, take
from namenode_sim.namespace.inode import INodeFile

LAZY_PERSIST_POLICY: Final = 15
"""Files of this storage policy are not opened again: their blocks may be in memory alone."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The file is closed once these edits are applied; ``blocks`` are what it has then."""

    ops: tuple[Op, ...]
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class StillOpen:
    """The lease is being released; the plan does what it takes, and then refuses the call."""

    plan: EditPlan


def take_lease(scene: Scene, route: Route, client: str, intent: Intent) -> Taken | StillOpen:
    """Plan what it takes to get a file that may be open.

    Raises:
        FsError: while another client writes it, or if the caller itself does.
    """
    file = as_file(route)
    caller = Caller(client, scene.caller.host, intent)
    answer = take(route.path, _writer(scene, file), caller)
    if isinstance(answer, Granted):
        return Taken((), file.blocks)
    if isinstance(answer, Refusal):
        raise _refusal(answer)
    released = release_lease(scene, file, route.path)
    if released.closed:
        return Taken(released.ops, released.blocks)
    return StillOpen(EditPlan(released.ops, _refusing(released, answer.if_still_open)))


def force_lease(scene: Scene, route: Route, client: str) -> Released:
    """Release an open file for recoverLease, though its writer may be well.

    Raises:
        FsError: if its lease has no holder, or only reports of DataNodes can help.
    """
    file = as_file(route)
    caller = Caller(client, scene.caller.host, Intent.RECOVER, force=True)
    answer = take(route.path, _writer(scene, file), caller)
    if isinstance(answer, Refusal):
        raise _refusal(answer)
    return release_lease(scene, file, route.path, client)


def _writer(scene: Scene, file: INodeFile) -> Writer | None:
    writer = file.under_construction
    if writer is None:
        return None
    name = writer.client_name
    held = file.id in scene.namespace.tree.leases.get(name, ())
    silent = scene.leases.idle_seconds(name, scene.now) if held else None
    recovers = bool(file.blocks) and stage_of(scene, file.blocks[-1]) is Stage.UNDER_RECOVERY
    return Writer(name, writer.client_machine, silent, recovers)


def _refusal(refused: Refusal) -> FsError:
    java_class = RECOVERY_IN_PROGRESS if refused.in_recovery else ALREADY_BEING_CREATED
    return FsError(java_class, refused.message)


def _refusing(released: Released, refused: Refusal) -> Callable[[], NoReturn]:
    def answer() -> NoReturn:
        released.then()
        raise _refusal(refused)

    return answer
