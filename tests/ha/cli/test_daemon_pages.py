"""Parts of status pages are read as far as they make sense; older daemons report less."""

import json
from pathlib import Path
from typing import Any

import pytest

from ha.cluster.daemon_fields import CheckpointView, HealthChange, TakeoverView, checkpoint_view
from ha.cluster.view import ZkfcRow
from ha.conf.configuration import load_configuration
from ha.daemon.facts import DaemonFacts
from ha.notices.codec import entries
from ha.notices.model import PhaseDuration


def zkfc_entry(name: str, found: object) -> Any:  # noqa: ANN401 - of any field
    return entries(ZkfcRow, {name: found}, [name])[name]


NONSENSE: list[object] = [None, 1, "x", [], [1], {}, {"txid": "1"}, True]


def test_a_daemons_facts_are_read_as_they_are_told(tmp_path: Path) -> None:
    (tmp_path / "hdfs-site.xml").write_text("<configuration></configuration>")
    facts = DaemonFacts("zkfc", load_configuration(tmp_path, (), environment={}), ("rpc", "data"))
    found = zkfc_entry("daemon", json.loads(json.dumps(facts.as_json())))
    assert found is not None
    about = facts.about()
    assert (found.version, found.pid, found.insecure) == (about.version, about.pid, about.insecure)
    assert (found.started_at, found.config_hash) == (about.started_at, about.config_hash)


def facts_of(folder: Path, **keys: str) -> dict[str, str]:
    """Return what the status page says of each key of a configuration file."""
    properties = "".join(
        f"<property><name>{name.replace('_', '.')}</name><value>{value}</value></property>"
        for name, value in keys.items()
    )
    (folder / "hdfs-site.xml").write_text(f"<configuration>{properties}</configuration>")
    conf = load_configuration(folder, ("dfs.replication=3",), environment={})
    found = zkfc_entry("daemon", json.loads(json.dumps(DaemonFacts("zkfc", conf, ()).as_json())))
    assert found is not None
    return dict(text.split("=") for text in found.config_keys)


SECRETS = {
    "ha_zookeeper_auth": "digest:hdfs:{}",
    "fs_s3a_secret_key": "{}",
    "dfs_ha_fencing_methods": "shell(/fence --password {})",
}


def test_each_key_is_told_apart_by_its_value_and_a_secret_is_not_in_it(tmp_path: Path) -> None:
    plain = {"dfs_nameservices": "ns1", "dfs_ha_namenode_id": "nn1"}
    one = facts_of(tmp_path, **plain, **{key: text.format("a") for key, text in SECRETS.items()})
    same = facts_of(tmp_path, **plain, **{key: text.format("b") for key, text in SECRETS.items()})
    other = facts_of(tmp_path, **{**plain, "dfs_nameservices": "ns2"})
    assert one == same
    assert set(one) == {"dfs.nameservices", *(key.replace("_", ".") for key in SECRETS)}
    assert one["dfs.nameservices"] != other["dfs.nameservices"]
    assert all(len(digest) == 8 for digest in one.values())


def test_a_checkpoint_knows_what_it_lacks() -> None:
    page = {"checkpoint": {"txid": 90, "at": None, "problem": ""}, "last_txid": 100}
    assert checkpoint_view(page) == CheckpointView(90, None, 10, None)
    assert checkpoint_view({**page, "last_txid": None}) == CheckpointView(90, None, None, None)


def test_a_takeover_has_its_phases_so_far() -> None:
    phases = [{"name": "lock", "seconds": 0.0}, {"name": "fenced"}, 7]
    page = {"number": 3, "seconds": 0.4, "phases": phases}
    assert zkfc_entry("takeover", page) == TakeoverView(3, 0.4, (PhaseDuration("lock", 0.0),))


def test_health_changes_are_as_many_as_a_page_shows() -> None:
    change = {"at": "2026-11-21T14:00:00.000Z", "health": "healthy", "reason": ""}
    found = zkfc_entry("health_changes", [change, {"at": 1}] * 200)
    assert len(found) == 64
    assert found[0] == HealthChange("2026-11-21T14:00:00.000Z", "healthy", None)


@pytest.mark.parametrize("odd", NONSENSE, ids=repr)
def test_nonsense_is_nothing(odd: object) -> None:
    assert checkpoint_view({"checkpoint": odd}) is None
    assert zkfc_entry("health_changes", odd) == ()
    for found in (zkfc_entry("daemon", odd), zkfc_entry("takeover", odd)):
        assert found is None or isinstance(odd, dict)
