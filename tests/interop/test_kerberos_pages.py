"""Pages of a cluster of ours with Kerberos, asked by curl and by Hadoop's client for pages."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.java import class_path, find_java
from tests.ha.security.kdc import REALM, Kdc
from tests.interop.hadoop_jars import server_jar
from tests.interop.hadoop_server import JARS, SOURCES, compile_java
from tests.interop.mixed.secured import AS_ANOTHER
from tests.interop.test_kerberos import keys
from tests.needs import HADOOP_SERVER, JAVA_COMPILER, KDC, OTHER_USER

pytestmark = [
    pytest.mark.interop, pytest.mark.cluster,
    KDC.mark, HADOOP_SERVER.mark, JAVA_COMPILER.mark, OTHER_USER.mark,
]  # fmt: skip

# whose ticket, which page, and the status of the answer; 410 is Hadoop's for a bad request there
ASKED = (
    (None, "/status", 401),
    ("alice", "/status", 403),
    ("bob", "/status", 200),
    ("alice", "/fsck?path=/", 200),
    ("alice", "/webhdfs/v1/?op=LISTSTATUS", 200),
    ("alice", "/webhdfs/v1/?op=LISTSTATUS&user.name=bob", 403),
    ("alice", "/imagetransfer?x=1", 403),
    ("nn/localhost", "/imagetransfer?x=1", 410),
)


@pytest.fixture(scope="module")
def cluster(realm: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    web = {
        "dfs.web.authentication.kerberos.principal": f"HTTP/localhost@{REALM}",
        "dfs.web.authentication.kerberos.keytab": str(realm.keytab("HTTP/localhost")),
    }
    folder = tmp_path_factory.mktemp("pages")
    with open_cluster(folder, datanodes=0, more_keys=keys(realm) | web) as made:
        made.up()
        yield made


def test_tickets_open_what_their_principals_may(
    cluster: Cluster, realm: Kdc, tmp_path: Path
) -> None:
    """From processes of another user: the kernel's word would not let them in."""
    (active,) = cluster.active_namenodes()
    page = f"http://localhost:{cluster.layout.namenodes[active].http}"
    found = [(name, path, curled(realm, name, f"{page}{path}")) for name, path, _ in ASKED]
    assert found == list(ASKED)
    got, put = asked_by_java(realm, tmp_path, f"{page}/status", f"{page}/imagetransfer?x=1")
    assert got == "GET 200"
    assert re.match(r"PUT 4(?!0[13])", put), put


def curled(realm: Kdc, name: str | None, url: str) -> int:
    """Return the status of an answer to curl with a ticket; None: without one."""
    cache = realm.folder / "none" if name is None else realm.kinit(name)
    words = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--negotiate", "-u", ":", url]
    command, environment = [*AS_ANOTHER, *words], {**os.environ, "KRB5CCNAME": str(cache)}
    return int(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)


def asked_by_java(realm: Kdc, folder: Path, *urls: str) -> list[str]:
    """Return what PageClient says of its GET and of its PUT, whose body it can send only once."""
    jars = class_path(*JARS, first=server_jar())
    compile_java(SOURCES / "nnha/PageClient.java", jars, folder)
    command = [
        *AS_ANOTHER, str(find_java().executable), f"-Djava.security.krb5.conf={realm.krb5_conf}",
        "-cp", f"{folder}:{jars}", "nnha.PageClient",
        f"nn/localhost@{REALM}", str(realm.keytab("nn/localhost")), *urls,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()
