"""A NameNode killed, and a hand-over asked for, while both hosts live."""

import getpass
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy.local.demo.stage import Stage
from deploy.local.workload.trial import Failover, hand_over, kill_active, settle
from tests import needs
from tests.campaigns.bench.failover_world import HAND_OVER, JOURNAL_EPOCH, KILL, World
from tests.campaigns.bench.failover_zkfc import controllers_megabytes, memory_row
from tests.campaigns.bench.report import Row, unmeasured
from tests.campaigns.bench.switches import Bars, Switch, rows_of, switch_of
from tests.campaigns.bench.waiting_command import waiting_command
from tests.fencing.sshd import sshd_in

TIMES_FASTER = 10
MOST_COST = 1.1
PLAIN = f"{KILL}, journal-epoch"
NO_BARS = Bars(median=None)
TURNS = 4
"""Clusters with certificates, and as many without, each with as many rounds."""


def kills_and_hand_overs(world: World) -> list[Row]:
    """Kill and restart, then hand over, each some times; the client writes all the while."""
    _kill_and_hand_over(world, "kill", PLAIN, HAND_OVER)
    return [
        *rows_of(world.record, PLAIN, KILL, Bars(median=0.15, worst=0.4, client=0.4)),
        _ratio(world, PLAIN),
        *rows_of(world.record, HAND_OVER, HAND_OVER, Bars(median=0.1, client=0.2)),
    ]


def with_certificates(world: World) -> list[Row]:
    """Play on strict clusters with certificates and on some without, in turns.

    A machine is faster in one minute than in the next: of each two clusters that are played one
    after the other, the one without certificates comes first in every other turn.
    """
    secured = {name: f"{name}, with certificates" for name in (PLAIN, HAND_OVER)}
    for turn in range(TURNS):
        for secure in (turn % 2 == 1, turn % 2 == 0):
            names = secured.values() if secure else secured.keys()
            scene = f"{'secure' if secure else 'plain'}-{turn + 1}"
            _kill_and_hand_over(world, scene, *names, secure=secure)
    everything = [
        (name, kind)
        for pair, kind in zip(secured.items(), (KILL, HAND_OVER), strict=True)
        for name in pair
    ]
    return [
        *(row for name, kind in everything for row in rows_of(world.record, name, kind, NO_BARS)),
        *(_cost(world, name, with_them) for name, with_them in secured.items()),
        _cost(world, HAND_OVER, secured[HAND_OVER], unserved=True),
    ]


def _cost(world: World, without: str, with_them: str, *, unserved: bool = False) -> Row:
    """Compare; with ``unserved`` only the time without an active, behind the stepping down."""
    medians = [
        statistics.median(_seconds(world.record.switches[name], unserved=unserved))
        for name in (without, with_them)
    ]
    times = medians[1] / medians[0]
    what = "seconds of no service" if unserved else "seconds"
    figure, bar = f"{with_them}: times the {what} without", f"<= {MOST_COST}"
    return Row(figure, times, "-", bar, times <= MOST_COST, "medians of the same run")


def _seconds(done: Sequence[Switch], *, unserved: bool) -> list[float]:
    if not unserved:
        return [one.active for one in done]
    told = ((one.active, one.phases["standby"]) for one in done)
    return [active - stepped_down for active, stepped_down in told if stepped_down is not None]


def _kill_and_hand_over(
    world: World, scene: str, kills: str, hand_overs: str, *, secure: bool = False
) -> None:
    with world.stage(scene, JOURNAL_EPOCH, secure=secure) as stage:
        cluster, workload = stage.cluster, stage.workload
        world.record.switches.setdefault(kills, []).extend(
            switch_of(kill_and_restart(stage)) for _ in range(world.rounds)
        )
        done = world.record.switches.setdefault(hand_overs, [])
        with waiting_command(cluster.conf_dir) as ask:
            for _ in range(world.rounds):
                one = hand_over(cluster, workload, ask)
                done.append(switch_of(one))
                settle(cluster, one.old)


def kills_with_sshfence(world: World) -> list[Row]:
    """Kill again; the old active is killed once more over ssh, by a real sshd on loopback."""
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
