"""WebHDFS under kills: Hadoop's own WebHdfsFileSystem, fsspec and the PyPI client hdfs at once."""

import asyncio
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.processes import wait_until
from deploy.local.workload.trial import settle
from files.namenodes import Namenodes
from ha.conf.configuration import load_configuration
from hadoop.proto import client_namenode_pb2 as calls
from tests import ROOT
from tests.clients.environment import client_python
from tests.clients.rounds import BLOCK_BYTES, Rounds, Wrong
from tests.interop.hadoop_server import Hadoop
from tests.interop.our_cluster import OurCluster, programs_on

pytestmark = [pytest.mark.interop, pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1800)]

SCRIPT = ROOT / "tests" / "clients" / "webhdfs_rounds.py"
MANY, ENTRIES = "/many", 100_000
AT_ONCE = 64
MORE_ROUNDS = 4
"""How many rounds each client plays between two kills."""
GROWN_MEGABYTES = 32
"""What listings of 100,000 entries for three clients at once may cost the NameNode."""
CALL_SECONDS = 400.0
LISTED = re.compile(r"FileStatus\{path=webhdfs://[^/]*/[^;]*?([^/;]+); isDirectory=")


@dataclass(slots=True)
class ByJava:
    """Hadoop's WebHdfsFileSystem."""

    files: Any
    hadoop: Hadoop

    def write(self, path: str, data: bytes) -> None:
        self._send(
            lambda: self.files.create(self.hadoop.path(path), True, 4096, 3, BLOCK_BYTES), data
        )

    def append(self, path: str, data: bytes) -> None:
        self._send(lambda: self.files.append(self.hadoop.path(path)), data)

    def read(self, path: str, offset: int, length: int) -> bytes:
        stream = self.files.open(self.hadoop.path(path))
        try:
            stream.seek(offset)
            return bytes(stream.readNBytes(length))
        finally:
            stream.close()

    def length(self, path: str) -> int | None:
        where = self.hadoop.path(path)
        return int(self.files.getFileStatus(where).getLen()) if self.files.exists(where) else None

    def names(self, folder: str) -> list[str]:
        found = self.files.listStatus(self.hadoop.path(folder))
        text = str(self.hadoop.gateway.jvm.org.apache.commons.lang3.ArrayUtils.toString(found))
        return LISTED.findall(text)

    def rename(self, source: str, target: str) -> None:
        self.files.rename(self.hadoop.path(source), self.hadoop.path(target))

    def delete(self, path: str) -> None:
        self.files.delete(self.hadoop.path(path), False)

    def _send(self, begin: Callable[[], Any], data: bytes) -> None:
        stream = begin()
        try:
            stream.write(data)
        finally:
            stream.close()


@dataclass(slots=True)
class Running:
    """A client that plays rounds, and how to end it."""

    name: str
    rounds: Callable[[], int]
    why_ended: Callable[[], str | None]
    end: Callable[[], str]
    """Have it check all that it was promised; return what it sums up, or raise AssertionError."""


@contextmanager
def by_script(kind: str, cluster: Cluster, folder: Path, seed: int) -> Iterator[Running]:
    pages = [f"127.0.0.1:{one.http}" for one in cluster.layout.namenodes.values()]
    log = folder / f"{kind}.log"
    words = [kind, f"/{kind}", str(seed), MANY, str(ENTRIES), *pages]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(client_python()), str(SCRIPT), *words], stdin=subprocess.PIPE, stdout=out,
            stderr=out, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )  # fmt: skip

    def why_ended() -> str | None:
        return None if process.poll() is None else log.read_text()[-3000:]

    def end() -> str:
        process.communicate(timeout=CALL_SECONDS)
        assert process.returncode == 0, log.read_text()[-3000:]
        return log.read_text().rpartition("round ")[2]

    try:
        yield Running(kind, lambda: log.read_text().count("round "), why_ended, end)
    finally:
        process.kill()
        process.wait()


@contextmanager
def by_java(ours: OurCluster, seed: int) -> Iterator[Running]:
    hadoop = ours.hadoop
    uri = hadoop.gateway.jvm.java.net.URI("webhdfs://ns1")
    files = hadoop.hadoop.fs.FileSystem.newInstance(uri, ours.configuration())
    rounds = Rounds(ByJava(files, hadoop), (Py4JJavaError,), "/java", seed, MANY, ENTRIES)
    files.mkdirs(hadoop.path("/java"))
    ends, played, wrong = Event(), [0], list[str]()

    def play() -> None:
        try:
            for number in rounds.run():
                played[0] = number + 1
                if ends.is_set():
                    break
            rounds.check_all()
        except (Py4JJavaError, Wrong) as failure:
            wrong.append(str(failure))

    thread = Thread(target=play)

    def end() -> str:
        ends.set()
        thread.join(CALL_SECONDS)
        assert not thread.is_alive()
        assert wrong == []
        return "\n".join([rounds.summary(), *rounds.failed])

    thread.start()
    try:
        yield Running("java", lambda: played[0], lambda: "; ".join(wrong) or None, end)
    finally:
        ends.set()
        files.close()


async def make_entries(cluster: Cluster) -> None:
    numbers = iter(range(ENTRIES))
    conf = load_configuration(cluster.conf_dir, environment={})
    async with Namenodes.of(conf) as namenodes, asyncio.TaskGroup() as tasks:

        async def make() -> None:
            for number in numbers:
                await namenodes.ask(
                    calls.MkdirsResponseProto, src=f"{MANY}/{number:06}",
                    masked={"perm": 0o755}, createParent=True,
                )  # fmt: skip

        for _ in range(AT_ONCE):
            tasks.create_task(make())


def resident_megabytes(cluster: Cluster) -> int:
    status = Path(f"/proc/{cluster.process(cluster.wait_for_active()).pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) // 1024


def wait_for_rounds(clients: list[Running]) -> None:
    goals = [client.rounds() + MORE_ROUNDS for client in clients]
    wait_until(
        lambda: all(client.rounds() >= goal for client, goal in zip(clients, goals, strict=True)),
        what=f"each client to play {MORE_ROUNDS} more rounds",
        deadline_seconds=CALL_SECONDS,
        abandon=lambda: next(filter(None, (client.why_ended() for client in clients)), None),
    )


def test_three_kinds_of_clients_lose_nothing_through_kills(hadoop: Hadoop, tmp_path: Path) -> None:
    with ExitStack() as running:
        cluster = running.enter_context(open_cluster(tmp_path / "cluster", datanodes=3))
        cluster.up()
        asyncio.run(make_entries(cluster))
        ours = running.enter_context(programs_on(cluster, hadoop))
        before = resident_megabytes(cluster)
        clients = [
            running.enter_context(by_script("fsspec", cluster, tmp_path, 1)),
            running.enter_context(by_script("hdfs", cluster, tmp_path, 2)),
            running.enter_context(by_java(ours, 3)),
        ]
        wait_for_rounds(clients)
        grown = resident_megabytes(cluster) - before
        for victim in ("", "dn1", ""):
            active = cluster.wait_for_active()
            cluster.kill(active)
            if victim:
                cluster.kill(victim)
            wait_for_rounds(clients)
            cluster.heal()
            settle(cluster, active)
        found = {client.name: client.end() for client in clients}
        (tmp_path / "found.txt").write_text(f"{before} {grown} MB\n{found}")
        assert grown < GROWN_MEGABYTES, f"from {before} MB"
