"""``nnha dfs`` finds the active where the configuration does not say how."""

import asyncio
from pathlib import Path

import pytest

from deploy.local.demo.dfs import failover_proxy_options, no_active_warning
from ha.service.model import ServiceState
from tests.ha.cli.stand_ins import running_cluster

KEY = "dfs.client.failover.proxy.provider.ns1"


def written(folder: Path, **more: str) -> Path:
    keys = {"dfs.nameservices": "ns1", "dfs.ha.namenodes.ns1": "nn1,nn2", **more}
    rows = (f"<property><name>{k}</name><value>{v}</value></property>" for k, v in keys.items())
    (folder / "hdfs-site.xml").write_text(f"<configuration>{''.join(rows)}</configuration>")
    return folder


def test_the_usual_way_is_taken_and_told_where_none_is_configured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
    assert failover_proxy_options(written(tmp_path)) == ["-D", f"{KEY}={usual}"]
    told = capsys.readouterr()
    assert told.out == ""
    assert f"{KEY} is not set" in told.err


def test_a_configured_way_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert failover_proxy_options(written(tmp_path, **{KEY: "a.Class"})) == []
    assert capsys.readouterr().err == ""


async def test_a_wait_for_nobody_is_told_and_one_for_a_busy_active_is_not(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        assert await asyncio.to_thread(no_active_warning, tmp_path) == []
        cluster.namenodes["nn1"].state = ServiceState.STANDBY
        (line,) = await asyncio.to_thread(no_active_warning, tmp_path)
        assert "no NameNode of ns1 says that it is active" in line
        assert line.endswith("nnha explain")
    alone = written(tmp_path, **{"dfs.ha.namenodes.ns1": ""})
    assert await asyncio.to_thread(no_active_warning, alone) == []
