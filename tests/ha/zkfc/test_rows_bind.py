"""Where a controller listens (TestDFSZKFCRespectsBindHostKeys and its like)."""

from pathlib import Path

import pytest

from ha.conf.configuration import load_configuration
from ha.zkfc.settings.settings import zkfc_settings

CASES = {
    "none": ({}, "nn1.example.com"),
    "the rpc's": ({"rpc-bind-host": "0.0.0.0"}, "0.0.0.0"),
    "the service rpc's": ({"servicerpc-bind-host": "0.0.0.0"}, "0.0.0.0"),
    "both: the service rpc's": (
        {"servicerpc-bind-host": "127.0.0.1", "rpc-bind-host": "0.0.0.0"},
        "127.0.0.1",
    ),
}


@pytest.mark.row("W22")
@pytest.mark.row(
    "8.11 ZK.testWithoutBindAddressSet",
    "8.11 ZK.testWithBindAddressSet",
    "8.11 ZK.TestDFSZKFCRespectsBindHostKeys",
    because="set, not set and a wildcard are its cases",
)
@pytest.mark.parametrize("suffix", ["", ".ns1.nn1"], ids=["plain", "for one NameNode"])
@pytest.mark.parametrize("case", CASES)
def test_row_8_11_zk_bind_address(tmp_path: Path, case: str, suffix: str) -> None:
    bind, expected = CASES[case]
    keys = {
        "dfs.nameservices": "ns1",
        "dfs.ha.namenodes.ns1": "nn1,nn2",
        "dfs.ha.namenode.id": "nn1",
        "dfs.namenode.rpc-address.ns1.nn1": "nn1.example.com:8020",
        "dfs.namenode.rpc-address.ns1.nn2": "nn2.example.com:8020",
        "ha.zookeeper.quorum.ns1": "zk.example.com:2181",
        **{f"dfs.namenode.{name}{suffix}": host for name, host in bind.items()},
    }
    rows = "".join(
        f"<property><name>{k}</name><value>{v}</value></property>" for k, v in keys.items()
    )
    (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{rows}</configuration>")
    settings = zkfc_settings(load_configuration(tmp_path))
    assert settings.bind_host == expected
    # The address that others are given does not change with where we listen.
    assert str(settings.own.zkfc) == "nn1.example.com:8019"
