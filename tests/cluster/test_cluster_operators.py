"""Operators' commands on a cluster of real processes: hand over, pause, drain, explain."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster, zkfc_of
from deploy.local.cluster.processes import wait_until
from tests.ha.cli import schema

pytestmark = pytest.mark.cluster

COMMAND_SECONDS = 60.0
FOR = ("--for", "10m", "--reason")


@dataclass(frozen=True)
class Told:
    """One command's exit code and the object that it printed."""

    code: int
    document: Any


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield one cluster for all of these tests; each leaves it whole, without pause and drains."""
    with open_cluster(tmp_path_factory.mktemp("operators")) as local:
        local.up()
        yield local
        local.down()


def nnha(cluster: Cluster, *words: str) -> Told:
    program, *rest = words
    told = subprocess.run(
        [*cluster.command(program, "-o", "json"), *rest],
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    assert told.stdout, told.stderr
    document = json.loads(told.stdout)
    name = program if program in ("status", "history", "explain") else "ending"
    assert schema.faults(name, document) == []
    return Told(told.returncode, document)


def pair(cluster: Cluster) -> tuple[str, str]:
    """Return the active, and the other once it is ready and takes part in the election."""
    active = cluster.wait_for_active()
    other = "nn2" if active == "nn1" else "nn1"
    cluster.wait_for_ready_standby(other, deadline_seconds=30)
    cluster.wait_for_candidate(other)
    return active, other


def newest(cluster: Cluster, number: int) -> dict[str, Any]:
    """Return the newest record, once it is newer: it is written after the failover."""
    found: dict[str, Any] = {}

    def there() -> bool:
        records = nnha(cluster, "history", "-n", "1").document["records"]
        found.update(records[0] if records else {"id": -1})
        return int(found["id"]) > number

    wait_until(there, what="the record of the failover", deadline_seconds=30)
    return found


def last_number(cluster: Cluster) -> int:
    records = nnha(cluster, "history", "-n", "1").document["records"]
    return int(records[0]["id"]) if records else -1


def test_a_switchover_is_done_recorded_and_explained(cluster: Cluster) -> None:
    active, other = pair(cluster)
    before = last_number(cluster)
    assert nnha(cluster, "switchover", "--dry-run").document["target"] == other
    told = nnha(cluster, "switchover", "--yes", "--reason", "a new disk")
    assert (told.code, told.document["active_now"]) == (0, other)
    entry = newest(cluster, before)
    record = entry["record"]
    assert (record["kind"], record["result"]) == ("switchover", "succeeded")
    assert (record["previous"], record["namenode"]) == (active, other)
    assert record["cause"].endswith(": a new disk")
    found = nnha(cluster, "explain").document
    assert (found["active"], found["elected_by"]) == (other, entry["id"])
    assert found["why"][0].startswith(record["cause"])


def test_in_a_pause_a_dead_active_is_not_replaced_until_resume(cluster: Cluster) -> None:
    active, other = pair(cluster)
    assert nnha(cluster, "pause", *FOR, "new switch").code == 0
    try:
        cluster.kill(active)
        wait_until(
            lambda: nnha(cluster, "status").document["active"] is None,
            what="the status to show that nobody is active",
            deadline_seconds=30,
        )
        found = nnha(cluster, "explain").document
        assert any("paused by" in one["text"] for one in found["in_general"])
        refused = nnha(cluster, "failover", other, "--yes")
        assert (refused.code, refused.document["code"]) == (3, "PAUSED")
        assert cluster.active_namenodes() == []
    finally:
        resumed = nnha(cluster, "resume")
    assert resumed.code == 0
    assert cluster.wait_for_active() == other
    cluster.start(active)


def test_a_drained_active_hands_over_and_comes_back_as_a_candidate(cluster: Cluster) -> None:
    active, other = pair(cluster)
    told = nnha(cluster, "drain", active, *FOR, "new disk")
    assert told.code == 0, told.document
    assert nnha(cluster, "status").document["active"] == other
    refused = nnha(cluster, "switchover", active, "--yes")
    assert (refused.code, refused.document["code"]) == (3, "CANDIDATE_UNFIT")
    assert nnha(cluster, "status", "--check").code == 8
    assert nnha(cluster, "drain", active, "--end").code == 0
    assert pair(cluster) == (other, active)


def test_without_the_zkfc_of_the_target_nothing_is_changed(cluster: Cluster) -> None:
    active, other = pair(cluster)
    cluster.kill(zkfc_of(other))
    told = nnha(cluster, "switchover", other, "--yes")
    assert (told.code, told.document["code"]) == (3, "CANDIDATE_UNFIT")
    own = next(one for one in told.document["reasons"] if one["node"] == other)
    assert own["next"].endswith(f"nnha zkfc -D dfs.ha.namenode.id={other}")
    assert cluster.active_namenodes() == [active]
    cluster.start(zkfc_of(other))
