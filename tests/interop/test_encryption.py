"""A cluster of ours that encrypts blocks on their way, without Kerberos, and Java's ends of it."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from deploy.local.cluster.cluster import open_cluster
from deploy.local.cluster.processes import wait_until
from deploy.local.workload.file_workload import FileWorkload
from deploy.local.workload.java_client import open_java_client, start_java_client
from files.namenodes import Namenodes
from files.write import Writer
from ha.conf.configuration import load_configuration
from tests.interop.block_ends import (
    AES,
    java_datanode,
    protected,
    replicas,
    wait_for_replicas,
)
from tests.interop.hadoop_server import JavaObject, running_hadoop
from tests.interop.mixed.cluster import mixed_cluster
from tests.interop.mixed.programs import Kind
from tests.interop.our_cluster import OurCluster, programs_on
from tests.local_services import wait_until_whole
from tests.log_lines import captured
from tests.needs import HADOOP_SERVER

pytestmark = [
    pytest.mark.interop, pytest.mark.cluster, pytest.mark.timeout(500), HADOOP_SERVER.mark
]  # fmt: skip

SECONDS = 90.0
DATA = bytes(range(251)) * 2000
ENCRYPTS = {
    "dfs.encrypt.data.transfer": "true",
    "dfs.encrypt.data.transfer.cipher.suites": AES,
    "dfs.block.access.token.enable": "true",
    # A key lasts ten seconds, and DataNodes forget its block key ten seconds later.
    "dfs.block.access.key.update.interval": "10s",
    "dfs.block.access.token.lifetime": "10s",
}
SUITES = ["", AES]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurCluster]:
    cluster = open_cluster(tmp_path_factory.mktemp("ours"), datanodes=2, more_keys=ENCRYPTS)
    with cluster, running_hadoop(tmp_path_factory.mktemp("hadoop")) as hadoop:
        cluster.up()
        with programs_on(cluster, hadoop) as made:
            yield made


def opened(ours: OurCluster, suite: str = AES) -> JavaObject:
    conf = ours.configuration({"dfs.encrypt.data.transfer.cipher.suites": suite})
    return ours.hadoop.hadoop.fs.FileSystem.newInstance(conf)


def write(ours: OurCluster, files: JavaObject, name: str) -> None:
    out = files.create(ours.hadoop.path(name))
    out.write(bytearray(DATA))
    out.close()


def read(ours: OurCluster, files: JavaObject, name: str) -> bytes:
    stream = files.open(ours.hadoop.path(name))
    return bytes(ours.hadoop.hadoop.io.IOUtils.readFullyToByteArray(stream))


@pytest.mark.parametrize("suite", SUITES)
def test_javas_client_and_ours_write_and_read(ours: OurCluster, tmp_path: Path, suite: str) -> None:
    name = f"/both-{suite[:3]}"
    with closing(opened(ours, suite)) as java:
        write(ours, java, name)
        assert read(ours, java, name) == DATA
        java.getFileChecksum(ours.hadoop.path(name))
        assert protected(ours, suite[:3].lower() or "privacy")
        copy = tmp_path / "copy"
        fs(ours.cluster.conf_dir, "get", name, str(copy))
        assert copy.read_bytes() == DATA
        fs(ours.cluster.conf_dir, "put", str(copy), f"{name}-ours")
        assert read(ours, java, f"{name}-ours") == DATA


def fs(conf_dir: Path, *words: str) -> None:
    command = [sys.executable, "-m", "ha.cli.main", "fs", *words]
    environment = {"HADOOP_CONF_DIR": str(conf_dir), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


async def test_blocks_go_through_pipelines_of_javas_datanode_and_ours(
    ours: OurCluster, tmp_path: Path
) -> None:
    conf = load_configuration(ours.cluster.conf_dir)
    with (
        java_datanode(ours, tmp_path),
        closing(opened(ours)) as java,
        captured("files.") as complaints,
    ):
        wait_until(
            lambda: len(java.getDataNodeStats()) == 3, what="Java's", deadline_seconds=SECONDS
        )
        async with Namenodes.of(conf) as namenodes:
            for number in range(4):
                by_us, by_java = f"/ours{number}", f"/java{number}"
                async with await Writer.create(namenodes, by_us, replication=3) as writer:
                    await writer.write(DATA)
                with closing(opened(ours, SUITES[number % 2])) as other:
                    write(ours, other, by_java)
                    assert read(ours, other, by_us) == DATA
                for name in (by_us, by_java):
                    wait_for_replicas(java, ours.hadoop.path(name), 3)
                    assert await replicas(namenodes, name) == [DATA] * 3
        assert complaints == []
        for log in ours.cluster.layout.directory.glob("logs/dn*.log"):
            assert "mirror_lost" not in log.read_text(), "a pipeline went on with less DataNodes"


def test_nothing_fails_while_keys_end_and_the_active_is_killed(ours: OurCluster) -> None:
    """Java's client keeps its key; DataNodes forget the block key of the killed one's, too."""
    with closing(opened(ours)) as java:
        began = time.monotonic()
        count, killed = 0, ""
        while time.monotonic() < began + 60 or not killed:
            write(ours, java, f"/load{count}")
            assert read(ours, java, f"/load{count // 2}") == DATA
            count += 1
            if not killed and time.monotonic() > began + 25:
                (killed,) = ours.cluster.active_namenodes()
                ours.cluster.kill(killed)
        assert ours.cluster.active_namenodes() != [killed]
        ours.cluster.start(killed)
        for number in range(count):
            assert read(ours, java, f"/load{number}") == DATA


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("namenodes", Kind)
def test_no_file_is_wrong_under_namenodes_and_datanodes_of_both_kinds(
    tmp_path: Path, namenodes: Kind, suite: str
) -> None:
    """While keys end and the active is killed; for Java's client and ours."""
    keys = {
        **ENCRYPTS,
        "dfs.encrypt.data.transfer.cipher.suites": suite,
        "dfs.block.access.key.update.interval": "1",  # Hadoop's reads whole minutes
        "dfs.block.access.token.lifetime": "1",
    }
    with mixed_cluster(tmp_path, more_keys=keys, datanodes=3) as cluster:
        first, second, _ = cluster.layout.datanodes
        others = {first: Kind.OURS, second: Kind.HADOOP}
        cluster.up(journalnodes=Kind.OURS, namenodes=namenodes, zkfcs=Kind.OURS, others=others)
        programs, copy, number = cluster.programs, tmp_path / "copy", 0
        process = start_java_client(
            cluster.supervisor, java=programs.java, conf_dir=programs.conf_dir
        )
        with open_java_client(process) as client:
            files = FileWorkload(client, "/files", pause_seconds=0.1)
            files.start()
            try:
                for kill in (False, True, False):
                    active, began = cluster.active(), time.monotonic()
                    if kill:
                        cluster.kill(active)
                    while time.monotonic() < began + 25:
                        copy.write_bytes(DATA)
                        fs(programs.our_conf_dir, "put", str(copy), f"/ours{number}")
                        copy.unlink()
                        fs(programs.our_conf_dir, "get", f"/ours{number // 2}", str(copy))
                        assert copy.read_bytes() == DATA
                        number += 1
                    files.wait_for_more(5, deadline_seconds=SECONDS)
                wait_until_whole(files)
                files.stop()
                assert files.check_all() > 0
                assert files.wrong == []
                assert files.errors() == ()
            finally:
                files.abandon()
