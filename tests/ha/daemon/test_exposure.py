"""A daemon that strangers could reach does not start before somebody has said that it may."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from ha.conf.configuration import load_configuration
from ha.conf.hazards import Daemon
from ha.conf.listening import Door, is_loopback
from ha.console import exit_codes
from ha.daemon.exposure import OPEN_TO_STRANGERS, check_exposure
from ha.daemon.facts import publish_facts
from ha.daemon.process import ExitWith
from ha.security.caller import Role
from tests.ha.security.authority import Authority
from tests.log_lines import captured
from tests.namenode_sim.startup.startup_world import KEYS, snapshot, write_site

LOOPBACK = {
    "127.0.0.1": True,
    "127.0.1.1": True,
    "::1": True,
    "localhost": True,
    "0.0.0.0": False,
    "::": False,
    "": False,
    "10.0.0.5": False,
    "fe80::1": False,
    "no-such-host.invalid": True,  # no process can listen there: the attempt says so
}


@pytest.mark.parametrize("host", LOOPBACK)
def test_what_only_this_machine_reaches(host: str) -> None:
    assert is_loopback(host) is LOOPBACK[host]


ANYWHERE = "0.0.0.0:18020"
DOORS: dict[str, tuple[Sequence[str], str]] = {
    "a NameNode's RPC": (["namenode"], "dfs.namenode.rpc-address.ns1.nn1"),
    "a NameNode's RPC for ZKFCs": (["namenode"], "dfs.namenode.servicerpc-address.ns1.nn1"),
    "a NameNode's RPC for probes": (["namenode"], "dfs.namenode.lifeline.rpc-address.ns1.nn1"),
    "a NameNode's HTTP": (["namenode"], "dfs.namenode.http-bind-host.ns1.nn1"),
    "a JournalNode's gRPC": (["journalnode"], "dfs.journalnode.rpc-address"),
    "a JournalNode's HTTP": (["journalnode"], "dfs.journalnode.http-address"),
    "a JournalNode's Hadoop RPC": (["journalnode"], "nnha.journalnode.hadoop-rpc-address"),
    "a ZKFC's HTTP": (["zkfc"], "nnha.zkfc.http-address"),
    "a ZKFC's RPC": (["zkfc"], "dfs.namenode.rpc-address.ns1.nn1"),
    "the page of the cluster": (["web"], "nnha.web.http-address"),
    "a checkpoint service's HTTP": (["checkpoint", "run"], "nnha.checkpoint.http-address"),
}


NNHA = ("-m", "ha.cli.main")
WITHOUT_CRYPTOGRAPHY = (
    "-c", "import sys; sys.modules['cryptography'] = None; from ha.cli.main import main; main()"
)  # fmt: skip


async def started(
    folder: Path, command: Sequence[str], program: Sequence[str] = NNHA, **site: str
) -> tuple[int, str]:
    write_site(folder / "conf", {**KEYS, **places(folder), **site})
    process = await asyncio.create_subprocess_exec(
        sys.executable, *program, *command, "--conf-dir", str(folder / "conf"),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


def places(folder: Path) -> dict[str, str]:
    return {
        "dfs.namenode.name.dir": str(folder / "name"),
        "dfs.namenode.shared.edits.dir": "qjournal://127.0.0.1:1/ns1",
        "dfs.journalnode.edits.dir": str(folder / "journal"),
        "nnha.checkpoint.work-dir": str(folder / "work"),
        "dfs.ha.automatic-failover.enabled": "true",
        "ha.zookeeper.quorum": "127.0.0.1:1",
    }


@pytest.mark.parametrize("door", DOORS)
async def test_no_daemon_listens_for_strangers_unasked(tmp_path: Path, door: str) -> None:
    command, key = DOORS[door]
    where = "0.0.0.0" if key.rpartition(".ns1")[0].endswith("bind-host") else ANYWHERE
    code, text = await started(tmp_path, command, **{key: where})
    assert code == OPEN_TO_STRANGERS
    reason = text.splitlines()[-1]
    assert "refused to start: " in reason
    assert "=0.0.0.0:" in reason
    assert "nothing proves who calls" in reason
    assert "nnha.security.mode=insecure-i-know" in reason
    assert set(snapshot(tmp_path)) == {"conf/core-site.xml", "conf/hdfs-site.xml"}
    assert {path.name for path in tmp_path.iterdir()} == {"conf"}, "nothing was made"


async def test_whoever_says_that_it_is_known_gets_on(tmp_path: Path) -> None:
    keys = {"dfs.namenode.rpc-address.ns1.nn1": ANYWHERE, "nnha.security.mode": "insecure-i-know"}
    code, text = await started(tmp_path, ["namenode"], **keys)
    assert code == 78, "there is no name directory"
    assert "does not exist" in text.splitlines()[-1]
    said = next(line for line in text.splitlines() if '"security.mode"' in line)
    assert "insecure-i-know" in said
    assert "dfs.namenode.rpc-address=0.0.0.0:18020" in said


async def test_strict_needs_certificates_beyond_this_machine(tmp_path: Path) -> None:
    keys = {"dfs.journalnode.rpc-address": ANYWHERE, "nnha.security.mode": "strict"}
    code, text = await started(tmp_path, ["journalnode"], **keys)
    assert code == OPEN_TO_STRANGERS
    assert "nothing proves who calls from there, which strict demands" in text.splitlines()[-1]
    assert {path.name for path in tmp_path.iterdir()} == {"conf"}, "nothing was made"


async def test_permissive_says_what_it_cannot_prove(tmp_path: Path) -> None:
    keys = {"dfs.namenode.rpc-address.ns1.nn1": ANYWHERE, "nnha.security.mode": "permissive"}
    code, text = await started(tmp_path, ["namenode"], **keys)
    assert code == 78, "there is no name directory"
    said = next(line for line in text.splitlines() if '"security.mode"' in line)
    assert '"level": "warning"' in said
    assert "from other machines nothing proves who calls yet, so they are let in" in said


@pytest.mark.parametrize("mode", ["auto", "strict"])
def test_where_the_kernel_does_not_tell_who_calls(tmp_path: Path, mode: str) -> None:
    write_site(tmp_path / "conf", {"nnha.security.mode": mode})
    conf, door = load_configuration(tmp_path / "conf"), Door("key", "127.0.0.1", 1)
    with pytest.raises(ExitWith) as refused:
        check_exposure(conf, Daemon.ZKFC, [door], kernel_reports_uids=lambda: False)
    assert refused.value.code == OPEN_TO_STRANGERS
    assert "the kernel does not tell it here" in str(refused.value)
    assert "nnha.security.mode=permissive" in str(refused.value)


HIDDEN = {
    "peers elsewhere": ("198.51.100.1:8020", "127.0.0.1", True),
    "peers here": ("127.0.0.1:8020", "127.0.0.1", False),
    "reached": ("198.51.100.1:8020", "0.0.0.0", False),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_an_address_that_peers_cannot_reach_is_warned_of(tmp_path: Path, case: str) -> None:
    namenode, host, warned = HIDDEN[case]
    write_site(
        tmp_path / "conf",
        {"nnha.security.mode": "insecure-i-know", "dfs.namenode.rpc-address": namenode},
    )
    conf = load_configuration(tmp_path / "conf")
    door = Door("dfs.journalnode.rpc-address", host, 1, "of this")
    with captured("daemon.listens", "daemon.unreachable") as logs:
        check_exposure(conf, Daemon.JOURNALNODE, [door, Door("dfs.datanode.http.address", host, 2)])
    (said,) = [line for line in logs if line["event"] == "daemon.listens"]
    assert said["dfs.journalnode.rpc-address"] == f"{host}:1 (of this)"
    unreachable = [line for line in logs if line["event"] == "daemon.unreachable"]
    assert [line["doors"] for line in unreachable] == [[f"{door}"]] * warned
    assert [line["peer"] for line in unreachable] == ["198.51.100.1"] * warned


async def test_a_mode_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    code, text = await started(tmp_path, ["journalnode"], **{"nnha.security.mode": "yes"})
    assert code == 78
    reason = text.splitlines()[-1]
    for word in ("yes", "nnha.security.mode", "auto", "strict", "permissive", "insecure-i-know"):
        assert word in reason


@pytest.mark.parametrize("daemon", ["journalnode", "namenode", "datanode", "zkfc", "web"])
async def test_certificates_without_their_extra_are_no_reason_to_start_in_plain(
    tmp_path: Path, daemon: str
) -> None:
    code, out = await started(
        tmp_path, [daemon], WITHOUT_CRYPTOGRAPHY, **{"nnha.security.tls.dir": str(tmp_path / "tls")}
    )
    assert "pip install 'nnha[tls]'" in out
    assert (code, "Traceback" in out) == (78, False), out


async def test_a_namenode_with_certificates_that_are_not_there_says_so_and_ends(
    tmp_path: Path,
) -> None:
    code, out = await started(
        tmp_path, ["namenode"], **{"nnha.security.tls.dir": str(tmp_path / "tls")}
    )
    assert (code, "Traceback" in out) == (78, False), out
    assert "refused to start: " in out


def test_the_exit_code_is_among_those_of_all_commands() -> None:
    assert exit_codes.OPEN_TO_STRANGERS == OPEN_TO_STRANGERS


def test_the_mode_is_a_metric(tmp_path: Path) -> None:
    write_site(tmp_path / "conf", {"nnha.security.mode": "insecure-i-know"})
    registry = CollectorRegistry()
    publish_facts("zkfc", load_configuration(tmp_path / "conf"), registry=registry)
    assert registry.get_sample_value("nnha_security_mode", {"mode": "insecure-i-know"}) == 1.0


async def test_certificates_open_the_door(tmp_path: Path) -> None:
    Authority(tmp_path / "tls").issue(Role.NAMENODE, "nn1", folder="namenode")
    keys = {"dfs.namenode.rpc-address.ns1.nn1": ANYWHERE}
    tls = {"nnha.security.tls.dir": str(tmp_path / "tls"), "nnha.security.mode": "strict"}
    code, text = await started(tmp_path, ["namenode"], **keys, **tls)
    assert code == 78, "there is no name directory"
    assert "does not exist" in text.splitlines()[-1]
    said = next(line for line in text.splitlines() if '"security.mode"' in line)
    assert '"certificate": "nnha://c1/namenode/nn1"' in said
    code, text = await started(tmp_path, ["journalnode"], **keys, **tls)
    assert code == OPEN_TO_STRANGERS, "a JournalNode has none there"
    assert f"nnha security check {tmp_path / 'tls/journalnode'}" in text.splitlines()[-1]
