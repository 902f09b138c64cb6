"""A DataNode's /jmx: Hadoop's beans, filled from what a heartbeat says."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from datanode.model import StorageId
from datanode.namenodes.namenode_client import Condition
from datanode.process.jmx import jmx_page
from datanode.replicas.volumes import StorageUse
from deploy.local.cluster.processes import http_get
from ha.daemon.http.pages import PageAnswer
from tests.datanode.name_nodes import NameNode, data_node

ONE = StorageUse(StorageId("DS-1"), "DISK", 1000, 10, 900)
TWO = StorageUse(StorageId("DS-2"), "SSD", 500, 5, 400)


class Node:
    """A DataNode in the middle of its work."""

    def status(self) -> dict[str, object]:
        return {"data_port": 9866}

    def condition(self) -> Condition:
        return Condition((ONE, TWO), ["/lost"], 2, 7, 12.5, 300, 64, 8)


def beans(answer: PageAnswer) -> dict[str, Any]:
    found = json.loads(answer.body)["beans"]
    return {one.pop("name").rpartition("=")[2]: one for one in found}


def test_each_figure_stands_under_hadoop_s_name() -> None:
    assert beans(jmx_page(Node(), "")) == {
        "FSDatasetState": {
            "Capacity": 1500, "DfsUsed": 15, "Remaining": 1300, "NumFailedVolumes": 1,
            "FailedStorageLocations": ["/lost"], "LastVolumeFailureDate": 12500,
            "EstimatedCapacityLostTotal": 300, "CacheCapacity": 64, "CacheUsed": 8,
        },
        "DataNodeInfo": {
            "Version": "3.5.0-nnha", "SoftwareVersion": "3.5.0-nnha", "DataPort": "9866",
            "XceiverCount": 7, "XmitsInProgress": 2,
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("qry=Hadoop:service=DataNode,name=FSDatasetState*", {"FSDatasetState"}),
        ("qry=Hadoop:service=NameNode,name=*", set()),
        ("qry=*:*", {"FSDatasetState", "DataNodeInfo"}),
    ],
)
def test_a_pattern_chooses(query: str, names: set[str]) -> None:
    assert set(beans(jmx_page(Node(), query))) == names


async def test_a_running_one_serves_it(tmp_path: Path, active: NameNode) -> None:

    async with data_node(tmp_path, active):
        port = active.registrations[0].datanodeID.infoPort
        found = await asyncio.to_thread(http_get, f"http://127.0.0.1:{port}/jmx")
        assert found is not None
        assert found[0] == 200
        assert len(json.loads(found[1])["beans"]) == 2
