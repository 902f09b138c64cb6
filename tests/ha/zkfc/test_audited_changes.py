"""What the audit log says of a command that changes the znodes, for each of its ends."""

import asyncio
from pathlib import Path

import pytest

from ha.conf.configuration import load_configuration
from ha.daemon.process import ExitWith
from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.zkfc.process.format_zk import DENIED, FAILED, audited

ZOOKEEPER = ZooKeeperSettings(hosts="x", session_timeout_seconds=1, scope="/hadoop-ha/ns1")


@pytest.mark.parametrize(
    ("end", "outcome", "reason"),
    [
        (None, "done", ""),
        (ExitWith(DENIED, "it was not confirmed"), "refused", "it was not confirmed"),
        (ExitWith(FAILED, "there is a lock"), "failed", "there is a lock"),
        (ZooKeeperRefused("no right"), "failed", "no right"),
        (ZooKeeperUnavailable("gone"), "unknown", "gone"),
        (asyncio.CancelledError(), "unknown", "CancelledError"),
    ],
    ids=["done", "not confirmed", "failed", "refused", "no answer", "cancelled"],
)
def test_each_end_is_written_down_and_goes_on(
    tmp_path: Path, end: BaseException | None, outcome: str, reason: str
) -> None:
    site = "<configuration></configuration>"
    for name in ("core-site.xml", "hdfs-site.xml"):
        (tmp_path / name).write_text(site)
    audit = tmp_path / "audit"
    conf = load_configuration(tmp_path, [f"nnha.audit.file={audit}"], environment={})
    if end is None:
        with audited(conf, "zkfc --format-zk", ZOOKEEPER):
            pass
    else:
        with pytest.raises(type(end)) as told, audited(conf, "zkfc --format-zk", ZOOKEEPER):
            raise end
        assert told.value is end
    (line,) = audit.read_text().splitlines()
    for word in ("zkfc --format-zk", outcome, ZOOKEEPER.scope, reason):
        assert word in line, line
