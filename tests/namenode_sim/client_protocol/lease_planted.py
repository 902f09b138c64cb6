"""Bugs planted into leases and block recovery, each of which random lives of a file must show."""

from dataclasses import dataclass, replace
from typing import Final

from datanode.replicas.agreement import Agreement, Found, agree
from hadoop.blocks import Block as DataNodeBlock
from hadoop.proto import datanode_protocol_pb2 as pb
from namenode_sim.blocks.model import Slot
from namenode_sim.client_protocol.open_files import block_recovery, lease_calls, lease_release
from namenode_sim.client_protocol.open_files.lease_release import Released
from namenode_sim.client_protocol.open_files.open_files import close_edit
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.datanodes import recovery
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import Node, NodeStorage
from namenode_sim.edits.values import Block
from namenode_sim.namespace.inode import INodeFile
from tests.namenode_sim.client_protocol import recovering_datanodes
from tests.simulation.engine.mutants import Planting, all_of, replacing


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug, and how to put it into the product."""

    name: str
    plant: Planting


def _any_recovery(_: Scene, __: pb.CommitBlockSynchronizationRequestProto, ___: Block) -> None:
    """Count whatever a DataNode reports, also of a recovery long past."""


def _all_take_part(cluster: Cluster, slot: Slot) -> list[tuple[Node, NodeStorage]]:
    construction = cluster.blocks.map.construction(slot)
    return [cluster.place(one.storage) for one in construction.locations]


def _silence_is_nothing(
    block: DataNodeBlock, found: list[Found[str]], length: int | None, *, silent: int
) -> Agreement[str]:
    return agree(block, found, length, silent=silent * 0)


def _close_at_once(
    scene: Scene, file: INodeFile, path: str, new_holder: str | None = None
) -> Released:
    step = _release_lease(scene, file, path, new_holder)
    if step.closed:
        return step
    close = close_edit(file, path, scene.now_ms, step.blocks)
    return replace(step, ops=(close,), closed=True, then=lambda: None)


_release_lease = lease_release.release_lease


BUGS: Final = (
    Bug("any recovery id counts", replacing(block_recovery, "_check_recovery", _any_recovery)),
    Bug("a file is closed with a block that nobody has recovered",
        replacing(lease_calls, "release_lease", _close_at_once)),
    Bug("whole replicas take part beside one that was cut",
        all_of(
            replacing(recovery, "participants", _all_take_part),
            replacing(recovering_datanodes, "participants", _all_take_part),
        )),
    Bug("a block goes though one who has it did not answer",
        replacing(recovering_datanodes, "agree", _silence_is_nothing)),
)  # fmt: skip
