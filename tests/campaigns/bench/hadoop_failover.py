"""Hadoop's failovers under the same client and in the same run as ours."""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from deploy.local.cluster.cluster import zkfc_of
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.layout import NAMENODES
from deploy.local.cluster.places import fresh_directory
from deploy.local.cluster.processes import wait_until
from deploy.local.demo.stage import ask_for_failover
from deploy.local.workload.java_client import open_java_client, start_java_client
from deploy.local.workload.trial import other
from deploy.local.workload.workload import Workload
from ha.service.client import ServiceClient
from ha.service.errors import ServiceError
from ha.service.model import ServiceState
from tests.campaigns.bench.failover_world import HAND_OVER, KILL, World
from tests.campaigns.bench.hadoop_cluster import HadoopCluster, hadoop_cluster
from tests.campaigns.bench.report import Row, unmeasured
from tests.campaigns.bench.switches import HADOOP, Bars, Switch, rows_of
from tests.campaigns.bench.world import resident_megabytes
from tests.interop.hadoop_jars import JarsMissing

KINDS = (KILL, HAND_OVER)
POLL_SECONDS = 0.01
DEADLINE_SECONDS = 180.0
SHARE_OF_ROUNDS = 0.7
"""A NameNode of Hadoop takes seconds to start, and seven of ten show enough of a peer."""

WARM_UP_WRITES = 300
WRITES_AFTER = 40


def hadoop_rows(world: World) -> list[Row]:
    """Measure Hadoop's ZKFC, NameNodes and JournalNodes; without its jar rows say so."""
    world.screen.title("Hadoop's own")
    try:
        with hadoop_cluster(fresh_directory("bench-hadoop")) as cluster:
            _play(world, cluster)
    except (JarsMissing, LocalClusterError) as missing:
        why = str(missing).splitlines()[0][:200]
        return [unmeasured(f"{HADOOP}, {kind}: other active", "s", "-", why) for kind in KINDS]
    return [
        row
        for kind in KINDS
        for row in rows_of(world.record, f"{HADOOP}, {kind}", kind, Bars(None))
    ]


def _play(world: World, cluster: HadoopCluster) -> None:
    process = start_java_client(cluster.supervisor, java=cluster.java, conf_dir=cluster.conf_dir)
    with open_java_client(process) as client, asyncio.Runner() as loop:
        workload = Workload(client, root=f"/nnha/{time.time_ns()}")
        watch = _Watch(loop, cluster)
        watch.active()
        workload.start()
        try:
            workload.wait_for_acknowledged(WARM_UP_WRITES, deadline_seconds=DEADLINE_SECONDS)
            acts: dict[str, Callable[[str], None]] = {
                KILL: lambda old: cluster.supervisor.processes[old].kill(),
                HAND_OVER: lambda old: ask_for_failover(cluster.conf_dir, old, other(old)),
            }
            world.record.hadoop_zkfc_megabytes = max(
                resident_megabytes(cluster.supervisor.processes[zkfc_of(name)])
                for name in NAMENODES
            )
            for kind, act in acts.items():
                done = world.record.switches[f"{HADOOP}, {kind}"] = []
                for _ in range(math.ceil(SHARE_OF_ROUNDS * world.rounds)):
                    done.append(_switch(cluster, workload, watch, act))
        finally:
            workload.abandon()


def _switch(
    cluster: HadoopCluster, workload: Workload, watch: "_Watch", act: Callable[[str], None]
) -> Switch:
    old = watch.active()
    logged = cluster.log_size(f"zkfc-{old}")
    began = time.monotonic()
    act(old)
    watch.until_active(other(old))
    took = time.monotonic() - began
    workload.wait_for_more(WRITES_AFTER, deadline_seconds=DEADLINE_SECONDS)
    longest = workload.longest_call_seconds(began)
    if not cluster.supervisor.processes[old].running:
        cluster.start_namenode(old)
        cluster.wait_for_candidate(old, logged)
    watch.until_ready_standby(old)
    return Switch(took, longest, {"active": took})


@dataclass(slots=True)
class _Watch:
    """Asks NameNodes what they are, each over a new connection: a poll every 10 ms."""

    loop: asyncio.Runner
    cluster: HadoopCluster

    def active(self) -> str:
        states = wait_until(
            lambda: [name for name in NAMENODES if self._is(name, ServiceState.ACTIVE)],
            what="one of Hadoop's NameNodes to be active",
            deadline_seconds=DEADLINE_SECONDS,
        )
        return states[0]

    def until_active(self, name: str) -> None:
        wait_until(
            lambda: self._is(name, ServiceState.ACTIVE),
            what=f"Hadoop's {name} to be active",
            deadline_seconds=DEADLINE_SECONDS,
            poll_seconds=POLL_SECONDS,
        )

    def until_ready_standby(self, name: str) -> None:
        wait_until(
            lambda: self._is(name, ServiceState.STANDBY),
            what=f"Hadoop's {name} to be a ready standby",
            deadline_seconds=DEADLINE_SECONDS,
            poll_seconds=0.05,
        )

    def _is(self, name: str, wanted: ServiceState) -> bool:
        return self.loop.run(_state(self.cluster, name)) is wanted


async def _state(cluster: HadoopCluster, name: str) -> ServiceState | None:
    try:
        client = await ServiceClient.open(cluster.address(name), deadline_seconds=2.0)
        try:
            status = await client.status(deadline_seconds=2.0)
        finally:
            await client.close()
    except ServiceError:
        return None
    return status.state
