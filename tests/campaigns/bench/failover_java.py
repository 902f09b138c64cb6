"""`./run bench failover --java`: our ZKFC and Hadoop's on the same NameNodes, which are Hadoop's.

NameNodes, JournalNodes (ours) and the client stay; the ZKFCs take turns.
"""

import statistics
import time
from collections.abc import Sequence
from typing import Final

from deploy.local.cluster.cluster import zkfc_of
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.layout import NAMENODES
from deploy.local.cluster.places import fresh_directory
from deploy.local.workload.trial import other
from tests.campaigns.bench.failover_world import HAND_OVER, KILL, World
from tests.campaigns.bench.report import Row, unmeasured
from tests.interop.hadoop_jars import JarsMissing
from tests.interop.mixed.client import Writing, writing
from tests.interop.mixed.cluster import MixedCluster, mixed_cluster
from tests.interop.mixed.failovers import Change, hand_over, kill
from tests.interop.mixed.programs import Kind

TIMES_FASTER: Final = 2.0
IN_A_TURN: Final = 2
"""This number of failovers of each sort, then it is the other ZKFC's turn."""

_WHOSE = {Kind.OURS: "nnha's ZKFC", Kind.HADOOP: "Hadoop's ZKFC"}
Changes = dict[tuple[Kind, str], list[Change]]


def java_rows(world: World) -> list[Row]:
    """Measure both; where Hadoop's jar is not here, rows say so."""
    world.screen.title("Hadoop's NameNodes under our ZKFC and under Hadoop's")
    changes: Changes = {(kind, act): [] for act in (KILL, HAND_OVER) for kind in Kind}
    try:
        with mixed_cluster(fresh_directory("bench-failover-java")) as cluster:
            cluster.up(journalnodes=Kind.OURS, namenodes=Kind.HADOOP, zkfcs=Kind.OURS)
            with writing(cluster) as client:
                for _ in NAMENODES:  # the first promotion of a JVM loads the classes for it
                    hand_over(cluster, client.workload)
                _take_turns(world, client, changes)
                verdict = client.verdict()
                world.record.lost_writes += len(verdict.missing)
                world.record.acknowledged += verdict.acknowledged
                world.record.client_errors += [
                    f"java: {call.kind} {call.path}: {call.error}"
                    for call in client.workload.errors()
                ]
    except (JarsMissing, LocalClusterError) as missing:
        why = str(missing).splitlines()[0][:200]
        bar = f">= {TIMES_FASTER:g}"
        return [unmeasured(f"{act}: times faster", "-", bar, why) for act in (KILL, HAND_OVER)]
    return [row for act in (KILL, HAND_OVER) for row in _rows(changes, act)]


def _take_turns(world: World, client: Writing, changes: Changes) -> None:
    cluster = client.cluster
    for turn in range(2 * -(-world.rounds // IN_A_TURN)):
        kind = (Kind.OURS, Kind.HADOOP)[turn % 2]
        _replace_zkfcs(cluster, kind)
        for act, played in ((HAND_OVER, hand_over), (KILL, kill)):
            for _ in range(IN_A_TURN):
                changes[kind, act].append(played(cluster, client.workload))
                _tell(world, kind, act, changes)


def _replace_zkfcs(cluster: MixedCluster, kind: Kind) -> None:
    active = cluster.active()
    if cluster.kinds[zkfc_of(active)] is kind:
        return
    since = time.time()
    for name in (other(active), active):  # the other way round, stopping would be a failover
        cluster.stop(zkfc_of(name))
    for name in NAMENODES:
        cluster.start_zkfc(name, kind)
    cluster.wait_for_lock(since)
    cluster.wait_for_pair()


def _tell(world: World, kind: Kind, act: str, changes: Changes) -> None:
    last = changes[kind, act][-1]
    world.screen.say(
        f"{_WHOSE[kind]}, {act}: active after {last.active_seconds:.3f} s, "
        f"asked after {last.asked_seconds or 0.0:.3f} s"
    )


def _rows(changes: Changes, act: str) -> list[Row]:
    ours, theirs = changes[Kind.OURS, act], changes[Kind.HADOOP, act]
    own, peer = _middle(ours), _middle(theirs)
    times = peer / own
    bar = f">= {TIMES_FASTER:g}"
    rows = [
        Row(f"{act}: times faster than Hadoop's ZKFC", times, "-", bar, times >= TIMES_FASTER,
            "medians of the same run"),
        _row(f"{act}: other active, median of {len(ours)}", own, f"median {peer:.3f} s"),
        _row(
            f"{act}: other active, worst",
            max(each.active_seconds for each in ours),
            f"{max(each.active_seconds for each in theirs):.3f} s",
        ),
        _row(
            f"{act}: client's longest call, median",
            statistics.median(each.longest_call_seconds for each in ours),
            f"{statistics.median(each.longest_call_seconds for each in theirs):.3f} s",
        ),
    ]  # fmt: skip
    own_share, peer_share = _asked(ours), _asked(theirs)
    if own_share is not None and peer_share is not None:
        rows.append(_row(f"{act}: until NameNode asked, median", own_share, f"{peer_share:.3f} s"))
        rows.append(
            _row(
                f"{act}: from then on, the NameNode's own",
                max(0.0, own - own_share),
                f"{max(0.0, peer - peer_share):.3f} s",
            )
        )
    return rows


def _row(figure: str, value: float, peer: str) -> Row:
    return Row(figure, value, "s", "-", None, f"Hadoop's ZKFC, same run: {peer}")


def _middle(changes: Sequence[Change]) -> float:
    return statistics.median(each.active_seconds for each in changes)


def _asked(changes: Sequence[Change]) -> float | None:
    known = [each.asked_seconds for each in changes if each.asked_seconds is not None]
    return statistics.median(known) if known else None
