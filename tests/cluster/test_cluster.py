"""A whole cluster of real processes under the real Hadoop client: what issue 2 accepts it by."""

import signal
import subprocess
import time
from collections.abc import Iterator

import pytest
from rich.console import Console

from deploy.local.cluster.cluster import Cluster, zkfc_of
from deploy.local.cluster.processes import wait_until
from deploy.local.cluster.state import status
from deploy.local.demo.screen import Screen, part_addresses
from deploy.local.demo.stage import Stage, request_failover, staged
from deploy.local.workload.trial import hand_over, kill_active, settle, the_active
from deploy.local.workload.workload import Workload
from tests.local_services import fs_shell

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

SHELL_SECONDS = 90.0
STATUS_SECONDS = 2.0
"""All parts are asked at once, under one deadline: how much longer than with nothing wrong."""
LOOKS = 3
"""How often `nnha status` is asked, for one answer that a loaded machine did not hold up."""

STEADY_CALL_SECONDS = 1.0
"""No call may take longer while a minority of JournalNodes is away."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Yield one cluster for all of these tests, since a start takes seconds."""
    directory = tmp_path_factory.mktemp("cluster")
    with staged(directory, Screen(Console(stderr=True, width=200))) as stage:
        yield stage


@pytest.fixture
def stage(shared: Stage) -> Stage:
    """Return the same cluster, healed from what the test before did to it."""
    shared.cluster.heal()
    return shared


def writing(stage: Stage, name: str) -> Stage:
    """Return the stage with a client of its own tree that has begun to write."""
    workload = Workload(stage.client, root=f"/test/{name}", pause_seconds=0.05)
    workload.start()
    workload.wait_for_acknowledged(40, deadline_seconds=30)
    return Stage(stage.cluster, stage.client, workload, stage.files, stage.screen)


def wait_for_whole_journal(cluster: Cluster, active: str) -> None:
    """Wait until every JournalNode takes part: one that was away does from the next segment on."""

    def whole() -> bool:
        told = status(cluster.layout.url(active))
        nodes = told["journal"] if told is not None else ()
        return isinstance(nodes, list) and len(nodes) > 0 and all(n["in_sync"] for n in nodes)

    wait_until(whole, what="every JournalNode to be in sync", deadline_seconds=30)


def listing(cluster: Cluster) -> list[str]:
    """Return every path as Hadoop's own shell shows it, with owner, mode and time."""
    shell = fs_shell(cluster.conf_dir, "-ls", "-R", "/", deadline_seconds=SHELL_SECONDS)
    assert shell.returncode == 0, shell.stderr
    return sorted(shell.stdout.splitlines())


def timed_status(cluster: Cluster) -> tuple[float, str]:
    """Return how many seconds `nnha status` takes, and what it says."""
    began = time.monotonic()
    told = subprocess.run(
        cluster.command("status"),
        capture_output=True,
        text=True,
        timeout=SHELL_SECONDS,
        check=False,
    )
    return time.monotonic() - began, told.stdout


def assert_nothing_lost(stage: Stage) -> None:
    """End the writing and hold every acknowledged write against tree and journal."""
    stage.workload.stop()
    verdict = stage.verdict()
    assert (verdict.missing, verdict.duplicated) == ((), ())
    assert (verdict.gaps, verdict.diverging) == (0, 0)
    assert stage.workload.errors() == ()


@pytest.mark.row(
    "8.11 ZK.testFailoverAndBackOnNNShutdown",
    because="a NameNode that is killed is the shutdown of this row, on a whole cluster",
)
def test_a_killed_active_is_replaced_and_nothing_acknowledged_is_missing(stage: Stage) -> None:
    stage = writing(stage, "kill")
    failover = kill_active(stage.cluster, stage.workload)
    assert failover.epoch_after > failover.epoch_before
    assert_nothing_lost(stage)
    assert the_active(stage.cluster)[0] == failover.new


@pytest.mark.row(
    "8.11 ZK.testManualFailoverWithDFSHAAdmin", because="haadmin asks for it on a whole cluster"
)
def test_a_failover_on_request_goes_back_and_forth(stage: Stage) -> None:
    stage = writing(stage, "graceful")
    first, _ = the_active(stage.cluster)
    for _ in range(2):
        failover = hand_over(
            stage.cluster,
            stage.workload,
            lambda old, new: request_failover(stage.cluster, old, new),
        )
        settle(stage.cluster, failover.old)
    assert the_active(stage.cluster)[0] == first
    assert_nothing_lost(stage)


def test_the_client_does_not_notice_one_killed_journalnode(stage: Stage) -> None:
    stage = writing(stage, "one-journalnode")
    before = the_active(stage.cluster)
    began = time.monotonic()
    stage.cluster.kill("jn2")
    stage.workload.wait_for_more(100, deadline_seconds=30)
    assert stage.workload.longest_call_seconds(began) < STEADY_CALL_SECONDS
    stage.cluster.start("jn2")
    stage.workload.wait_for_more(100, deadline_seconds=30)
    assert_nothing_lost(stage)
    assert the_active(stage.cluster) == before


def test_without_a_quorum_the_active_ends_and_names_the_journalnodes_it_lost(stage: Stage) -> None:
    stage = writing(stage, "two-journalnodes")
    active, _ = the_active(stage.cluster)
    (other,) = {"nn1", "nn2"} - {active}
    wait_for_whole_journal(stage.cluster, active)
    lost = ("jn1", "jn3")
    for name in lost:
        stage.cluster.kill(name)
    process = stage.cluster.process(active)
    # It ends by itself, before a successor's fencing could: the reason is its last line.
    assert process.wait(30) == 1
    last_line = process.log_tail().strip().splitlines()[-1]
    for name in lost:
        assert f"127.0.0.1:{stage.cluster.layout.journalnodes[name].rpc}" in last_line
    for name in lost:
        stage.cluster.start(name)
    # Its successor fences first, and would kill what is started in its place before that.
    wait_until(
        lambda: stage.cluster.active_namenodes() or not stage.cluster.process(other).running,
        what="the successor to be active, or to have ended without a quorum as well",
        deadline_seconds=60,
    )
    stage.cluster.heal()
    assert_nothing_lost(stage)


@pytest.mark.parametrize("part", ["active", "standby", "jn1", "zkfc of the active", "zookeeper"])
def test_status_answers_in_time_while_a_part_is_frozen_and_says_which(
    stage: Stage, part: str
) -> None:
    active, _ = the_active(stage.cluster)
    standby = "nn2" if active == "nn1" else "nn1"
    names = {"active": active, "standby": standby, "zkfc of the active": zkfc_of(active)}
    name = names.get(part, part)
    process = stage.cluster.process(name)
    calm_seconds, _ = timed_status(stage.cluster)
    process.freeze()
    try:
        # Starting Python is most of the calm one, and takes as long as the machine makes it at that
        # time; a wait that is too long is in each of them.
        took_seconds, told = min(timed_status(stage.cluster) for _ in range(LOOKS))
    finally:
        process.send(signal.SIGCONT)
    assert took_seconds < 2 * calm_seconds + STATUS_SECONDS, told
    address = part_addresses(stage.cluster.layout)[name]
    rows = [line for line in told.splitlines() if address in line]
    assert any("no answer" in row for row in rows), told


def test_the_namespace_is_the_same_after_everything_was_stopped(stage: Stage) -> None:
    stage = writing(stage, "restart")
    stage.workload.stop()
    cluster = stage.cluster
    before = listing(cluster)
    assert len(before) > len(stage.workload.writes()) // 2
    cluster.down()
    cluster.heal()
    assert listing(cluster) == before
    assert_nothing_lost(stage)


def test_the_shell_fails_as_hadoop_s_own_does(stage: Stage) -> None:
    conf = stage.cluster.conf_dir
    shell = fs_shell(conf, "-ls", "/no/such/path", deadline_seconds=SHELL_SECONDS)
    assert shell.returncode == 1
    assert "No such file or directory" in shell.stderr
