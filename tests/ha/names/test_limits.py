"""Commands end at their limit, and say which name does not resolve, whatever the resolver does."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.needs import NAMESPACES
from tests.silent_names import ENVIRONMENT, among_names, program

pytestmark = NAMESPACES.mark

START_SECONDS = 6.0
"""To start a command on a busy machine; the resolver gives up after 10 s and more."""

CONFIGURATION = {
    "dfs.nameservices": "ns1",
    "dfs.ha.namenodes.ns1": "nn1,nn2",
    "dfs.namenode.rpc-address.ns1.nn1": "nn-gone1:8020",
    "dfs.namenode.rpc-address.ns1.nn2": "nn-gone2:8020",
    "dfs.namenode.shared.edits.dir": "qjournal://jn-gone1:8485;jn-gone2:8485;jn-gone3:8485/ns1",
    "dfs.ha.automatic-failover.enabled": "true",
    "ha.zookeeper.quorum": "zk-gone:2181",
    "dfs.ha.fencing.methods": "journal-epoch",
    "ha.failover-controller.cli-check.rpc-timeout.ms": "2000",
}

COMMANDS: dict[str, tuple[tuple[str, ...], float, str]] = {
    "status": (("status",), 2, "nn-gone1"),
    "explain": (("explain",), 5, "nn-gone1"),
    "history": (("history", "--timeout", "2"), 4, "zk-gone"),
    "pause": (("pause", "--for", "1m", "--reason", "x", "--timeout", "2"), 4, "zk-gone"),
    "doctor": (("doctor", "--timeout", "2"), 10, "nn-gone1"),
    "journal status": (("journal", "status", "--timeout", "2"), 2, "jn-gone1"),
    "journal verify": (("journal", "verify", "--timeout", "2"), 4, "jn-gone1"),
    "haadmin": (("haadmin", "-getServiceState", "nn1"), 2, "nn-gone1"),
}


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    text = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in CONFIGURATION.items()
    )
    (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{text}</configuration>")
    return tmp_path


@pytest.mark.parametrize(("words", "seconds", "name"), COMMANDS.values(), ids=COMMANDS)
def test_a_silent_resolver_keeps_no_command(
    conf: Path, words: tuple[str, ...], seconds: float, name: str
) -> None:
    argv = program("ha.cli.main", *words)
    begun = time.monotonic()
    done = subprocess.run(
        among_names(conf, argv),
        env=os.environ | ENVIRONMENT | {"HADOOP_CONF_DIR": str(conf)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    took = time.monotonic() - begun
    said = done.stdout + done.stderr
    assert f"the name {name} does not resolve" in " ".join(said.split()), said
    assert "Traceback" not in said
    assert took < seconds + START_SECONDS, f"{took:.1f} s:\n{said}"


def test_a_host_whose_own_name_no_resolver_takes_formats_a_file_system(conf: Path) -> None:
    """Linux allows names of 64 bytes, and no part of one in DNS may have more than 63."""
    inside = """
import asyncio
from namenode_sim.startup.format import new_namespace_info
print(new_namespace_info(None, layout_version=-66).block_pool_id)
"""
    named = ("unshare", "--uts", "sh", "-c", f'hostname {"h" * 64}; exec "$@"', "sh")
    argv = [*named, *program("ha.cli.main")[:1], "-c", inside]
    done = subprocess.run(
        among_names(conf, argv),
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "-127.0.0.1-" in done.stdout
    assert f"the name {'h' * 64} does not resolve: label too long" in done.stderr
