"""Parts of Hadoop's own contract of file systems hold on a whole cluster of ours.

Other parts need AssertJ 3.12.2, as Hadoop's pom names it; the jars here are those of the journal's
tests, with a newer one.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster
from tests.interop import upstream_tests
from tests.needs import JAVA_COMPILER, UPSTREAM_TESTS

pytestmark = [
    pytest.mark.interop,
    pytest.mark.cluster,
    pytest.mark.long,
    JAVA_COMPILER.mark,
    UPSTREAM_TESTS.mark,
]

_CONTRACT: Final = "org.apache.hadoop.fs.contract.hdfs.TestHDFSContract"
SHORT: Final = {"Append": 8, "Concat": 5, "Rename": 10}
"""The parts of the contract that are run, and how many tests each has."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    keys = {"dfs.namenode.fs-limits.min-block-size": "0"}
    with open_cluster(tmp_path_factory.mktemp("contracts"), datanodes=1, more_keys=keys) as running:
        running.up()
        yield running


@pytest.mark.timeout(280)
def test_a_few_parts_of_the_contract_hold(cluster: Cluster, tmp_path: Path) -> None:
    classes = [f"{_CONTRACT}{part}" for part in SHORT]
    found = upstream_tests.run_client(tmp_path, cluster.conf_dir, classes, seconds=250)
    assert not found.failed
    assert not found.aborted
    assert len(found.ran) == sum(SHORT.values()), (tmp_path / "console.txt").read_text()
