"""Files on a whole cluster of ours: NameNodes and DataNodes die under clients of all kinds."""

import asyncio
import random
import subprocess
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import aiohttp
import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from yarl import URL

from deploy.local.cluster import site
from deploy.local.cluster.processes import wait_until
from deploy.local.demo.screen import Screen
from deploy.local.demo.stage import Stage, request_failover, staged
from deploy.local.workload.file_workload import Expected, FileWorkload
from deploy.local.workload.trial import kill_active, other, settle
from deploy.local.workload.workload import Workload
from files.namenodes import Namenodes
from files.read import Reader
from files.write import Writer
from ha.conf.configuration import load_configuration
from spark.engine.session import SparkSettings, spark_started
from tests import ROOT
from tests.clients.environment import run_script
from tests.hosts.page import shown
from tests.local_services import wait_until_whole

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

DATANODES = 3
FENCED_FILES = 20
CHANGES = 5
"""How many changes each client makes under each active."""
CALL_SECONDS = 120.0
SCRIPTS = Path(__file__).parent.parent / "clients"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Yield one cluster for all of these tests, since a start takes seconds."""
    directory = tmp_path_factory.mktemp("files")
    screen = Screen(Console(stderr=True, width=200))
    with staged(directory, screen, datanodes=DATANODES) as stage:
        yield stage


@pytest.fixture
def stage(shared: Stage) -> Stage:
    """Return the same cluster, healed from what the test before did to it."""
    shared.cluster.heal()
    return shared


@pytest.mark.row("B31", because="its name says so without the number of the row")
def test_files_live_through_the_death_of_namenodes_and_a_datanode(stage: Stage) -> None:
    names = Workload(stage.client, root="/kills-names", pause_seconds=0.05)
    files = FileWorkload(stage.client, root="/kills", writers=3, seed=7, pause_seconds=0.05)
    names.start()
    files.start()
    names.wait_for_acknowledged(40, deadline_seconds=CALL_SECONDS)
    files.wait_for_more(6, deadline_seconds=CALL_SECONDS)
    for victim in stage.cluster.datanodes[:2]:
        killed = kill_active(stage.cluster, names)
        stage.cluster.kill(victim)
        files.wait_for_more(6, deadline_seconds=CALL_SECONDS)
        stage.cluster.heal()
        settle(stage.cluster, killed.old)
    names.stop()
    files.stop()
    assert files.check_all() > 0
    assert not files.wrong
    assert not files.errors()
    assert not names.errors()


def test_a_cluster_that_was_killed_as_a_whole_comes_back_with_its_files(stage: Stage) -> None:
    """Safe mode waits for the reports of the DataNodes, and ends by itself."""
    files = FileWorkload(stage.client, root="/whole", writers=2, seed=8)
    files.start()
    files.wait_for_more(8, deadline_seconds=CALL_SECONDS)
    files.stop()
    assert files.check_all() > 0
    for name in stage.cluster.parts:
        stage.cluster.kill(name)
    stage.cluster.heal()
    assert files.check_all() > 0
    assert not files.wrong
    assert not files.errors()


def test_other_clients_write_and_read_through_a_failover(stage: Stage) -> None:
    """WebHDFS by fsspec and hdfs; hdfs-native; snakebite-py3 sees and changes metadata."""
    conf, folder = str(stage.cluster.conf_dir), "/others"
    pages = [f"127.0.0.1:{one.http}" for one in stage.cluster.layout.namenodes.values()]
    run_script(SCRIPTS / "native.py", conf, folder, "write")
    run_script(SCRIPTS / "webhdfs.py", "/web", "write", *pages)
    stage.cluster.kill(stage.cluster.wait_for_active())
    run_script(SCRIPTS / "native.py", conf, folder, "read")
    run_script(SCRIPTS / "webhdfs.py", "/web", "read", *pages)
    stage.cluster.heal()
    addresses = [f"127.0.0.1:{one.rpc}" for one in stage.cluster.layout.namenodes.values()]
    run_script(SCRIPTS / "snakebite_metadata.py", *addresses, folder)


def test_the_commands_of_the_page_on_webhdfs_do_what_it_shows(stage: Stage, tmp_path: Path) -> None:
    port = stage.cluster.layout.namenodes[stage.cluster.wait_for_active()].http
    blocks = (ROOT / "docs" / "webhdfs.md").read_text().split("```")[1::2]
    commands = [command for block in blocks for command in shown(block)]
    assert len(commands) > len(blocks) == 1
    for command, expected in commands:
        ours = command.replace("127.0.0.1:9870", f"127.0.0.1:{port}")
        done = subprocess.run(
            ours.replace("curl ", "curl -sS "), shell=True, cwd=tmp_path, text=True,
            capture_output=True, timeout=CALL_SECONDS, check=True,
        )  # fmt: skip
        assert (done.stdout.strip(), done.stderr) == (expected.strip(), ""), command


@pytest.mark.row("B32")
def test_b32_spark_writes_and_reads_a_table_while_the_active_is_killed(
    stage: Stage, tmp_path: Path
) -> None:
    layout = stage.cluster.layout
    keys = site.core_site(layout) | site.hdfs_site(layout)
    settings = SparkSettings(
        "local[2]", tmp_path, properties={f"spark.hadoop.{key}": keys[key] for key in keys}
    )

    def kill_once_it_writes() -> None:
        table = stage.client.path("/spark/table")
        wait_until(
            lambda: bool(stage.client.on_files(lambda files: files.exists(table))),
            what="Spark to write",
            deadline_seconds=CALL_SECONDS,
        )
        stage.cluster.kill(stage.cluster.wait_for_active())

    with spark_started(settings) as started, ThreadPoolExecutor(1) as beside:
        session = SparkSession(started.engine.context)
        killed = beside.submit(kill_once_it_writes)
        session.range(200_000).repartition(8).write.parquet("hdfs://ns1/spark/table")
        killed.result()
        found = session.read.parquet("hdfs://ns1/spark/table").selectExpr("sum(id)", "count(id)")
        assert tuple(found.collect()[0]) == (199_999 * 100_000, 200_000)


@pytest.mark.row("B5")
def test_b5_replication_goes_up_and_down_through_failovers(stage: Stage) -> None:
    """Two clients change it all the time, the role moves four times: no block is missing."""
    files, wanted = stage.files.expected, random.Random(5)
    client = stage.client.files()
    for number in range(FENCED_FILES):
        path, content = f"/fenced/f{number}", bytes([number]) * 50_000
        client.write(path, [content], block_size=1 << 20)
        files[path] = Expected(content)
    ends, changed = Event(), [0, 0]

    def change(number: int) -> None:
        own, draw = stage.client.files(), random.Random(number + 1)
        while not ends.is_set():
            path = f"/fenced/f{draw.randrange(FENCED_FILES)}"
            assert own.set_replication(path, draw.randint(1, DATANODES))
            changed[number] += 1

    with ThreadPoolExecutor(2) as beside:
        changes = [beside.submit(change, number) for number in range(2)]

        def failed() -> str | None:
            return next((repr(one.exception()) for one in changes if one.done()), None)

        def wait_for_changes() -> None:
            """Wait for both: a client that met the role's move may sleep for seconds."""
            goal = [count + CHANGES for count in changed]
            wait_until(
                lambda: all(count >= least for count, least in zip(changed, goal, strict=True)),
                what="both clients to change the replication of files",
                deadline_seconds=CALL_SECONDS,
                abandon=failed,
            )

        try:
            old = stage.cluster.wait_for_active()
            wait_for_changes()
            for name in (old, other(old), old):
                request_failover(stage.cluster, name, other(name))
                settle(stage.cluster, name)
                wait_for_changes()
            stage.cluster.kill(other(old))
            wait_until(
                lambda: stage.cluster.active_namenodes() == [old],
                what=f"{old} to be active again",
                deadline_seconds=CALL_SECONDS,
            )
            wait_for_changes()
        finally:
            ends.set()
        for each in changes:
            each.result()
    for number in range(FENCED_FILES):
        client.set_replication(f"/fenced/f{number}", wanted.randint(2, DATANODES))
    wait_until_whole(stage.files)
    assert stage.files.check_all() == FENCED_FILES * 50_000
    assert not stage.files.wrong


@pytest.mark.row("B9")
def test_b9_a_stream_goes_on_over_failovers_and_without_a_datanode(stage: Stage) -> None:
    """Change the active in the midst of a block, at addBlock behind it, and at complete."""
    content, client, cluster = random.Random(9).randbytes(3_200_000), stage.client, stage.cluster
    stream: Any = client.on_files(
        lambda files: files.create(client.path("/pipeline"), True, 4096, DATANODES, 1 << 20)
    )

    def write(begin: int, end: int) -> None:
        stream.write(content[begin:end])
        stream.hflush()

    write(0, 700_000)
    old = cluster.wait_for_active()
    cluster.kill(old)
    cluster.kill(cluster.datanodes[0])
    write(700_000, 2_400_000)
    cluster.start(old)
    settle(cluster, old)
    request_failover(cluster, other(old), old)
    write(2_400_000, 3_000_000)
    cluster.kill(old)
    stream.write(content[3_000_000:])
    stream.close()
    cluster.heal()
    assert client.read("/pipeline") == content


@pytest.mark.row("B17")
def test_b17_a_client_reads_around_a_flipped_bit_which_is_then_mended(stage: Stage) -> None:
    content = random.Random(17).randbytes(200_000)
    stage.client.files().write("/flipped", [content], block_size=1 << 20)
    data = stage.cluster.layout.directory / "data"

    def replicas() -> dict[Path, bytes]:
        """Return those that are there at this moment; DataNodes may delete any of them."""
        found = {}
        for path in data.rglob("finalized/**/blk_*"):
            with suppress(FileNotFoundError):
                if path.suffix != ".meta" and path.stat().st_size == len(content):
                    found[path] = path.read_bytes()
        return found

    wait_until(
        lambda: list(replicas().values()) == [content] * DATANODES,
        what="all replicas",
        deadline_seconds=CALL_SECONDS,
    )
    for path in list(replicas())[:2]:
        damaged = bytearray(content)
        damaged[123_456] ^= 32
        path.write_bytes(damaged)

    def is_mended() -> bool:
        assert stage.client.read("/flipped") == content  # whichever replica it begins with
        return list(replicas().values()) == [content] * DATANODES

    wait_until(
        is_mended,
        what="the damaged replicas to be found by the reader, and replaced",
        deadline_seconds=CALL_SECONDS,
        poll_seconds=0.5,
    )
    active = stage.cluster.wait_for_active()
    assert "datanodes.damaged_replica" in stage.cluster.logs()[active].read_text()


OWN_BYTES = 20_000_000
UNDER_WAY = 3_000_000


@dataclass(slots=True)
class Without:
    """Our own client and curl's way, side by side on one cluster; both begin before it is hurt."""

    stage: Stage
    content: bytes
    session: aiohttp.ClientSession
    under_way: asyncio.Barrier
    hurt: asyncio.Event

    def url(self, more: str) -> str:
        cluster = self.stage.cluster
        active = cluster.layout.namenodes[cluster.wait_for_active()]
        return f"http://127.0.0.1:{active.http}/webhdfs/v1/uploaded?{more}"

    async def ready(self) -> None:
        """Wait until all have begun and the cluster is hurt."""
        await self.under_way.wait()
        await self.hurt.wait()

    async def write(self, namenodes: Namenodes) -> None:
        created = await Writer.create(namenodes, "/ours", block_size=8 << 20)
        async with created as writer:
            await writer.write(self.content[:UNDER_WAY])
            await self.ready()
            await writer.write(self.content[UNDER_WAY:])

    async def upload(self, where: URL) -> None:
        async def body() -> AsyncIterator[bytes]:
            yield self.content[:UNDER_WAY]
            await self.ready()
            for at in range(UNDER_WAY, len(self.content), 500_000):
                yield self.content[at : at + 500_000]

        async with self.session.put(where, data=body()) as answer:
            assert answer.status == 201, await answer.text()

    async def read(self, namenodes: Namenodes) -> None:
        reader, got = await Reader.open(namenodes, "/ours"), bytearray()
        async with aclosing(reader.read()) as parts:
            got += await anext(parts)
            await self.ready()
            async for part in parts:
                got += part
        assert got == self.content

    async def download(self) -> None:
        async with self.session.get(self.url("op=OPEN&offset=5")) as answer:
            got = bytearray(await answer.content.readexactly(1000))
            await self.ready()
            got += await answer.content.read()
        assert got == self.content[5:]

    async def through(self, *work: Coroutine[Any, Any, None], hurt: Sequence[str]) -> None:
        """Have all begin, kill these processes, and have all end well."""
        async with asyncio.TaskGroup() as tasks:
            for one in work:
                tasks.create_task(one)
            await self.under_way.wait()
            for name in hurt:
                self.stage.cluster.kill(name)
            self.hurt.set()
        self.hurt.clear()


async def _without_a_jvm(stage: Stage, content: bytes) -> tuple[str, str]:
    """Write and read two files through deaths, and return the checksum of the second."""
    cluster, conf = stage.cluster, load_configuration(stage.cluster.conf_dir, environment={})
    async with (
        Namenodes.of(conf) as namenodes,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(CALL_SECONDS)) as session,
    ):
        both = Without(stage, content, session, asyncio.Barrier(3), asyncio.Event())
        place = both.url("op=CREATE&noredirect=true&blocksize=8388608")
        async with session.put(place) as sent_on:
            where = URL((await sent_on.json())["Location"], encoded=True)
        ports = cluster.layout.datanodes
        victim = next(name for name in ports if ports[name].http != where.port)
        hurt = [cluster.wait_for_active(), victim]
        await both.through(both.write(namenodes), both.upload(where), hurt=hurt)
        await asyncio.to_thread(cluster.heal)
        hurt = [cluster.wait_for_active()]
        await both.through(both.read(namenodes), both.download(), hurt=hurt)
        async with session.get(both.url("op=GETFILECHECKSUM")) as answer:
            told = (await answer.json())["FileChecksum"]
    return told["algorithm"], told["bytes"][24:]


def test_files_are_written_and_read_without_a_jvm_through_deaths(stage: Stage) -> None:
    content = random.Random(40).randbytes(OWN_BYTES)
    checksum = asyncio.run(_without_a_jvm(stage, content))
    client = stage.client
    assert client.read("/ours") == content
    assert client.read("/uploaded") == content
    javas: Any = client.on_files(lambda files: files.getFileChecksum(client.path("/uploaded")))
    assert str(javas.toString()) == ":".join(checksum)
