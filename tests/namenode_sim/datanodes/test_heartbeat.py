"""Which DataNode may heartbeat, what a heartbeat changes, and from when on a DataNode obeys."""

from itertools import product
from random import Random

import pytest

from namenode_sim.blocks.state import BlockState
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.commands import (
    Heartbeat,
    StorageReport,
    claimed,
    hear,
    is_registered,
)
from namenode_sim.datanodes.errors import TooManyStoragesHere
from namenode_sim.datanodes.model import DatanodeId, Node, Room, StorageState, StorageType

WHO = DatanodeId("u1", "10.0.0.1", "host", 9866, 9864, 9867)
MOVED = DatanodeId("u1", "10.0.0.1", "host", 1, 9864, 9867)
RENAMED = DatanodeId("u1", "10.0.0.1", "another", 9866, 1, 2)
STRANGER = DatanodeId("u2", "10.0.0.1", "host", 9866, 9864, 9867)
NORMAL, SHARED, FAILED = StorageState.NORMAL, StorageState.READ_ONLY_SHARED, StorageState.FAILED
NOW = 5000.0


def datanode(*storages: str) -> tuple[Cluster, Node]:
    """Build a DataNode that was informed of the active, and some storages of it."""
    cluster = Cluster("BP-1", BlockState(), Random(1))
    node = cluster.nodes[WHO.uuid] = Node(WHO, "3.5.0", last_heard=0.0)
    node.told_active = True
    for uuid in storages:
        cluster.add_storage(node, uuid)
    return cluster, node


def report(uuid: str, state: StorageState = NORMAL) -> StorageReport:
    return StorageReport(uuid, StorageType.SSD, state, Room(capacity=1000, remaining=900))


def heartbeat(*storages: str, failed_volumes: int = 0) -> Heartbeat:
    return Heartbeat(WHO, tuple(map(report, storages)), failed_volumes=failed_volumes)


# ---- which DataNode may heartbeat ----

SPEAKERS: dict[str, tuple[DatanodeId, bool, bool, bool, bool]] = {
    # identity, is alive, must register, its last connection broke, may heartbeat
    "as it registered": (WHO, True, False, False, True),
    "its process has died, and another one is there": (WHO, True, False, True, True),
    "other ports but that of data": (RENAMED, True, False, False, True),
    "unknown": (STRANGER, True, False, False, False),
    "elsewhere": (MOVED, True, False, False, False),
    "counted as dead": (WHO, False, False, False, False),
    "must register": (WHO, True, True, False, False),
}


@pytest.mark.parametrize(
    ("who", "alive", "must_register", "broken", "may_speak"),
    SPEAKERS.values(),
    ids=SPEAKERS.keys(),
)
def test_who_may_speak(
    who: DatanodeId, alive: bool, must_register: bool, broken: bool, may_speak: bool
) -> None:
    cluster, node = datanode()
    node.alive, node.must_register, node.broken = alive, must_register, broken
    assert is_registered(cluster, who) is (node if may_speak else None)


# ---- what it says of itself ----


def test_what_it_says_is_noted() -> None:
    cluster, node = datanode("DS-1")
    node.broken = True
    told = Heartbeat(
        WHO, (report("DS-1"), report("DS-2", SHARED)), transceivers=3, copies=5, failed_volumes=7
    )
    assert hear(cluster, node, told, NOW) == ()
    assert (node.last_heard, node.broken) == (NOW, False)
    assert (node.transceivers, node.copies, node.failed_volumes) == (3, 5, 7)
    assert list(node.storages) == ["DS-1", "DS-2"]
    for known in told.storages:
        storage = node.storages[known.uuid]
        assert (storage.type, storage.state, storage.room) == (known.type, known.state, known.room)


@pytest.mark.parametrize(("was", "told"), list(product(StorageState, repeat=2)))
def test_a_storage_fails_once_and_one_that_is_back_has_to_report(
    was: StorageState, told: StorageState
) -> None:
    cluster, node = datanode("DS-1")
    storage = node.storages["DS-1"]
    storage.state = was
    failed = hear(cluster, node, Heartbeat(WHO, (report("DS-1", told),)), NOW)
    assert storage.state is told
    assert failed == ((storage,) if told is FAILED and was is not FAILED else ())
    assert storage.held.needs_full_report is (was is FAILED and told is not FAILED)


def test_a_storage_that_is_new_has_nothing_to_make_good() -> None:
    cluster, node = datanode()
    assert hear(cluster, node, heartbeat("DS-1"), NOW) == ()
    assert not node.storages["DS-1"].held.needs_full_report


UNNAMED: dict[str, tuple[int, int, StorageState, StorageState, bool]] = {
    # failed volumes so far, and as reported; what it was, and is; fails it by this heartbeat
    "late to appear": (1, 1, NORMAL, NORMAL, False),
    "a volume has failed": (1, 2, NORMAL, FAILED, True),
    "a volume of a shared one has failed": (0, 1, SHARED, FAILED, True),
    "another volume has failed": (1, 2, FAILED, FAILED, False),
    "a volume is back": (2, 1, NORMAL, NORMAL, False),
    "it has registered anew": (-1, 0, NORMAL, FAILED, True),
}


@pytest.mark.parametrize(
    ("volumes", "told", "was", "then", "fails"), UNNAMED.values(), ids=UNNAMED.keys()
)
@pytest.mark.parametrize(("busy_so_far", "busy_now"), [(9, 0), (0, 9)])
def test_a_storage_that_is_not_named_has_failed_if_more_volumes_have(
    volumes: int,
    told: int,
    was: StorageState,
    then: StorageState,
    fails: bool,
    busy_so_far: int,
    busy_now: int,
) -> None:
    cluster, node = datanode("DS-named", "DS-unnamed")
    named, unnamed = node.storages.values()
    unnamed.state, node.failed_volumes = was, volumes
    node.transceivers = node.copies = busy_so_far
    says = Heartbeat(WHO, (report("DS-named"),), busy_now, busy_now, failed_volumes=told)
    assert hear(cluster, node, says, NOW) == ((unnamed,) if fails else ())
    assert (named.state, unnamed.state) == (NORMAL, then)


def test_a_storage_that_came_back_by_a_late_heartbeat_only_has_failed_again() -> None:
    """Bad schedule: the heartbeat was sent before the DataNode was started without that volume."""
    cluster, node = datanode("DS-gone", "DS-new")
    gone, _ = node.storages.values()
    gone.state = FAILED
    assert hear(cluster, node, heartbeat("DS-gone"), NOW) == ()
    assert (gone.state, gone.held.needs_full_report) == (NORMAL, True)
    assert hear(cluster, node, heartbeat("DS-new"), NOW) == (gone,)
    assert gone.state is FAILED


def test_a_storage_that_has_replicas_and_is_only_late_to_appear_stays() -> None:
    cluster, node = datanode("DS-late", "DS-named")
    late, _ = node.storages.values()
    late.held.needs_full_report = True
    late.held.slots.append(0)
    assert hear(cluster, node, heartbeat("DS-named"), NOW) == ()
    assert late.state is NORMAL


def test_sixty_four_storages_are_taken_in_those_included_that_are_known() -> None:
    cluster, node = datanode("DS-known")
    names = [f"DS-{number}" for number in range(64)]
    with pytest.raises(TooManyStoragesHere, match="65 storages, at most 64"):
        hear(cluster, node, heartbeat(*names), NOW)
    assert list(node.storages) == ["DS-known"]
    assert node.last_heard == 0.0
    hear(cluster, node, heartbeat(*names[:63]), NOW)
    assert len(node.storages) == 64
    hear(cluster, node, heartbeat("DS-known", *names[:63]), NOW)
    assert len(node.storages) == 64


# ---- from when on it obeys ----

CLAIMS: dict[str, tuple[bool, bool, bool, float]] = {
    # was informed before, obeys; obeys then, and since when no deletion was reported
    "for the first time": (False, False, False, 100.0),
    "it has called again": (True, False, True, NOW),
    "it obeys already": (True, True, True, 100.0),
}


@pytest.mark.parametrize(("told", "obeys", "then", "quiet"), CLAIMS.values(), ids=CLAIMS.keys())
def test_it_obeys_once_it_calls_after_an_answer_that_says_active(
    told: bool, obeys: bool, then: bool, quiet: float
) -> None:
    """No DataNode obeys before it was informed: that row is left out."""
    _, node = datanode("DS-1", "DS-2")
    node.told_active, node.obeys, node.drain.quiet_since = told, obeys, 100.0
    claimed(node, NOW)
    assert (node.told_active, node.obeys, node.drain.quiet_since) == (True, then, quiet)
    assert all(storage.held.heartbeated for storage in node.storages.values())
