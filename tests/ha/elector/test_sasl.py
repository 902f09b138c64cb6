"""SASL to ZooKeeper is an extra: what lacks is reported at the start, by name."""

import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from deploy.local.cluster import zookeeper
from deploy.local.cluster.java import find_java
from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.processes import Supervisor
from ha.conf.configuration import load_configuration
from ha.conf.errors import ConfigurationError
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import AclEntry
from ha.elector.zookeeper.errors import ZooKeeperRefused
from ha.elector.zookeeper.sasl import Sasl
from ha.elector.zookeeper.settings import ZooKeeperSettings, zookeeper_settings
from ha.elector.zookeeper.znodes import connected, ensure_parent, inspect_scope
from tests.needs import PURE_SASL


def _settings(folder: Path, **settings: str) -> ZooKeeperSettings:
    (folder / "core-site.xml").write_text("<configuration/>")
    given = {"ha.zookeeper.quorum": "zk:2181", **settings}
    overrides = [f"{name}={value}" for name, value in given.items()]
    return zookeeper_settings(load_configuration(folder, overrides), nameservice="ns1")


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("puresasl", "kerberos"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module)


def test_trap_27_a_missing_library_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"pure-sasl is not installed.*nnha\[sasl\]"):
        _settings(tmp_path, **{"nnha.zookeeper.sasl.mechanism": "GSSAPI"})


def test_what_cannot_work_is_refused_by_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="must be GSSAPI or DIGEST-MD5"):
        _settings(tmp_path, **{"nnha.zookeeper.sasl.mechanism": "PLAIN"})
    with pytest.raises(ConfigurationError, match=r"needs nnha\.zookeeper\.sasl\.user"):
        _settings(tmp_path, **{"nnha.zookeeper.sasl.mechanism": "DIGEST-MD5"})


@pytest.mark.usefixtures("libraries")
async def test_the_options_reach_kazoo_and_the_password_no_log(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("hunter2\n")
    keys = {
        "nnha.zookeeper.sasl.mechanism": "DIGEST-MD5",
        "nnha.zookeeper.sasl.user": "hdfs",
        "nnha.zookeeper.sasl.password": f"@{secret}",
    }
    settings = _settings(tmp_path, **keys)
    assert "hunter2" not in repr(settings)
    session = Session(settings, lambda _state, _reason: None)
    assert session._client._connection.sasl_options == {
        "mechanism": "DIGEST-MD5",
        "service": "zookeeper",
        "username": "hdfs",
        "password": "hunter2",
    }


@pytest.mark.usefixtures("libraries")
def test_a_ticket_is_of_our_principal_and_for_the_servers_service(tmp_path: Path) -> None:
    keys = {
        "nnha.zookeeper.sasl.mechanism": "GSSAPI",
        "nnha.zookeeper.sasl.principal": "nn/h1@R",
        "nnha.zookeeper.sasl.service": "zk-b",
    }
    sasl = _settings(tmp_path, **keys).sasl
    assert sasl is not None
    assert sasl.options() == {"mechanism": "GSSAPI", "service": "zk-b", "principal": "nn/h1@R"}


_JAAS = """\
Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required user_hdfs="right";
};
"""
_PROVIDER = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"


@PURE_SASL.mark
@pytest.mark.zookeeper
async def test_a_real_server_takes_the_right_password_only(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        java = find_java(wrapper_directory=tmp_path)
        jaas = tmp_path / "jaas.conf"
        jaas.write_text(_JAAS)
        (port,) = free_ports(1)
        first = zookeeper.start_zookeeper(supervisor, java=java, port=port)
        first.process.kill()  # for its configuration, to be added to
        configuration = Path(first.process.argv[-1])
        configuration.write_text(configuration.read_text() + _PROVIDER)
        argv = zookeeper.server_argv(
            java, configuration, f"-Djava.security.auth.login.config={jaas}"
        )
        server = zookeeper.ZooKeeper(first.host, port, supervisor.start("with-sasl", argv))
        zookeeper.wait_for_zookeeper(server)
        right = Sasl(mechanism="DIGEST-MD5", user="hdfs", password="right")
        settings = ZooKeeperSettings(
            hosts=server.connect, session_timeout_seconds=5.0, scope="/sasl/ns1",
            acl=(AclEntry("sasl", "hdfs", 31),), sasl=right,
        )  # fmt: skip
        async with connected(settings, deadline_seconds=30.0) as session:
            await ensure_parent(session, settings)
            assert (await inspect_scope(session, settings)).may_write
        wrong = replace(settings, sasl=replace(right, password="wrong"))
        with pytest.raises(ZooKeeperRefused, match="authentication failed"):
            async with connected(wrong, deadline_seconds=30.0):
                pass
        async with connected(replace(settings, sasl=None), deadline_seconds=30.0) as session:
            with pytest.raises(ZooKeeperRefused, match="no rights"):
                await inspect_scope(session, settings)


@pytest.mark.usefixtures("libraries")
def test_a_kerberos_principal_is_optional() -> None:
    assert Sasl(mechanism="GSSAPI").options() == {"mechanism": "GSSAPI", "service": "zookeeper"}
    options = Sasl(mechanism="GSSAPI", service="zk", principal="nn/host@REALM").options()
    assert options == {"mechanism": "GSSAPI", "service": "zk", "principal": "nn/host@REALM"}
