"""Which keys of block tokens a DataNode is sent: ours, and Hadoop's, which may end them for all."""

from random import Random
from typing import Final

import pytest
from prometheus_client import REGISTRY

from hadoop import block_tokens
from hadoop.block_tokens import NO_KEYS
from hadoop.proto.block_tokens_pb2 import ExportedBlockKeysProto
from namenode_sim.blocks.state import BlockState
from namenode_sim.datanode_protocol import metrics
from namenode_sim.datanode_protocol.block_keys import new_keys
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.datanodes.model import DatanodeId, Node

NOW: Final = 1_700_000_000_000
HOUR: Final = 3_600_000
OURS: Final = "3.5.0-nnha"
HADOOPS: Final = "3.5.0"


def a_cluster(*, is_on: bool = True, may_end: bool = True) -> Cluster:
    found = Cluster("BP-1", BlockState(), Random(1))
    ring = block_tokens.first_ring(5, NOW, HOUR, HOUR, bytes)
    found.block_keys = ring if is_on else None
    found.tokens_may_end = may_end
    return found


def a_node(version: str, uuid: str = "n1") -> Node:
    return Node(DatanodeId(uuid, "10.0.0.1", "h1", 1, 2, 3, 4), version, 0.0)


def current(keys: ExportedBlockKeysProto | None) -> int | None:
    """Return the id of the key that signs, 0 for the word that there are no tokens."""
    if keys is None:
        return None
    assert keys.isBlockTokenEnabled or keys == NO_KEYS
    return keys.currentKey.keyId


def shown(cluster: Cluster) -> float | None:
    metrics.measure(cluster, LivenessRules(), 0.0)
    return REGISTRY.get_sample_value("nnha_block_tokens_asked")


@pytest.mark.parametrize("is_on", [True, False])
def test_whether_they_are_asked_for_is_a_metric(*, is_on: bool) -> None:
    assert shown(a_cluster(is_on=is_on)) == is_on


def test_a_datanode_is_sent_each_key_once_and_all_when_it_registers() -> None:
    cluster, node = a_cluster(), a_node(OURS)
    told = [
        current(new_keys(cluster, node, NOW, anew=True)),
        current(new_keys(cluster, node, NOW)),
        current(new_keys(cluster, node, NOW + HOUR)),
        current(new_keys(cluster, node, NOW + HOUR)),
        current(new_keys(cluster, node, NOW + HOUR, anew=True)),
    ]
    assert told == [5, None, 6, None, 6]


@pytest.mark.parametrize("version", [OURS, HADOOPS])
def test_without_tokens_nothing_is_sent(version: str) -> None:
    cluster = a_cluster(is_on=False)
    assert new_keys(cluster, a_node(version), NOW, anew=True) is None
    assert cluster.tokens_asked


def test_where_they_are_configured_hadoops_datanodes_have_them_too() -> None:
    cluster = a_cluster(may_end=False)
    assert current(new_keys(cluster, a_node(HADOOPS), NOW, anew=True)) == 5
    assert cluster.tokens_asked


def test_one_of_hadoops_datanodes_ends_them_for_all() -> None:
    cluster, ours = a_cluster(), a_node(OURS)
    assert current(new_keys(cluster, ours, NOW, anew=True)) == 5
    assert current(new_keys(cluster, a_node(HADOOPS, "n2"), NOW, anew=True)) == 0
    assert not cluster.tokens_asked
    assert cluster.block_keys is not None  # for those that have not heard it yet
    assert shown(cluster) == 0
    told = [
        current(new_keys(cluster, ours, NOW)),
        current(new_keys(cluster, ours, NOW + 2 * HOUR)),
        current(new_keys(cluster, ours, NOW, anew=True)),
    ]
    assert told == [0, None, 0]
