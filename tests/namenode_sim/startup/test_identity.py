"""Which directories the configuration names for one NameNode."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.topology import NameNodeAddress
from namenode_sim.startup import identity
from tests.namenode_sim.startup.startup_world import KEYS, write_site

NAME = "dfs.namenode.name.dir"
EDITS = "dfs.namenode.edits.dir"
REQUIRED = "dfs.namenode.edits.dir.required"
JOURNAL = "qjournal://h1:1;h2:2;h3:3/ns1"
Find = Callable[[Configuration, NameNodeAddress], list[Path]]

#   name of key, its value; where edits may lie; where copies are kept
PLACES: dict[str, tuple[dict[str, str], list[str], list[str]]] = {
    "nowhere else": ({}, ["/a", "/b"], ["/a", "/b"]),
    "apart": ({EDITS: "/e,file:///f%20g"}, ["/a", "/b", "/e", "/f g"], ["/e", "/f g"]),
    "apart, in this nameservice": ({f"{EDITS}.ns1": "/e"}, ["/a", "/b", "/e"], ["/e"]),
    "apart, on this NameNode": ({f"{EDITS}.ns1.nn1": "/e"}, ["/a", "/b", "/e"], ["/e"]),
    "apart, on another NameNode": ({f"{EDITS}.ns1.nn2": "/e"}, ["/a", "/b"], ["/a", "/b"]),
    "apart, in another nameservice": ({f"{EDITS}.ns2": "/e"}, ["/a", "/b"], ["/a", "/b"]),
    "in the name directories, expressly": ({EDITS: "/b,/a"}, ["/a", "/b"], ["/a", "/b"]),
    "this NameNode's own name directory": ({f"{NAME}.ns1.nn1": "/c"}, ["/c"], ["/c"]),
}


def place(folder: Path, keys: dict[str, str]) -> tuple[Configuration, NameNodeAddress]:
    site = {**KEYS, NAME: "/a,/b", "dfs.namenode.shared.edits.dir": JOURNAL, **keys}
    write_site(folder / "conf", site)
    conf = load_configuration(folder / "conf", (), environment={})
    return conf, identity.NameNodeIdentity.from_configuration(conf).address


@pytest.mark.parametrize(("keys", "edits", "copies"), PLACES.values(), ids=PLACES)
def test_where_edits_may_lie_and_where_copies_are_kept(
    tmp_path: Path, keys: dict[str, str], edits: list[str], copies: list[str]
) -> None:
    conf, address = place(tmp_path, keys)
    assert identity.edits_directories(conf, address) == [Path(one) for one in edits]
    assert identity.copy_directories(conf, address) == [Path(one) for one in copies]


def test_the_journal_is_no_directory_that_must_be_there(tmp_path: Path) -> None:
    conf, address = place(tmp_path, {REQUIRED: f"/e,{JOURNAL},file:///f"})
    assert identity.required_directories(conf, address) == [Path("/e"), Path("/f")]


REMOTE: dict[str, tuple[Find, str]] = {
    "name directories": (identity.name_directories, NAME),
    "edits": (identity.edits_directories, EDITS),
    "required": (identity.required_directories, REQUIRED),
}


@pytest.mark.parametrize(("find", "key"), REMOTE.values(), ids=REMOTE)
def test_a_directory_elsewhere_is_refused_by_the_name_of_its_key(
    tmp_path: Path, find: Find, key: str
) -> None:
    conf, address = place(tmp_path, {key: "s3://bucket/x"})
    with pytest.raises(ConfigurationError, match=rf"{key}: 's3://bucket/x' is not a local"):
        find(conf, address)


def test_the_other_namenodes_are_its_peers(tmp_path: Path) -> None:
    keys = {"dfs.ha.namenodes.ns1": "nn3,nn1,nn2", "dfs.namenode.rpc-address.ns1.nn3": "h:3"}
    conf, _ = place(tmp_path, {**keys, "dfs.namenode.http-address.ns1.nn3": "h:4"})
    found = identity.NameNodeIdentity.from_configuration(conf)
    assert found.address.namenode == "nn1"
    assert sorted(peer.namenode for peer in found.peers) == ["nn2", "nn3"]
    assert found.journal_nodes == [("h1", 1), ("h2", 2), ("h3", 3)]
