"""ZooKeeper behind TLS: our certificate is our identity, and servers must prove theirs."""

import asyncio
import itertools
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from deploy.local.cluster.java import find_java
from deploy.local.cluster.ports import HOST, free_ports
from deploy.local.cluster.processes import Supervisor
from deploy.local.cluster.zookeeper import ZooKeeper, server_argv, wait_for_zookeeper
from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.elector.model import Role
from ha.elector.zookeeper.credentials import CREATOR_ALL, AclEntry
from ha.elector.zookeeper.errors import ZooKeeperUnavailable
from ha.elector.zookeeper.loop_handler import Handler
from ha.elector.zookeeper.outcome import Done, Refusal, Refused
from ha.elector.zookeeper.settings import ZooKeeperSettings, zookeeper_settings
from ha.elector.zookeeper.tls import Tls
from ha.elector.zookeeper.znodes import connected, ensure_parent
from tests.ha.elector.certificates import Authority
from tests.ha.elector.people import people, seated
from tests.ha.zkfc.site import Site

SERVERS = {"named": ("127.0.0.1", "localhost"), "elsewhere": ("zookeeper.example",)}
SESSION_SECONDS = 9.0
REFUSED_SECONDS = 3.0
WAIT_SECONDS = 30.0

_CONFIGURATION = """\
dataDir={data}
clientPort={port}
secureClientPort={secure}
clientPortAddress={host}
secureClientPortAddress={host}
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location={own}
ssl.keyStore.type=PEM
ssl.trustStore.location={trusted}
ssl.trustStore.type=PEM
ssl.clientAuth=need
authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider
tickTime=500
admin.enableServer=false
4lw.commands.whitelist=srvr,ruok
"""

_scopes = itertools.count(1)


@dataclass
class Secured:
    ports: dict[str, int]
    authority: Authority
    others: Authority

    def settings(self, tls: Tls | None, *, which: str = "named") -> ZooKeeperSettings:
        return ZooKeeperSettings(
            hosts=f"{HOST}:{self.ports[which]}",
            session_timeout_seconds=SESSION_SECONDS,
            scope=f"/secured{next(_scopes)}/ns1",
            acl=(CREATOR_ALL,),
            tls=tls,
        )

    def tls(self, name: str = "nn1") -> Tls:
        return Tls(trusted=self.authority.trusted, certificate=self.authority.issue(name))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder / "ours", "our-authority")
    made = Secured({}, authority, Authority(folder / "others", "their-authority"))
    java = find_java(wrapper_directory=folder)
    with Supervisor(folder) as supervisor:
        for name, hosts in SERVERS.items():
            port, made.ports[name] = free_ports(2)
            directory = folder / name
            (directory / "data").mkdir(parents=True)
            configuration = directory / "zoo.cfg"
            text = _CONFIGURATION.format(
                data=directory / "data", port=port, secure=made.ports[name], host=HOST,
                own=authority.issue(name, *hosts), trusted=authority.trusted,
            )  # fmt: skip
            configuration.write_text(text)
            argv = server_argv(java, configuration, "-Xmx128m")
            wait_for_zookeeper(ZooKeeper(HOST, port, supervisor.start(name, argv)))
        yield made


@pytest.mark.zookeeper
async def test_an_election_by_certificates_alone(secured: Secured) -> None:
    settings = secured.settings(secured.tls())
    async with people(settings, "a", "b") as (a, b):
        await seated(a, b)
        async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
            found = await session.acl(settings.lock)
        assert isinstance(found, Done)
        assert found.value[0] == {AclEntry("x509", "CN=nn1", 31)}
        stranger = replace(settings, tls=secured.tls("stranger"))
        async with connected(stranger, deadline_seconds=WAIT_SECONDS) as session:
            outcome = await session.delete(settings.lock)
        assert isinstance(outcome, Refused)
        assert outcome.why is Refusal.NO_RIGHTS
        a.elector.quit(keep_breadcrumb=True)
        await b.is_(Role.ACTIVE)


@pytest.mark.zookeeper
async def test_26_identities_that_cannot_share_a_breadcrumb_are_told_before_a_failover(
    secured: Secured, tmp_path: Path
) -> None:
    """Give each host a certificate of its own; the ACL is the creator's, by default."""
    site = Site(tmp_path, f"{HOST}:{secured.ports['named']}")
    scope = f"/secured{next(_scopes)}"

    async def as_(name: str, *arguments: str) -> tuple[int | None, str]:
        site.values |= {
            "ha.zookeeper.parent-znode": scope,
            "hadoop.zk.ssl.enabled": "true",
            "hadoop.zk.ssl.truststore.location": str(secured.authority.trusted),
            "hadoop.zk.ssl.keystore.location": str(secured.authority.issue(name)),
        }
        return await site.run(*arguments)

    assert (await as_("nn1", "--format-zk"))[0] == 0
    code, said = await as_("nn1", "--check-zk")
    assert (code, "we are:           x509:CN=nn1\n" in said) == (0, True)
    assert "could not write the breadcrumb" in said
    assert "ha.zookeeper.acl, on every host alike: x509:CN=nn1:rwcda" in said
    code, said = await as_("nn2", "--check-zk")
    assert (code, "ZooKeeper knows us as x509:CN=nn2" in said) == (1, True)
    assert "only where ha.zookeeper.acl names all of them" in said
    site.values["ha.zookeeper.acl"] = "x509:CN=nn1:rwcda,x509:CN=nn2:rwcda"
    assert (await as_("nn1", "--format-zk", "--keep"))[0] == 0
    for name in ("nn1", "nn2"):
        code, said = await as_(name, "--check-zk")
        assert (code, "identities:" in said, "doubtful" in said) == (0, False, False)


async def test_two_answers_in_one_tls_record_are_both_read_at_once(tmp_path: Path) -> None:
    # kazoo alone would let the second lie until its next ping, at a third of the session.
    authority = Authority(tmp_path, "ca")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(authority.issue("server", HOST))
    tls = Tls(trusted=authority.trusted)
    settings = ZooKeeperSettings(
        hosts="zk:2181", session_timeout_seconds=SESSION_SECONDS, scope="/none", tls=tls
    )
    with socket.create_server((HOST, 0)) as listener:

        def serve() -> ssl.SSLSocket:
            return server.wrap_socket(listener.accept()[0], server_side=True)

        serving = asyncio.create_task(asyncio.to_thread(serve))
        handler = Handler(settings)
        client = await asyncio.to_thread(handler.create_connection, listener.getsockname(), HOST)
        assert isinstance(client, ssl.SSLSocket)
        with client, await serving as peer:
            peer.sendall(b"12")
            assert client.recv(1) == b"1"
            assert handler.select([client], [], [], 0)[0] == [client]
            assert client.recv(1) == b"2"
            assert handler.select([client], [], [], 0)[0] == []


@pytest.mark.zookeeper
@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("another host's certificate", "certificate is not valid for '127.0.0.1'"),
        ("an authority that we do not trust", "unable to get local issuer certificate"),
        ("no certificate of ours", "bad certificate|certificate required"),
        ("a certificate of another authority", "unknown ca|certificate unknown|bad certificate"),
        ("no TLS at all", "127.0.0.1"),
    ],
)
async def test_trap_24_what_is_wrong_with_tls_is_told(
    secured: Secured, case: str, reason: str
) -> None:
    good, which = secured.tls(), "named"
    tls: Tls | None = good
    match case:
        case "another host's certificate":
            which = "elsewhere"
        case "an authority that we do not trust":
            tls = replace(good, trusted=secured.others.trusted)
        case "no certificate of ours":
            tls = replace(good, certificate=None)
        case "a certificate of another authority":
            tls = replace(good, certificate=secured.others.issue("nn1"))
        case _:
            tls = None
    with pytest.raises(ZooKeeperUnavailable, match=reason):
        async with connected(secured.settings(tls, which=which), deadline_seconds=REFUSED_SECONDS):
            pass


@pytest.mark.zookeeper
async def test_trap_23_host_names_are_checked_unless_that_is_switched_off(secured: Secured) -> None:
    trusting = replace(secured.tls(), check_host_name=False)
    settings = secured.settings(trusting, which="elsewhere")
    async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
        await ensure_parent(session, settings)


@pytest.mark.zookeeper
async def test_a_renewed_certificate_is_used_at_the_next_connection(secured: Secured) -> None:
    settings = secured.settings(secured.tls("renewed"))
    assert settings.tls is not None
    good = settings.tls.certificate
    assert good is not None
    content = good.read_bytes()
    good.write_bytes(b"half a file")
    with pytest.raises(ZooKeeperUnavailable, match=r"renewed\.pem"):
        async with connected(settings, deadline_seconds=REFUSED_SECONDS):
            pass
    good.write_bytes(content)
    async with connected(settings, deadline_seconds=WAIT_SECONDS):
        pass


def _configuration(folder: Path, **settings: str) -> Configuration:
    (folder / "core-site.xml").write_text("<configuration/>")
    given = {"ha.zookeeper.quorum": "zk:2181", "hadoop.zk.ssl.enabled": "true", **settings}
    return load_configuration(folder, [f"{name}={value}" for name, value in given.items()])


def test_hadoops_keys_name_the_files(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    own = authority.issue("nn1", password="open sesame")
    secret = tmp_path / "password"
    secret.write_text("open sesame\n")
    keys = {
        "hadoop.zk.ssl.keystore.location": str(own),
        "hadoop.zk.ssl.keystore.password": f"@{secret}",
        "hadoop.zk.ssl.truststore.location": str(authority.trusted),
    }
    settings = zookeeper_settings(_configuration(tmp_path, **keys), nameservice="ns1")
    assert settings.tls == Tls(
        trusted=authority.trusted, certificate=own, password="open sesame", check_host_name=True
    )
    assert "sesame" not in repr(settings)
    with pytest.raises(ConfigurationError, match=r"nn1\.pem: cannot use it"):
        zookeeper_settings(
            _configuration(tmp_path, **{**keys, "hadoop.zk.ssl.keystore.password": "wrong"}),
            nameservice="ns1",
        )


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("hadoop.zk.ssl.keystore.location", "/nowhere/own.pem", "/nowhere/own.pem"),
        ("hadoop.zk.ssl.truststore.location", "/nowhere/ca.pem", "/nowhere/ca.pem"),
        ("hadoop.zk.ssl.keystore.location", "/etc/own.jks", "openssl pkcs12"),
        ("hadoop.zk.ssl.truststore.location", "/etc/ca.p12", "openssl pkcs12"),
        ("nnha.zookeeper.ssl.check-host-name", "perhaps", "must be true or false"),
    ],
)
def test_files_that_cannot_be_used_are_told_at_the_start(
    tmp_path: Path, key: str, value: str, told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        zookeeper_settings(_configuration(tmp_path, **{key: value}), nameservice="ns1")


def test_without_the_key_there_is_no_tls(tmp_path: Path) -> None:
    conf = _configuration(tmp_path, **{"hadoop.zk.ssl.enabled": "false"})
    assert zookeeper_settings(conf, nameservice="ns1").tls is None
    older = _configuration(
        tmp_path, **{"hadoop.zk.ssl.enabled": "false", "dfs.ha.zkfc.client.ssl.enabled": "true"}
    )
    assert zookeeper_settings(older, nameservice="ns1").tls == Tls()
