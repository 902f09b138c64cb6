"""When a cluster must serve, and what counts as a gap."""

import pytest

from tests.campaigns.soak.faults.faults import ways_between
from tests.campaigns.soak.faults.fitness import Condition, gaps, stretches
from tests.campaigns.soak.faults.hosts import CLIENTS, JOURNALNODES, NAMENODES, SERVERS, ZOOKEEPERS


def down(*processes: str) -> Condition:
    return Condition(0.0, down=frozenset(processes))


def cut(one: tuple[str, ...], other: tuple[str, ...]) -> Condition:
    return Condition(0.0, cut=frozenset(ways_between(one, other)))


def bad(*hosts: str) -> Condition:
    return Condition(0.0, bad=frozenset(hosts))


REST_OF_NN1 = tuple(host for host in (*SERVERS, CLIENTS) if host != "nn1")
MUST = {
    "nothing is the matter": Condition(0.0),
    "two namenodes are down": down("nn1", "nn2"),
    "two ZKFCs are down": down("zkfc-nn1", "zkfc-nn2"),
    "one of each is down": down("zk1", "jn2", "nn3"),
    "a namenode is alone": cut(("nn1",), REST_OF_NN1),
    "a namenode lacks the journal": cut(("nn1",), JOURNALNODES),
    "a majority with two namenodes": cut(
        ("zk1", "jn1", "nn1"), ("zk2", "zk3", "jn2", "jn3", "nn2", "nn3", CLIENTS)
    ),
    "one ZooKeeper sees both sides": cut(("zk1",), ("zk3",)),
}
NEED_NOT = {
    "all namenodes are down": down(*NAMENODES),
    "each host lacks its namenode or its ZKFC": down("nn1", "zkfc-nn2", "nn3"),
    "two ZooKeepers are down": down("zk1", "zk3"),
    "two journalnodes are down": down("jn1", "jn3"),
    "no two ZooKeepers hear each other": Condition(
        0.0, cut=frozenset({("zk1", "zk2"), ("zk2", "zk3"), ("zk3", "zk1")})
    ),
    "the majorities are on different sides": cut(
        (*ZOOKEEPERS, "jn1"), ("jn2", "jn3", *NAMENODES, CLIENTS)
    ),
    "nobody hears the clients": cut((CLIENTS,), NAMENODES),
    "one with the majorities does not hear the clients": cut((CLIENTS,), ("nn1",)),
    "the clients hear badly": bad(CLIENTS),
    "a namenode hears badly and may be the active": bad("nn2"),
    "one way is enough to part them": Condition(
        0.0, cut=frozenset((CLIENTS, name) for name in NAMENODES)
    ),
}


@pytest.mark.parametrize("condition", MUST.values(), ids=MUST)
def test_it_must_serve(condition: Condition) -> None:
    assert condition.must_serve()


@pytest.mark.parametrize("condition", NEED_NOT.values(), ids=NEED_NOT)
def test_it_need_not_serve(condition: Condition) -> None:
    assert not condition.must_serve()


def test_gaps_are_counted_inside_of_the_times_in_which_it_must_serve() -> None:
    away = frozenset(NAMENODES)
    record = [
        Condition(0.0),
        Condition(10.0, down=frozenset({"nn1"})),
        Condition(20.0, down=away),
        Condition(30.0),
    ]
    assert stretches(record, 50.0) == [(0.0, 20.0), (30.0, 50.0)]
    found = gaps(record, [1.0, 2.0, 14.0, 25.0, 33.0, 45.0], 50.0)
    assert [(gap.began, gap.seconds) for gap in found] == [
        (0.0, 1.0),
        (1.0, 1.0),
        (2.0, 12.0),
        (14.0, 6.0),
        (30.0, 3.0),
        (33.0, 12.0),
        (45.0, 5.0),
    ]


def test_a_time_without_any_answer_is_one_gap() -> None:
    (found,) = gaps([Condition(3.0)], [], 90.0)
    assert (found.began, found.seconds) == (3.0, 87.0)
