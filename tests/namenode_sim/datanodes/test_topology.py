"""How far DataNodes are from each other and from clients, and in which order they are drawn."""

from itertools import permutations, product

import pytest

from ha.conf.keys.blocks import STALE_AFTER
from namenode_sim.datanodes import topology
from namenode_sim.datanodes.model import DatanodeId, Node


def node(name: str, rack: str, ip: str = "10.0.0.9") -> Node:
    return Node(DatanodeId(name, ip, f"host-{name}", 1, 2, 3), "3.5.0", 0.0, rack=rack)


A1, A2, B1, C1 = node("a1", "/a"), node("a2", "/a"), node("b1", "/b"), node("c1", "/c")

HERE, SAME_RACK, ELSEWHERE = 0, 2, 4
"""As Hadoop's NetworkTopology counts with one level of racks."""


@pytest.mark.parametrize(
    ("one", "other", "far"),
    [
        pytest.param(A1, A1, HERE, id="itself"),
        pytest.param(A1, A2, SAME_RACK, id="its rack"),
        pytest.param(A1, B1, ELSEWHERE, id="another rack"),
    ],
)
def test_the_distance_of_two_datanodes(one: Node, other: Node, far: int) -> None:
    assert topology.distance(one, other) == far
    assert topology.distance(other, one) == far


@pytest.mark.parametrize(
    ("local", "to", "far"),
    [
        pytest.param([A1], A1, HERE, id="its own"),
        pytest.param([A1], A2, SAME_RACK, id="the rack of its own"),
        pytest.param([A1], B1, ELSEWHERE, id="another rack"),
        pytest.param([A1, B1], B1, HERE, id="one of its two"),
        pytest.param([B1, A1], A2, SAME_RACK, id="the rack of one of its two"),
        pytest.param([A1, B1], C1, ELSEWHERE, id="the rack of neither"),
        pytest.param([], A1, ELSEWHERE, id="it has none"),
    ],
)
def test_the_distance_from_a_client_is_that_from_the_datanodes_at_its_address(
    local: list[Node], to: Node, far: int
) -> None:
    assert topology.distance_from(local, None if local else "/z", to) == far


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        pytest.param("10.0.0.1", ["p", "q"], id="an address"),
        pytest.param("host-q", ["q"], id="a name"),
        pytest.param("10.0.0.3", [], id="nobody's"),
        pytest.param("p", [], id="the uuid is no host"),
    ],
)
def test_datanodes_are_found_by_address_and_by_name(asked: str, found: list[str]) -> None:
    among = [node("p", "/a", "10.0.0.1"), node("q", "/a", "10.0.0.1"), node("r", "/a", "10.0.0.2")]
    assert [one.id.uuid for one in topology.on_host(among, asked)] == found


class Drawn:
    """Draws the numbers given, and keeps of how many each was to be drawn."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)
        self.stops: list[int] = []

    def random(self) -> float:
        raise AssertionError

    def randrange(self, stop: int, /) -> int:
        self.stops.append(stop)
        return self.numbers.pop(0)


@pytest.mark.parametrize("things", ["", "a", "ab", "abc", "abcd"])
def test_each_order_is_as_likely_as_any(things: str) -> None:
    """Each comes from one of the equally likely draws."""
    stops = list(range(len(things), 1, -1))
    orders = []
    for numbers in product(*map(range, stops)):
        draw = Drawn(*numbers)
        orders.append(tuple(topology.drawn(things, draw)))
        assert draw.stops == stops
    assert sorted(orders) == sorted(permutations(things))


def test_what_is_not_asked_for_is_not_drawn() -> None:
    draw = Drawn(2)
    assert next(topology.drawn("abcd", draw)) == "c"
    assert draw.stops == [4]


def test_the_default_of_a_silence_is_that_of_its_key() -> None:
    assert STALE_AFTER.parse(STALE_AFTER.default) == topology.STALE_SECONDS == 30.0
