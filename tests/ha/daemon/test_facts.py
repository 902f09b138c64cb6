"""What a daemon reports of itself: version, start, and a hash that shows differing files."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from ha.conf.configuration import Configuration, load_configuration
from ha.daemon.facts import configuration_hash, publish_facts
from ha.daemon.version import version


def written(folder: Path, **values: str) -> Configuration:
    folder.mkdir()
    rows = "".join(
        f"<property><name>dfs.{name}</name><value>{value}</value></property>"
        for name, value in values.items()
    )
    (folder / "hdfs-site.xml").write_text(f"<configuration>{rows}</configuration>")
    return load_configuration(folder)


def test_the_hash_is_of_what_the_files_say(tmp_path: Path) -> None:
    one = written(tmp_path / "one", nameservices="ns1", replication="3")
    same = written(tmp_path / "same", replication="3", nameservices="ns1")
    other = written(tmp_path / "other", nameservices="ns1", replication="2")
    assert configuration_hash(one) == configuration_hash(same)
    assert configuration_hash(one) != configuration_hash(other)
    # What each node has of its own, and what was given by hand, is no difference of the files.
    own = one.with_overrides(["dfs.ha.namenode.id=nn2", "dfs.replication.max=1"])
    assert configuration_hash(own) == configuration_hash(one)


def test_the_facts_are_there_in_prometheus_form(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    conf = written(tmp_path / "one", nameservices="ns1")
    publish_facts("zkfc", conf, open_to=("rpc",), registry=registry)
    text = generate_latest(registry).decode()
    assert f'nnha_build_info{{commit="unknown",process="zkfc",version="{version()}"}}' in text
    assert version() != "unknown", "a checkout has a version, too"
    assert f'nnha_config_hash_info{{hash="{configuration_hash(conf)}",process="zkfc"}} 1.0' in text
    started = registry.get_sample_value("nnha_start_time_seconds", {"process": "zkfc"})
    assert started is not None
    assert started > 1_700_000_000


OPEN = {
    "auto": {"data", "zookeeper-acl"},
    "strict": {"data", "zookeeper-acl"},
    "permissive": {"rpc", "http", "data", "zookeeper-acl"},
    "insecure-i-know": {"rpc", "http", "data", "zookeeper-acl"},
}


@pytest.mark.parametrize("mode", OPEN)
def test_what_is_open_without_a_proof_in_which_mode(tmp_path: Path, mode: str) -> None:
    registry = CollectorRegistry()
    conf = written(tmp_path / "x", nameservices="ns1").with_overrides(
        [f"nnha.security.mode={mode}"]
    )
    publish_facts("x", conf, open_to=("rpc", "http", "data", "zookeeper-acl"), registry=registry)
    found = {
        what
        for what in ("rpc", "http", "data", "zookeeper-acl")
        if registry.get_sample_value("nnha_insecure_mode", {"what": what}) == 1.0
    }
    assert found == OPEN[mode]
