"""Hadoop's own contract of file systems holds on a whole cluster of ours."""

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

_PACKAGE: Final = "org.apache.hadoop.fs.contract.hdfs"
_PARTS: Final = (
    *("Append", "BulkDelete", "Concat", "Create", "Delete", "GetFileStatus", "LeaseRecovery"),
    *("Mkdir", "MultipartUploader", "Open", "PathHandle", "Rename", "RootDirectory", "SafeMode"),
    *("Seek", "SetTimes", "Unbuffer", "VectoredRead"),
)
CLASSES: Final = (
    *(f"{_PACKAGE}.TestHDFSContract{part}" for part in _PARTS),
    f"{_PACKAGE}.TestDFSWrappedIO",
)
TESTS, ABORTED = 287, 3
"""Of all classes; as many give up on Hadoop's own cluster."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    keys = {"dfs.namenode.fs-limits.min-block-size": "0"}
    with open_cluster(tmp_path_factory.mktemp("contracts"), datanodes=1, more_keys=keys) as running:
        running.up()
        yield running


@pytest.mark.timeout(1500)
def test_the_whole_contract_holds(cluster: Cluster, tmp_path: Path) -> None:
    found = upstream_tests.run_client(tmp_path, cluster.conf_dir, CLASSES, seconds=1400)
    assert not found.failed
    assert len(found.ran) == TESTS, (tmp_path / "console.txt").read_text()
    assert len(found.aborted) == ABORTED, found.aborted
