"""A cluster of ours with Kerberos, and Hadoop's own client with tickets of a real KDC."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.processes import wait_until
from files.namenodes import Namenodes
from files.write import Writer
from ha.conf.configuration import load_configuration
from ha.conf.topology import HostPort
from ha.rpc.client import call_once
from ha.rpc.errors import ConnectFailed
from ha.rpc.java_names import HA_SERVICE_PROTOCOL
from ha.rpc.proto import ha_service_pb2 as ha
from ha.security.kerberos.auth_to_local import NoShortName, parse_rules
from ha.security.kerberos.own import log_in
from ha.security.kerberos.settings import login, name_rules
from tests.ha.security.kdc import REALM, Kdc
from tests.interop.block_ends import (
    AES,
    java_datanode,
    protected,
    replicas,
    wait_for_replicas,
)
from tests.interop.hadoop_server import JavaObject, running_hadoop
from tests.interop.our_cluster import OurCluster, programs_on
from tests.needs import HADOOP_SERVER, KDC

pytestmark = [pytest.mark.interop, pytest.mark.cluster, KDC.mark, HADOOP_SERVER.mark]

SECONDS = 60.0


def keys(realm: Kdc) -> dict[str, str]:
    """Return what an operator adds to hdfs-site.xml."""
    services = {"namenode": "nn", "journalnode": "jn", "datanode": "dn"}
    return {
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.authorization": "true",
        "hadoop.rpc.protection": "authentication,integrity,privacy",
        "dfs.data.transfer.protection": "authentication,integrity,privacy",
        "dfs.encrypt.data.transfer.cipher.suites": AES,
        "dfs.block.access.token.enable": "true",  # unset, Java's DataNode would end them
        "dfs.cluster.administrators": "bob",
        "hadoop.proxyuser.bob.users": "alice",
        "hadoop.proxyuser.bob.hosts": "127.0.0.0/8",
        **{
            f"dfs.{name}.kerberos.principal": f"{short}/localhost@{REALM}"
            for name, short in services.items()
        },
        **{
            f"dfs.{name}.keytab.file": str(realm.keytab(f"{short}/localhost"))
            for name, short in services.items()
        },
    }


@pytest.fixture(scope="module")
def ours(realm: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurCluster]:
    folder = tmp_path_factory.mktemp("kerberos")
    cluster = open_cluster(folder, datanodes=2, more_keys=keys(realm))
    with cluster, running_hadoop(tmp_path_factory.mktemp("hadoop")) as hadoop:
        hadoop.gateway.jvm.java.lang.System.setProperty(
            "java.security.krb5.conf", str(realm.krb5_conf)
        )
        cluster.up()
        with programs_on(cluster, hadoop) as made:
            yield made


def opened(
    ours: OurCluster, realm: Kdc, name: str, *, protection: str, acting: str = "", suite: str = AES
) -> JavaObject:
    client = ours.hadoop.compiled("nnha.KerberosClient")
    conf = ours.configuration(
        {
            "hadoop.rpc.protection": protection,
            "dfs.data.transfer.protection": protection,
            "dfs.encrypt.data.transfer.cipher.suites": suite,
        }
    )
    return client.open(conf, f"{name}@{REALM}", str(realm.keytab(name)), acting)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(Py4JJavaError) as caught:
        call()
    return str(caught.value.java_exception)


@pytest.mark.parametrize("protection", ["authentication", "integrity", "privacy"])
def test_hadoops_client_works_with_each_protection(
    ours: OurCluster, realm: Kdc, protection: str
) -> None:
    path = ours.hadoop.path
    admin = opened(ours, realm, "nn/localhost", protection=protection)
    home = path(f"/home/{protection}")
    admin.mkdirs(home)
    admin.setOwner(home, "alice", "users")
    alice = opened(ours, realm, "alice", protection=protection)
    out = alice.create(path(f"/home/{protection}/file"))
    out.writeUTF("a secret")
    out.close()
    assert alice.open(path(f"/home/{protection}/file")).readUTF() == "a secret"
    assert alice.getFileStatus(path(f"/home/{protection}/file")).getOwner() == "alice"
    assert "Permission denied: user=alice" in refusal(lambda: alice.mkdirs(path("/not-hers")))
    for files in (alice, admin):
        files.close()


def test_names_of_others_are_refused_but_for_a_proxy_user(ours: OurCluster, realm: Kdc) -> None:
    root = ours.hadoop.path("/")
    thief = opened(ours, realm, "alice", protection="privacy", acting="nn")
    assert f"User: alice@{REALM} is not allowed to impersonate nn" in refusal(
        lambda: thief.listStatus(root)
    )
    proxy = opened(ours, realm, "bob", protection="privacy", acting="alice")
    assert "user=alice" in refusal(lambda: proxy.mkdirs(ours.hadoop.path("/by-alice")))


def test_a_client_without_tickets_is_refused(ours: OurCluster) -> None:
    simple = {"hadoop.security.authentication": "simple"}
    client = ours.hadoop.compiled("nnha.KerberosClient")
    files = client.openSimple(ours.configuration(simple), "root")
    assert "SIMPLE authentication is not enabled.  Available:[" in refusal(
        lambda: files.listStatus(ours.hadoop.path("/"))
    )


def test_nothing_is_lost_when_the_active_is_killed(ours: OurCluster, realm: Kdc) -> None:
    cluster: Cluster = ours.cluster
    admin = opened(ours, realm, "nn/localhost", protection="privacy")
    folder = ours.hadoop.path("/load")
    admin.mkdirs(folder)
    admin.setOwner(folder, "alice", "users")
    alice = opened(ours, realm, "alice", protection="privacy")
    client = ours.hadoop.compiled("nnha.KerberosClient")
    client.begin(alice, "/load")
    wait_until(lambda: client.count() >= 20, what="files", deadline_seconds=SECONDS)
    (active,) = cluster.active_namenodes()
    before = client.count()
    cluster.kill(active)
    wait_until(lambda: client.count() >= before + 20, what="more files", deadline_seconds=SECONDS)
    assert client.lost(alice, "/load") == ""
    assert cluster.active_namenodes() != [active]
    cluster.start(active)
    cluster.wait_for_active()


@pytest.mark.parametrize(
    "protection",
    [
        pytest.param("authentication", marks=pytest.mark.long),
        pytest.param("integrity", marks=pytest.mark.long),
        "privacy",
    ],
)
def test_a_job_goes_on_with_a_token_only(
    ours: OurCluster, realm: Kdc, tmp_path: Path, protection: str
) -> None:
    tokens, path = ours.hadoop.compiled("nnha.TokenClient"), ours.hadoop.path
    conf = ours.configuration({"hadoop.rpc.protection": protection})
    with closing(opened(ours, realm, "nn/localhost", protection=protection)) as admin:
        admin.mkdirs(path(f"/jobs/{protection}"))
        admin.setOwner(path(f"/jobs/{protection}"), "alice", "users")
    file = str(tmp_path / "token")
    with closing(opened(ours, realm, "alice", protection=protection)) as alice:
        token = alice.getDelegationToken(f"bob@{REALM}")
        tokens.save(conf, token, file)
        with closing(tokens.open(conf, "job", file)) as job:
            written = job.create(path(f"/jobs/{protection}/file"))
            written.writeUTF("by a token")
            written.close()
            status = job.getFileStatus(path(f"/jobs/{protection}/file"))
            assert status.getOwner() == "alice"
            assert "only with kerberos or web" in refusal(lambda: job.getDelegationToken("bob"))
            with closing(opened(ours, realm, "bob", protection=protection)) as bob:
                renewed = bob.getClient().getNamenode().renewDelegationToken(token)
            assert renewed > time.time() * 1000 + 23 * 3_600_000
            (active,) = ours.cluster.active_namenodes()
            if protection == "privacy":
                ours.cluster.kill(active)
            assert job.open(path(f"/jobs/{protection}/file")).readUTF() == "by a token"
            if protection == "privacy":
                ours.cluster.start(active)
        alice.getClient().getNamenode().cancelDelegationToken(token)
    with closing(tokens.open(conf, "job", file)) as late:
        said = refusal(lambda: late.listStatus(path("/")))
        assert "InvalidToken" in said
        assert "can't be found in cache" in said


def test_operators_with_tickets_may_what_their_role_may(
    ours: OurCluster, realm: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nnha(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ha.cli.main", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    monkeypatch.setenv("HADOOP_CONF_DIR", str(ours.cluster.conf_dir))
    monkeypatch.setenv("KRB5CCNAME", str(realm.kinit("alice")))
    assert "user=alice" in nnha("fs", "mkdir", "/not-hers").stderr
    assert nnha("fs", "ls", "/").returncode == 0
    asked = nnha("haadmin", "-getServiceState", "nn1")
    assert f"the caller is alice@{REALM} (auth:KERBEROS)" in asked.stdout + asked.stderr
    monkeypatch.setenv("KRB5CCNAME", str(realm.kinit("bob")))
    asked = nnha("haadmin", "-getServiceState", "nn1")
    assert asked.stdout.strip() in ("active", "standby"), asked.stderr
    (active,) = ours.cluster.active_namenodes()
    other = next(name for name in ours.cluster.layout.namenodes if name != active)
    moved = nnha("haadmin", "-failover", active, other)
    assert moved.returncode == 0, moved.stdout + moved.stderr
    assert ours.cluster.active_namenodes() == [other]
    monkeypatch.setenv("KRB5CCNAME", str(realm.folder / "none"))
    asked = nnha("haadmin", "-getServiceState", "nn1")
    assert "run kinit" in asked.stderr
    asked = nnha("fs", "ls", "/", "/home")
    assert asked.returncode == 7
    assert asked.stderr.count("getFileInfo was not carried out: ") == 1, asked.stderr


def test_access_lists_are_read_anew(ours: OurCluster, realm: Kdc) -> None:
    policy = ours.cluster.conf_dir / "hadoop-policy.xml"
    text = "<property><name>security.client.protocol.acl</name><value>nn,bob</value></property>"
    admin = opened(ours, realm, "nn/localhost", protection="privacy")
    dfsadmin = ours.hadoop.hadoop.hdfs.tools.DFSAdmin(admin.getConf())
    user = ours.hadoop.compiled("nnha.KerberosClient")

    def refresh() -> int:
        key = str(realm.keytab("nn/localhost"))
        words = ours.hadoop.strings("-refreshServiceAcl")
        return int(user.runAs(dfsadmin, words, f"nn/localhost@{REALM}", key))

    root = ours.hadoop.path("/")
    try:
        policy.write_text(f"<configuration>{text}</configuration>")
        assert refresh() == 0
        alice = opened(ours, realm, "alice", protection="privacy")
        said = refusal(lambda: alice.listStatus(root))
        assert f"User alice@{REALM} (auth:KERBEROS) is not authorized for protocol" in said
        opened(ours, realm, "bob", protection="privacy").listStatus(root)
    finally:
        policy.unlink()
        assert refresh() == 0
    opened(ours, realm, "alice", protection="privacy").listStatus(root)


RULES = (
    "DEFAULT", "RULE:[1:$1]", "RULE:[2:$1]", "RULE:[1:$1@$0](.*@NNHA.TEST)s/@.*//",
    "RULE:[2:$1@$0](nn@.*)s/.*/hdfs/ DEFAULT", "RULE:[2:$2;$1](^h.*;nn$)s/(.*);(.*)/$2-$1/ DEFAULT",
    "RULE:[1:$1]/L DEFAULT", "RULE:[1:$1]s/a/b/", "RULE:[1:$1]s/a/b/g", "RULE:[1:$1]s/x*/-/g",
    "RULE:[1:$1](a.*)s/(a)(l)?/$2$1$10/", "RULE:[1:$3]", "RULE:[1:$]", "RULE:[1:$1@$0]DEFAULT",
    "RULE:[0:$0] DEFAULT", "RULE:[1:x$1y$0](x.*)s/\\$//g", "RULE:[2:$1$2]s/[aeiou]+/\\$/g",
    "RULE:[1:$1](\\w+)s/(?i)ALICE/bob/", "RULE:[2:$1](n{2}|dn)", "RULE:[1:]", "RULE:[1:$1]()",
)  # fmt: skip
NAMES = (
    f"alice@{REALM}", "alice@OTHER", f"ALICE@{REALM}", f"nn/host@{REALM}", "nn/host@OTHER",
    f"dn/h1.example@{REALM}", f"xaxa@{REALM}", "a@A", f"a/b/c@{REALM}", f"a@b@{REALM}", "é@R",
    f"$1@{REALM}", f"a b@{REALM}",
)  # fmt: skip


def test_short_names_are_those_of_hadoop(ours: OurCluster) -> None:
    java = ours.hadoop.hadoop.security.authentication.util.KerberosName
    try:
        for mechanism in ("hadoop", "mit"):
            java.setRuleMechanism(mechanism)
            for rules in RULES:
                java.setRules(rules)
                for name in NAMES:
                    assert short_of(rules, mechanism, name) == javas(java, name), (rules, name)
    finally:
        java.setRuleMechanism("hadoop")
        java.setRules("DEFAULT")


def javas(java: JavaObject, name: str) -> str | None:
    try:
        return str(java(name).getShortName()) or None
    except Py4JJavaError:
        return None


def short_of(rules: str, mechanism: str, name: str) -> str | None:
    try:
        return parse_rules(rules, mechanism, REALM).short_name(name)
    except NoShortName:
        return None


@pytest.mark.parametrize("protection", ["authentication", "integrity", "privacy"])
async def test_our_clients_call_hadoops_own_server(
    ours: OurCluster, realm: Kdc, protection: str
) -> None:
    server = ours.hadoop.compiled("nnha.KerberosServer")
    name = f"nn/localhost@{REALM}"
    more = {"hadoop.rpc.protection": protection, "hadoop.security.authorization": "false"}
    java = ours.configuration(more)
    port = server.begin(java, name, str(realm.keytab("nn/localhost")))
    wanted = f"hadoop.rpc.protection={protection}"
    conf = load_configuration(ours.cluster.conf_dir, [wanted])
    own = login(conf, name_rules(conf), f"alice@{REALM}", str(realm.keytab("alice")))
    log_in(own)
    try:
        status = await service_status("localhost", port)
        assert status.notReadyReason == "a test"
        assert server.whoAsked() == f"alice@{REALM} (auth:KERBEROS)"
        own.services = ()
        with pytest.raises(ConnectFailed, match="invalid Kerberos principal: nn/localhost"):
            await service_status("localhost", port)
    finally:
        log_in(None)
        server.end()


async def service_status(host: str, port: int) -> ha.GetServiceStatusResponseProto:
    return await call_once(
        HostPort(host, port), HA_SERVICE_PROTOCOL, "getServiceStatus",
        ha.GetServiceStatusRequestProto(), ha.GetServiceStatusResponseProto, deadline_seconds=30,
    )  # fmt: skip


async def test_blocks_go_between_javas_ends_and_ours_in_each_protection(
    ours: OurCluster, realm: Kdc, tmp_path: Path
) -> None:
    """Pipelines of a DataNode of Java's and two of ours, in the NameNode's order."""
    path, data = ours.hadoop.path, bytes(range(251)) * 2000
    admin = opened(ours, realm, "nn/localhost", protection="privacy")
    admin.mkdirs(path("/blocks"))
    admin.setOwner(path("/blocks"), "alice", "users")
    with java_datanode(ours, tmp_path):
        wait_until(
            lambda: len(admin.getDataNodeStats()) == 3, what="Java's", deadline_seconds=SECONDS
        )
        for protection, suite in (
            ("authentication", ""), ("integrity", ""), ("privacy", ""), ("privacy", AES)
        ):  # fmt: skip
            wanted = [
                f"dfs.data.transfer.protection={protection}",
                f"dfs.encrypt.data.transfer.cipher.suites={suite}",
            ]
            conf = load_configuration(ours.cluster.conf_dir, wanted)
            log_in(login(conf, name_rules(conf), f"alice@{REALM}", str(realm.keytab("alice"))))
            try:
                async with Namenodes.of(conf) as namenodes:
                    kind = f"{protection}{suite[:3]}"
                    for number in range(3):
                        name = f"/blocks/{kind}{number}"
                        async with await Writer.create(namenodes, name, replication=3) as writer:
                            await writer.write(data)
                        wait_for_replicas(admin, path(name), 3)
                        assert await replicas(namenodes, name) == [data] * 3
                    with closing(
                        opened(ours, realm, "alice", protection=protection, suite=suite)
                    ) as alice:
                        found = ours.hadoop.hadoop.io.IOUtils.readFullyToByteArray(
                            alice.open(path(f"/blocks/{kind}0"))
                        )
                        assert bytes(found) == data
                        name = f"/blocks/java-{kind}"
                        out = alice.create(path(name))
                        out.write(bytearray(data))
                        out.close()
                    wait_for_replicas(admin, path(name), 3)
                    assert await replicas(namenodes, name) == [data] * 3
                    reached = protected(ours, suite[:3].lower() or protection)
                    assert reached == [*ours.cluster.datanodes]
            finally:
                log_in(None)
        for log in ours.cluster.layout.directory.glob("logs/dn*.log"):
            assert "mirror_lost" not in log.read_text(), "a pipeline went on with less DataNodes"
    admin.close()
