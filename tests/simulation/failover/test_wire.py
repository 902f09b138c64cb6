"""The notices that a controller heard of are those that a whole round of questions has shown it."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from ha.notices.model import Pause, encode_pause
from ha.notices.store import members_path, pause_path
from tests.simulation.engine.clock import Process, VirtualLoop
from tests.simulation.engine.faults import Faults
from tests.simulation.engine.network import Network
from tests.simulation.engine.trace import Trace
from tests.simulation.failover.cluster import ZOOKEEPER
from tests.simulation.failover.hosts import Host, WorldNetwork
from tests.simulation.failover.wire import PAUSE, Wire
from tests.simulation.failover.zk_server import Reply, Request
from tests.simulation.failover.zk_tree import Znode

LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC)
READ, LOCK = Request("get", pause_path(ZOOKEEPER)), Request("exists", ZOOKEEPER.lock)
AGAIN = Request("get", f"{members_path(ZOOKEEPER)}/nn1")
WRITE = Request("set", f"{members_path(ZOOKEEPER)}/nn1")


@dataclass(eq=False)
class _Client:
    process: Process
    session_id: int | None = 1


@dataclass
class _Scene:
    wire: Wire
    client: _Client
    loop: VirtualLoop

    def shows(self, request: Request, znode: Znode | None = None) -> None:
        self.wire.answered(self.client, request, Reply(znode, None, 0))

    def asks(self, *requests: Request) -> None:
        for request in requests:
            self.wire.asked(self.client, request)

    def told(self) -> frozenset[str]:
        self.loop.now += 0.01
        return self.wire.told_bars("nn1")


@pytest.fixture
def scene() -> _Scene:
    loop = VirtualLoop(lambda _process: 0.0)
    loop.close()
    trace = Trace(lambda: 0.0, keep=False)
    network = WorldNetwork(Network(loop, Faults(1, {}, None), trace, held=False))
    host = Host("nn1", loop, network, trace)
    life = host.begin("zkfc", 100)
    return _Scene(Wire({"nn1": host}, ZOOKEEPER), _Client(life.process), loop)


def _pause(until: datetime | None = None) -> Znode:
    return Znode(encode_pause(Pause(owner="op", reason="r", since=LONG_AGO, until=until)), 1, 1)


def test_a_whole_round_tells(scene: _Scene) -> None:
    scene.asks(READ, LOCK)
    scene.shows(READ, _pause())
    assert scene.told() == frozenset()
    scene.shows(LOCK)
    assert scene.told() == {PAUSE}
    scene.asks(READ)
    scene.shows(READ)
    assert scene.told() == frozenset()


def test_a_round_of_which_one_answer_was_lost_tells_nothing(scene: _Scene) -> None:
    scene.asks(READ, LOCK)
    scene.shows(READ, _pause())
    scene.wire.failed(scene.client, LOCK)
    assert scene.told() == frozenset()


def test_a_round_goes_on_with_a_question_that_an_answer_has_led_to(scene: _Scene) -> None:
    scene.asks(READ)
    scene.shows(READ, _pause())
    scene.asks(LOCK)
    scene.wire.failed(scene.client, LOCK)
    assert scene.told() == frozenset()


def test_a_round_tells_nothing_whose_next_question_finds_no_connection(scene: _Scene) -> None:
    scene.asks(READ)
    scene.shows(READ, _pause())
    scene.wire.unsent(scene.client, LOCK)
    assert scene.told() == frozenset()


def test_the_next_round_takes_nothing_back(scene: _Scene) -> None:
    scene.asks(READ)
    scene.shows(READ, _pause())
    scene.asks(AGAIN)
    scene.wire.failed(scene.client, AGAIN)
    assert scene.told() == {PAUSE}


def test_a_write_that_is_lost_spoils_no_round(scene: _Scene) -> None:
    scene.asks(READ, WRITE)
    scene.shows(READ, _pause())
    scene.wire.failed(scene.client, WRITE)
    assert scene.told() == {PAUSE}


def test_a_pause_that_is_over_is_none(scene: _Scene) -> None:
    scene.asks(READ)
    scene.shows(READ, _pause(until=LONG_AGO))
    assert scene.told() == frozenset()
