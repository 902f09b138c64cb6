"""Delegation tokens of ours at Hadoop's NameNode, and Hadoop's client at ours with tokens only."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from deploy.local.cluster.cluster import open_cluster
from deploy.local.cluster.java import class_path, find_java
from journal.model import NamespaceInfo, TxId
from namenode_sim.edits import ops
from namenode_sim.edits.codec import NEWEST_LAYOUT
from namenode_sim.image.reader import load_image
from namenode_sim.namespace.namespace import Namespace
from tests.interop.hadoop_server import JARS, Hadoop
from tests.interop.name_dirs import images
from tests.interop.our_cluster import OurCluster, programs_on
from tests.interop.our_viewers import our_oev
from tests.namenode_sim.client_protocol.test_tokens import Scene
from tests.worlds.files import write_log
from tests.worlds.name_dirs import format_name_dirs

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

ALWAYS = {
    "dfs.namenode.delegation.token.always-use": "true",
    "dfs.namenode.safemode.extension": "0",
}
INFO = NamespaceInfo(NEWEST_LAYOUT, 4711, "CID-ours", 0, "BP-1-127.0.0.1-2")


@pytest.mark.long
async def test_hadoop_goes_on_with_the_tokens_of_our_edits(hadoop: Hadoop, tmp_path: Path) -> None:
    scene = Scene(now_ms=int(time.time() * 1000))
    scene.served.log_and_apply(ops.StartLogSegment())
    good, renewed, gone = await scene.get(), await scene.get(real_user="livy"), await scene.get()
    scene.now_ms += 1000
    expiry = await scene.renew(renewed)
    await scene.cancel(gone)
    scene.served.log_and_apply(ops.EndLogSegment())
    name_dir = tmp_path / "name"
    format_name_dirs([name_dir], INFO, Namespace.empty("hdfs"))
    log = [(TxId(number), op) for number, op in enumerate(scene.served.log.ops(), 1)]
    segment = write_log(name_dir / "current", log)

    ours, theirs = tmp_path / "ours.xml", tmp_path / "theirs.xml"
    our_oev(segment, ours, "xml")
    hadoop.print_edits(segment, theirs)
    assert ours.read_bytes() == theirs.read_bytes()
    with hadoop.name_node(name_dir) as node:
        manager = node.getNamesystem().getDelegationTokenSecretManager()

        def identifier(raw: bytes) -> object:
            stream = hadoop.gateway.jvm.java.io.ByteArrayInputStream(raw)
            found = manager.createIdentifier()
            found.readFields(hadoop.gateway.jvm.java.io.DataInputStream(stream))
            return found

        for token in (good, renewed):
            assert manager.retrievePassword(identifier(token.identifier)) == token.password
        assert manager.getTokenExpiryTime(identifier(renewed.identifier)) == expiry
        user = identifier(renewed.identifier).getUser()  # type: ignore[attr-defined]
        assert (user.getUserName(), user.getRealUser().getUserName()) == ("alice", "livy")
        with pytest.raises(Py4JJavaError, match="can't be found in cache"):
            manager.retrievePassword(identifier(gone.identifier))
    hadoop.save_again(name_dir)
    theirs_now = load_image(images(name_dir)[-1])
    assert theirs_now.secrets.tokens == scene.served.namespace.secrets.tokens
    back = Scene(now_ms=int(time.time() * 1000), namespace=theirs_now)
    for token in (good, await back.get()):  # the second under a key of Hadoop's
        back.log_in(token)


@pytest.fixture(scope="module")
def ours(hadoop: Hadoop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurCluster]:
    folder = tmp_path_factory.mktemp("tokens")
    with open_cluster(folder, datanodes=1, more_keys=ALWAYS) as cluster:
        cluster.up()
        with programs_on(cluster, hadoop) as made:
            yield made


def fs_shell(ours: OurCluster, token_file: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``hdfs dfs`` in a JVM of its own, which has nothing but a file of tokens."""
    return subprocess.run(
        [find_java().executable, "-cp", f"{ours.cluster.conf_dir}:{class_path(*JARS)}",
         "org.apache.hadoop.fs.FsShell", *words],
        env={"HADOOP_TOKEN_FILE_LOCATION": str(token_file), "PATH": os.environ["PATH"]},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def nnha_fs(ours: OurCluster, token_file: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run our own command with that file, too."""
    return subprocess.run(
        [sys.executable, "-m", "ha.cli.main", "fs", *words],
        env={**os.environ, "HADOOP_CONF_DIR": str(ours.cluster.conf_dir),
             "HADOOP_TOKEN_FILE_LOCATION": str(token_file)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_job_with_a_token_only_works_through_a_failover_until_it_is_cancelled(
    ours: OurCluster, tmp_path: Path
) -> None:
    ours.shell("-mkdir", "/jobs")
    ours.shell("-chmod", "777", "/jobs")
    client, conf = ours.hadoop.compiled("nnha.TokenClient"), ours.configuration()
    file = tmp_path / "token"
    with closing(client.open(conf, "alice", "")) as alice:
        token = alice.getDelegationToken("yarn")
    assert str(token.getKind().toString()) == "HDFS_DELEGATION_TOKEN"
    client.save(conf, token, str(file))

    shell = fs_shell(ours, file, "-touchz", "/jobs/by-shell")
    assert shell.returncode == 0, shell.stderr
    assert nnha_fs(ours, file, "mkdir", "/jobs/by-nnha").returncode == 0
    with closing(client.open(conf, "alice", str(file))) as job:
        made = job.getFileStatus(ours.hadoop.path("/jobs/by-nnha"))
        assert made.getOwner() == "alice"
        status = job.getFileStatus(ours.hadoop.path("/jobs/by-shell"))
        assert status.getOwner() == "alice"  # and not root, as the kernel says
        with pytest.raises(Py4JJavaError, match="only with kerberos or web authentication"):
            job.getDelegationToken("yarn")
        with pytest.raises(Py4JJavaError, match="non-matching renewer yarn"):
            client.renew(conf, "alice", token)
        ours.cluster.kill(ours.cluster.wait_for_active())
        written = job.create(ours.hadoop.path("/jobs/after"))
        written.write(b"through a failover")
        written.close()
    assert client.renew(conf, "yarn", token) > time.time() * 1000 + 23 * 3_600_000
    with closing(client.open(conf, "alice", str(file))) as again:
        assert again.getFileStatus(ours.hadoop.path("/jobs/after")).getLen() == 18
    client.cancel(conf, "alice", token)
    with closing(client.open(conf, "alice", str(file))) as late:
        with pytest.raises(Py4JJavaError, match="can't be found in cache") as refused:
            late.getFileStatus(ours.hadoop.path("/"))
        assert "SecretManager$InvalidToken" in str(refused.value.java_exception.toString())
    ours_too = nnha_fs(ours, file, "ls", "/")
    assert ours_too.returncode == 3, ours_too.stderr
    assert "can't be found in cache" in ours_too.stderr
    shell = fs_shell(ours, file, "-ls", "/")
    assert shell.returncode == 1
    assert "can't be found in cache" in shell.stderr
