"""Where daemons listen: every mode, with peers here, elsewhere and unknown."""

from pathlib import Path

import pytest

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.keys import cluster, datanode, journal
from ha.conf.keys.key import Key
from ha.conf.keys.security import SECURITY_MODE
from ha.conf.listening import BIND_HOSTS, door_of, elsewhere
from ha.conf.topology import HostPort, namenode

HERE = (
    "dfs.nameservices=ns1",
    "dfs.ha.namenodes.ns1=nn1,nn2",
    "dfs.namenode.rpc-address.ns1.nn1=127.0.0.2:8020",
    "dfs.namenode.rpc-address.ns1.nn2=127.0.0.3:8020",
    "dfs.namenode.shared.edits.dir=qjournal://127.0.0.4:1;127.0.0.4:2;localhost:3/ns1",
)
AWAY = (
    *HERE,
    "dfs.namenode.rpc-address.ns1.nn1=198.51.100.1:8020",
    "dfs.namenode.rpc-address.ns1.nn2=198.51.100.2:8020",
    "dfs.namenode.shared.edits.dir=qjournal://198.51.100.1;198.51.100.2;198.51.100.3/ns1",
)
PEERS = {
    "none is named": (),
    "all here": HERE,
    "all elsewhere": AWAY,
    "one JournalNode elsewhere": (
        *HERE, "dfs.namenode.shared.edits.dir=qjournal://127.0.0.4:1;198.51.100.7:1;127.0.0.4:3/ns1",
    ),
    "one NameNode elsewhere": (*HERE, "dfs.namenode.rpc-address.ns1.nn2=198.51.100.2:8020"),
    "one NameNode's JournalNodes elsewhere": (
        *HERE, "dfs.namenode.shared.edits.dir.ns1.nn2=qjournal://198.51.100.7:1/ns1",
    ),
    "a name without an address": (*HERE, "dfs.namenode.rpc-address.ns1.nn2=no-such.invalid:8020"),
    "a wildcard": (*HERE, "dfs.namenode.rpc-address.ns1.nn2=0.0.0.0:8020"),
}  # fmt: skip
MODES = {
    "auto": ("nnha.security.mode=auto",),
    "auto with certificates": ("nnha.security.tls.dir=/tls",),
    "strict": ("nnha.security.mode=strict",),
    "permissive": ("nnha.security.mode=permissive",),
    "insecure": ("nnha.security.mode=insecure-i-know",),
}
FREE = (journal.RPC, journal.HTTP, journal.HTTPS, datanode.DATA, datanode.RPC, datanode.HTTP)
NN1 = {"nameservice": "ns1", "namenode": "nn1"}


def conf(folder: Path, *overrides: str) -> Configuration:
    (folder / "core-site.xml").write_text("<configuration/>")
    return load_configuration(folder, overrides, environment={})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("peers", PEERS)
def test_an_address_that_is_not_set(tmp_path: Path, peers: str, mode: str) -> None:
    found = conf(tmp_path, *PEERS[peers], *MODES[mode])
    loopback = peers == "all here" or mode == "auto"
    for key in FREE:
        door = door_of(found, key)
        assert door is not None
        assert door.address == HostPort("127.0.0.1" if loopback else "0.0.0.0", found.get(key).port)
        assert door.why.startswith("no address is set, and ")
        if peers == "all here":
            assert "every host in the configuration is on loopback" in door.why
        else:
            assert f"nnha.security.mode={found.get(SECURITY_MODE)} " in door.why


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("peers", [name for name in PEERS if name != "none is named"])
def test_a_namenode_and_its_controller(tmp_path: Path, peers: str, mode: str) -> None:
    found = conf(tmp_path, *PEERS[peers], *MODES[mode])
    own = namenode(found, "ns1", "nn1")
    hosts = {key: door_of(found, key, **NN1) for key in BIND_HOSTS if key not in FREE}
    rpc, http = hosts[cluster.NAMENODE_RPC], hosts[cluster.NAMENODE_HTTP]
    assert rpc is not None
    assert http is not None
    assert rpc.address == own.rpc
    assert hosts[cluster.NAMENODE_SERVICE_RPC] == hosts[cluster.NAMENODE_LIFELINE_RPC] == rpc
    if peers == "all here":
        assert http.host == own.rpc.host
    else:
        assert http.host == ("127.0.0.1" if mode == "auto" else "0.0.0.0")
    zkfc, page = hosts[cluster.ZKFC_PORT], hosts[cluster.ZKFC_HTTP]
    assert zkfc is not None
    assert page is not None
    assert zkfc.address == own.zkfc
    assert page.address == own.zkfc_http, "commands look where the controller listens"
    assert page.host == ("127.0.0.1" if mode == "auto" else own.rpc.host)


def test_the_page_of_a_controller_follows_its_bind_host(tmp_path: Path) -> None:
    binds = "dfs.namenode.rpc-bind-host=0.0.0.0"
    found = conf(tmp_path, *AWAY, *MODES["strict"], binds)
    doors = [door_of(found, key, **NN1) for key in (cluster.ZKFC_PORT, cluster.ZKFC_HTTP)]
    assert [door and door.host for door in doors] == ["0.0.0.0", "0.0.0.0"]
    assert all(door and door.why.endswith("dfs.namenode.rpc-bind-host") for door in doors)
    alone = conf(tmp_path, *AWAY, binds)
    page = door_of(alone, cluster.ZKFC_HTTP, **NN1)
    assert page is not None
    assert page.host == "127.0.0.1", "a bind-host of the RPC opens no page unasked"


@pytest.mark.parametrize("key", [key for key in BIND_HOSTS if key is not cluster.ZKFC_PORT])
@pytest.mark.parametrize("mode", MODES)
def test_what_is_set_is_obeyed(tmp_path: Path, key: Key[HostPort], mode: str) -> None:
    scope = {} if key in (*FREE, journal.HADOOP_RPC) else NN1
    found = conf(tmp_path, *AWAY, *MODES[mode], f"{key.name}{'.ns1.nn1' if scope else ''}=h:7")
    door = door_of(found, key, **scope)
    assert door is not None
    assert (door.address, door.why) == (HostPort("h", 7), found.where(key, **scope))
    for bind in BIND_HOSTS[key]:
        bound = door_of(found.with_overrides([f"{bind.name}=::1"]), key, **scope)
        assert bound is not None
        assert (bound.address, bound.why) == (
            HostPort("::1", 7),
            f"the command line (-D): {bind.name}",
        )


def test_a_journalnode_on_loopback_listens_where_its_peers_look_for_it(tmp_path: Path) -> None:
    """Debian's own name is 127.0.1.1, and connections to that do not reach 127.0.0.1."""
    uri = "dfs.namenode.shared.edits.dir=qjournal://127.0.1.1:8485/ns1"
    door = door_of(conf(tmp_path, uri), journal.RPC)
    assert door is not None
    assert door.host == "127.0.1.1"


def test_an_own_name_that_is_on_loopback_is_not_taken_while_peers_are_elsewhere(
    tmp_path: Path,
) -> None:
    uri = "dfs.namenode.shared.edits.dir=qjournal://127.0.1.1:8485;198.51.100.2:8485/ns1"
    for key in (journal.RPC, journal.HTTP, journal.HTTPS):
        door = door_of(conf(tmp_path, uri, *MODES["strict"]), key)
        assert door is not None
        assert door.host == "0.0.0.0"


def test_the_first_host_elsewhere_is_named(tmp_path: Path) -> None:
    assert elsewhere(conf(tmp_path, *HERE)) is None
    assert elsewhere(conf(tmp_path, *AWAY)) == "198.51.100.1"
