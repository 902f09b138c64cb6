"""When a silent DataNode is stale, and when it is dead."""

import pytest

from journal.model import TxId
from namenode_sim.datanodes.liveness import LOOK_SECONDS, LivenessRules, Watch, dead_after
from namenode_sim.datanodes.model import CopyOrder, DatanodeId, Node, RecoveryOrder

RULES = LivenessRules(stale_seconds=30.0, dead_seconds=630.0)


def node() -> Node:
    return Node(DatanodeId("u1", "10.0.0.1", "host", 9866, 9864, 9867), "3.5.0", last_heard=0.0)


def looks(watch: Watch, one: Node, until: float, *, starting: bool = False) -> float | None:
    """Look every five seconds; when it died."""
    now = watch.last_look
    while now < until:
        now += LOOK_SECONDS
        if watch.died([one], RULES, now, starting=starting):
            return now
    return None


def test_hadoops_time() -> None:
    assert dead_after(3.0, 300.0) == 630.0


@pytest.mark.parametrize(("silent", "stale"), [(29.9, False), (30.0, True)])
def test_stale(silent: float, stale: bool) -> None:
    one = node()
    assert RULES.is_stale(one, silent) is stale
    one.broken = True
    assert RULES.is_stale(one, 0.0)


@pytest.mark.row("B20")
def test_b20_a_silent_one_dies_once_and_loses_its_orders() -> None:
    one, watch = node(), Watch(0.0, 0.0)
    one.told_active = one.obeys = True
    one.copy_orders.append(CopyOrder(1, (), TxId(0)))
    one.recovery_orders.append(RecoveryOrder(2, 1001, TxId(0)))
    assert looks(watch, one, 2000.0) == 630.0
    assert not one.alive
    assert (one.told_active, one.obeys) == (False, False)
    assert (len(one.copy_orders), len(one.recovery_orders)) == (0, 0)
    assert looks(watch, one, 2000.0) is None


def test_one_that_is_heard_lives() -> None:
    one, watch = node(), Watch(0.0, 0.0)
    assert looks(watch, one, 600.0) is None
    one.last_heard = 600.0
    assert looks(watch, one, 1225.0) is None
    assert looks(watch, one, 1230.0) == 1230.0


def test_nobody_dies_in_the_safe_mode_of_the_start() -> None:
    one, watch = node(), Watch(0.0, 0.0)
    assert looks(watch, one, 5000.0, starting=True) is None
    assert looks(watch, one, 5625.0) is None
    assert looks(watch, one, 5630.0) == 5630.0


def test_after_a_stop_of_ours_silence_counts_anew() -> None:
    one, watch = node(), Watch(0.0, 0.0)
    assert looks(watch, one, 100.0) is None
    assert watch.died([one], RULES, 4000.0, starting=False) == []
    assert looks(watch, one, 4625.0) is None
    assert looks(watch, one, 4630.0) == 4630.0


@pytest.mark.parametrize(("pause", "dies"), [(5.0, True), (15.0, True), (15.1, False)])
def test_a_look_is_late_after_more_than_fifteen_seconds(pause: float, dies: bool) -> None:
    one, watch = node(), Watch(0.0, 0.0)
    watch.last_look = 700.0 - pause
    assert watch.died([one], RULES, 700.0, starting=False) == ([one] if dies else [])
    assert one.alive is not dies
