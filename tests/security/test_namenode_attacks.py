"""Strangers who open much and say little cost a NameNode little, and stop neither HA nor probes."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from deploy.local.cluster.ports import HOST, free_ports
from ha.conf.topology import HostPort
from ha.rpc.java_names import CLIENT_PROTOCOL
from ha.rpc.packets import PREAMBLE, encode_context
from ha.service.client import ServiceClient
from ha.service.errors import ServiceUnreachable
from ha.service.model import ServiceState
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.startup.startup_world import KEYS, write_site
from tests.worlds.files import info
from tests.worlds.name_dirs import format_name_dirs

SECONDS = 60.0
MB = 1000 * 1000
FRIENDLY = PREAMBLE + encode_context(bytes(16), CLIENT_PROTOCOL, "mallory", None)


@dataclass(frozen=True)
class Target:
    """A NameNode that is attacked; its journal is away, which is no matter here."""

    pid: int
    rpc: HostPort
    http: HostPort

    def resident_bytes(self) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("it has ended")

    async def get(self, path: str) -> tuple[int, str]:
        url = f"http://{self.http}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status, await answer.text()

    async def metric(self, name: str) -> float:
        _, text = await self.get("/metrics")
        lines = (line for line in text.splitlines() if line.startswith(f"{name} "))
        return float(next(lines).split()[1])

    async def state(self) -> ServiceState:
        async with ServiceClient.connected(self.rpc, deadline_seconds=SECONDS) as client:
            return (await client.status(deadline_seconds=SECONDS)).state


@asynccontextmanager
async def namenode(folder: Path) -> AsyncIterator[Target]:
    rpc, http = free_ports(2)
    site = {
        **KEYS,
        "dfs.namenode.name.dir": str(folder / "name"),
        "dfs.namenode.shared.edits.dir": "qjournal://127.0.0.1:1/ns1",
        "dfs.namenode.rpc-address.ns1.nn1": f"{HOST}:{rpc}",
        "dfs.namenode.http-address.ns1.nn1": f"{HOST}:{http}",
    }
    write_site(folder / "conf", site)
    format_name_dirs([folder / "name"], info(), Namespace.empty("hdfs"))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ha.cli.main", "namenode", "--conf-dir", str(folder / "conf"),
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    target = Target(process.pid, HostPort(HOST, rpc), HostPort(HOST, http))
    try:
        async with asyncio.timeout(SECONDS):
            while await _state_or_none(target) is not ServiceState.STANDBY:
                await asyncio.sleep(0.02)
        yield target
    finally:
        process.kill()
        await process.wait()


async def _state_or_none(target: Target) -> ServiceState | None:
    try:
        return await target.state()
    except ServiceUnreachable:
        return None


def connected(stack: ExitStack, at: HostPort, count: int, said: bytes) -> list[socket.socket]:
    """Open ``count`` connections that send this; none is ever read from."""
    found = []
    for _ in range(count):
        peer = stack.enter_context(socket.create_connection((at.host, at.port), timeout=SECONDS))
        peer.sendall(said)
        peer.setblocking(False)
        found.append(peer)
    return found


async def push(peers: Sequence[socket.socket], data: memoryview, target: Target) -> None:
    """Send as much of it as the NameNode takes, until it takes no more."""
    sent = dict.fromkeys(peers, 0)
    starved = False
    async with asyncio.timeout(SECONDS):
        while True:
            taken = 0
            for peer in peers:
                try:
                    taken += (now := peer.send(data[sent[peer] : sent[peer] + MB]))
                except BlockingIOError:
                    continue
                sent[peer] += now
            if starved and not taken:
                return
            await asyncio.sleep(0)
            if not taken:
                starved = await target.metric("nnha_rpc_starved_total") >= len(peers)


async def test_64_half_frames_of_60_mb_take_no_300_mb_and_no_failover(tmp_path: Path) -> None:
    async with namenode(tmp_path) as target:
        before = target.resident_bytes()
        size = 60 * MB
        with ExitStack() as stack:
            peers = connected(stack, target.rpc, 64, FRIENDLY + (size).to_bytes(4, "big"))
            await push(peers, memoryview(bytes(size)), target)
            assert target.resident_bytes() - before < 300 * MB
            assert await target.metric("nnha_rpc_buffered_bytes") < 256 * 1024 * 1024
            assert await target.state() is ServiceState.STANDBY
            assert (await target.get("/livez"))[0] == 200


async def test_2000_connections_keep_neither_controllers_nor_clients_out(tmp_path: Path) -> None:
    async with namenode(tmp_path) as target:
        before = target.resident_bytes()
        with ExitStack() as stack:
            for _ in range(20):
                connected(stack, target.rpc, 100, FRIENDLY)
                assert await target.state() is ServiceState.STANDBY
            assert await target.metric("nnha_rpc_connections") <= 1024
            assert target.resident_bytes() - before < 300 * MB


async def test_300_half_heads_stop_no_probe(tmp_path: Path) -> None:
    async with namenode(tmp_path) as target:
        with ExitStack() as stack:
            connected(stack, target.http, 300, b"GET /health HTTP/1.1\r\nHost: x\r\nX-")
            for path in ("/health", "/livez", "/status"):
                assert (await target.get(path))[0] == 200
