"""Attacks on real daemons that no other file has, each with the words in which it is refused."""

import asyncio
import json
import socket
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from deploy.local.cluster.ports import HOST, free_ports
from ha.conf.topology import HostPort
from ha.rpc.java_names import HA_SERVICE_PROTOCOL, NAMENODE_PROTOCOL
from ha.rpc.proto import ha_service_pb2 as ha
from ha.security.caller import Role
from ha.security.certificates import now
from ha.security.tls_files import TlsFiles
from ha.service.zkfc_client import ZkfcClient
from hadoop.proto import namenode_protocol_pb2 as peers
from journal.errors import BadRequest
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.model import Epoch, Segment, TxId
from namenode_sim.checkpoint.image_upload import UploadFailed, upload_image
from namenode_sim.image.files import image_name
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import Authority
from tests.journal.writer.journal_cluster import JOURNAL, NAMESPACE
from tests.needs import OTHER_USER
from tests.security.strangers import SECONDS, daemon, refusal_of, stranger
from tests.security.test_certificates import node, said, unchecked
from tests.security.test_strangers import NAME, OWNS, listens, namenode
from tests.worlds.files import info

FAR_AWAY = "127.0.0.9"
"""Where no JournalNode of the configuration is."""
DAYS_24 = 2**31 - 1
"""In milliseconds: the longest pause that can be asked for."""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


@OTHER_USER.mark
async def test_a_local_user_does_not_learn_the_status(tmp_path: Path) -> None:
    asked = ha.GetServiceStatusRequestProto()
    async with namenode(tmp_path) as (_, rpc, _h):
        with stranger(rpc) as port:
            answer = await refusal_of(port, HA_SERVICE_PROTOCOL, NAME, "getServiceStatus", asked)
    assert answer == (
        "getServiceStatus is for namenode, zkfc, admin, operator, checkpointer; the caller is 1234 "
        f"(uid 1234), whose role is client. {OWNS}"
    )


async def test_a_bare_namenode_is_refused_after_strict(
    authority: Authority, tmp_path: Path
) -> None:
    asked = peers.GetTransactionIdRequestProto()
    tls = {"nnha.security.tls.dir": str(authority.issue(Role.NAMENODE, "nn1"))}
    for mode, refused in (("permissive", False), ("strict", True)):
        folder = tmp_path / mode
        folder.mkdir()
        async with namenode(folder, **tls, **{"nnha.security.mode": mode}) as (process, rpc, _):
            answer = await refusal_of(rpc, NAMENODE_PROTOCOL, "root", "getTransactionId", asked)
            assert bool(answer) is refused
            if refused:
                assert answer == (
                    "getTransactionId is for namenode, admin, checkpointer; the caller is root "
                    "(uid 0), whose role is client. In strict mode it needs a certificate "
                    "(nnha.security.tls.dir)"
                )
                (line,) = await process.audited(1)
                assert line["allowed"] is False
                assert "certificate" not in line


async def test_an_image_is_put_by_no_operator(authority: Authority, tmp_path: Path) -> None:
    namespace = Namespace.empty("hdfs")
    namespace.last_applied = TxId(9)
    image = tmp_path / image_name(TxId(9))
    save_image(namespace, image, info())
    site = {
        "nnha.security.tls.dir": str(authority.issue(Role.NAMENODE, "nn1")),
        "nnha.security.mode": "strict",
    }
    operator = TlsFiles(authority.issue(Role.OPERATOR, "grafana"), 1)
    folder = tmp_path / "nn1"
    folder.mkdir()
    async with namenode(folder, **site) as (process, _, http):
        before = sorted((folder / "name").rglob("fsimage*"))
        at = HostPort(HOST, http)
        with acting_as(operator), pytest.raises(UploadFailed) as refused:
            await upload_image(at, image, TxId(9), info(), stall_seconds=SECONDS)
        assert "403" in str(refused.value)
        assert "is for namenode, checkpointer; the caller is operator grafana" in str(refused.value)
        assert sorted((folder / "name").rglob("fsimage*")) == before
        (line,) = await process.audited(1)
        assert (line["allowed"], line["face"]) == (False, "HTTP")


async def test_edits_are_fetched_from_no_other_host(authority: Authority, tmp_path: Path) -> None:
    """Check it with the right writer's certificate, too: a recovery names a segment's place."""
    files = TlsFiles(authority.issue(Role.NAMENODE, "nn1"), 1)
    site = {"dfs.namenode.shared.edits.dir": f"qjournal://{HOST}:1;{HOST}:2;{HOST}:3/{JOURNAL}"}
    with socket.create_server((FAR_AWAY, 0)) as listener:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        async with node(authority, tmp_path / "jn", **site) as (_, rpc, _h):
            with acting_as(files):
                remote = RemoteNode(HOST, rpc, JournalAddress(JOURNAL, ""))
                await remote.format(NAMESPACE, force=False, founding=True, timeout_seconds=SECONDS)
                await remote.new_epoch(NAMESPACE, Epoch(1), SECONDS)
                wanted = Segment(TxId(1), TxId(3), finalized=False, digest=bytes(32))
                for serial, host in enumerate((FAR_AWAY, HOST), 1):
                    url = f"http://{host}:{port}/getJournal?jid={JOURNAL}"
                    info_of = remote.request_info(Epoch(1), serial, None)
                    with pytest.raises(BadRequest, match="is no address of a JournalNode of"):
                        await remote.accept_recovery(info_of, wanted, [url], SECONDS)
                await remote.close()
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_nobody_has_a_controller_stand_back_for_24_days(tmp_path: Path) -> None:
    zkfc, page = free_ports(2)
    site = {
        "dfs.ha.zkfc.port": str(zkfc),
        "nnha.zkfc.http-address.ns1.nn1": f"{HOST}:{page}",
        "dfs.ha.automatic-failover.enabled": "true",
        "ha.zookeeper.quorum": f"{HOST}:1",
        "dfs.ha.fencing.methods": "shell(true)",
        "dfs.namenode.rpc-address.ns1.nn1": f"{HOST}:1",
        "dfs.namenode.shared.edits.dir": f"qjournal://{HOST}:1/ns1",
    }
    async with daemon(tmp_path, "zkfc", "security.mode", **site) as process:
        await listens(zkfc)
        client = await ZkfcClient.open(HostPort(HOST, zkfc), deadline_seconds=SECONDS)
        await client.cede_active(DAYS_24, deadline_seconds=SECONDS)
        await client.close()
        (capped,) = [
            line
            for line in map(json.loads, process.log.read_text().splitlines())
            if line["event"] == "zkfc.cede.capped"
        ]
        assert (capped["granted_seconds"], capped["key"]) == (600.0, "nnha.zkfc.max-cede")


async def test_a_certificate_of_tomorrow_opens_nothing(
    authority: Authority, tmp_path: Path
) -> None:
    early = authority.issue(Role.NAMENODE, "nn1", at=now() + timedelta(hours=1), folder="early")
    async with node(authority, tmp_path / "jn") as (process, rpc, _):
        assert "[UNAVAILABLE]" in await said(rpc, unchecked(early))
        assert not process.audit.exists()
    checked = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ha.cli.main", "security", "check", str(early),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    told, _ = await checked.communicate()
    assert checked.returncode == 8
    assert b"not yet valid: it begins at " in told
    assert b"and this machine's clock says " in told
