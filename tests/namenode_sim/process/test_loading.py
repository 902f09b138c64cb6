"""A NameNode listens while it loads its image: it is seen to live, and cannot become active."""

import asyncio
import errno
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from google.protobuf.message import Message

from deploy.local.cluster.ports import HOST, free_ports
from ha.conf.configuration import Configuration
from ha.conf.topology import HostPort
from ha.health.core import Health, HealthSettings
from ha.health.monitor import HealthMonitor
from ha.rpc.client import RpcConnection
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import CLIENT_PROTOCOL, NAMENODE_PROTOCOL, RETRIABLE, STANDBY_EXCEPTION
from ha.service.client import ServiceClient
from ha.service.errors import HealthCheckFailed, ServiceFailed
from ha.service.model import RequestSource, ServiceState, ServiceStatus
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import namenode_protocol_pb2 as peers
from hadoop.proto.hdfs_types_pb2 import HAServiceStateProto
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import check_digest
from namenode_sim.image.load_progress import DIGEST_SHARE, LoadAbandoned, LoadProgress
from namenode_sim.image.reader import load_image
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.process.daemon import run_namenode
from tests.journal.node.process import until
from tests.namenode_sim.startup.startup_world import KEYS, World, world, write_site
from tests.worlds.files import info
from tests.worlds.name_dirs import format_name_dirs

SECONDS = 30.0
IMAGE = "fsimage_0000000000000000000"


@dataclass
class SlowImage:
    """An image whose bytes come when the test gives them: a FIFO in the image's place."""

    path: Path
    content: bytes = b""
    pipe: Path = field(init=False)

    def __post_init__(self) -> None:
        self.content = self.path.read_bytes()
        self.pipe = self.path.with_name("the-pipe")
        self.path.unlink()
        os.mkfifo(self.path)
        os.link(self.path, self.pipe)

    async def give(self, content: bytes) -> None:
        """Give this and its end to the FIFO's reader; a second opener of the image finds a file."""
        end = await self._open()
        whole = self.path.with_name("whole")
        whole.write_bytes(self.content)
        whole.replace(self.path)
        os.set_blocking(end, True)
        with os.fdopen(end, "wb", buffering=0) as pipe:
            await asyncio.to_thread(pipe.write, content)

    async def _open(self) -> int:
        """Open the FIFO to write, once it is read: the process that listens may open it later."""
        async with asyncio.timeout(SECONDS):
            while True:
                try:
                    return os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK)
                except OSError as nobody:
                    if nobody.errno != errno.ENXIO:
                        raise
                await asyncio.sleep(0.01)


@asynccontextmanager
async def slow_start(folder: Path) -> "AsyncIterator[tuple[World, Configuration, SlowImage]]":
    rpc, http = free_ports(2)
    keys = {
        "dfs.namenode.rpc-address.ns1.nn1": f"{HOST}:{rpc}",
        "dfs.namenode.http-address.ns1.nn1": f"{HOST}:{http}",
    }
    async with world(folder, **keys) as servers:
        format_name_dirs([servers.name_dir], info(), Namespace.empty("hdfs"))
        writer = servers.writer(info())
        await writer.format()
        await writer.close()
        yield servers, servers.conf(), SlowImage(servers.name_dir / "current" / IMAGE)


@asynccontextmanager
async def running(conf: Configuration) -> AsyncIterator[asyncio.Event]:
    stop = asyncio.Event()
    task = asyncio.create_task(run_namenode(conf, stop))
    try:
        yield stop
    finally:
        stop.set()
        await task


async def page(address: HostPort, path: str, method: str = "GET") -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, asyncio.timeout(SECONDS):
        while True:
            try:
                async with session.request(method, f"http://{address}{path}") as answer:
                    plain = answer.content_type != "application/json"
                    return answer.status, await (answer.read() if plain else answer.json())
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.01)


async def refusal(
    address: HostPort, protocol: str, method: str, request: Message, reply: type[Message]
) -> str:
    connection = await RpcConnection.open(
        address.host, address.port, protocol=protocol, deadline_seconds=SECONDS
    )
    try:
        await connection.call(method, request, reply, deadline_seconds=SECONDS)
    except RemoteFault as fault:
        return fault.java_class
    finally:
        await connection.close()
    return ""


class Controller:
    """What a ZKFC hears of its NameNode."""

    def __init__(self) -> None:
        self.judged: asyncio.Queue[tuple[Health, str]] = asyncio.Queue()
        self.reported: list[ServiceState] = []

    def status_reported(self, status: ServiceStatus) -> None:
        self.reported.append(status.state)

    def health_changed(self, health: Health, reason: str) -> None:
        self.judged.put_nowait((health, reason))


async def test_a_namenode_that_loads_is_alive_not_ready_and_never_active(tmp_path: Path) -> None:
    async with slow_start(tmp_path) as (servers, conf, image), running(conf):
        address = servers.place().address
        assert (await page(address.http, "/livez"))[0] == 200
        assert (await page(address.http, "/health"))[0] == 200
        status, told = await page(address.http, "/readyz")
        assert (status, told["ready"]) == (503, False)
        assert f"loading {IMAGE}: 0 %" in told["reason"]
        _, shown = await page(address.http, "/status")
        assert (shown["state"], shown["activity"]) == ("initializing", "loading")
        assert shown["progress"] == 0
        assert (await page(address.http, "/isActive"))[0] == 405
        assert (await page(address.http, "/jmx"))[0] == 200
        assert (await page(address.http, "/imagetransfer?getimage=1&txid=latest"))[0] == 503
        status, told = await page(address.http, "/webhdfs/v1/?op=LISTSTATUS")
        assert (status, told["RemoteException"]["exception"]) == (403, "StandbyException")

        service = await ServiceClient.open(address.service, deadline_seconds=SECONDS)
        said = await service.status(deadline_seconds=SECONDS)
        assert said.state is ServiceState.INITIALIZING
        assert not said.ready_to_become_active
        assert "loading" in said.not_ready_reason
        with pytest.raises(HealthCheckFailed, match="loading"):
            await service.monitor_health(deadline_seconds=SECONDS)
        with pytest.raises(ServiceFailed, match=r"did not become active: it is loading"):
            await service.transition_to_active(RequestSource.USER, deadline_seconds=SECONDS)
        await service.transition_to_standby(RequestSource.USER, deadline_seconds=SECONDS)

        look = calls.GetFileInfoRequestProto(src="/"), calls.GetFileInfoResponseProto
        assert (
            await refusal(address.rpc, CLIENT_PROTOCOL, "getFileInfo", *look) == STANDBY_EXCEPTION
        )
        ask = peers.VersionRequestProto(), peers.VersionResponseProto
        assert await refusal(address.rpc, NAMENODE_PROTOCOL, "versionRequest", *ask) == RETRIABLE
        client = await RpcConnection.open(
            address.rpc.host, address.rpc.port, protocol=CLIENT_PROTOCOL, deadline_seconds=SECONDS
        )
        state = await client.call(
            "getHAServiceState",
            calls.HAServiceStateRequestProto(),
            calls.HAServiceStateResponseProto,
            deadline_seconds=SECONDS,
        )
        assert state.state == HAServiceStateProto.INITIALIZING

        await image.give(image.content)
        async with asyncio.timeout(SECONDS):
            later_said = said
            while later_said.state is not ServiceState.STANDBY:  # on the connection of before
                later_said = await service.status(deadline_seconds=SECONDS)
        _, later = await page(address.http, "/status")
        assert (later["state"], later["progress"]) == ("standby", 1.0)
        assert later.keys() == shown.keys()
        assert (await page(address.http, "/imagetransfer?getimage=1&txid=latest"))[0] == 200
        await client.close()
        await service.close()


async def test_a_controller_sees_it_start_and_then_well(tmp_path: Path) -> None:
    async with slow_start(tmp_path) as (servers, conf, image), running(conf):
        address, controller = servers.place().address, Controller()
        await page(address.http, "/livez")
        settings = HealthSettings(check_interval_seconds=0.02, retry_interval_seconds=0.02)
        monitor = HealthMonitor(address.service, settings, controller)
        watch = asyncio.create_task(monitor.run())
        async with asyncio.timeout(SECONDS):
            while not controller.reported:
                await asyncio.sleep(0.01)
            assert monitor.state.health is Health.INITIALIZING
            await image.give(image.content)
            health, reason = await controller.judged.get()
        assert (health, reason) == (Health.HEALTHY, "")
        assert set(controller.reported) >= {ServiceState.INITIALIZING, ServiceState.STANDBY}
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)


async def test_it_stops_while_the_disk_hangs(tmp_path: Path) -> None:
    async with slow_start(tmp_path) as (servers, conf, image):
        async with running(conf):
            await page(servers.place().address.http, "/livez")
        await image.give(b"")  # the thread ends


async def test_a_damaged_image_ends_it_with_the_message_of_always(tmp_path: Path) -> None:
    async with slow_start(tmp_path) as (servers, conf, image):
        ended = asyncio.create_task(run_namenode(conf, asyncio.Event()))
        assert (await page(servers.place().address.http, "/readyz"))[0] == 503
        await image.give(image.content[:-1])
        with pytest.raises(ImageError, match="is corrupt: its MD5 digest is"):
            await ended


async def test_the_command_ends_with_78_where_the_image_is_damaged(tmp_path: Path) -> None:
    async with slow_start(tmp_path) as (servers, _, image):
        command = asyncio.create_task(servers.command())
        await page(servers.place().address.http, "/livez")
        await image.give(image.content[:-1])
        code, text = await command
        assert code == 78
        assert "is corrupt: its MD5 digest is" in text.splitlines()[-1]


def test_the_share_that_is_loaded_grows_to_1_and_an_abandoned_load_ends(tmp_path: Path) -> None:
    write_site(tmp_path / "conf", KEYS)
    name_dir = tmp_path / "name"
    format_name_dirs([name_dir], info(), Namespace.empty("hdfs"))
    path = name_dir / "current" / IMAGE
    progress = LoadProgress()
    assert progress.share == 0.0
    check_digest(path, progress.digesting)
    assert progress.share == DIGEST_SHARE
    assert load_image(path, progress).last_applied == 0
    assert (progress.image, progress.share) == (IMAGE, 1.0)
    abandoned = LoadProgress()
    abandoned.abandon()
    with pytest.raises(LoadAbandoned):
        load_image(path, abandoned)


async def test_http_is_loaded_after_the_start_and_before_somebody_needs_it(tmp_path: Path) -> None:
    """Load aiohttp, which takes 0.15 s, without a delay of the start or a takeover."""
    async with slow_start(tmp_path) as (servers, _, image):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "ha.cli.main", "namenode", "--conf-dir", str(servers.conf_dir),
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        mapped = Path(f"/proc/{process.pid}/maps").read_text
        try:
            assert (await page(servers.place().address.http, "/readyz"))[0] == 503
            assert "aiohttp" not in mapped()
            await image.give(image.content)
            await until(lambda: "aiohttp" in mapped(), "loaded")
        finally:
            process.terminate()
            await process.wait()
