"""A DataNode that comes back with another disk in the place of one that it had."""

from random import Random

from journal.model import TxId
from namenode_sim.blocks.state import BlockState
from namenode_sim.datanode_protocol.keeper import Keeper, KeeperRules, Standing
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.commands import Heartbeat, StorageReport
from namenode_sim.datanodes.model import DatanodeId, Room, StorageState, StorageType
from namenode_sim.datanodes.registry import NamespaceIds, Registration, RegistryRules

IDS = NamespaceIds(7, "CID-1", 0)
WHO = DatanodeId("dn1-uuid", "10.0.0.1", "dn1", 9866, 9864, 9867)


def heartbeat(*storages: str) -> Heartbeat:
    reports = (
        StorageReport(uuid, StorageType.DISK, StorageState.NORMAL, Room(100)) for uuid in storages
    )
    return Heartbeat(WHO, tuple(reports))


async def test_a_storage_that_its_first_heartbeat_does_not_name_has_failed() -> None:
    """Otherwise its replicas would count, and an active ask for its report, for ever."""
    keeper = Keeper(
        Cluster("BP-1", BlockState(), Random(1)),
        KeeperRules(registry=RegistryRules(namespace=IDS)),
        lambda: Standing(active=True, durable=TxId(1)),
    )
    node = keeper.register(Registration(WHO, IDS, "3.5.0"))
    keeper.hear(heartbeat("DS-old", "DS-kept"), wants_lease=False)
    keeper.hear(heartbeat("DS-kept"), wants_lease=False)
    assert node.storages["DS-old"].state is StorageState.NORMAL, "it may only be late"
    keeper.register(Registration(WHO, IDS, "3.5.0"))
    keeper.hear(heartbeat("DS-new", "DS-kept"), wants_lease=False)
    states = {uuid: storage.state for uuid, storage in node.storages.items()}
    assert states == {
        "DS-old": StorageState.FAILED,
        "DS-kept": StorageState.NORMAL,
        "DS-new": StorageState.NORMAL,
    }
