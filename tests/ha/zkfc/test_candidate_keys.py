"""The keys of health, rank and flapping reach the settings, for one NameNode or for all."""

from pathlib import Path

import pytest

from ha.conf.configuration import load_configuration
from ha.conf.errors import ConfigurationError
from ha.zkfc.candidacy.eligibility import Rank
from ha.zkfc.candidacy.flapping import FlapSettings
from ha.zkfc.settings.settings import DumpSettings, ZkfcSettings, zkfc_settings

KEYS = {
    "fs.defaultFS": "hdfs://ns1",
    "dfs.nameservices": "ns1",
    "dfs.ha.namenodes.ns1": "nn1,nn2",
    "dfs.ha.namenode.id": "nn1",
    "dfs.namenode.rpc-address.ns1.nn1": "127.0.0.1:1",
    "dfs.namenode.rpc-address.ns1.nn2": "127.0.0.1:2",
    "ha.zookeeper.quorum": "x:1",
}


def _settings(directory: Path, **given: str) -> ZkfcSettings:
    for name in ("core-site.xml", "hdfs-site.xml"):
        (directory / name).write_text("<configuration></configuration>")
    values = KEYS | {name.replace("__", ".").replace("_", "-"): given[name] for name in given}
    conf = load_configuration(directory, [f"{key}={value}" for key, value in values.items()])
    return zkfc_settings(conf)


def test_what_holds_without_any_key(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    assert settings.rank == Rank()
    assert settings.flapping == FlapSettings()
    assert settings.thread_dump == DumpSettings()
    assert settings.pid_file is None
    health = settings.health
    assert (health.refusals_window, health.timeouts_window) == (1, 1)


def test_every_key_reaches_its_setting(tmp_path: Path) -> None:
    settings = _settings(
        tmp_path,
        nnha__candidate__nofailover__ns1__nn1="true",
        nnha__candidate__priority__ns1__nn1="7",
        nnha__candidate__priority__ns1__nn2="8",
        nnha__candidate__priority_delay="3s",
        nnha__candidate__unready_delay="4s",
        nnha__zkfc__flap__failovers="5",
        nnha__zkfc__flap__window="6m",
        nnha__zkfc__flap__delay="70s",
        nnha__zkfc__health__refusals="2",
        nnha__zkfc__health__refusals_of="3",
        nnha__zkfc__health__timeouts="4",
        nnha__zkfc__health__timeouts_of="5",
        nnha__zkfc__health__pid_file="/run/namenode.pid",
        nnha__zkfc__thread_dump__dir="/var/log/stacks",
        dfs__ha__zkfc__nn__http__timeout__ms="1500",
    )
    assert settings.rank == Rank(
        nofailover=True, priority=7, priority_delay_seconds=3.0, unready_delay_seconds=4.0
    )
    assert settings.flapping == FlapSettings(failovers=5, window_seconds=360.0, delay_seconds=70.0)
    health = settings.health
    assert (health.refusals, health.refusals_of) == (2, 3)
    assert (health.timeouts, health.timeouts_of) == (4, 5)
    assert settings.pid_file == Path("/run/namenode.pid")
    assert settings.thread_dump == DumpSettings(
        timeout_seconds=1.5, directory=Path("/var/log/stacks")
    )


def test_a_window_smaller_than_its_limit_is_refused_with_the_keys_to_look_at(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigurationError, match=r"4 failures in 3 probes; see nnha\.zkfc\.health"):
        _settings(tmp_path, nnha__zkfc__health__timeouts="4", nnha__zkfc__health__timeouts_of="3")
