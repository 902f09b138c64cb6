"""Which nodes are peers: the rows "syncer start set" and "ExcludesSelf"."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ha.conf.configuration import load_configuration
from journal.node.peers import Own, configured_peers
from journal.node.process.command import read_settings

SHARED = "dfs.namenode.shared.edits.dir"
URI = "qjournal://jn0:8485;jn1:8485/jid"
FEDERATED = {"dfs.nameservices": "ns1,ns2", "dfs.ha.namenodes.ns1": "nn1,nn2"}


def peers(folder: Path, settings: Mapping[str, str]) -> Mapping[str, object]:
    (folder / "hdfs-site.xml").write_text("<configuration></configuration>")
    (folder / "core-site.xml").write_text("<configuration></configuration>")
    overrides = [f"{name}={value}" for name, value in settings.items()]
    return configured_peers(load_configuration(folder, overrides))


BOTH = {"jid": (("jn0", 8485), ("jn1", 8485))}


@pytest.mark.row("8.2 syncer start set")
@pytest.mark.parametrize(
    ("settings", "found"),
    [
        pytest.param({SHARED: URI}, BOTH, id="SyncEnabled"),
        pytest.param({SHARED: URI, "dfs.journalnode.enable.sync": "false"}, {}, id="SyncDisabled"),
        pytest.param({}, {}, id="no journal at all"),
        pytest.param({SHARED: "jn0:8485;jn1:8485/jid"}, {}, id="EnabledIncorrectURI"),
        pytest.param(
            {SHARED: "qjournal://nobody.invalid:8485;jn1:8485/jid"},
            {"jid": (("nobody.invalid", 8485), ("jn1", 8485))},
            id="SyncEnabled, unresolvable hosts may come to resolve",
        ),
        pytest.param(
            {**FEDERATED, f"{SHARED}.ns1": URI}, BOTH, id="FederationTypeWithNameServiceId"
        ),
        pytest.param(
            {**FEDERATED, f"{SHARED}.ns1.nn1": URI, f"{SHARED}.ns1.nn2": URI},
            BOTH,
            id="FederationTypeWithNamenodeId",
        ),
        pytest.param(
            {
                **FEDERATED,
                f"{SHARED}.ns1.nn1": URI,
                f"{SHARED}.ns1.nn2": "qjournal://jn0:8485;other:8485/jid",
            },
            {},
            id="FederationTypeIncorrectConfigWithNamenodeId",
        ),
        pytest.param(
            {**FEDERATED, f"{SHARED}.ns1": URI, f"{SHARED}.ns2": "qjournal://jn9:1/two"},
            {**BOTH, "two": (("jn9", 1),)},
            id="two nameservices, two journals",
        ),
    ],
)
def test_syncer_start_set(tmp_path: Path, settings: dict[str, str], found: object) -> None:
    assert peers(tmp_path, settings) == found


def test_the_node_is_told(tmp_path: Path) -> None:
    peers(tmp_path, {})
    overrides = [
        f"{SHARED}={URI}",
        "dfs.journalnode.sync.interval=5s",
        "dfs.edit.log.transfer.timeout=7000",
        "dfs.edit.log.transfer.bandwidthPerSec=1m",
    ]
    told = read_settings(load_configuration(tmp_path, overrides))
    assert told.peers == BOTH
    assert (told.sync_interval_seconds, told.sync_stall_seconds) == (5, 7)
    assert told.sync_bytes_per_second == 1024 * 1024


@pytest.mark.row("8.3 ExcludesSelfMultiplePorts")
def test_excludes_self_multiple_ports() -> None:
    """ExcludesSelfMultiplePorts: other ports of the same host are other nodes."""
    nodes = [("127.0.0.1", 8485), ("127.0.0.1", 8486), ("127.0.0.1", 8487)]
    assert Own("127.0.0.1", 8486).others(nodes) == (nodes[0], nodes[2])


@pytest.mark.row("8.3 ExcludesSelfWildCard")
def test_excludes_self_wildcard() -> None:
    """ExcludesSelfWildCard: a wildcard, in the list or as our own address, is this machine."""
    nodes = [("0.0.0.0", 8485), ("127.0.0.1", 8486), ("127.0.0.1", 8485)]
    assert Own("127.0.0.1", 8485).others(nodes) == (nodes[1],)
    assert Own("0.0.0.0", 8485).others(nodes) == (nodes[1],)
    assert Own("0.0.0.0", 8486).others(nodes) == (nodes[0], nodes[2])


def test_another_address_of_this_machine_is_another_node() -> None:
    nodes = [("127.0.0.1", 8485), ("127.0.0.2", 8485), ("nobody.invalid", 8485)]
    assert Own("127.0.0.1", 8485).others(nodes) == (nodes[1], nodes[2])
