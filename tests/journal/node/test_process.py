"""A journal node as a process: its start, its failures to start, and its death by SIGKILL."""

import asyncio
import errno
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from deploy.local.cluster.ports import free_ports
from ha.conf.configuration import load_configuration
from journal.core.requests import Format, Heartbeat
from journal.errors import StorageFailed
from journal.model import JournalId
from journal.node.owner.owner import JournalOwner
from journal.node.process.command import read_settings
from journal.node.process.daemon import JournalNodeDaemon, PortTaken
from journal.node.settings import NodeSettings
from journal.storage.disk import Disk
from tests import ROOT
from tests.journal.core.requests_of import LIFE, NAMESPACE, MemoryFiles, Writer, digest
from tests.journal.node.process import JID, NodeClient, node_and_client, running
from tests.log_lines import captured

START_SECONDS = 30.0
_SITE = "<configuration>{}</configuration>"
_PROPERTY = "<property><name>{}</name><value>{}</value></property>"


def free_port() -> int:
    """Outside the range of outgoing connections: no client can take it before the node does."""
    return free_ports(1)[0]


def configuration(folder: Path, **keys: object) -> Path:
    folder.mkdir(exist_ok=True)
    named = {f"dfs.journalnode.{key.replace('_', '-')}": value for key, value in keys.items()}
    named["dfs.journalnode.edits.dir"] = named.pop("dfs.journalnode.edits-dir")
    text = "".join(_PROPERTY.format(key, value) for key, value in named.items())
    (folder / "core-site.xml").write_text(_SITE.format(""))
    (folder / "hdfs-site.xml").write_text(_SITE.format(text))
    return folder


async def spawn(conf: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ha.cli.main",
        "journalnode",
        "--conf-dir",
        str(conf),
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )


@asynccontextmanager
async def process(conf: Path, port: int) -> AsyncIterator[tuple[int, NodeClient]]:
    started = await spawn(conf)
    client = NodeClient(port)
    try:
        assert started.stderr is not None
        async with asyncio.timeout(START_SECONDS):
            while b"journalnode.started" not in (line := await started.stderr.readline()):
                assert line, f"the node ended with {await started.wait()}"
        log = asyncio.create_task(started.stderr.read())  # a full pipe would stop the node
        yield started.pid, client
    finally:
        await client.close()
        if started.returncode is None:
            started.kill()
        await started.wait()
    await log


async def test_what_was_answered_outlives_a_kill(tmp_path: Path) -> None:
    port = free_port()
    conf = configuration(
        tmp_path / "conf",
        edits_dir=tmp_path / "jn",
        rpc_address=f"127.0.0.1:{port}",
        http_address="127.0.0.1:0",
    )
    async with process(conf, port) as (pid, client):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)
        await client.written(writer, 1, 3)
        await client.finalize(writer, 1, 3)
        await client.start(writer, 4)
        stream = client.stub.Write()
        answered = 3
        for txid in range(4, 400):
            await stream.write(client.batch(writer, 4, txid, txid))
            if txid % 10 == 0:
                reply = await stream.read()
                assert not reply.HasField("refusal")
                answered += 1
        os.kill(pid, signal.SIGKILL)
    async with process(conf, port) as (_, client):
        assert (await client.new_epoch(2)).last_segment_txid == 4
        prepared = await client.prepare(Writer(2), 4)
        last = prepared.segment.last_txid
        assert last >= answered
        assert prepared.segment.digest == digest(4, last)
        assert prepared.last_writer_epoch == 1


async def test_sigterm_ends_it_well(tmp_path: Path) -> None:
    port = free_port()
    conf = configuration(
        tmp_path / "conf",
        edits_dir=tmp_path / "jn",
        rpc_address=f"127.0.0.1:{port}",
        http_address="127.0.0.1:0",
    )
    started = await spawn(conf)
    assert started.stderr is not None
    async with asyncio.timeout(START_SECONDS):
        while b"journalnode.started" not in await started.stderr.readline():
            pass
        started.terminate()
        await started.communicate()
    assert started.returncode == 0


_TELLING = """
import atexit, sys
from ha.cli.main import main
atexit.register(lambda: print("every", sys.getswitchinterval()))
main(prog_name="nnha")
"""


@pytest.mark.parametrize(
    ("lanes", "hadoop", "seconds"),
    [("127.0.0.1:0", "", 0.0005), ("off", "127.0.0.1:0", 0.0005), ("off", "", 0.005)],
)
async def test_only_where_writers_have_threads_do_these_change_places_sooner(
    tmp_path: Path, lanes: str, hadoop: str, seconds: float
) -> None:
    conf = configuration(
        tmp_path / "conf",
        edits_dir=tmp_path / "jn",
        rpc_address=f"127.0.0.1:{free_port()}",
        http_address="127.0.0.1:0",
    )
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _TELLING, "journalnode", "--conf-dir", str(conf)),
        *("-D", f"nnha.journalnode.write-lane-address={lanes}"),
        *("-D", f"nnha.journalnode.hadoop-rpc-address={hadoop}"),
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert started.stderr is not None
    async with asyncio.timeout(START_SECONDS):
        while b"journalnode.started" not in (line := await started.stderr.readline()):
            assert line, f"the node ended with {await started.wait()}"
        started.terminate()
        said, _ = await started.communicate()
    assert said.decode().split() == ["every", str(seconds)]


async def test_a_folder_that_cannot_be_used_is_one_clear_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    conf = configuration(
        tmp_path / "conf",
        edits_dir=tmp_path / "file",
        rpc_address="127.0.0.1:0",
        http_address="127.0.0.1:0",
    )
    started = await spawn(conf)
    async with asyncio.timeout(START_SECONDS):
        _, errors = await started.communicate()
    assert started.returncode == 78
    assert b"Not a directory" in errors
    assert b"Traceback" not in errors


async def test_bad_folders_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder, what in {
        Path("relative"): "should be an absolute path",
        tmp_path / "file": "Not a directory",
        tmp_path / "file" / "below": "Cannot create directory",
    }.items():
        with pytest.raises(StorageFailed, match=what):
            await JournalNodeDaemon(NodeSettings(folder=folder)).start()


async def test_taken_ports_are_named_and_nothing_is_left_behind(tmp_path: Path) -> None:
    async with running(tmp_path / "a") as first:
        for rpc, http in ((first.rpc_port, 0), (0, first.http_port)):
            settings = NodeSettings(folder=tmp_path / "b", rpc_port=rpc, http_port=http)
            with pytest.raises(PortTaken, match=str(rpc or http)):
                await JournalNodeDaemon(settings).start()
        async with running(tmp_path / "b"):
            pass


async def test_corrupt_files_and_a_second_node_stop_the_start(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (_, client):
        await client.format()
        await client.new_epoch(3)
        with pytest.raises(StorageFailed, match="Cannot lock storage"):
            await JournalNodeDaemon(NodeSettings(folder=tmp_path)).start()
        assert (await client.status()).last_promised_epoch == 3
    promise = tmp_path / JID / "current" / "last-promised-epoch"
    promise.write_text("three\n")
    with pytest.raises(StorageFailed, match="last-promised-epoch is corrupt"):
        await JournalNodeDaemon(NodeSettings(folder=tmp_path)).start()
    promise.write_text("3\n")
    async with node_and_client(tmp_path) as (_, client):
        assert (await client.status()).last_promised_epoch == 3


async def test_a_failed_disk_stops_its_journal_and_no_other(tmp_path: Path) -> None:
    files = MemoryFiles()
    files.failure = OSError(errno.ENOSPC, "No space left on device")
    disk = Disk(Path("/sick"), files)
    sick = JournalOwner(JournalId("sick"), disk, disk.load())
    other = Disk(tmp_path)
    well = JournalOwner(JournalId("well"), other, other.load())
    for owner in (sick, well):
        await owner.ask(Format(NAMESPACE, incarnation=LIFE))
        await owner.ask(Writer(1).new_epoch())
    writers = Writer(1), Writer(1)
    for owner, writer in zip((sick, well), writers, strict=True):
        await owner.ask(writer.start(1))
        await owner.ask(writer.batch(1, 1, 3))
    files.operations, files.fail_at = 0, 1
    before = sick.state
    with pytest.raises(StorageFailed, match="No space left"):
        await sick.ask(writers[0].batch(1, 4, 6))
    files.fail_at = None
    for request in (writers[0].batch(1, 4, 6), Heartbeat(writers[0].stamp())):
        with pytest.raises(StorageFailed, match=r"has stopped: .*No space left"):
            await sick.ask(request)
    assert sick.failed_because is not None
    assert sick.state == before
    await well.ask(writers[1].batch(1, 4, 6))
    assert well.failed_because is None
    for owner in (sick, well):
        await owner.stop()


def test_settings_listen_on_the_loopback_unless_told_otherwise(tmp_path: Path) -> None:
    bare = configuration(tmp_path / "bare", edits_dir=tmp_path / "jn")
    settings = read_settings(load_configuration(bare))
    assert (settings.rpc_host, settings.rpc_port) == ("127.0.0.1", 8485)
    assert (settings.http_host, settings.http_port) == ("127.0.0.1", 8480)
    assert settings.folder_of("any") == tmp_path / "jn"
    told = load_configuration(
        bare,
        [
            "dfs.journalnode.rpc-address=jn1:9000",
            "dfs.journalnode.rpc-bind-host=0.0.0.0",
            "dfs.journalnode.http-address=jn1:9001",
            "dfs.nameservices=a,b",
            f"dfs.journalnode.edits.dir.b={tmp_path}/b",
        ],
    )
    settings = read_settings(told)
    assert (settings.rpc_host, settings.rpc_port) == ("0.0.0.0", 9000)
    assert (settings.http_host, settings.http_port) == ("jn1", 9001)
    assert settings.folder_of("a") == tmp_path / "jn"
    assert settings.folder_of("b") == tmp_path / "b"
    assert settings.all_folders() == (tmp_path / "jn", tmp_path / "b")


async def test_a_journal_whose_name_is_not_allowed_is_left_alone_and_named(tmp_path: Path) -> None:
    """Warn users of Hadoop, which allowed more names, where their journal is."""
    (tmp_path / "my journal" / "current").mkdir(parents=True)
    (tmp_path / "just a folder").mkdir()
    with captured("journal.folder_skipped") as logs:
        async with node_and_client(tmp_path) as (daemon, _):
            assert list(daemon.node.owners()) == []
    (told,) = logs
    assert (told["log_level"], told["folder"]) == ("warning", str(tmp_path / "my journal"))
    assert "my journal" in told["because"]
