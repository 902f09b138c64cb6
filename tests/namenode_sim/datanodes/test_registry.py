"""Which machine may be a DataNode, and what its registration changes."""

import random
from dataclasses import replace

import pytest

from namenode_sim.blocks.state import BlockState
from namenode_sim.datanodes import registry
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.errors import StillElsewhere, StrangeNamespace, VersionTooOld
from namenode_sim.datanodes.model import DatanodeId

IDS = registry.NamespaceIds(77, "CID-1", 1234)
RULES = registry.RegistryRules(namespace=IDS, elsewhere_seconds=9.0)
NOW = 1000.0


def told(uuid: str = "u1", port: int = 9866, version: str = "3.5.0-nnha") -> registry.Registration:
    return registry.Registration(
        DatanodeId(uuid, "10.0.0.1", "host", port, 9864, 9867), IDS, version
    )


def cluster() -> Cluster:
    made = Cluster("BP-1", BlockState(), random.Random(1))
    made.add_storage(registry.register(made, told(), RULES, NOW).node, "DS-1")
    return made


STRANGERS = {
    "another namespace": replace(IDS, namespace_id=78),
    "another cluster": replace(IDS, cluster_id="CID-2"),
    "formatted at another time": replace(IDS, ctime=1),
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_strangers_are_refused_in_every_call(stranger: str) -> None:
    made, asks = cluster(), replace(told("u2", 1), namespace=STRANGERS[stranger])
    with pytest.raises(StrangeNamespace):
        registry.register(made, asks, RULES, NOW)
    with pytest.raises(StrangeNamespace):
        registry.check_namespace(asks, RULES)
    assert list(made.nodes) == ["u1"]


VERSIONS = {
    "3.5.0": True, "3.5.0-nnha": True, "2.1.0": True, "2.1.0-beta": True, "2.1.0-beta1": True,
    "2.10.2": True, "2.1.1-alpha": True, "2.1": False, "2.1.0-alpha": False, "2.0.9": False,
    "1.2.1": False, "": False, "three": False, "2.x": False, "3.\u00b2": False,
    "3.123456789": True, "3.1234567890": False,
}  # fmt: skip


@pytest.mark.row("B29")
@pytest.mark.parametrize("version", VERSIONS)
def test_old_software_is_refused(version: str) -> None:
    made, asks = cluster(), told("u2", 1, version)
    if VERSIONS[version]:
        assert registry.register(made, asks, RULES, NOW).node.software_version == version
        return
    with pytest.raises(VersionTooOld, match=r"2\.1\.0-beta"):
        registry.register(made, asks, RULES, NOW)
    assert list(made.nodes) == ["u1"]


def test_where_the_oldest_version_names_no_numbers_all_that_name_some_are_let_in() -> None:
    made, rules = cluster(), replace(RULES, oldest_version="any")
    registry.register(made, told("u2", 1, "0.1"), rules, NOW)
    with pytest.raises(VersionTooOld, match="'three'"):
        registry.register(made, told("u3", 2, "three"), rules, NOW)
    assert list(made.nodes) == ["u1", "u2"]


def test_one_that_comes_again_keeps_its_replicas_but_proves_nothing() -> None:
    made = cluster()
    node = made.nodes["u1"]
    (storage,) = node.storages.values()
    storage.held.reports, storage.held.confirmed, storage.held.heartbeated = 3, True, True
    node.alive, node.broken = False, True
    node.must_register, node.told_active = True, True
    found = registry.register(made, told(version="3.6.0"), RULES, NOW + 1)
    assert found.node is node
    assert found.replaced == ()
    assert (node.alive, node.broken) == (True, False)
    assert (node.must_register, node.told_active) == (False, False)
    assert (node.registrations, node.last_heard) == (2, NOW + 1)
    assert node.software_version == "3.6.0"
    assert list(node.storages) == ["DS-1"]
    held = storage.held
    assert (held.reports, held.confirmed, held.heartbeated) == (0, False, False)


@pytest.mark.parametrize(
    ("silent", "alive", "broken", "must_register", "lets_in"),
    [
        (8.9, True, False, False, False),
        (9.0, True, False, False, True),
        (0.0, False, False, False, True),
        (0.0, True, True, False, True),
        (0.0, True, False, True, True),
    ],
)
def test_an_address_stays_its_own_while_it_is_heard(
    silent: float, alive: bool, broken: bool, must_register: bool, lets_in: bool
) -> None:
    made = cluster()
    node = made.nodes["u1"]
    node.alive, node.broken, node.must_register = alive, broken, must_register
    if not lets_in:
        with pytest.raises(StillElsewhere, match="copied"):
            registry.register(made, told(port=1), RULES, NOW + silent)
        assert node.id.transfer_port == 9866
        return
    assert registry.register(made, told(port=1), RULES, NOW + silent).node is node
    assert node.id.transfer_port == 1
    assert list(node.storages) == ["DS-1"]


def test_it_is_found_on_the_host_to_which_it_moved() -> None:
    made = cluster()
    (node,), old = made.nodes.values(), made.nodes["u1"].id.host
    assert made.local_to(old) == [node]
    assert made.local_to("elsewhere") == []
    registry.register(made, replace(told(), id=replace(node.id, host="elsewhere")), RULES, NOW)
    assert made.local_to("elsewhere") == [node]
    assert made.local_to(old) == []


def test_a_formatted_datanode_ends_the_one_that_was_there() -> None:
    made = cluster()
    old = made.nodes["u1"]
    assert registry.register(made, told("u2"), RULES, NOW).replaced == (old,)
    assert not old.alive
    assert list(made.nodes) == ["u2"]
