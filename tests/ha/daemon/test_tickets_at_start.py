"""What a daemon needs to start with Kerberos, and which of its ports others may reach then."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.conf.errors import ConfigurationError
from ha.conf.hazards import Daemon
from ha.conf.keys import cluster, datanode
from ha.conf.listening import Door
from ha.conf.own_user import own_user
from ha.daemon.exposure import check_exposure
from ha.daemon.process import ExitWith
from ha.security.caller import Method
from ha.security.kerberos.own import log_in, own_kerberos
from ha.security.sasl import gss
from tests.ha.rpc.kerberized import configuration
from tests.ha.security.kdc import REALM, Kdc

EVERYWHERE = "0.0.0.0"
RPC = Door(cluster.NAMENODE_RPC.name, EVERYWHERE, 8020)
HTTP = Door(cluster.NAMENODE_HTTP.name, EVERYWHERE, 9870)
DATA = Door(datanode.DATA.name, EVERYWHERE, 9866)


@pytest.fixture(autouse=True)
def logged_out() -> Iterator[None]:
    yield
    log_in(None)


def test_a_port_of_hadoop_rpc_may_be_reached_and_no_page(realm: Kdc, tmp_path: Path) -> None:
    conf = configuration(realm, tmp_path, {})
    access = check_exposure(conf, Daemon.NAMENODE, [RPC])
    assert [way.method for way in access.ways] == [Method.KERBEROS]
    assert not access.takes_simple
    assert own_user() == "nn", "the superuser is the daemon's own short name"
    for other in (HTTP, DATA):
        with pytest.raises(ExitWith) as refused:
            check_exposure(conf, Daemon.NAMENODE, [RPC, other])
        assert refused.value.code == 78
        assert str(other) in refused.value.message
        assert str(RPC) not in refused.value.message


def test_clients_of_hdfs_are_not_believed_over_webhdfs_either(realm: Kdc, tmp_path: Path) -> None:
    """Bad schedule: a cluster whose clients were believed goes over to Kerberos, and keeps the key.

    Over RPC they are refused without a ticket; over HTTP they could delete each file.
    """
    believed = {"nnha.security.clients": "simple-i-know"}
    conf = configuration(realm, tmp_path, believed)
    assert not check_exposure(conf, Daemon.NAMENODE, [RPC]).policy.simple_clients
    conf = configuration(realm, tmp_path, {**believed, "hadoop.security.authentication": "simple"})
    assert check_exposure(conf, Daemon.NAMENODE, []).policy.simple_clients


def test_blocks_may_be_reached_where_tokens_are_asked_for(realm: Kdc, tmp_path: Path) -> None:
    keytab = {
        "dfs.datanode.keytab.file": str(realm.keytab("dn/localhost")),
        "dfs.datanode.hostname": "localhost",
    }
    for key in ("dfs.block.access.token.enable", "dfs.encrypt.data.transfer"):
        on = configuration(realm, tmp_path, {**keytab, key: "true"})
        assert check_exposure(on, Daemon.DATANODE, [DATA]).ways
    off = configuration(realm, tmp_path, {**keytab, "dfs.block.access.token.enable": "false"})
    with pytest.raises(ConfigurationError, match="is false, but with Kerberos block tokens must"):
        check_exposure(off, Daemon.DATANODE, [DATA])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"dfs.namenode.kerberos.principal": ""}, r"dfs\.namenode\.kerberos\.principal .*not set"),
        ({"dfs.namenode.keytab.file": ""}, r"dfs\.namenode\.keytab\.file .* is not set"),
        (
            {"dfs.namenode.keytab.file": "/no/such"},
            r"with it this daemon .*`klist -k /no/such`",
        ),
        ({"dfs.namenode.kerberos.principal": f"jn/localhost@{REALM}"}, r"cannot be jn/localhost@"),
        (
            {
                "dfs.namenode.kerberos.principal": "nn/_HOST",
                "dfs.namenode.rpc-address.ns1.nn1": "127.0.0.1:8020",
            },
            r"and that is 127\.0\.0\.1: use a host name",
        ),
        ({"hadoop.security.auth_to_local": "NONE"}, "cannot be used: 'NONE' begins with no rule"),
        ({"hadoop.security.auth_to_local.mechanism": "x"}, "must be hadoop or mit"),
        ({"hadoop.rpc.protection": "private"}, "must be a list of authentication, integrity"),
    ],
)
def test_what_keeps_a_daemon_from_starting(
    realm: Kdc, tmp_path: Path, more: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        check_exposure(configuration(realm, tmp_path, more), Daemon.NAMENODE, [])


def test_a_machine_without_the_library_is_named(
    realm: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = configuration(realm, tmp_path, {})
    monkeypatch.setattr(gss, "LIBRARY", "libnone.so.2")
    gss.library.cache_clear()
    try:
        with pytest.raises(ConfigurationError, match="apt-get install libgssapi-krb5-2"):
            check_exposure(conf, Daemon.NAMENODE, [])
    finally:
        gss.library.cache_clear()


def test_host_stands_for_the_configured_one_in_lower_case(realm: Kdc, tmp_path: Path) -> None:
    host = {
        "dfs.namenode.kerberos.principal": "nn/_HOST",
        "dfs.namenode.rpc-address.ns1.nn1": "LOCALHOST:8020",
    }
    (way,) = check_exposure(configuration(realm, tmp_path, host), Daemon.NAMENODE, [RPC]).ways
    assert (way.protocol, way.server_id) == ("nn", "localhost")


@pytest.mark.parametrize("daemon", [Daemon.WEB, Daemon.CHECKPOINT])
def test_what_has_no_keys_uses_the_tickets_of_its_user(
    realm: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, daemon: Daemon
) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(realm.kinit("bob")))
    conf = configuration(realm, tmp_path, {"dfs.namenode.keytab.file": "/no/such"})
    assert not check_exposure(conf, daemon, []).ways
    own = own_kerberos()
    assert own is not None
    assert own.tickets().principal == f"bob@{REALM}"
