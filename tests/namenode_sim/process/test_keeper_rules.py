"""What is configured about DataNodes reaches the rules that they are judged by."""

from dataclasses import replace
from pathlib import Path

import pytest

from ha.conf.configuration import load_configuration
from journal.model import LAYOUT_VERSION, NamespaceInfo
from namenode_sim.datanode_protocol.keeper import KeeperRules
from namenode_sim.datanodes.draining import DrainRules
from namenode_sim.datanodes.redundancy_check import RedundancyRules
from namenode_sim.process.datanodes import keeper_rules

INFO = NamespaceInfo(LAYOUT_VERSION, 1, "CID-1", 0, "BP-1")


def rules(folder: Path, *overrides: str) -> KeeperRules:
    (folder / "core-site.xml").write_text("<configuration/>")
    return keeper_rules(load_configuration(folder, overrides, environment={}), INFO)


def configured(folder: Path, *overrides: str) -> RedundancyRules:
    return rules(folder, *overrides).redundancy


def test_what_is_not_configured_is_as_the_rules_are_written(tmp_path: Path) -> None:
    assert configured(tmp_path) == RedundancyRules()


@pytest.mark.parametrize(
    ("key", "changed"),
    [
        ("dfs.namenode.replication.work.multiplier.per.iteration=10", {"work_per_node": 10}),
        ("dfs.namenode.reconstruction.pending.timeout-sec=60", {"pending_seconds": 60.0}),
        ("dfs.namenode.excess.redundancy.timeout-sec=5m", {"excess_seconds": 300.0}),
        ("dfs.namenode.tolerate.heartbeat.multiplier=6", {"late_seconds": 18.0}),
        ("dfs.heartbeat.interval=1s", {"late_seconds": 4.0}),
        (
            "dfs.namenode.corrupt.block.delete.immediately.enabled=true",
            {"delete_corrupt_at_once": True},
        ),
    ],
)
def test_each_key_of_redundancy(
    key: str, changed: dict[str, int | float | bool], tmp_path: Path
) -> None:
    assert configured(tmp_path, key) == replace(RedundancyRules(), **changed)  # type: ignore[arg-type]


def test_each_key_of_draining(tmp_path: Path) -> None:
    assert rules(tmp_path).draining == DrainRules()
    assert rules(tmp_path, "nnha.blocks.drain-check=false").draining == DrainRules(check=False)
    assert rules(tmp_path, "nnha.blocks.quiet-period=5m").draining == DrainRules(quiet_seconds=300)
