"""The cluster's processes and addresses, out of the configuration."""

import socket
from pathlib import Path

import pytest

from ha.conf import topology
from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.topology import HostPort, local_namenode, namenode, namenodes, nameservice_of

TWO = (
    "dfs.nameservices=ns1",
    "dfs.ha.namenodes.ns1=nn1,nn2",
    "dfs.namenode.rpc-address.ns1.nn1=127.0.0.1:8020",
    "dfs.namenode.rpc-address.ns1.nn2=192.0.2.7",
)
SHARED = "dfs.namenode.shared.edits.dir"


def configured(folder: Path, *overrides: str) -> Configuration:
    (folder / "core-site.xml").write_text("<configuration/>")
    return load_configuration(folder, overrides, environment={})


def test_addresses_have_hadoops_defaults_and_the_rpc_host_where_a_wildcard_stands(
    tmp_path: Path,
) -> None:
    nn1, nn2 = namenodes(configured(tmp_path, *TWO), "ns1")
    assert (nn1.nameservice, nn1.namenode) == ("ns1", "nn1")
    assert nn2.rpc == nn2.service == nn2.lifeline == HostPort("192.0.2.7", 8020)
    assert nn2.http == HostPort("192.0.2.7", 9870)
    assert nn2.zkfc == HostPort("192.0.2.7", 8019)
    elsewhere = configured(tmp_path, *TWO, "dfs.namenode.http-address.ns1.nn2=other")
    assert namenode(elsewhere, "ns1", "nn2").http == HostPort("other", 9870)


def test_service_and_lifeline_addresses_are_preferred_where_they_are_set(tmp_path: Path) -> None:
    found = configured(
        tmp_path,
        *TWO,
        "dfs.namenode.servicerpc-address.ns1.nn1=other:1",
        "dfs.namenode.lifeline.rpc-address.ns1.nn1=other:2",
    )
    nn1, _ = namenodes(found, "ns1")
    assert nn1.service == HostPort("other", 1)
    assert nn1.lifeline == HostPort("other", 2)
    assert nn1.zkfc.host == "other"
    assert nn1.rpc == HostPort("127.0.0.1", 8020)
    ported = configured(tmp_path, *TWO, "dfs.namenode.servicerpc-address.ns1.nn2=other")
    assert namenode(ported, "ns1", "nn2").service == HostPort("other", 8020)


@pytest.mark.row("W22")
def test_the_local_namenode_is_named_or_found_by_its_address(tmp_path: Path) -> None:
    assert local_namenode(configured(tmp_path, *TWO)).namenode == "nn1"
    named = configured(tmp_path, *TWO, "dfs.ha.namenode.id=nn2")
    assert local_namenode(named).namenode == "nn2"


def test_no_or_two_local_addresses_are_told_with_the_key_to_set(tmp_path: Path) -> None:
    address = "dfs.namenode.rpc-address.ns1"
    both = configured(tmp_path, *TWO, f"{address}.nn2=localhost:1")
    with pytest.raises(ConfigurationError, match=r"nn1, nn2.*dfs\.ha\.namenode\.id"):
        local_namenode(both)
    neither = configured(tmp_path, *TWO, f"{address}.nn1=192.0.2.8:1")
    with pytest.raises(ConfigurationError, match="none"):
        local_namenode(neither)


@pytest.mark.parametrize(
    ("addresses", "local"),
    [
        (["127.0.0.1"], ["nn1", "nn2"]),
        (["192.0.2.7", "127.0.0.1"], ["nn1", "nn2"]),
        (["192.0.2.7"], []),
        ([], []),
        (None, []),
    ],
    ids=["ours", "one is ours", "another's", "no address", "unknown"],
)
def test_a_host_is_local_if_one_of_its_addresses_can_be_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, addresses: list[str] | None, local: list[str]
) -> None:
    def found(_host: str, port: int, **_kind: int) -> list[object]:
        if addresses is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_DGRAM, 0, "", (one, port)) for one in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    with pytest.raises(ConfigurationError, match=f"local: {', '.join(local) or 'none'}"):
        local_namenode(configured(tmp_path, *TWO))


def test_an_unknown_local_id_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'nn9'.*nn1, nn2"):
        local_namenode(configured(tmp_path, *TWO, "dfs.ha.namenode.id=nn9"))


def test_one_of_several_nameservices_must_be_chosen(tmp_path: Path) -> None:
    several = "dfs.nameservices=ns1,ns2"
    for default in ("file:///", "hdfs://host:8020"):
        with pytest.raises(ConfigurationError, match=r"names several.*set dfs\.nameservice\.id"):
            nameservice_of(configured(tmp_path, several, f"fs.defaultFS={default}"))
    assert nameservice_of(configured(tmp_path, several, "dfs.nameservice.id=ns2")) == "ns2"
    assert nameservice_of(configured(tmp_path, several, "fs.defaultFS=hdfs://ns1")) == "ns1"
    assert nameservice_of(configured(tmp_path, several, "dfs.internal.nameservices=ns2")) == "ns2"
    for known in (several, TWO[0]):
        with pytest.raises(ConfigurationError, match="Correct one of the two"):
            nameservice_of(configured(tmp_path, known, "dfs.nameservice.id=ns3"))
    with pytest.raises(ConfigurationError, match="is not set"):
        nameservice_of(configured(tmp_path))


BAD_CLUSTERS = {
    "no NameNodes": (["dfs.nameservices=ns1"], r"^dfs\.ha\.namenodes\.ns1 is not set\. List the"),
    "an empty list": (
        [TWO[0], "dfs.ha.namenodes.ns1=,", "dfs.ha.namenodes.ns2=nn1"],
        r"^the command line \(-D\): dfs\.ha\.namenodes\.ns1 is empty\. List the NameNode ids",
    ),
    "one id twice": ([TWO[0], "dfs.ha.namenodes.ns1=nn1,nn1"], "occurs twice"),
    "no address": (
        list(TWO[:3]),
        r"^the command line \(-D\): dfs\.ha\.namenodes\.ns1 lists nn2,.*\.ns1\.nn2 is not set",
    ),
}


@pytest.mark.parametrize("case", BAD_CLUSTERS.values(), ids=BAD_CLUSTERS.keys())
def test_a_cluster_that_cannot_be_is_refused(tmp_path: Path, case: tuple[list[str], str]) -> None:
    overrides, message = case
    with pytest.raises(ConfigurationError, match=message):
        namenodes(configured(tmp_path, *overrides), "ns1")


def test_shared_edits_name_the_quorum_and_the_journal(tmp_path: Path) -> None:
    uri = topology.shared_edits(
        configured(tmp_path, f"{SHARED}=qjournal://a:1;b;[::1]:3/ns1"), "ns1"
    )
    assert [str(node) for node in uri.nodes] == ["a:1", "b:8485", "[::1]:3"]
    assert uri.journal_id == "ns1"


BAD_URIS = {
    "nothing": ("", "is not set"),
    "a directory": ("file:///shared", "qjournal://host"),
    "another scheme": ("http://a:1/ns1", "qjournal://host"),
    "no journal": ("qjournal://a:1", r"qjournal://host.*journal-id\.$"),
    "a journal without a name": ("qjournal://a:1/", r"qjournal://host.*journal-id\.$"),
    "a journal that is the folder": ("qjournal://a:1/.", "one plain name"),
    "no node": ("qjournal:///ns1", "name each JournalNode once"),
    "a node twice": ("qjournal://a:1;a:1/ns1", "once"),
    "a bad port": ("qjournal://a:x/ns1", "the port a number"),
    "a journal that climbs out of its folder": ("qjournal://a:1/../etc", "one plain name"),
    "a journal that is its parent": ("qjournal://a:1/..", "one plain name"),
}


def test_refused_shared_edits_name_file_and_line(tmp_path: Path) -> None:
    line = f"\n<property><name>{SHARED}</name><value>qjournal://a</value></property>"
    (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{line}</configuration>")
    with pytest.raises(ConfigurationError, match=r"hdfs-site\.xml line 2: dfs\.namenode\.shared"):
        topology.shared_edits(load_configuration(tmp_path, environment={}), "ns1")


@pytest.mark.parametrize("case", BAD_URIS.values(), ids=BAD_URIS.keys())
def test_other_shared_edits_are_refused(tmp_path: Path, case: tuple[str, str]) -> None:
    text, message = case
    with pytest.raises(ConfigurationError, match=message):
        topology.shared_edits(configured(tmp_path, f"{SHARED}={text}"), "ns1")
