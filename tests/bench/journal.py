"""Quorum writes: three real JournalNodes against raw TCP and fdatasync in the same run."""

import asyncio
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from deploy.local.layout import JOURNALNODES, plan
from deploy.local.processes import Supervisor, http_get, wait_until
from deploy.local.site import journalnode_overrides, write_conf_dir
from journal.client.writer import QuorumWriter
from journal.model import JournalId, NamespaceInfo, TxId
from namenode_sim.edit_log import EditLog
from namenode_sim.edits.ops import NO_RPC_IDS, Delete
from tests.bench.floor import FloorWriter
from tests.bench.report import Row, publish

NAMESPACE = NamespaceInfo(-65, 4711, "CID-bench", 0, "BP-bench")
EDIT = Delete("/" + "d" * 160, 0, NO_RPC_IDS)  # 200 bytes with its frame
SECONDS = 4.0


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of all lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def measure(
    callers: int, one_edit: Callable[[], Awaitable[None]], seconds: float = SECONDS
) -> list[float]:
    """Closed-loop callers for a while; the seconds of each edit, the first quarter left out."""
    began = time.perf_counter()
    warm, end = began + seconds / 4, began + seconds
    latencies: list[float] = []

    async def caller() -> None:
        while (start := time.perf_counter()) < end:
            await one_edit()
            if start > warm:
                latencies.append(time.perf_counter() - start)

    await asyncio.gather(*(caller() for _ in range(callers)))
    return latencies


def start_journalnodes(running: ExitStack, directory: Path) -> tuple[Supervisor, list[int]]:
    """Three JournalNode processes; the supervisor and their ports."""
    layout = plan(directory)
    write_conf_dir(layout)
    supervisor = running.enter_context(Supervisor(directory))
    for name in JOURNALNODES:
        keys = [f"-D{key}={value}" for key, value in journalnode_overrides(layout, name).items()]
        command = [sys.executable, "-m", "ha.cli.main", "journalnode"]
        supervisor.start(name, [*command, "--conf-dir", str(layout.conf_dir), *keys])
    for name in JOURNALNODES:
        url = f"{layout.journalnode_url(name)}/health"
        wait_until(lambda url=url: http_get(url), what=name, deadline_seconds=30)  # type: ignore[misc]
    return supervisor, [layout.journalnodes[name].rpc for name in JOURNALNODES]


def start_floor(running: ExitStack, directory: Path) -> list[int]:
    """Three floor processes; their ports."""
    ports = []
    for number in range(3):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.floor", str(directory / f"floor{number}")],
            stdout=subprocess.PIPE,
            text=True,
        )
        running.callback(process.wait)
        running.callback(process.kill)
        assert process.stdout is not None
        ports.append(int(process.stdout.readline()))
        running.callback(process.stdout.close)
    return ports


async def floor_median(ports: list[int]) -> float:
    """p50 of raw writes of one edit, one at a time, in seconds."""
    writer = await FloorWriter.connect(ports)
    records = b"x" * 200
    latencies = await measure(1, lambda: writer.write(records))
    await writer.close()
    return statistics.median(latencies)


async def quorum_rows(ports: list[int], supervisor: Supervisor, floor_p50: float) -> list[Row]:
    """Commit latency and rate through the NameNode's own pen and the quorum writer."""
    writer = QuorumWriter(
        [("127.0.0.1", port) for port in ports],
        journal_id=JournalId("bench"),
        nameservice_id="ns1",
        namespace=NAMESPACE,
    )
    await writer.format()
    recovered = await writer.become_writer()
    failures: list[str] = []
    pen = EditLog(writer, on_failure=failures.append)
    await pen.open(TxId(recovered.last_txid + 1))

    async def one_edit() -> None:
        await pen.durable(pen.append(EDIT))

    one = await measure(1, one_edit)
    sixteen = await measure(16, one_edit)
    crowd = await measure(256, one_edit)
    supervisor.processes[JOURNALNODES[2]].send(signal.SIGSTOP)
    stopped = await measure(16, one_edit)
    supervisor.processes[JOURNALNODES[2]].send(signal.SIGCONT)
    await pen.close()
    await writer.close()
    if failures:
        raise RuntimeError(failures[0])
    return compare(floor_p50, one, sixteen, crowd, stopped)


def compare(
    floor_p50: float,
    one: list[float],
    sixteen: list[float],
    crowd: list[float],
    stopped: list[float],
) -> list[Row]:
    """Figures and ratios; the bars are those of limits.md section 10, with its CI slack of 1.5."""
    p50 = statistics.median(one)
    p50_sixteen, p99_sixteen = statistics.median(sixteen), percentile(sixteen, 0.99)
    rate_one = len(one) / (SECONDS * 0.75)
    rate = len(crowd) / (SECONDS * 0.75)
    floor = f"raw TCP + fdatasync: {floor_p50 * 1000:.3f} ms"
    ratio, spread = p50 / floor_p50, p50_sixteen / p50
    patience = percentile(stopped, 0.99) / p99_sixteen
    return [
        Row("commit p50, 1 caller", p50 * 1000, "ms", "-", None, floor),
        Row("commit p50 / floor", ratio, "ratio", "<= 3.75", ratio <= 3.75, floor),
        Row("commit p50, 16 / 1 callers", spread, "ratio", "<= 1.8", spread <= 1.8, "1 caller"),
        Row("commit p99, 16 callers", p99_sixteen * 1000, "ms", "-", None, "-"),
        Row("edits/s, 256 callers", rate, "1/s", "-", None, f"1 caller: {rate_one:,.0f}/s"),
        Row(
            "group commit, 256 / 1",
            rate / rate_one,
            "ratio",
            ">= 53",
            rate / rate_one >= 53,
            "1 caller",
        ),
        Row(
            "p99, one node stopped / healthy",
            patience,
            "ratio",
            "<= 1.65",
            patience <= 1.65,
            "healthy",
        ),
    ]


def main(arguments: Sequence[str]) -> int:
    """Run the bench; ``--json`` adds one JSON object as the last line."""
    with ExitStack() as running:
        directory = Path(running.enter_context(tempfile.TemporaryDirectory()))
        floor_ports = start_floor(running, directory)
        floor_p50 = asyncio.run(floor_median(floor_ports))
        supervisor, ports = start_journalnodes(running, directory)
        rows = asyncio.run(quorum_rows(ports, supervisor, floor_p50))
    return publish("journal", rows, as_json="--json" in arguments)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
