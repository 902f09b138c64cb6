"""What is wrong with the operator's own certificate or clock is said first, by every command."""

import asyncio
import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from ha.security.caller import Role
from ha.security.certificates import now
from ha.security.tls_files import TlsFiles
from tests.ha.cli.nnha_run import nnha
from tests.ha.security.authority import CHECK_SECONDS, Authority
from tests.ha.security.test_tls_files import greeting

SITE = """<configuration>
<property><name>fs.defaultFS</name><value>hdfs://ns1</value></property>
<property><name>dfs.nameservices</name><value>ns1</value></property>
<property><name>dfs.ha.namenodes.ns1</name><value>nn1,nn2</value></property>
<property><name>dfs.namenode.rpc-address.ns1.nn1</name><value>127.0.0.1:1</value></property>
<property><name>dfs.namenode.rpc-address.ns1.nn2</name><value>127.0.0.1:1</value></property>
<property><name>dfs.namenode.shared.edits.dir</name><value>qjournal://127.0.0.1:1/ns1</value></property>
<property><name>dfs.ha.automatic-failover.enabled</name><value>true</value></property>
<property><name>ha.zookeeper.quorum</name><value>127.0.0.1:1</value></property>
<property><name>dfs.ha.fencing.methods</name><value>shell(/bin/true)</value></property>
<property><name>nnha.security.tls.dir</name><value>{tls}</value></property>
</configuration>
"""
COMMANDS = {
    "status": 2,
    "status --check": 2,
    "explain": 2,
    "doctor": 2,
    "history": 2,
    "switchover --yes": 2,
    "failover nn1 --yes": 2,
    "pause --for 30m --reason x": 2,
    "resume": 2,
    "drain nn1 --for 30m --reason x": 2,
    "journal status": 2,
    "journal segments": 2,
    "journal verify": 2,
    "security show": 2,
    "haadmin -getAllServiceState": 255,
}
STATES = {
    "it has ended": (timedelta(days=-9), ("ended at", "nnha security rotate")),
    "this clock is an hour behind": (timedelta(hours=1, minutes=5), ("valid from", "set this")),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("command", COMMANDS)
async def test_every_command_names_the_own_certificate_first(
    tmp_path: Path, command: str, state: str
) -> None:
    signed, words = STATES[state]
    Authority(tmp_path).issue(Role.ADMIN, "ann", at=now() + signed, folder="tls/admin")
    (tmp_path / "hdfs-site.xml").write_text(SITE.format(tls=tmp_path / "tls"))
    name, *more = command.split()
    sub = [more.pop(0)] if name in ("journal", "security") else []
    done = await nnha(name, *sub, "--conf-dir", str(tmp_path), *more)
    first = "\n".join((done.err or done.out).splitlines()[:3])
    assert done.code == COMMANDS[command], first
    for word in ("nnha://c1/admin/ann", "this machine's clock says", *words):
        assert word in first
    assert "lost" not in done.out + done.err
    assert "pipe" not in done.out + done.err


async def test_a_key_that_this_user_may_not_read_is_named(tmp_path: Path) -> None:
    folder = Authority(tmp_path).issue(Role.ADMIN, "ann", folder="tls/admin")
    # Root reads every file, but no folder as one.
    (folder / "key.pem").unlink()
    (folder / "key.pem").mkdir()
    (tmp_path / "hdfs-site.xml").write_text(SITE.format(tls=tmp_path / "tls"))
    done = await nnha("journal", "status", "--conf-dir", str(tmp_path))
    assert f"warning: {folder / 'key.pem'}: Is a directory" in done.err.splitlines()[0]


async def test_where_nothing_could_be_asked_the_quorum_is_not_said_to_be_lost(
    tmp_path: Path,
) -> None:
    """Two nodes whose certificates do not count here, by a clock that is behind, and one down."""
    authority = Authority(tmp_path)
    authority.issue(Role.ADMIN, "ann", folder="tls/admin")
    later = now() + timedelta(hours=1)
    server = TlsFiles(authority.issue(Role.JOURNALNODE, "jn1", at=later), CHECK_SECONDS)
    listener = await asyncio.start_server(lambda _, __: None, "127.0.0.1", 0, ssl=server.server)
    port = listener.sockets[0].getsockname()[1]
    nodes = f"qjournal://127.0.0.1:{port};localhost:{port};127.0.0.1:1/ns1"
    site = SITE.format(tls=tmp_path / "tls").replace("qjournal://127.0.0.1:1/ns1", nodes)
    (tmp_path / "hdfs-site.xml").write_text(site)
    try:
        done = await nnha("journal", "status", "--conf-dir", str(tmp_path))
    finally:
        listener.close()
    assert done.code == 6
    assert "the quorum is not known" in done.out
    assert "its certificate is not valid yet by this machine's clock" in done.out
    assert "lost" not in done.out


@pytest.mark.parametrize(
    ("signed", "said"),
    [(timedelta(hours=1), "is not valid yet by"), (timedelta(days=-9), "has ended by")],
    ids=["to come", "ended"],
)
async def test_a_servers_certificate_is_compared_with_this_clock(
    tmp_path: Path, signed: timedelta, said: str
) -> None:
    authority = Authority(tmp_path)
    server = TlsFiles(authority.issue(Role.ZKFC, "nn1", at=now() + signed), CHECK_SECONDS)
    with pytest.raises(ssl.SSLCertVerificationError) as refused:
        await greeting(server, authority.holder(Role.ADMIN, "ann"))
    assert said in str(refused.value)
    assert "this machine's clock, 20" in str(refused.value)


async def test_a_folder_without_a_certificate_is_named(tmp_path: Path) -> None:
    one = Authority(tmp_path).issue(Role.ADMIN, "ann", folder="tls/admin")
    done = await nnha("security", "check", str(tmp_path / "tls"))
    assert (done.code, f"one of them: {one}" in done.out) == (8, True)
    assert (await nnha("security", "init", "--dir", str(tmp_path / "ca"))).code == 0
    words = ("--dir", str(tmp_path / "ca"), "--out", str(tmp_path / "nothere"))
    done = await nnha("security", "rotate", *words)
    assert done.code == 3
    assert f"there is no {tmp_path / 'nothere' / 'cert.pem'} → nnha security issue" in done.err
