"""Another user of the machine attacks real daemons: each attack is refused, and written down."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import grpc
import pytest

from deploy.local.cluster.ports import HOST, free_ports
from ha.cluster.query import fetch
from ha.conf.topology import HostPort
from ha.rpc.java_names import CLIENT_PROTOCOL, HA_SERVICE_PROTOCOL
from ha.rpc.packets import PREAMBLE, encode_call, encode_context
from ha.rpc.proto import ha_service_pb2 as ha
from ha.service.client import ServiceClient
from ha.service.model import ServiceState
from hadoop.proto import client_namenode_pb2 as calls
from journal.lane import WELCOME, Hello, hello_bytes
from journal.node.faces.hadoop_codec import QJOURNAL_PROTOCOL
from journal.proto import hadoop_qjournal_pb2 as hp
from namenode_sim.namespace.namespace import Namespace
from tests.ha.rpc.blocking_client import BlockingClient
from tests.journal.node.process import NodeClient, Refused
from tests.needs import OTHER_USER, STRANGER
from tests.security.strangers import (
    KEY,
    SECONDS,
    Daemon,
    daemon,
    refusal_of,
    standby_request,
    stranger,
)
from tests.worlds.files import info
from tests.worlds.name_dirs import format_name_dirs

pytestmark = OTHER_USER.mark

NAME = str(STRANGER)
"""The machine has no name for that uid."""
OWNS = "On this machine root may do it"


@asynccontextmanager
async def namenode(folder: Path, **site: str) -> AsyncIterator[tuple[Daemon, int, int]]:
    rpc, http = free_ports(2)
    keys = {
        "dfs.namenode.name.dir": str(folder / "name"),
        "dfs.namenode.shared.edits.dir": "qjournal://127.0.0.1:1/ns1",
        "dfs.namenode.rpc-address.ns1.nn1": f"{HOST}:{rpc}",
        "dfs.namenode.http-address.ns1.nn1": f"{HOST}:{http}",
        **site,
    }
    format_name_dirs([folder / "name"], info(), Namespace.empty("hdfs"))
    async with daemon(folder, "namenode", "namenode.started", **keys) as process:
        yield process, rpc, http


async def test_who_says_that_it_is_root_is_told_who_it_is(tmp_path: Path) -> None:
    async with namenode(tmp_path) as (process, rpc, _):
        with stranger(rpc) as port:
            said = await refusal_of(
                port, HA_SERVICE_PROTOCOL, "root", "transitionToStandby", standby_request()
            )
        assert said.startswith("FATAL user root is uid 0; the caller is uid 1234. ")
        (line,) = await process.audited(1)
        assert line["allowed"] is False
        assert (line["uid"], line["method"], line["roles"]) == (STRANGER, "peer-uid", ["client"])
        assert (line["face"], line["action"]) == ("HAServiceProtocol", "connect")
        assert line["reason"].endswith("[it said that it is root]")


async def test_under_its_own_name_it_is_a_client_and_no_more(tmp_path: Path) -> None:
    async with namenode(tmp_path) as (process, rpc, _):
        with stranger(rpc) as port:
            request = calls.HAServiceStateRequestProto()
            assert not await refusal_of(port, CLIENT_PROTOCOL, NAME, "getHAServiceState", request)
            said = await refusal_of(
                port, HA_SERVICE_PROTOCOL, NAME, "transitionToStandby", standby_request()
            )
            evil = "why\n\x1b[2J\u202e"
            promote = ha.TransitionToActiveRequestProto(reqInfo=standby_request().reqInfo)
            assert await refusal_of(
                port, HA_SERVICE_PROTOCOL, NAME, "transitionToActive", promote, evil
            )
        assert said == (
            "transitionToStandby is for zkfc, admin; the caller is 1234 (uid 1234), whose role is "
            f"client. {OWNS}"
        )
        first, second = await process.audited(2)
        assert (first["user"], first["action"]) == (NAME, "transitionToStandby")
        assert second["context"] == "why\\n\\x1b[2J\\u202e"


async def test_a_client_connection_opens_no_other_protocol(tmp_path: Path) -> None:
    """Java checks the protocol that a connection was opened for; we look at each call."""
    async with namenode(tmp_path) as (_, rpc, _http):
        said = PREAMBLE + encode_context(bytes(16), CLIENT_PROTOCOL, NAME, None)
        call = encode_call(KEY, HA_SERVICE_PROTOCOL, "monitorHealth", b"")
        with stranger(rpc) as port, BlockingClient(port, said) as client:
            (answer,) = await asyncio.to_thread(client.ask, call)
        assert answer.message.startswith("monitorHealth is for namenode, zkfc, admin, ")


async def test_who_hangs_up_at_once_is_nobody_and_not_root(tmp_path: Path) -> None:
    """Check it since the kernel shows a socket that was closed with uid 0."""
    async with namenode(tmp_path) as (process, rpc, _):
        said = PREAMBLE + encode_context(bytes(16), HA_SERVICE_PROTOCOL, "root", None)
        with stranger(rpc) as port:
            for _ in range(20):
                with socket.create_connection((HOST, port)) as peer:
                    peer.sendall(said)
            # The last one has come once an honest one after it is refused.
            await refusal_of(
                port, HA_SERVICE_PROTOCOL, NAME, "transitionToStandby", standby_request()
            )
        lines = await process.audited(2)
        assert {line["allowed"] for line in lines} == {False}
        assert {line["uid"] for line in lines} <= {STRANGER, None}


async def test_pages_are_for_who_may_see_them(tmp_path: Path) -> None:
    expected = {
        "/livez": 200, "/metrics": 200, "/status": 403, "/jmx": 403, "/stacks": 403,
        "/imagetransfer?getimage=1&txid=0": 403, "/no-such-page": 404,
    }  # fmt: skip
    async with namenode(tmp_path) as (process, _, http):
        with stranger(http) as port:
            async with aiohttp.ClientSession() as session:
                for path, status in expected.items():
                    async with session.get(f"http://{HOST}:{port}{path}") as answer:
                        assert answer.status == status, path
                        text = await answer.text()
                    if status == 403:
                        page = path.partition("?")[0]
                        assert text.startswith(f"GET {page} is for ")
                        assert f"the caller is uid 1234, whose role is client. {OWNS}" in text
                url = f"http://{HOST}:{port}/imagetransfer?putimage=1"
                async with session.put(url, data=b"x", expect100=True) as answer:
                    assert answer.status == 403
                async with session.get(f"http://{HOST}:{port}/readyz") as answer:
                    assert answer.status == 503
                    assert await answer.text() == "", "why is not for everybody"
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{HOST}:{http}/readyz") as answer,
        ):
            assert (await answer.json())["reason"]
        lines = await process.audited(5)
        assert {line["proto"] for line in lines} == {"http"}


@asynccontextmanager
async def journalnode(folder: Path) -> AsyncIterator[tuple[Daemon, HostPort, HostPort, int, int]]:
    rpc, http, hadoop, lane = free_ports(4)
    keys = {
        "dfs.journalnode.edits.dir": str(folder / "journal"),
        "dfs.journalnode.rpc-address": f"{HOST}:{rpc}",
        "dfs.journalnode.http-address": f"{HOST}:{http}",
        "nnha.journalnode.hadoop-rpc-address": f"{HOST}:{hadoop}",
        "nnha.journalnode.write-lane-address": f"{HOST}:{lane}",
    }
    async with daemon(folder, "journalnode", "journalnode.started", **keys) as process:
        yield process, HostPort(HOST, rpc), HostPort(HOST, http), hadoop, lane


async def test_a_journal_is_formatted_by_no_stranger(tmp_path: Path) -> None:
    async with journalnode(tmp_path) as (process, rpc, _, _, _):
        with stranger(rpc.port) as port:
            client = NodeClient(port)
            for force in (False, True):
                with pytest.raises(Refused) as refused:
                    await client.format(force=force)
                assert refused.value.code is grpc.StatusCode.PERMISSION_DENIED
                assert "Format is for " in str(refused.value), "before it says that it forces"
                assert "the caller is uid 1234, whose role is client" in str(refused.value)
            with pytest.raises(Refused, match="NewEpoch is for namenode; the caller is uid 1234"):
                await client.new_epoch(1)
            await client.close()
        assert not (tmp_path / "journal/ns1").exists()
        lines = await process.audited(2)
        assert [line["action"] for line in lines] == ["Format", "NewEpoch"]
        ours = NodeClient(rpc.port)
        await ours.format()
        with pytest.raises(Refused):
            await ours.format(force=True)
        await ours.close()
        lines = (await process.audited(6))[2:]
        assert {(line["allowed"], line["uid"], line["proto"]) for line in lines} == {
            (True, 0, "grpc")
        }
        assert [(line["action"], line["outcome"]) for line in lines] == [
            ("Format", "granted"), ("Format", "done"),
            ("Format force", "granted"), ("Format force", "failed"),
        ]  # fmt: skip
        assert "seen" in lines[3]["reason"]


async def test_what_is_no_message_has_an_end_in_the_audit_log(tmp_path: Path) -> None:
    async with (
        journalnode(tmp_path) as (process, rpc, _, _, _),
        grpc.aio.insecure_channel(str(rpc)) as channel,
    ):
        for name in ("NewEpoch", "PurgeLogs", "Format"):
            call = channel.unary_unary(f"/nnha.journal.JournalNode/{name}")
            with pytest.raises(grpc.aio.AioRpcError, match="INVALID_ARGUMENT"):
                await call(b"\xff", timeout=SECONDS)
        lines = await process.audited(4)
        assert [(line["action"], line["outcome"], line["reason"]) for line in lines] == [
            ("NewEpoch", "granted", None),
            ("NewEpoch", "failed", "the request is no message of NewEpoch"),
            ("PurgeLogs", "granted", None),
            ("PurgeLogs", "failed", "the request is no message of PurgeLogs"),
        ], "and nobody knows which right a Format needed that cannot be read"


async def test_a_stolen_key_opens_no_lane(tmp_path: Path) -> None:
    async with journalnode(tmp_path) as (process, rpc, _, _, lane):
        ours = NodeClient(rpc.port)
        await ours.format()
        key = (await ours.new_epoch(1)).lane_key
        await ours.close()
        hello = hello_bytes(Hello(key, "ns1", None))
        with stranger(lane) as port:
            assert await said_back(port, hello) == b""
        assert await said_back(lane, hello) == WELCOME
        lines = await process.audited(5)
        assert (lines[-1]["proto"], lines[-1]["allowed"]) == ("lane", False)


async def said_back(port: int, hello: bytes) -> bytes:
    """Return the answer to a lane's first words; nothing where it is closed."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(hello)
    try:
        async with asyncio.timeout(SECONDS):
            return await reader.read(len(WELCOME))
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_segments_are_for_nodes(tmp_path: Path) -> None:
    async with journalnode(tmp_path) as (_, _, http, _, _):
        with stranger(http.port) as port:
            async with aiohttp.ClientSession() as session:
                url = f"http://{HOST}:{port}/getJournal?jid=ns1&segmentTxId=1"
                async with session.get(url) as answer:
                    assert answer.status == 403
                    assert (await answer.text()).startswith("GET /getJournal is for namenode, ")


async def test_a_users_name_with_control_characters_is_one_line(tmp_path: Path) -> None:
    evil = "root\n{}\x1b[2J\u202e"
    async with namenode(tmp_path, **{"nnha.audit.format": "both"}) as (process, rpc, _):
        with stranger(rpc) as port:
            said = await refusal_of(
                port, HA_SERVICE_PROTOCOL, evil, "transitionToStandby", standby_request()
            )
        assert said.startswith("FATAL user root")
        async with asyncio.timeout(SECONDS):
            while not process.audit.exists() or process.audit.read_text().count("\n") < 2:
                await asyncio.sleep(0.02)
        for path in (process.audit, process.log):
            text = path.read_text()
            assert all(line.isprintable() or "\t" in line for line in text.splitlines())
            assert "\x1b" not in text
            assert "\u202e" not in text
        assert len(process.audit.read_text().splitlines()) == 2


async def test_insecure_believes_as_before(tmp_path: Path) -> None:
    async with namenode(tmp_path, **{"nnha.security.mode": "insecure-i-know"}) as (_, rpc, _http):
        with stranger(rpc) as port:
            async with ServiceClient.connected(
                HostPort(HOST, port), deadline_seconds=SECONDS
            ) as client:
                status = await client.status(deadline_seconds=SECONDS)
            assert status.state is ServiceState.STANDBY


async def test_a_java_writers_port_takes_no_stranger(tmp_path: Path) -> None:
    async with journalnode(tmp_path) as (process, _, _, hadoop, _):
        space = hp.NamespaceInfoProto(
            buildVersion="", unused=0, blockPoolID="b", softwareVersion="",
            storageInfo=hp.StorageInfoProto(
                layoutVersion=(1 << 32) - 65, namespceID=1, clusterID="c", cTime=0
            ),
        )  # fmt: skip
        jid = hp.JournalIdProto(identifier="ns1")
        with stranger(hadoop) as port:
            for force, name in ((False, "format"), (True, "format force")):
                request = hp.FormatRequestProto(jid=jid, nsInfo=space, force=force)
                said = await refusal_of(port, QJOURNAL_PROTOCOL, NAME, "format", request)
                assert said.startswith(f"{name} is for ")
            state = hp.GetJournalStateRequestProto(jid=jid)
            said = await refusal_of(port, QJOURNAL_PROTOCOL, NAME, "getJournalState", state)
            assert said.startswith("getJournalState is for namenode, journalnode, ")
        assert not (tmp_path / "journal/ns1").exists()
        assert len(await process.audited(3)) == 3


OTHERS: dict[str, tuple[str, str, dict[str, str]]] = {
    "a DataNode's page": ("datanode", "security.mode", {"dfs.datanode.http.address": "{}"}),
    "the page of the cluster": ("web", "security.mode", {"nnha.web.http-address": "{}"}),
    "a checkpoint service's page": (
        "checkpoint run", "security.mode", {"nnha.checkpoint.http-address": "{}"},
    ),
    "a ZKFC's page": (
        "zkfc", "security.mode",
        {
            "nnha.zkfc.http-address.ns1.nn1": "{}",
            "dfs.ha.automatic-failover.enabled": "true",
            "ha.zookeeper.quorum": "127.0.0.1:1",
            "dfs.ha.fencing.methods": "shell(true)",
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("other", OTHERS)
async def test_no_other_daemon_shows_a_stranger_its_status(tmp_path: Path, other: str) -> None:
    command, event, keys = OTHERS[other]
    rpc, port_of_page, free, data = free_ports(4)
    site = {
        **{key: value.format(f"{HOST}:{port_of_page}") for key, value in keys.items()},
        "dfs.namenode.rpc-address.ns1.nn1": f"{HOST}:{rpc}",
        "dfs.namenode.shared.edits.dir": "qjournal://127.0.0.1:1/ns1",
        "dfs.namenode.name.dir": str(tmp_path / "name"),
        "nnha.checkpoint.work-dir": str(tmp_path / "work"),
        "dfs.datanode.data.dir": str(tmp_path / "data"),
        "dfs.datanode.address": f"{HOST}:{data}",
        "dfs.datanode.ipc.address": f"{HOST}:{free}",
        "dfs.ha.zkfc.port": str(free),
    }
    async with daemon(tmp_path, command, event, **site):
        await listens(port_of_page)
        with stranger(port_of_page) as port:
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://{HOST}:{port}/status") as answer:
                    assert answer.status == 403
                async with session.get(f"http://{HOST}:{port_of_page}/status") as answer:
                    assert answer.status == 200
            with pytest.raises(ValueError, match="HTTP 403: GET /status is for namenode, zkfc"):
                await fetch(HostPort(HOST, port))  # as ``nnha status`` asks


async def listens(port: int) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                _, writer = await asyncio.open_connection(HOST, port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return
