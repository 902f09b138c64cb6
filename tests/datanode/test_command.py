"""``nnha datanode`` as a process: what it refuses, how it ends, what a kill leaves behind."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from datanode.model import StorageId, WaitingForRecovery
from datanode.namenodes.report_rows import encode_rows
from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.processes import http_get
from tests import ROOT
from tests.datanode.block_client import Place, begin, hang_up, read
from tests.datanode.name_nodes import NameNode, name_node, seen
from tests.datanode.stores import block

DATA = bytes(range(251)) * 20
SECONDS = 60.0


def overrides(folder: Path, model: NameNode, **more: str) -> list[str]:
    conf = folder / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    for name in ("core-site.xml", "hdfs-site.xml"):
        (conf / name).write_text("<configuration/>")
    settings = {
        "dfs.nameservices": "ns1",
        "dfs.ha.namenodes.ns1": "nn1",
        "dfs.namenode.rpc-address.ns1.nn1": f"127.0.0.1:{model.port}",
        "dfs.datanode.data.dir": (folder / "data").as_uri(),
        "dfs.datanode.address": "127.0.0.1:0",
        "dfs.datanode.ipc.address": "127.0.0.1:0",
        "dfs.datanode.http.address": "127.0.0.1:0",
        "dfs.heartbeat.interval": "100ms",
        **more,
    }
    pairs = [part for key, value in settings.items() if value for part in ("-D", f"{key}={value}")]
    return ["--conf-dir", str(conf), *pairs]


@asynccontextmanager
async def process(arguments: list[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ha.cli.main", "datanode", *arguments,
        cwd=ROOT, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield started
    finally:
        hang_up()
        if started.returncode is None:
            started.kill()
        await started.communicate()


async def ended(arguments: list[str]) -> tuple[int | None, str]:
    """Return the exit code of a DataNode that ends by itself, and the last line that it printed."""
    async with process(arguments) as started:
        _, errors = await asyncio.wait_for(started.communicate(), SECONDS)
        return started.returncode, errors.decode().splitlines()[-1]


REFUSED = {
    "a storage type": ({"dfs.datanode.data.dir": "[TAPE]/data"}, 78, "expected a path"),
    "another file system": ({"dfs.datanode.data.dir": "s3://bucket/data"}, 78, "not a local"),
    "no directory": ({"dfs.datanode.data.dir": ","}, 78, "names no directory"),
    "encryption without keys": (
        {"dfs.encrypt.data.transfer": "true", "dfs.block.access.token.enable": "false"},
        78,
        "no keys to encrypt with while dfs.block.access.token.enable is false",
    ),
    "a NameNode elsewhere, and no address": (
        {
            "dfs.namenode.rpc-address.ns1.nn1": "198.51.100.1:8020",
            "dfs.datanode.address": "",
            "dfs.datanode.ipc.address": "",
        },
        78,
        "198.51.100.1:8020): it would send clients here that never get through",
    ),
    "a NameNode elsewhere, and blocks on loopback": (
        {
            "dfs.namenode.rpc-address.ns1.nn1": "198.51.100.1:8020",
            "dfs.datanode.ipc.address": "0.0.0.0:0",
            "nnha.security.mode": "insecure-i-know",
        },
        78,
        "only this machine reaches dfs.datanode.address=127.0.0.1:0 (",
    ),
    "a NameNode elsewhere, and its own RPC on loopback": (
        {
            "dfs.namenode.rpc-address.ns1.nn1": "198.51.100.1:8020",
            "dfs.datanode.address": "0.0.0.0:0",
            "nnha.security.mode": "insecure-i-know",
        },
        78,
        "only this machine reaches dfs.datanode.ipc.address=127.0.0.1:0 (",
    ),
    "a NameNode without an address, and blocks on loopback": (
        {"dfs.namenode.rpc-address.ns1.nn1": "no-such.invalid:8020"},
        78,
        "nn1 at no-such.invalid",
    ),
    "strangers": ({"dfs.datanode.address": "0.0.0.0:0"}, 78, "reachable from other machines"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_it_does_not_start_with(tmp_path: Path, case: str) -> None:
    more, code, why = REFUSED[case]
    found, message = await ended(overrides(tmp_path, NameNode(port=1), **more))
    assert found == code
    assert message.startswith("datanode: ")
    assert why in message
    assert not (tmp_path / "data").exists()


async def test_its_pages(tmp_path: Path) -> None:
    (port,) = free_ports(1)

    async def page(name: str) -> bytes:
        asked = partial(http_get, f"http://127.0.0.1:{port}/{name}", deadline_seconds=SECONDS)
        found = await asyncio.to_thread(asked)
        assert found is not None
        assert found[0] == 200
        return found[1]

    async with name_node() as model:
        arguments = overrides(tmp_path, model, **{"dfs.datanode.http.address": f"127.0.0.1:{port}"})
        async with process(arguments):
            await seen(lambda: len(model.heartbeats) > 0, seconds=SECONDS)
            assert json.loads(await page("health"))["healthy"] is True
            assert json.loads(await page("status"))["namenodes"] == {"nn1": "registered"}
            assert b"\nnnha_datanode_heartbeats_total{" in await page("metrics")


async def test_a_kill_in_mid_write_leaves_what_was_flushed(tmp_path: Path) -> None:
    async with name_node() as model:
        arguments = overrides(tmp_path, model)
        async with process(arguments) as started:
            async with asyncio.timeout(SECONDS):
                await seen(lambda: len(model.heartbeats) > 0, seconds=SECONDS)
            writing = await begin([registered(model)], block())
            await writing.write(DATA)
            start = len(DATA) // 512 * 512
            await writing.send((DATA * 2)[start : start + 512], at=start)
            started.kill()
            await started.wait()
        heard = len(model.heartbeats)
        async with process(arguments) as started:
            model.lease = 9
            await seen(lambda: len(model.heartbeats) > heard, seconds=SECONDS)
            await seen(lambda: len(model.reports) > 0, seconds=SECONDS)
            report = model.reports[-1].reports[0]
            assert report.numberOfBlocks == 1
            assert await read(registered(model), block(), 0, 5000) == DATA[:5000]
            storage = StorageId(report.storage.storageUuid)
            lengths = [len(DATA), len(DATA) // 512 * 512 + 512]
            expected = [encode_rows([WaitingForRecovery(block(), storage, n)]) for n in lengths]
            assert (1, list(report.blocksBuffers)) in expected
            started.send_signal(signal.SIGTERM)
            _, errors = await asyncio.wait_for(started.communicate(), SECONDS)
            assert started.returncode == 0
            assert json.loads(errors.decode().splitlines()[-1])["event"] == "daemon.stopped"


def registered(model: NameNode) -> Place:
    return Place(model.registrations[-1].datanodeID.xferPort)
