"""``nnha config explain`` of an address: what the daemon that it is asked about takes, and why."""

from pathlib import Path

import pytest

from tests.ha.cli.test_config_command import prepared, run

AWAY = {
    "dfs.namenode.rpc-address.ns1.nn1": "198.51.100.1:8020",
    "dfs.namenode.rpc-address.ns1.nn2": "198.51.100.2:8020",
    "dfs.namenode.http-address.ns1.nn2": "198.51.100.2:9",
    "nnha.security.mode": "strict",
}
BIND = {"dfs.journalnode.rpc-bind-host": "::"}
EFFECTS = {
    "a JournalNode's RPC": (AWAY, "dfs.journalnode.rpc-address", "0.0.0.0:8485"),
    "its pages": (AWAY, "dfs.journalnode.http-address", "0.0.0.0:8480"),
    "its bind-host": (BIND, "dfs.journalnode.rpc-address", "[::]:8485"),
    "a DataNode's blocks": (AWAY, "dfs.datanode.address", "0.0.0.0:9866"),
    "its RPC": (AWAY, "dfs.datanode.ipc.address", "0.0.0.0:9867"),
    "its page": (AWAY, "dfs.datanode.http.address", "0.0.0.0:9864"),
    "in auto": ({**AWAY, "nnha.security.mode": "auto"}, "dfs.datanode.address", "127.0.0.1:9866"),
    "all here": ({}, "dfs.datanode.address", "127.0.0.1:9866"),
    "a NameNode's RPC": (AWAY, "dfs.namenode.rpc-address.ns1.nn1", "198.51.100.1:8020"),
    "of its controller": (AWAY, "dfs.namenode.servicerpc-address.ns1.nn1", "198.51.100.1:8020"),
    "every NameNode's": (
        AWAY, "dfs.namenode.servicerpc-address",
        "198.51.100.1:8020 of nn1, 198.51.100.2:8020 of nn2",
    ),
    "set": (AWAY, "dfs.namenode.http-address.ns1.nn2", "198.51.100.2:9"),
    "a port": (AWAY, "dfs.ha.zkfc.port", "8019"),
}  # fmt: skip


@pytest.mark.parametrize("case", EFFECTS)
def test_explain_shows_the_address_that_the_daemon_takes(tmp_path: Path, case: str) -> None:
    more, key, effect = EFFECTS[case]
    told = run("config", prepared(tmp_path, **more), "explain", key).output
    assert f"  in effect        {effect}\n" in told


def test_explain_says_why_and_where_a_daemon_listens(tmp_path: Path) -> None:
    conf_dir = prepared(tmp_path, **AWAY, **{"dfs.namenode.rpc-bind-host": "0.0.0.0"})
    told = run("config", conf_dir, "explain", "dfs.journalnode.rpc-address").output
    assert "because of       no address is set, and nnha.security.mode=strict lets others" in told
    assert "listens on" not in told, "it is said already"
    bound = run("config", conf_dir, "explain", "dfs.namenode.rpc-address.ns1.nn1").output
    assert "listens on       0.0.0.0:8020 of nn1: " in bound
    assert "dfs.namenode.rpc-bind-host\n" in bound
    zkfc = run("config", conf_dir, "explain", "dfs.ha.zkfc.port", "-nn", "nn2").output
    assert "listens on       0.0.0.0:7005 of nn2: " in zkfc
