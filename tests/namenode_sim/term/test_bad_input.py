"""What a NameNode process says when it cannot work: one message, what to do, and exit code 1."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.site import site_xml
from journal.model import JournalId, NamespaceInfo
from journal.writer.writer import QuorumWriter
from namenode_sim.namespace.namespace import Namespace
from tests.journal.writer.journal_cluster import Nodes
from tests.worlds.name_dirs import format_name_dirs

OURS = NamespaceInfo(-65, 12345, "CID-ours", 0, "BP-ours")
FOREIGN = NamespaceInfo(-65, 999, "CID-theirs", 0, "BP-theirs")


def free_port() -> int:
    return free_ports(1)[0]


def write_conf(folder: Path, journals: list[tuple[str, int]], **extra: str) -> Path:
    uri = ";".join(f"{host}:{port}" for host, port in journals)
    keys = {
        "dfs.nameservices": "ns1",
        "dfs.ha.namenodes.ns1": "nn1,nn2",
        "dfs.ha.namenode.id": "nn1",
        "dfs.namenode.rpc-address.ns1.nn1": f"127.0.0.1:{free_port()}",
        "dfs.namenode.rpc-address.ns1.nn2": f"127.0.0.1:{free_port()}",
        "dfs.namenode.http-address.ns1.nn1": f"127.0.0.1:{free_port()}",
        "dfs.namenode.name.dir": (folder / "name").as_uri(),
        "dfs.namenode.shared.edits.dir": f"qjournal://{uri}/ns1",
        **extra,
    }
    conf = folder / "conf"
    conf.mkdir()
    (conf / "core-site.xml").write_text(site_xml({}))
    (conf / "hdfs-site.xml").write_text(site_xml(keys))
    return conf


@asynccontextmanager
async def journal_of(folder: Path, info: NamespaceInfo) -> AsyncIterator[Nodes]:
    nodes = Nodes(folder / "journals")
    await nodes.start()
    try:
        writer = QuorumWriter(
            nodes.addresses, journal_id=JournalId("ns1"), nameservice_id="ns1", namespace=info
        )
        await writer.format()
        await writer.close()
        yield nodes
    finally:
        await nodes.stop()


async def run_namenode(conf: Path, *arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ha.cli.main", "namenode", "--conf-dir", str(conf), *arguments),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(30):
            _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, errors.decode().strip().splitlines()[-1]


def formatted(folder: Path) -> None:
    format_name_dirs([folder / "name"], OURS, Namespace.empty("root"))


async def test_an_unformatted_directory_is_told_with_the_command_to_run(tmp_path: Path) -> None:
    code, said = await run_namenode(write_conf(tmp_path, [("127.0.0.1", 1)]))
    assert code == 78
    assert "does not exist" in said
    assert "nnha namenode --format" in said


async def test_a_corrupt_image_is_told_with_both_digests_and_never_loaded(tmp_path: Path) -> None:
    formatted(tmp_path)
    image = tmp_path / "name" / "current" / "fsimage_0000000000000000000"
    damaged = bytearray(image.read_bytes())
    damaged[20] ^= 1
    image.write_bytes(damaged)
    code, said = await run_namenode(write_conf(tmp_path, [("127.0.0.1", 1)]))
    assert code == 78
    assert image.name in said
    assert "md5" in said.lower()


async def test_a_taken_port_is_told_with_the_address(tmp_path: Path) -> None:
    formatted(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        key = {"dfs.namenode.rpc-address.ns1.nn1": f"127.0.0.1:{port}"}
        code, said = await run_namenode(write_conf(tmp_path, [("127.0.0.1", 1)], **key))
    assert code == 1
    assert f"127.0.0.1:{port}" in said
    assert "Stop what listens there (ss -ltnp shows it)" in said


async def test_a_journal_of_another_cluster_is_told_and_not_followed(tmp_path: Path) -> None:
    formatted(tmp_path)
    async with journal_of(tmp_path, FOREIGN) as nodes:
        code, said = await run_namenode(write_conf(tmp_path, nodes.addresses))
    assert code == 78
    assert "CID-theirs" in said
    assert "CID-ours" in said
    assert "dfs.namenode.shared.edits.dir" in said


@pytest.mark.parametrize("key", ["nnha.standby.park-timout", "nnha.no.such.key"])
async def test_an_unknown_key_of_ours_is_an_error(tmp_path: Path, key: str) -> None:
    formatted(tmp_path)
    code, said = await run_namenode(write_conf(tmp_path, [("127.0.0.1", 1)], **{key: "1"}))
    assert code == 78
    assert key in said


async def test_format_refuses_a_directory_that_is_not_empty(tmp_path: Path) -> None:
    formatted(tmp_path)
    conf = write_conf(tmp_path, [("127.0.0.1", 1)])
    before = (tmp_path / "name" / "current" / "VERSION").read_bytes()
    code, said = await run_namenode(conf, "-format", "-nonInteractive")
    assert code == 1
    assert "--force" in said
    assert (tmp_path / "name" / "current" / "VERSION").read_bytes() == before


async def test_format_without_journalnodes_touches_no_name_directory(tmp_path: Path) -> None:
    code, said = await run_namenode(write_conf(tmp_path, [("127.0.0.1", 1)]), "--format")
    assert code == 1
    assert "127.0.0.1:1" in said
    assert not (tmp_path / "name").exists()
