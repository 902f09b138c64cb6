"""What a campaign does to the cluster of the compose file, and what must be there afterwards."""

import os
import subprocess
import time
from collections.abc import Mapping
from typing import Final

from deploy.local.cluster.java import find_java
from deploy.local.cluster.processes import Supervisor, wait_until
from deploy.local.workload.audit import AuditResult, judge, read_journal
from deploy.local.workload.java_client import open_java_client, start_java_client
from deploy.local.workload.workload import Workload
from tests import needs
from tests.campaigns.soak.image_cluster import ComposedCluster, WentWrong
from tests.campaigns.soak.image_monitoring import monitoring_facts

ROOT_PATH: Final = "/soak"
WARM_UP: Final = 100
MORE: Final = 40
LONG_SECONDS: Final = 300.0
PROBED: Final = ["jn1", "jn2", "jn3", "nn1", "nn2", "zkfc1", "zkfc2", "dn1", "dn2", "dn3", "web"]


def play(cluster: ComposedCluster, rounds: int) -> Mapping[str, object]:
    """Kill, wait, hand over, and audit.

    Raises:
        WentWrong, LocalClusterError: something did not come about at all.
    """
    wait_until(
        lambda: all(cluster.healthy(one) for one in PROBED),
        what="every health check of the compose file", deadline_seconds=LONG_SECONDS,
    )  # fmt: skip
    monitoring = (
        monitoring_facts() if cluster.monitored else {"prometheus": needs.PROMETHEUS.lacking()}
    )
    java = find_java()
    os.environ["HADOOP_USER_NAME"] = "hdfs"  # the client's, who must be the owner of /
    with Supervisor(cluster.layout.directory / "client") as supervisor:
        process = start_java_client(supervisor, java=java, conf_dir=cluster.client_conf())
        with open_java_client(process) as client:
            client.mkdirs(ROOT_PATH)
            workload = Workload(client, ROOT_PATH)
            workload.start()
            workload.wait_for_acknowledged(WARM_UP, deadline_seconds=LONG_SECONDS)
            kills = [_kill(cluster, workload) for _ in range(rounds)]
            handed_over = _hand_over(cluster, workload)
            workload.stop()
            verdict = judge(workload.writes(), client.tree(ROOT_PATH), read_journal(cluster.layout))
    errors = workload.errors()
    return {
        **_told(verdict),
        **monitoring,
        "client_errors": len(errors),
        "kills": rounds,
        "seconds_until_another_was_seen_active": [round(one, 2) for one in kills],
        "seconds_of_the_hand_over": round(handed_over, 2),
        "longest_call_seconds": round(workload.longest_call_seconds(0.0), 2),
        "containers": len(cluster.running()),
        "well": verdict.clean and not errors,
    }


def _kill(cluster: ComposedCluster, workload: Workload) -> float:
    old = cluster.active()
    new = "nn2" if old == "nn1" else "nn1"
    began = time.monotonic()
    cluster.kill(old)
    wait_until(
        lambda: cluster.role(new) == "active",
        what=f"{new} to take over from {old}", deadline_seconds=LONG_SECONDS,
    )  # fmt: skip
    took = time.monotonic() - began
    workload.wait_for_more(MORE, deadline_seconds=LONG_SECONDS)
    wait_until(
        lambda: cluster.role(old) == "standby" and cluster.healthy(old),
        what=f"the restart policy to bring {old} back", deadline_seconds=LONG_SECONDS,
    )  # fmt: skip
    return took


def _hand_over(cluster: ComposedCluster, workload: Workload) -> float:
    old = cluster.active()
    began = time.monotonic()
    told = wait_until(
        lambda: _switched(cluster), what="a switchover", deadline_seconds=LONG_SECONDS
    )
    took = time.monotonic() - began
    if cluster.active() == old:
        raise WentWrong(f"a switchover said that it was done, and {old} is active: {told}")
    workload.wait_for_more(MORE, deadline_seconds=LONG_SECONDS)
    return took


def _switched(cluster: ComposedCluster) -> str:
    """Return what a switchover said; it is refused until the other one is ready."""
    try:
        return cluster.nnha("web", "switchover", "--yes") or "done"
    except subprocess.CalledProcessError as failure:
        if failure.returncode == 3:
            return ""
        told = f"{failure.stdout}{failure.stderr}"
        raise WentWrong(f"switchover: {failure.returncode}: {told}") from failure


def _told(verdict: AuditResult) -> Mapping[str, object]:
    return {
        "acknowledged": verdict.acknowledged,
        "missing": list(verdict.missing),
        "duplicated": list(verdict.duplicated),
        "journal_edits": verdict.transactions,
        "gaps": verdict.gaps,
        "diverging": verdict.diverging,
    }
