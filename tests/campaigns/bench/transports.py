"""One writer over gRPC, over Hadoop RPC and over write lanes, on nodes of the same run."""

import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from deploy.local.cluster.layout import JOURNALNODES, plan
from deploy.local.cluster.processes import Supervisor, http_get, wait_until
from deploy.local.cluster.site import journalnode_overrides, write_conf_dir
from journal.links.grpc_link import GrpcLink
from journal.links.hadoop_link import HadoopLink
from journal.links.link import LinkFactory
from journal.model import JournalId, TxId
from journal.writer.writer import QuorumWriter
from tests.campaigns.bench.daemon_loop import daemon_loop
from tests.campaigns.bench.load import measure, percentile
from tests.campaigns.bench.report import Row, publish
from tests.campaigns.bench.world import EDITS_KEY, LANE_KEY, NAMESPACE
from tests.journal.core.requests_of import record

EDIT_BYTES = 200
ROUNDS = 5
SECONDS = 1.2
HADOOP_KEY = "nnha.journalnode.hadoop-rpc-address"


@dataclass(frozen=True, slots=True)
class Ports:
    """Of three JournalNode processes."""

    grpc: list[int]
    hadoop: list[int]


def start_nodes(running: ExitStack, directory: Path, *, lanes: str) -> Ports:
    """Start three JournalNode processes, with write lanes at that address or ``off``."""
    directory.mkdir(exist_ok=True)
    layout = plan(directory)
    write_conf_dir(layout)
    supervisor = running.enter_context(Supervisor(directory))
    for name in JOURNALNODES:
        # Without named journals a node makes any; each transport has one of its own.
        keys = {
            **journalnode_overrides(layout, name),
            EDITS_KEY: "",
            HADOOP_KEY: "127.0.0.1:0",
            LANE_KEY: lanes,
        }
        command = [sys.executable, "-m", "ha.cli.main", "journalnode"]
        options = [f"-D{key}={value}" for key, value in keys.items()]
        supervisor.start(name, [*command, "--conf-dir", str(layout.conf_dir), *options])
    hadoop = []
    for name in JOURNALNODES:
        url = layout.url(name)
        wait_until(lambda url=url: hadoop_port(url), what=name, deadline_seconds=30)  # type: ignore[misc]
        hadoop.append(hadoop_port(url))
    return Ports([layout.journalnodes[name].rpc for name in JOURNALNODES], hadoop)


def hadoop_port(url: str) -> int:
    """Return where a node listens for Hadoop RPC; 0 while it does not."""
    answer = http_get(f"{url}/status")
    if answer is None:
        return 0
    return int(json.loads(answer[1])["hadoop_rpc_address"].rpartition(":")[2])


class Pen:
    """One journal's writer, and the number of its next edit."""

    def __init__(self, writer: QuorumWriter) -> None:
        self._writer = writer
        self._next = 1

    async def open(self) -> None:
        """Take over, behind what the last round has left."""
        if True not in (await self._writer.formatted()).values():
            await self._writer.format()
        won = await self._writer.become_writer()
        self._next = won.last_txid + 1
        await self._writer.start_segment(TxId(self._next))

    async def commit(self, edits: int) -> None:
        """Commit one batch of edits of 200 bytes."""
        first = self._next
        self._next += edits
        size = EDIT_BYTES - 17
        records = b"".join(record(txid, 1, size) for txid in range(first, first + edits))
        await self._writer.write(TxId(first), edits, records)

    async def close(self) -> None:
        await self._writer.close()


async def latencies(ports: Sequence[int], link: LinkFactory, name: str) -> list[float]:
    pen = Pen(
        QuorumWriter(
            [("127.0.0.1", port) for port in ports],
            journal_id=JournalId(name),
            nameservice_id="ns1",
            namespace=NAMESPACE,
            link=link,
        )
    )
    await pen.open()
    found = await measure(1, lambda: pen.commit(1), SECONDS)
    await pen.close()
    return found


def rows(without: Ports, with_lanes: Ports) -> list[Row]:
    """Return each transport's p50 and p99; rounds take turns, so that a busy moment meets all."""
    over_grpc: list[list[float]] = []
    over_hadoop: list[list[float]] = []
    over_lanes: list[list[float]] = []
    for _ in range(ROUNDS):
        with asyncio.Runner(loop_factory=daemon_loop()) as runner:
            over_grpc.append(runner.run(latencies(without.grpc, GrpcLink, "grpc")))
            over_hadoop.append(runner.run(latencies(without.hadoop, HadoopLink, "hadoop")))
            over_lanes.append(runner.run(latencies(with_lanes.grpc, GrpcLink, "lane")))
    grpc50, hadoop50, lane50 = (_median(r, 0.5) for r in (over_grpc, over_hadoop, over_lanes))
    grpc99, hadoop99, lane99 = (_median(r, 0.99) for r in (over_grpc, over_hadoop, over_lanes))
    beside = f"gRPC: {grpc50:.3f} ms"
    return [
        Row("commit p50 over gRPC, 1 caller", grpc50, "ms", "-", None, "-"),
        Row("commit p99 over gRPC, 1 caller", grpc99, "ms", "-", None, "-"),
        Row("commit p50 over Hadoop RPC, 1 caller", hadoop50, "ms", "-", None, beside),
        Row("commit p99 over Hadoop RPC, 1 caller", hadoop99, "ms", "-", None, beside),
        Row("Hadoop RPC / gRPC, p50", hadoop50 / grpc50, "ratio", "-", None, beside),
        Row("commit p50 over write lanes, 1 caller", lane50, "ms", "-", None, beside),
        Row("commit p99 over write lanes, 1 caller", lane99, "ms", "-", None, beside),
        Row("write lanes / gRPC, p50", lane50 / grpc50, "ratio", "-", None, beside),
    ]


def transport_rows() -> list[Row]:
    with ExitStack() as running:
        directory = Path(running.enter_context(tempfile.TemporaryDirectory()))
        without = start_nodes(running, directory / "without", lanes="off")
        return rows(without, start_nodes(running, directory / "lanes", lanes="127.0.0.1:0"))


def _median(runs: Sequence[Sequence[float]], share: float) -> float:
    return 1000 * statistics.median(percentile(run, share) for run in runs)


if __name__ == "__main__":
    raise SystemExit(publish("transports", transport_rows(), as_json="--json" in sys.argv))
