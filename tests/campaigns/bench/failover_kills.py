"""A NameNode killed, and a hand-over asked for, while both hosts live."""

import getpass
import tempfile
from pathlib import Path

from deploy.local.stage import Stage, request_failover
from deploy.local.trial import Failover, hand_over, kill_active, settle
from tests import needs
from tests.campaigns.bench.failover_world import HAND_OVER, JOURNAL_EPOCH, KILL, World
from tests.campaigns.bench.failover_zkfc import controllers_megabytes, memory_row
from tests.campaigns.bench.report import Row, unmeasured
from tests.campaigns.bench.switches import Bars, rows_of, switch_of
from tests.fencing.sshd import sshd_in

TIMES_FASTER = 10


def kills_and_hand_overs(world: World) -> list[Row]:
    """Kill and restart, then hand over, each some times; the client writes all the while."""
    name = f"{KILL}, journal-epoch"
    with world.stage("kill", JOURNAL_EPOCH) as stage:
        cluster, workload = stage.cluster, stage.workload
        world.record.switches[name] = [
            switch_of(kill_and_restart(stage)) for _ in range(world.rounds)
        ]
        done = world.record.switches[HAND_OVER] = []
        for _ in range(world.rounds):
            one = hand_over(cluster, workload, lambda old, new: request_failover(cluster, old, new))
            done.append(switch_of(one))
            settle(cluster, one.old)
    return [
        *rows_of(world.record, name, KILL, Bars(median=0.15, worst=0.4, client=0.4)),
        _ratio(world, name),
        *rows_of(world.record, HAND_OVER, HAND_OVER, Bars(median=0.1, client=0.2)),
    ]


def kills_with_sshfence(world: World) -> list[Row]:
    """The same kills; the old active is killed again over ssh, by a real sshd on loopback."""
    name = f"{KILL}, sshfence"
    if missing := needs.SSHD.lacking():
        return [unmeasured(f"{name}: other active", "s", "<= 1.5", missing)]
    with tempfile.TemporaryDirectory() as folder, sshd_in(Path(folder)) as sshd:
        keys = {
            "dfs.ha.fencing.methods": f"sshfence({getpass.getuser()}:{sshd.port})",
            "dfs.ha.fencing.ssh.private-key-files": str(sshd.key),
            "nnha.fencing.ssh.known-hosts": str(sshd.known_hosts),
        }
        with world.stage("sshfence", keys) as stage:
            world.record.switches[name] = [
                switch_of(kill_and_restart(stage)) for _ in range(world.rounds)
            ]
            resident = controllers_megabytes(stage.cluster)
    return [
        *rows_of(world.record, name, KILL, Bars(median=1.5, worst=1.5)),
        memory_row("ZKFC with sshfence: resident memory", resident, "-"),
    ]


def kill_and_restart(stage: Stage) -> Failover:
    """SIGKILL the active; when its successor serves, start it again and wait until it is ready."""
    killed = kill_active(stage.cluster, stage.workload)
    stage.cluster.start(killed.old)
    settle(stage.cluster, killed.old)
    return killed


def _ratio(world: World, name: str) -> Row:
    figure, bar = f"{name}: times faster than Hadoop", f">= {TIMES_FASTER}"
    times = world.record.times_faster(name, KILL)
    if times is None:
        return unmeasured(figure, "-", bar, "Hadoop did not run in this run")
    return Row(figure, times, "-", bar, times >= TIMES_FASTER, "medians of the same run")
