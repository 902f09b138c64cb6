"""What administrators call with Hadoop's own, unmodified programs, on a whole cluster of ours."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.cluster.cluster import open_cluster
from namenode_sim.image.files import check_digest
from tests.interop.hadoop_server import Hadoop
from tests.interop.our_cluster import DFSADMIN, OurCluster

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

KEYS = {"dfs.namenode.safemode.extension": "0"}


@pytest.fixture(scope="module")
def ours(hadoop: Hadoop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurCluster]:
    folder = tmp_path_factory.mktemp("admin")
    with open_cluster(folder, datanodes=1, more_keys=KEYS) as cluster:
        cluster.up()
        yield OurCluster(cluster, hadoop)


def test_both_namenodes_save_their_namespaces(ours: OurCluster, tmp_path: Path) -> None:
    ours.shell("-mkdir", "-p", "/saved")
    refused = ours.run(DFSADMIN, "-saveNamespace")
    assert refused.status != 0
    assert "Safe mode should be turned ON in order to create namespace image" in refused.said
    ours.dfsadmin("-safemode", "enter")
    before = ours.images()
    assert ours.dfsadmin("-saveNamespace").count("Save namespace successful") == 2
    for name, found in ours.images().items():
        assert found[-1] != before[name][-1]
        check_digest(found[-1])
    newest = ours.images()[ours.cluster.wait_for_active()][-1]
    assert "<name>saved</name>" in ours.hadoop.print_image(newest)
    again = ours.dfsadmin("-saveNamespace", "-beforeShutdown")
    assert again.count("No extra checkpoint has been made") == 2
    ours.dfsadmin("-fetchImage", str(tmp_path))
    assert (tmp_path / newest.name).read_bytes() == newest.read_bytes()
    ours.dfsadmin("-safemode", "leave")
    ours.shell("-mkdir", "/saved/more")
