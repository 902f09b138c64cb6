"""``/jmx``: what tools made for Hadoop's DataNode look for, under its names."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final, Protocol
from urllib.parse import parse_qs

from datanode.namenodes.identity import SOFTWARE_VERSION
from datanode.namenodes.namenode_client import Condition
from ha.daemon.http.pages import PageAnswer, json_answer

_PREFIX: Final = "Hadoop:service=DataNode,name="


class Shown(Protocol):
    """The DataNode as ``/status`` and heartbeats show it."""

    def status(self) -> Mapping[str, object]: ...
    def condition(self) -> Condition: ...


def jmx_page(node: Shown, query: str) -> PageAnswer:
    """GET /jmx[?qry=pattern]."""
    asked = parse_qs(query).get("qry", ["*:*"])[-1].replace("*:*", "*")
    condition = node.condition()
    volumes = condition.storages
    dataset = {
        "Capacity": sum(one.capacity for one in volumes),
        "DfsUsed": sum(one.used for one in volumes),
        "Remaining": sum(one.remaining for one in volumes),
        "NumFailedVolumes": len(condition.failed_paths),
        "FailedStorageLocations": list(condition.failed_paths),
        "LastVolumeFailureDate": round(condition.last_failure * 1000),
        "EstimatedCapacityLostTotal": condition.lost_bytes,
        "CacheCapacity": condition.memory_bytes, "CacheUsed": condition.memory_used,
    }  # fmt: skip
    info = {
        "Version": SOFTWARE_VERSION, "SoftwareVersion": SOFTWARE_VERSION,
        "DataPort": str(node.status()["data_port"] or ""),
        "XceiverCount": condition.connections, "XmitsInProgress": condition.transfers,
    }  # fmt: skip
    beans = {f"{_PREFIX}FSDatasetState": dataset, f"{_PREFIX}DataNodeInfo": info}
    found = [{"name": name} | bean for name, bean in beans.items() if fnmatchcase(name, asked)]
    return json_answer({"beans": found})
