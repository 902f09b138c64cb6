"""A frozen NameNode, a dead host, and a ZooKeeper that goes away."""

import asyncio
import signal
import time
from functools import partial

from deploy.local.cluster.cluster import ZOOKEEPER, Cluster, zkfc_of
from deploy.local.cluster.ports import HOST
from deploy.local.cluster.processes import wait_until
from deploy.local.demo.stage import Stage
from deploy.local.workload.phases import PHASES
from deploy.local.workload.trial import begin, observe, settle, the_active
from ha.conf.topology import HostPort
from tests.campaigns.bench.failover_world import JOURNAL_EPOCH, World
from tests.campaigns.bench.report import Row
from tests.campaigns.bench.stale_calls import StaleCalls, make
from tests.campaigns.bench.switches import Bars, Switch, rows_of, switch_of

FROZEN = "NameNode frozen"
TICK_SECONDS = 0.5
"""The local cluster's ZooKeeper looks for dead sessions so often."""

HEALTH_LIMIT = {"ha.health-monitor.rpc-timeout.ms": "2000"}
AWAY_SECONDS = 15.0
LONG_SECONDS = 600.0
RESTARTS = 3
CALM_SECONDS = 30.0


def frozen(world: World) -> list[Row]:
    """SIGSTOP the active; when it goes on, calls that waited in its sockets must get nothing."""
    served: list[str] = []
    name = f"{FROZEN}, 2 s limit"
    done = world.record.switches[name] = []
    with world.stage("frozen", JOURNAL_EPOCH | HEALTH_LIMIT) as stage, asyncio.Runner() as loop:
        for number in range(world.rounds):
            done.append(_freeze(stage, loop, f"/fresh/{number}", served))
    what = "; ".join(served) or "writes and reads that waited in its sockets, or came later"
    return [
        *rows_of(world.record, name, FROZEN, Bars(median=3.0, worst=3.0)),
        Row("thawed: stale answers", len(served), "answers", "0", not served, what),
    ]


def _freeze(stage: Stage, loop: asyncio.Runner, path: str, served: list[str]) -> Switch:
    cluster = stage.cluster
    old, _ = the_active(cluster)
    waiting = StaleCalls(loop, _address(cluster, old))
    begun = begin(cluster, lambda name: cluster.process(name).freeze(), PHASES)
    waiting.ask(path)

    def thaw() -> None:
        # The new active acknowledges the path that the old one must not deny.
        make(loop, _address(cluster, begun.new), path)
        waiting.ask(path)
        cluster.process(old).thaw()
        served.extend(waiting.answers())

    switch = switch_of(observe(cluster, stage.workload, begun, then=thaw), client=False)
    waiting.close()
    # The journal has superseded it: it ends by itself, and is started as an operator's init does.
    wait_until(
        lambda: not cluster.process(old).running,
        what=f"the deposed {old} to end",
        deadline_seconds=CALM_SECONDS,
    )
    cluster.start(old)
    settle(cluster, old)
    return switch


def _address(cluster: Cluster, name: str) -> HostPort:
    return HostPort(HOST, cluster.layout.namenodes[name].rpc)


def host_dead_2(world: World) -> list[Row]:
    return _host_dead(world, 2, _bars_of_session(2))


def host_dead_5(world: World) -> list[Row]:
    return _host_dead(world, 5, _bars_of_session(5))


def host_dead_10(world: World) -> list[Row]:
    """Kill a host at the default session, whose end the JournalNodes' witness makes needless."""
    return _host_dead(world, 10, Bars(median=1.8, worst=2.5))


def _bars_of_session(session_seconds: int) -> Bars:
    bar = session_seconds + TICK_SECONDS + 0.3
    return Bars(median=bar, worst=bar, client=bar + 0.5)


def _host_dead(world: World, session_seconds: int, bars: Bars) -> list[Row]:
    """End ZKFC and NameNode at once: killed and frozen in turn, which sends no FIN."""
    keys = JOURNAL_EPOCH | {"ha.zookeeper.session-timeout.ms": str(session_seconds * 1000)}
    kind = f"host dead, T = {session_seconds} s"
    killed = world.record.switches[f"{kind}, killed"] = []
    stopped = world.record.switches[f"{kind}, silent"] = []
    with world.stage(f"host-{session_seconds}", keys) as stage:
        for number in range(2 * world.rounds):
            if number % 2:
                stopped.append(_lose_host(stage, signal.SIGSTOP))
            else:
                killed.append(_lose_host(stage, signal.SIGKILL))
    return [
        row
        for how in ("killed", "silent")
        for row in rows_of(world.record, f"{kind}, {how}", kind, bars)
    ]


def _lose_host(stage: Stage, number: signal.Signals) -> Switch:
    cluster = stage.cluster

    def strike(old: str) -> None:
        # First the one that would report the other's end.
        for name in (zkfc_of(old), old):
            cluster.process(name).ended_by_us = True
            cluster.process(name).send(number)

    begun = begin(cluster, strike, PHASES)
    bury = partial(_bury, cluster, begun.old)
    # A stopped process's kernel still acknowledges: a call in its sockets lasts until it ends.
    switch = switch_of(
        observe(cluster, stage.workload, begun, then=bury), client=number is signal.SIGKILL
    )
    for name in (begun.old, zkfc_of(begun.old)):
        cluster.start(name)
    settle(cluster, begun.old)
    return switch


def _bury(cluster: Cluster, old: str) -> None:
    for name in (zkfc_of(old), old):
        cluster.process(name).kill()


def zookeeper_away(world: World) -> list[Row]:
    """Restart ZooKeeper, then keep it away: no role changes, no write fails."""
    away = LONG_SECONDS if world.long_run else AWAY_SECONDS
    with world.stage("zookeeper", JOURNAL_EPOCH) as stage:
        before = the_active(stage.cluster)
        longest_restart = max(_without_zookeeper(stage, 0.0) for _ in range(RESTARTS))
        longest_away = _without_zookeeper(stage, away)
        same = the_active(stage.cluster) == before
        failed = len(stage.workload.errors())
    holds = same and not failed
    return [
        Row(f"ZooKeeper restarted {RESTARTS} times: role changes", 1 - same, "-", "0", same, "-"),
        Row("the same: client's longest call", longest_restart, "s", "-", None, "-"),
        Row(f"ZooKeeper away for {away:g} s: failed writes", failed, "writes", "0", holds, "-"),
        Row("the same: client's longest call", longest_away, "s", "-", None, "-"),
    ]


def _without_zookeeper(stage: Stage, seconds: float) -> float:
    """Return the client's longest call while ZooKeeper was away and came back."""
    cluster, began = stage.cluster, time.monotonic()
    cluster.kill(ZOOKEEPER)
    # Not a wait for a condition: the absence is the experiment.
    time.sleep(seconds)
    cluster.start(ZOOKEEPER)
    for name in cluster.layout.namenodes:
        cluster.wait_for_candidate(name)
    return stage.workload.longest_call_seconds(began)
