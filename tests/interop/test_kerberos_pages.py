"""Pages of a cluster of ours with Kerberos, asked by curl and by Hadoop's client for pages."""

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.java import class_path, find_java
from deploy.local.cluster.ports import free_ports
from hadoop.webhdfs import token_text
from tests.ha.security.java_store import PASSWORD, site
from tests.ha.security.kdc import REALM, Kdc
from tests.interop.hadoop_jars import server_jar
from tests.interop.hadoop_server import JARS, SOURCES, compile_java
from tests.interop.mixed.secured import AS_ANOTHER
from tests.interop.test_kerberos import keys
from tests.journal.node.test_https import secure
from tests.journal.node.test_process import process
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
    with open_cluster(folder, datanodes=1, more_keys=keys(realm) | web) as made:
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


def test_bytes_go_by_tickets_by_tokens_and_for_another(
    cluster: Cluster, realm: Kdc, tmp_path: Path
) -> None:
    """A ticket fetches a token at the NameNode; it opens the DataNode, and the NameNode to it."""
    (active,) = cluster.active_namenodes()
    page = f"http://localhost:{cluster.layout.namenodes[active].http}/webhdfs/v1"
    home, loud = f"{page}/home", "user.name=alice&"
    for call in (f"{home}?op=MKDIRS", f"{home}?op=SETOWNER&owner=alice"):
        assert asked(realm, "nn/localhost", f"{call}&permission=755", "-XPUT")[0] == 200
    content = os.urandom(300_000)
    sent = tmp_path / "sent"
    sent.write_bytes(content)
    put = ("-T", str(sent))  # curl sends it anew where it is sent on to
    assert asked(realm, "alice", f"{home}/a?op=CREATE", *put)[0] == 201
    assert asked(realm, "alice", f"{home}/a?op=OPEN") == (200, content)
    assert asked(realm, "alice", f"{home}/b?op=CREATE&doas=bob", *put)[0] == 403
    assert asked(realm, "bob", f"{home}/b?op=CREATE", *put)[0] == 403
    assert asked(realm, "bob", f"{home}/b?op=CREATE&doas=alice", *put)[0] == 201
    assert b'"owner": "alice"' in asked(realm, "alice", f"{home}/b?op=GETFILESTATUS")[1]
    told = asked(realm, "alice", f"{home}?op=GETDELEGATIONTOKEN&renewer=alice")[1]
    token = json.loads(told)["Token"]["urlString"]
    assert asked(realm, None, f"{home}/a?op=OPEN&{loud}delegation={token}") == (200, content)
    assert asked(realm, None, f"{home}/c?op=CREATE&delegation={token}", *put)[0] == 201
    node = f"{cluster.layout.url(next(iter(cluster.layout.datanodes)))}/webhdfs/v1/home/a?op=OPEN"
    node += "&namenoderpcaddress=ns1&offset=0"
    for where in (f"{home}/a?op=OPEN", node):
        assert asked(realm, None, f"{where}&delegation={token}") == (200, content)
        assert asked(realm, None, f"{where}&delegation={forged(token)}")[0] == 403
        assert asked(realm, None, f"{where}&{loud}")[0] in (401, 403), "a name is no proof"
    assert (
        asked(realm, "alice", f"{home}?op=CANCELDELEGATIONTOKEN&token={token}", "-XPUT")[0] == 200
    )
    for where in (f"{home}/a?op=OPEN", node):
        assert asked(realm, None, f"{where}&delegation={token}")[0] == 403


async def test_java_shows_its_ticket_to_a_journalnode_over_https(
    realm: Kdc, tmp_path: Path
) -> None:
    place = tmp_path / "conf"
    port, page = free_ports(2)
    ports = {
        "dfs.journalnode.rpc-address": f"localhost:{port}",
        "dfs.journalnode.https-address": f"localhost:{page}",
        "dfs.journalnode.edits.dir": str(tmp_path / "jn"),
    }
    told = {name: one.value for name, one in secure(realm, place).settings.items()}
    site(place / "hdfs-site.xml", told | ports)
    url = f"https://localhost:{page}/getJournal?jid=none&segmentTxId=1"
    trust = (f"-Djavax.net.ssl.trustStore={place / 'truststore.p12'}",
             f"-Djavax.net.ssl.trustStorePassword={PASSWORD}")  # fmt: skip
    async with process(place, port):
        assert (await asyncio.to_thread(asked, realm, None, url, "-k"))[0] == 401
        got, _ = await asyncio.to_thread(asked_by_java, realm, tmp_path, url, url, options=trust)
        assert got == "GET 404", "it has no such journal, and says so to a NameNode alone"


def forged(token: str) -> str:
    """Return the token with another password."""
    found = token_text.decoded(token)
    found.password = bytes(len(found.password))
    return token_text.encoded(found)


def curled(realm: Kdc, name: str | None, url: str) -> int:
    """Return the status of an answer to curl with a ticket; None: without one."""
    return asked(realm, name, url)[0]


def asked(realm: Kdc, name: str | None, url: str, *more: str) -> tuple[int, bytes]:
    """Return the status of an answer to curl, and its body; it goes where it is sent on to."""
    cache = realm.folder / "none" if name is None else realm.kinit(name)
    words = ["curl", "-s", "-L", "-w", "\n%{http_code}", "--negotiate", "-u", ":", *more, url]
    command, environment = [*AS_ANOTHER, *words], {**os.environ, "KRB5CCNAME": str(cache)}
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    content, _, status = done.stdout.rpartition(b"\n")
    return int(status), content


def asked_by_java(realm: Kdc, folder: Path, *urls: str, options: Sequence[str] = ()) -> list[str]:
    """Return what PageClient says of its GET and of its PUT, whose body it can send only once."""
    jars = class_path(*JARS, first=server_jar())
    compile_java(SOURCES / "nnha/PageClient.java", jars, folder)
    command = [
        *AS_ANOTHER, str(find_java().executable), f"-Djava.security.krb5.conf={realm.krb5_conf}",
        *options, "-cp", f"{folder}:{jars}", "nnha.PageClient",
        f"nn/localhost@{REALM}", str(realm.keytab("nn/localhost")), *urls,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()
