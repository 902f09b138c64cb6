"""A cluster of Hadoop's that has files becomes ours and Hadoop's again, while clients use them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from deploy.local.workload.file_workload import FileWorkload
from deploy.local.workload.java_client import open_java_client, start_java_client
from tests.interop.hadoop_jars import JarsMissing
from tests.interop.mixed.cluster import MixedCluster, mixed_cluster
from tests.interop.mixed.migration import Step, datanode_steps, namenode_steps, play
from tests.interop.mixed.programs import Kind
from tests.local_services import wait_until_whole
from tests.needs import HADOOP_SERVER

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1500)]

DATANODES = 3
CALLS_BETWEEN = 10
CALL_SECONDS = 120.0


THERE = (Kind.OURS,)
AND_BACK = pytest.param((Kind.OURS, Kind.HADOOP), marks=pytest.mark.long)


@pytest.mark.parametrize("kinds", [THERE, AND_BACK], ids=["ours", "ours and Hadoop's again"])
def test_namenodes_and_datanodes_with_files_become_others(
    tmp_path: Path, kinds: Sequence[Kind]
) -> None:
    try:
        with mixed_cluster(tmp_path, datanodes=DATANODES) as cluster:
            cluster.up(journalnodes=Kind.OURS, namenodes=Kind.HADOOP, zkfcs=Kind.OURS)
            programs = cluster.programs
            process = start_java_client(
                cluster.supervisor, java=programs.java, conf_dir=programs.conf_dir
            )
            with open_java_client(process) as client:
                files = FileWorkload(client, "/files", pause_seconds=0.1)
                files.start()
                try:
                    move_to(cluster, files, kinds)
                finally:
                    files.abandon()
    except JarsMissing as missing:
        HADOOP_SERVER.skip(str(missing))


def move_to(cluster: MixedCluster, files: FileWorkload, kinds: Sequence[Kind]) -> None:
    for kind in kinds:
        move(cluster, files, *namenode_steps(cluster, kind))
        move(cluster, files, *datanode_steps(cluster, kind))
        wait_until_whole(files)
    files.stop()
    assert files.check_all() > 0
    assert files.wrong == []
    assert files.errors() == ()


def move(cluster: MixedCluster, files: FileWorkload, *steps: Step) -> None:
    """Replace daemons, while clients go on after each.

    A client whose last DataNode is taken away hears of it, from Hadoop's as from ours.
    """
    for step in steps:
        files.wait_for_more(CALLS_BETWEEN, deadline_seconds=CALL_SECONDS)
        wait_until_whole(files)
        play(cluster, step)
