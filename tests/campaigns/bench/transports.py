"""One writer over gRPC and over Hadoop RPC, on the same JournalNodes in the same run."""

import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from deploy.local.layout import JOURNALNODES, plan
from deploy.local.processes import Supervisor, http_get, wait_until
from deploy.local.site import journalnode_overrides, write_conf_dir
from journal.links.grpc_link import GrpcLink
from journal.links.hadoop_link import HadoopLink
from journal.links.link import LinkFactory
from journal.model import JournalId, TxId
from journal.writer.writer import QuorumWriter
from tests.campaigns.bench.load import measure, percentile
from tests.campaigns.bench.report import Row, publish
from tests.campaigns.bench.world import NAMESPACE
from tests.journal.core.requests_of import record

EDIT_BYTES = 200
ROUNDS = 5
SECONDS = 1.2
HADOOP_KEY = "nnha.journalnode.hadoop-rpc-address"


def start_nodes(running: ExitStack, directory: Path) -> tuple[list[int], list[int]]:
    """Three JournalNode processes; their gRPC ports and their Hadoop RPC ports."""
    directory.mkdir(exist_ok=True)
    layout = plan(directory)
    write_conf_dir(layout)
    supervisor = running.enter_context(Supervisor(directory))
    for name in JOURNALNODES:
        keys = {**journalnode_overrides(layout, name), HADOOP_KEY: "127.0.0.1:0"}
        command = [sys.executable, "-m", "ha.cli.main", "journalnode"]
        options = [f"-D{key}={value}" for key, value in keys.items()]
        supervisor.start(name, [*command, "--conf-dir", str(layout.conf_dir), *options])
    hadoop = []
    for name in JOURNALNODES:
        url = layout.journalnode_url(name)
        wait_until(lambda url=url: http_get(f"{url}/health"), what=name, deadline_seconds=30)  # type: ignore[misc]
        answer = http_get(f"{url}/status")
        assert answer is not None
        status = json.loads(answer[1])
        hadoop.append(int(status["hadoop_rpc_address"].rpartition(":")[2]))
    return [layout.journalnodes[name].rpc for name in JOURNALNODES], hadoop


class Pen:
    """One journal's writer, and the number of its next edit."""

    def __init__(self, writer: QuorumWriter) -> None:
        self._writer = writer
        self._next = 1

    async def open(self) -> None:
        await self._writer.format()
        await self._writer.become_writer()
        await self._writer.start_segment(TxId(1))

    async def commit(self, edits: int) -> None:
        """One batch of edits of 200 bytes."""
        first = self._next
        self._next += edits
        size = EDIT_BYTES - 17
        records = b"".join(record(txid, 1, size) for txid in range(first, first + edits))
        await self._writer.write(TxId(first), edits, records)

    async def close(self) -> None:
        await self._writer.close()


async def latencies(ports: Sequence[int], link: LinkFactory, name: str) -> list[float]:
    """Commits of one caller, in seconds each."""
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


def rows(grpc_ports: Sequence[int], hadoop_ports: Sequence[int]) -> list[Row]:
    """Each transport's p50 and p99; rounds take turns, so that a busy moment meets both."""
    over_grpc: list[list[float]] = []
    over_hadoop: list[list[float]] = []
    for turn in range(ROUNDS):
        over_grpc.append(asyncio.run(latencies(grpc_ports, GrpcLink, f"grpc{turn}")))
        over_hadoop.append(asyncio.run(latencies(hadoop_ports, HadoopLink, f"hadoop{turn}")))
    grpc50, hadoop50 = (_median(runs, 0.5) for runs in (over_grpc, over_hadoop))
    grpc99, hadoop99 = (_median(runs, 0.99) for runs in (over_grpc, over_hadoop))
    beside = f"gRPC: {grpc50:.3f} ms"
    return [
        Row("commit p50 over gRPC, 1 caller", grpc50, "ms", "-", None, "-"),
        Row("commit p99 over gRPC, 1 caller", grpc99, "ms", "-", None, "-"),
        Row("commit p50 over Hadoop RPC, 1 caller", hadoop50, "ms", "-", None, beside),
        Row("commit p99 over Hadoop RPC, 1 caller", hadoop99, "ms", "-", None, beside),
        Row("Hadoop RPC / gRPC, p50", hadoop50 / grpc50, "ratio", "-", None, beside),
    ]


def transport_rows() -> list[Row]:
    """The rows, on nodes of their own."""
    with ExitStack() as running:
        directory = Path(running.enter_context(tempfile.TemporaryDirectory()))
        return rows(*start_nodes(running, directory))


def _median(runs: Sequence[Sequence[float]], share: float) -> float:
    return 1000 * statistics.median(percentile(run, share) for run in runs)


if __name__ == "__main__":
    raise SystemExit(publish("transports", transport_rows(), as_json="--json" in sys.argv))
