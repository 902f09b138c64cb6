"""``/jmx``: what tools made for Hadoop's DataNode look for, under its names."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Protocol
from urllib.parse import parse_qs

from datanode.namenodes.identity import SOFTWARE_VERSION
from datanode.namenodes.namenode_client import Condition
from ha.daemon.http.pages import PageAnswer, json_answer

_PREFIX = "Hadoop:service=DataNode,name="


class Shown(Protocol):
    """The DataNode as its pages see it."""

    def status(self) -> Mapping[str, object]:
        """Return what ``/status`` shows."""

    def condition(self) -> Condition:
        """Return what a heartbeat says."""


def jmx_page(node: Shown, query: str) -> PageAnswer:
    """GET /jmx[?qry=pattern]."""
    asked = parse_qs(query).get("qry", ["*:*"])[-1].replace("*:*", "*")
    found = (_dataset(node), _info(node))
    return json_answer({"beans": [one for one in found if fnmatchcase(str(one["name"]), asked)]})


def _dataset(node: Shown) -> dict[str, object]:
    condition = node.condition()
    volumes = condition.storages
    return {
        "name": f"{_PREFIX}FSDatasetState",
        "Capacity": sum(one.capacity for one in volumes),
        "DfsUsed": sum(one.used for one in volumes),
        "Remaining": sum(one.remaining for one in volumes),
        "NumFailedVolumes": len(condition.failed_paths),
        "FailedStorageLocations": list(condition.failed_paths),
        "LastVolumeFailureDate": round(condition.last_failure * 1000),
        "EstimatedCapacityLostTotal": condition.lost_bytes,
        "CacheCapacity": condition.memory_bytes,
        "CacheUsed": condition.memory_used,
    }


def _info(node: Shown) -> dict[str, object]:
    condition = node.condition()
    return {
        "name": f"{_PREFIX}DataNodeInfo",
        "Version": SOFTWARE_VERSION,
        "SoftwareVersion": SOFTWARE_VERSION,
        "DataPort": str(node.status()["data_port"] or ""),
        "XceiverCount": condition.connections,
        "XmitsInProgress": condition.transfers,
    }
