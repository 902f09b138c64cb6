"""Spark without any ticket: delegation tokens alone, on a cluster of ours with Kerberos."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local.cluster.cluster import open_cluster
from deploy.local.cluster.java import find_java
from tests.ha.security.kdc import Kdc
from tests.interop.hadoop_server import running_hadoop
from tests.interop.our_cluster import programs_on
from tests.interop.test_kerberos import keys, opened
from tests.needs import HADOOP_SERVER, KDC

pytestmark = [pytest.mark.interop, pytest.mark.cluster, KDC.mark, HADOOP_SERVER.mark]

ROWS = 100_000
JOB = """
import sys
from pyspark.sql import SparkSession

made = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
made.range(0, ROWS, 1, 8).write.parquet(sys.argv[1])
print("half", flush=True)
sys.stdin.readline()
made.range(ROWS, 2 * ROWS, 1, 8).write.mode("append").parquet(sys.argv[1])
print(made.read.parquet(sys.argv[1]).distinct().count(), flush=True)
"""


def of_clients(conf_dir: Path, made: Path) -> Path:
    """Make a folder as docs/kerberos.md has it: Spark finds no ``hadoop.`` key in hdfs-site.xml."""
    shutil.copytree(conf_dir, made)
    core = made / "core-site.xml"
    named = ("hadoop.security.authentication", "kerberos"), ("hadoop.rpc.protection", "privacy")
    more = "".join(f"<property><name>{n}</name><value>{v}</value></property>" for n, v in named)
    core.write_text(core.read_text().replace("</configuration>", f"{more}</configuration>"))
    return made


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_job_with_tokens_only_writes_and_reads_through_a_failover(
    realm: Kdc, tmp_path: Path
) -> None:
    folder, token_file = tmp_path / "hadoop", tmp_path / "token"
    folder.mkdir()
    cluster = open_cluster(tmp_path / "cluster", datanodes=2, more_keys=keys(realm))
    with cluster, running_hadoop(folder) as hadoop:
        krb5_conf = f"-Djava.security.krb5.conf={realm.krb5_conf}"
        system = hadoop.gateway.jvm.java.lang.System
        system.setProperty("java.security.krb5.conf", str(realm.krb5_conf))
        cluster.up()
        with programs_on(cluster, hadoop) as ours:
            admin = opened(ours, realm, "nn/localhost", protection="privacy")
            admin.mkdirs(hadoop.path("/jobs"))
            admin.setOwner(hadoop.path("/jobs"), "alice", "users")
            alice = opened(ours, realm, "alice", protection="privacy")
            token = alice.getDelegationToken("yarn")
            hadoop.compiled("nnha.TokenClient").save(ours.configuration(), token, str(token_file))
            job = subprocess.Popen(
                [sys.executable, "-c", f"ROWS = {ROWS}\n{JOB}", "/jobs/rows"],
                env={
                    **os.environ,
                    "HADOOP_CONF_DIR": str(of_clients(cluster.conf_dir, tmp_path / "conf")),
                    "HADOOP_TOKEN_FILE_LOCATION": str(token_file),
                    "JAVA_HOME": str(find_java().home),
                    "JDK_JAVA_OPTIONS": krb5_conf,
                    "KRB5CCNAME": str(tmp_path / "no-tickets"),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                },
                cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            with job:
                assert job.stdout is not None
                assert job.stdin is not None
                try:
                    assert job.stdout.readline() == "half\n"
                    cluster.kill(cluster.wait_for_active())
                    job.stdin.write("\n")
                    job.stdin.flush()
                    assert job.stdout.readline() == f"{2 * ROWS}\n"
                    job.stdin.close()
                    assert job.wait(60) == 0
                finally:
                    job.kill()
            made = alice.getFileStatus(hadoop.path("/jobs/rows/_SUCCESS"))
            assert made.getOwner() == "alice"
            for files in (alice, admin):
                files.close()
