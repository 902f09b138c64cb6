"""Serves ``/jmx`` with the attributes of Hadoop's JournalNode, for the tools that read them.

See docs/reference/journal-node.md#jmx.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from aiohttp import web
from prometheus_client import Counter

from journal.node import metrics
from journal.node.node import JournalNode
from journal.node.owner.owner import JournalOwner

_COUNTERS: Final = {
    "BatchesWritten": metrics.BATCHES,
    "TxnsWritten": metrics.TRANSACTIONS,
    "BytesWritten": metrics.BYTES,
    "NumEditLogsSynced": metrics.SYNC_SEGMENTS,
    "SyncsNumOps": metrics.GROUPS,
    "TxnsServedViaRpc": metrics.SERVED_EDITS,
    "BytesServedViaRpc": metrics.SERVED_EDIT_BYTES,
    "RpcEmptyResponses": metrics.EMPTY_ANSWERS,
    "RpcRequestCacheMissAmountNumMisses": metrics.CACHE_MISSES,
}
"""The counter of nnha from which each attribute of Hadoop is taken."""

Bean = Mapping[str, object]


class JmxPage:
    """Serves GET /jmx[?qry=pattern]; ``host_and_port`` returns the address of the node's RPC."""

    def __init__(
        self, node: JournalNode, host_and_port: Callable[[], str], started_millis: int
    ) -> None:
        self._node = node
        self._host_and_port = host_and_port
        self._started_millis = started_millis

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the routes for the daemon's HTTP server."""
        return (web.get("/jmx", self._get),)

    def beans(self) -> list[Bean]:
        """Return the bean of the node, then those of its journals."""
        metrics.fold()
        counted = {name: _by_journal(counter) for name, counter in _COUNTERS.items()}
        return [self._info(), *(_journal(owner, counted) for owner in self._node.owners())]

    async def _get(self, request: web.Request) -> web.Response:
        pattern = request.query.get("qry", "*:*").replace("*:*", "*")
        found = [bean for bean in self.beans() if fnmatchcase(str(bean["name"]), pattern)]
        return web.json_response({"beans": found})

    def _info(self) -> Bean:
        owners = self._node.owners()
        spaces = [owner.state.namespace for owner in owners]
        known = [space for space in spaces if space is not None]
        status = {
            owner.journal_id: {"Formatted": "false" if owner.state.namespace is None else "true"}
            for owner in owners
        }
        return {
            "name": "Hadoop:service=JournalNode,name=JournalNodeInfo",
            "modelerType": "org.apache.hadoop.hdfs.qjournal.server.JournalNode",
            "JournalsStatus": json.dumps(status),
            "HostAndPort": self._host_and_port(),
            "ClusterIds": sorted({space.cluster_id for space in known}),
            "Version": _version(),
            "JNStartedTimeInMillis": self._started_millis,
            "StorageInfos": [
                f"lv={space.layout_version};cid={space.cluster_id};nsid={space.namespace_id};"
                f"c={space.ctime}"
                for space in known
            ],
        }


def _by_journal(counter: Counter) -> Mapping[str, int]:
    # prometheus_client's get_sample_value would collect all metrics of the process for each value.
    return {
        sample.labels["journal"]: int(sample.value)
        for metric in counter.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    }


def _journal(owner: JournalOwner, counted: Mapping[str, Mapping[str, int]]) -> Bean:
    state, journal = owner.state, owner.journal_id
    last = max(0, state.last_written)
    formatted = state.namespace is not None
    return {
        "name": f"Hadoop:service=JournalNode,name=Journal-{journal}",
        "modelerType": f"Journal-{journal}",
        "tag.Context": "dfs",
        "tag.JournalId": journal,
        **{name: values.get(journal, 0) for name, values in counted.items()},
        **owner.recent_syncs,
        "LastWrittenTxId": last,
        "CurrentLagTxns": max(0, state.claimed - last),
        "LastWriterEpoch": state.writer if formatted else -1,
        "LastPromisedEpoch": state.promised if formatted else -1,
    }


def _version() -> str:
    try:
        return version("nnha")
    except PackageNotFoundError:
        return "unknown"
