"""The processes that the journal bench measures: our nodes, and the two peers of the same run."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from deploy.local.cluster.certificates import make_certificates, tls_folder
from deploy.local.cluster.layout import JOURNALNODES, NAMENODES, plan
from deploy.local.cluster.processes import ManagedProcess, Supervisor, http_get, wait_until
from deploy.local.cluster.site import journalnode_overrides, write_conf_dir
from ha.conf.keys.security import SECURITY_MODE, TLS_DIR, Mode
from ha.security.tls_files import TlsFiles
from journal.model import JournalId, NamespaceInfo, TxId
from journal.writer.writer import QuorumWriter

NAMESPACE = NamespaceInfo(-65, 4711, "CID-bench", 0, "BP-bench")
EDITS_KEY = "dfs.namenode.shared.edits.dir"
LANE_KEY = "nnha.journalnode.write-lane-address"
NO_KEYS: Mapping[str, str] = {}
_LOOKED_AT_SECONDS = 10.0
_NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class OurNodes:
    """Three JournalNode processes."""

    ports: list[int]
    processes: list[ManagedProcess]
    unused: list[str] = field(default_factory=list)
    """Journals that are not written any more: a node makes eight without a name, and no more."""

    def writer(self, name: str, ports: Sequence[int] | None = None) -> QuorumWriter:
        return QuorumWriter(
            [("127.0.0.1", port) for port in ports or self.ports],
            journal_id=JournalId(name),
            nameservice_id="ns1",
            namespace=NAMESPACE,
        )

    @asynccontextmanager
    async def journal(self) -> AsyncIterator[str]:
        again = bool(self.unused)
        name = self.unused.pop() if again else f"bench{next(_NUMBERS)}"
        writer = self.writer(name)
        await writer.format(force=again)  # a NameNode's certificate does not open the force
        await writer.close()
        try:
            yield name
        finally:
            self.unused.append(name)

    @asynccontextmanager
    async def open(self, ports: Sequence[int] | None = None) -> AsyncIterator[QuorumWriter]:
        async with self.journal() as name:
            writer = self.writer(name, ports)
            await writer.become_writer()
            await writer.start_segment(TxId(1))
            try:
                yield writer
            finally:
                await writer.close()


@dataclass(frozen=True, slots=True)
class SecuredNodes:
    """Nodes that are strict, and the certificate of a NameNode that may write to them."""

    nodes: OurNodes
    files: TlsFiles


@dataclass(slots=True)
class World:
    """What is started on demand, and the samples that charts are drawn from."""

    running: ExitStack
    directory: Path
    latencies: dict[str, list[float]] = field(default_factory=dict)
    rates: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    _ours: OurNodes | None = None
    _without_lanes: OurNodes | None = None
    _secured: SecuredNodes | None = None
    _peers: dict[str, list[int]] = field(default_factory=dict)
    _peer_pids: dict[str, list[int]] = field(default_factory=dict)

    @property
    def ours(self) -> OurNodes:
        if self._ours is None:
            self._ours = self.fresh_nodes("ours")
        return self._ours

    @property
    def without_lanes(self) -> OurNodes:
        """Our nodes where gRPC carries the batches, started once."""
        if self._without_lanes is None:
            self._without_lanes = self.fresh_nodes("without-lanes", keys={LANE_KEY: "off"})
        return self._without_lanes

    @property
    def secured(self) -> SecuredNodes:
        """Our nodes with certificates, started once."""
        if self._secured is None:
            nodes = self.fresh_nodes("secured", secure=True)
            own = tls_folder(plan(self.directory / "secured"), NAMENODES[0])
            self._secured = SecuredNodes(nodes, TlsFiles(own, _LOOKED_AT_SECONDS))
        return self._secured

    def peer(self, module: str) -> list[int]:
        """Return the ports of three processes of ``tests.campaigns.bench.<module>``."""
        if module not in self._peers:
            self._peers[module] = [self._start_peer(module, str(n)) for n in range(3)]
        return self._peers[module]

    def node_pids(self, system: str) -> list[int]:
        nodes = {"ours": self._ours, "over gRPC": self._without_lanes}.get(system)
        if nodes is not None:
            return [process.pid for process in nodes.processes]
        return self._peer_pids.get("floor" if system == "raw TCP" else system, [])

    def delayed(self, port: int) -> int:
        """Return the port of a proxy to that port which holds every byte back for 50 ms."""
        return self._start_peer("delay", str(port))

    def fresh_nodes(
        self,
        name: str,
        module: str = "ha.cli.main",
        keys: Mapping[str, str] = NO_KEYS,
        *,
        secure: bool = False,
    ) -> OurNodes:
        """Start three more JournalNodes."""
        directory = self.directory / name
        directory.mkdir()
        layout = plan(directory)
        write_conf_dir(layout)
        if secure:
            make_certificates(layout)
        supervisor = self.running.enter_context(Supervisor(directory))
        started = []
        for node in JOURNALNODES:
            # Without named journals a node makes any; each measurement has one of its own.
            overrides = {**journalnode_overrides(layout, node), EDITS_KEY: "", **keys}
            if secure:
                overrides[TLS_DIR.name] = str(tls_folder(layout, node))
                overrides[SECURITY_MODE.name] = Mode.STRICT
            options = [f"-D{key}={value}" for key, value in overrides.items()]
            command = [sys.executable, "-m", module, "journalnode"]
            command += ["--conf-dir", str(layout.conf_dir), *options]
            started.append(supervisor.start(node, command))
        for node in JOURNALNODES:
            url = f"{layout.url(node)}/health"
            wait_until(lambda url=url: http_get(url), what=node, deadline_seconds=30)  # type: ignore[misc]
        return OurNodes([layout.journalnodes[node].rpc for node in JOURNALNODES], started)

    def _start_peer(self, module: str, argument: str) -> int:
        told = argument if module == "delay" else str(self.directory / f"{module}{argument}")
        process = subprocess.Popen(
            [sys.executable, "-m", f"tests.campaigns.bench.{module}", told],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._peer_pids.setdefault(module, []).append(process.pid)
        self.running.callback(process.wait)
        self.running.callback(process.kill)
        assert process.stdout is not None
        port = int(process.stdout.readline())
        self.running.callback(process.stdout.close)
        return port


@contextmanager
def still(processes: Sequence[ManagedProcess]) -> Iterator[None]:
    for process in processes:
        process.send(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.send(signal.SIGCONT)


def resident_megabytes(process: ManagedProcess) -> float:
    """Return what a process holds in memory now, in units of 10^6 bytes."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    line = next(line for line in text.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6
