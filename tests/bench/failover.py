"""Failovers of a whole local cluster under a writing Java client: kills and hand-overs."""

import statistics
import sys
from collections.abc import Sequence

from deploy.local.demo import WARM_UP_WRITES, WRITE_SECONDS
from deploy.local.places import fresh_directory
from deploy.local.screen import Screen
from deploy.local.stage import Stage, request_failover, staged
from deploy.local.trial import Failover, hand_over, kill_active, settle
from tests.bench.report import Row, publish

ROUNDS = 7
HADOOP = "Hadoop 2.7.3, on its own run: {}"


def main(arguments: Sequence[str]) -> int:
    """Run the bench; ``--json`` adds one JSON object as the last line."""
    screen = Screen.on_stderr_if(True)
    with staged(fresh_directory("bench-failover"), screen) as stage:
        kills, hand_overs = play(stage)
        lost = stage.verdict()
        errors = stage.workload.errors()
    rows = [
        *figures("kill -9", kills, 1.0, 4.0, "2.026 s", "3.318 s"),
        *figures("haadmin -failover", hand_overs, 0.5, 1.0, "0.287 s", "3.044 s"),
        Row("acknowledged writes lost", len(lost.missing), "writes", "0", not lost.missing, "-"),
        Row("client errors", len(errors), "errors", "0", not errors, "-"),
    ]
    return publish("failover", rows, as_json="--json" in arguments)


def play(stage: Stage) -> tuple[list[Failover], list[Failover]]:
    """Kill and restart, then hand over, each some times; the client writes all the while."""
    cluster, workload = stage.cluster, stage.workload
    workload.start()
    workload.wait_for_acknowledged(WARM_UP_WRITES, deadline_seconds=WRITE_SECONDS)
    kills, hand_overs = [], []
    for _ in range(ROUNDS):
        kills.append(kill_active(cluster, workload))
        cluster.start(kills[-1].old)
        settle(cluster, kills[-1].old)
    for _ in range(ROUNDS):
        done = hand_over(cluster, workload, lambda old, new: request_failover(cluster, old, new))
        hand_overs.append(done)
        settle(cluster, done.old)
    workload.stop()
    return kills, hand_overs


def figures(
    what: str,
    failovers: list[Failover],
    bar_seconds: float,
    client_bar_seconds: float,
    hadoop: str,
    hadoop_client: str,
) -> list[Row]:
    """Median and worst switch, and the worst call that the client saw."""
    switches = [each.failover_seconds for each in failovers]
    worst_call = max(each.client_longest_call_seconds for each in failovers)
    median = statistics.median(switches)
    peer, client_peer = HADOOP.format(hadoop), HADOOP.format(hadoop_client)
    return [
        Row(
            f"{what}: to active, median",
            median,
            "s",
            f"<= {bar_seconds}",
            median <= bar_seconds,
            peer,
        ),
        Row(f"{what}: to active, worst", max(switches), "s", "-", None, "-"),
        Row(
            f"{what}: client's longest call, worst",
            worst_call,
            "s",
            f"<= {client_bar_seconds}",
            worst_call <= client_bar_seconds,
            client_peer,
        ),
    ]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
