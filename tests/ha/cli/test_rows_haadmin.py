"""Hadoop's TestHAAdmin and TestDFSHAAdmin, row by row, on real RPC servers."""

import asyncio
import io
import threading
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from ha.cli.hadoop.haadmin import run
from ha.cli.hadoop.java_address import java_host, java_name
from ha.conf.topology import HostPort
from ha.service.model import RequestSource, ServiceState
from tests import ROOT
from tests.ha.cli.stand_ins import Cluster, Shell, frozen_process

ACTIVE, STANDBY = ServiceState.ACTIVE, ServiceState.STANDBY
AUTO = ("-D", "dfs.ha.automatic-failover.enabled=true")
FENCER = ("-D", "dfs.ha.fencing.methods=shell(true)")


Captured = pytest.CaptureFixture[str]


@pytest.mark.row("8.10 testAdminUsage")
def test_row_8_10_admin_usage(capsys: Captured) -> None:
    usage = "Usage: haadmin [-ns <nameserviceId>]"
    for words, first in {
        (): usage,
        ("badCommand",): "Bad command 'badCommand': expected command starting with '-'",
        ("-badCommand",): "badCommand: Unknown command",
        ("-transitionToActive",): "transitionToActive: incorrect number of arguments",
        ("-transitionToActive", "x", "y"): "transitionToActive: incorrect number of arguments",
        ("-failover",): "failover: incorrect arguments",
        ("-failover", "foo:1234"): "failover: incorrect arguments",
    }.items():
        assert run(words) == 255
        out, err = capsys.readouterr()
        assert (out, err.splitlines()[0]) == ("", first)
        assert usage in err


@pytest.mark.row("8.10 testHelp")
def test_row_8_10_help(capsys: Captured) -> None:
    assert run(("-help",)) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "Usage: haadmin [-ns <nameserviceId>]"
    names = [line.strip(" []").split()[0] for line in lines[1 : lines.index("")]]
    assert names == sorted(names)
    assert "-help" in names
    assert "Generic options supported are:" in lines
    assert run(("-help", "transitionToActive")) == 0
    said = "-transitionToActive [[--forceactive] <serviceId>]"
    text = "Transitions the service into Active state"
    assert capsys.readouterr() == (f"{said}: {text}\n", "")
    assert err == ""


@pytest.mark.row("8.10 testNameserviceOption")
def test_row_8_10_nameservice_option(capsys: Captured) -> None:
    assert run(("-ns",)) == 255
    assert "Missing nameservice ID" in capsys.readouterr().err
    assert run(("-ns", "ns1")) == 255
    assert "Missing command" in capsys.readouterr().err
    assert run(("-ns", "ns1", "-help", "transitionToActive")) == 0
    assert "Transitions the service into Active" in capsys.readouterr().out


@pytest.mark.row("8.10 testNamenodeResolution")
async def test_row_8_10_namenode_resolution(haadmin: Shell) -> None:
    assert (await haadmin("-getServiceState", "nn1"))[0] == 0
    for words in (["-getServiceState", "undefined"], ["-ns", "bogus", "-checkHealth", "nn1"]):
        code, out, err = await haadmin(*words)
        assert (code, out) == (255, "")
        assert f"Unable to determine service address for namenode '{words[-1]}'" in err


@pytest.mark.row("8.10 testGetAllServiceState")
async def test_row_8_10_get_all_service_state(haadmin: Shell, cluster: Cluster) -> None:
    code, out, err = await haadmin("-getAllServiceState")
    host = await java_host("127.0.0.1")
    expected = [
        f"{host}:{cluster.ports['rpc-nn1']}".ljust(50) + " active    ",
        f"{host}:{cluster.ports['rpc-nn2']}".ljust(50) + " standby   ",
    ]
    assert (code, out.splitlines(), err) == (0, expected, "")


@pytest.mark.row("8.10 testTransitionToActive")
async def test_row_8_10_transition_to_active(haadmin: Shell, cluster: Cluster) -> None:
    cluster.namenodes["nn1"].state = STANDBY
    assert await haadmin("-transitionToActive", "nn1") == (0, "", "")
    assert haadmin.asked() == [[("active", RequestSource.USER)], []]


@pytest.mark.row("8.10 testMutativeOperationsWithAutoHaEnabled")
async def test_row_8_10_mutative_operations_with_auto_ha_enabled(
    haadmin: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in ("-transitionToActive", "-transitionToStandby"):
        code, out, err = await haadmin(*AUTO, command, "nn1")
        assert (code, out) == (255, "")
        assert "Refusing to manually manage" in err
    assert haadmin.asked() == [[], []]
    for command in ("-transitionToStandby", "-transitionToActive"):
        monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
        assert (await haadmin(*AUTO, command, "-forcemanual", "nn1"))[0] == 0
    forced = RequestSource.USER_FORCED
    assert haadmin.asked() == [[("standby", forced), ("active", forced)], []]


@pytest.mark.row("8.10 testMonitoringOperationsWithAutoHaEnabled")
async def test_row_8_10_monitoring_operations_with_auto_ha_enabled(haadmin: Shell) -> None:
    assert await haadmin(*AUTO, "-checkHealth", "nn1") == (0, "", "")
    assert await haadmin(*AUTO, "-getServiceState", "nn1") == (0, "active\n", "")


@pytest.mark.row("8.10 testTransitionToStandby")
async def test_row_8_10_transition_to_standby(haadmin: Shell) -> None:
    assert await haadmin("-transitionToStandby", "nn1") == (0, "", "")
    assert haadmin.asked() == [[("standby", RequestSource.USER)], []]


@pytest.mark.row("8.10 testFailoverWithNoFencerConfigured")
async def test_row_8_10_failover_with_no_fencer_configured(haadmin: Shell) -> None:
    code, out, err = await haadmin("-failover", "nn1", "nn2")
    assert (code, out) == (255, "")
    assert "failover requires a fencer" in err
    assert haadmin.asked() == [[], []]


DONE = "Failover from nn1 to nn2 successful\n"
WITH_A_FENCER = {
    "failover_with_fencer_configured": ("-failover", "nn1", "nn2"),
    "failover_with_fencer_and_nameservice": ("-ns", "ns1", "-failover", "nn1", "nn2"),
    "failover_with_fencer_configured_and_force": ("-failover", "nn1", "nn2", "--forcefence"),
    "failover_with_force_active": ("-failover", "nn1", "nn2", "--forceactive"),
    "force_fence_option_listed_before_args": ("-failover", "--forcefence", "nn1", "nn2"),
}


@pytest.mark.row(
    "8.10 testFailoverWithFencerConfigured",
    "8.10 testFailoverWithFencerAndNameservice",
    "8.10 testFailoverWithFencerConfiguredAndForce",
    "8.10 testFailoverWithForceActive",
    "8.10 testForceFenceOptionListedBeforeArgs",
    because="its cases are these rows' options",
)
@pytest.mark.parametrize("row", WITH_A_FENCER)
async def test_row_8_10_with_a_fencer(haadmin: Shell, tmp_path: Path, row: str) -> None:
    fenced = tmp_path / "fenced"
    fencer = ("-D", f"dfs.ha.fencing.methods=shell(echo $target_namenodeid >> {fenced})")
    assert await haadmin(*fencer, *WITH_A_FENCER[row]) == (0, DONE, "")
    assert haadmin.states() == [STANDBY, ACTIVE]
    assert fenced.exists() is ("--forcefence" in WITH_A_FENCER[row])
    if fenced.exists():
        assert fenced.read_text() == "nn1\n"


REFUSED = {
    "failover_with_invalid_fence_arg": (FENCER, ("notforcefence",), "incorrect arguments"),
    "failover_with_fence_but_no_fencer": ((), ("--forcefence",), "requires a fencer"),
    "failover_with_fence_and_bad_fencer": (
        ("-D", "dfs.ha.fencing.methods=foobar!"),
        ("--forcefence",),
        "Unable to parse line 1",
    ),
}


@pytest.mark.row(
    "8.10 testFailoverWithInvalidFenceArg",
    "8.10 testFailoverWithFenceButNoFencer",
    "8.10 testFailoverWithFenceAndBadFencer",
    because="its cases are what these rows forbid",
)
@pytest.mark.parametrize("row", REFUSED)
async def test_row_8_10_refused(haadmin: Shell, row: str) -> None:
    settings, last, told = REFUSED[row]
    code, out, err = await haadmin(*settings, "-failover", "nn1", "nn2", *last)
    assert (code, out) == (255, "")
    assert told in err
    assert haadmin.asked() == [[], []]


@pytest.mark.row("8.10 testFailoverWithAutoHa")
async def test_row_8_10_failover_with_auto_ha(haadmin: Shell, cluster: Cluster) -> None:
    shown = await java_name(HostPort("127.0.0.1", cluster.ports["rpc-nn2"]))
    told = await haadmin(*AUTO, "-failover", "nn1", "nn2")
    assert told == (0, f"Failover to {shown} successful\n", "")
    assert [one.asked for one in cluster.controllers.values()] == [0, 1]
    # The first node is not looked at, so this one is its controller's business as well.
    assert (await haadmin(*AUTO, "-failover", "nn1", "nn1"))[0] == 0
    assert haadmin.states() == [ACTIVE, STANDBY]


@pytest.mark.row("8.10 testGetServiceStatus")
async def test_row_8_10_get_service_status(haadmin: Shell) -> None:
    assert await haadmin("-getServiceState", "nn1") == (0, "active\n", "")
    assert await haadmin("-getServiceState", "nn2") == (0, "standby\n", "")


@pytest.mark.row("8.10 testCheckHealth")
async def test_row_8_10_check_health(haadmin: Shell, cluster: Cluster) -> None:
    assert await haadmin("-checkHealth", "nn1") == (0, "", "")
    cluster.namenodes["nn1"].unwell = "fake health check failure"
    failed = (255, "", "Health check failed: fake health check failure\n")
    assert await haadmin("-checkHealth", "nn1") == failed


@pytest.mark.row("8.10 testFencingConfigPerNameNode")
async def test_row_8_10_fencing_config_per_name_node(haadmin: Shell, cluster: Cluster) -> None:
    key = "dfs.ha.fencing.methods"
    failing = ("-D", f"{key}.ns1.nn1=shell(false)")

    async def failover(*settings: str) -> int:
        cluster.namenodes["nn1"].state, cluster.namenodes["nn2"].state = ACTIVE, STANDBY
        return (await haadmin(*settings, "-failover", "--forcefence", "nn1", "nn2"))[0]

    assert await failover(*FENCER) == 0
    assert await failover(*FENCER, *failing) == 255
    assert await failover(*FENCER, "-D", f"{key}.ns1=shell(false)") == 255
    assert await failover("-D", f"{key}.ns1=shell(true)") == 0
    # The more special setting counts, also where the more general one would fail.
    works = ("-D", f"{key}.ns1.nn1=shell(true)")
    assert await failover("-D", f"{key}.ns1=shell(false)", *works) == 0


@pytest.mark.row("8.6 testFailoverFromNonExistantServiceWithFencer")
async def test_row_8_6_a_frozen_service_is_asked_for_so_long_only_and_then_fenced(
    haadmin: Shell, cluster: Cluster
) -> None:
    """8.6 testFailoverFromNonExistantServiceWithFencer: the polite request has its own limit."""
    async with frozen_process() as frozen:
        code, out, err = await haadmin(
            *FENCER,
            *("-D", f"dfs.namenode.rpc-address.ns1.nn1=127.0.0.1:{frozen}"),
            *("-D", "ha.failover-controller.graceful-fence.rpc-timeout.ms=300"),
            *("-failover", "nn1", "nn2"),
        )
        assert (code, out, err) == (0, DONE, "")
        assert cluster.namenodes["nn2"].state is ACTIVE


async def test_generic_options_come_first(haadmin: Shell, tmp_path: Path) -> None:
    extra = tmp_path / "extra.xml"
    extra.write_text(
        "<configuration><property><name>dfs.namenode.rpc-address.ns1.nn2</name>"
        "<value>127.0.0.1:1</value></property></configuration>"
    )
    ignored = ("-fs", "hdfs://ns1", "-jt", "local", "-files", "a", "-libjars", "b")
    assert await haadmin(*ignored, "-getServiceState", "nn2") == (0, "standby\n", "")
    assert (await haadmin("-conf", str(extra), "-getServiceState", "nn2"))[0] == 255


async def test_addresses_are_printed_as_java_does() -> None:
    assert await java_host("nn1.example.invalid") == "nn1.example.invalid"
    assert await java_host("192.0.2.1") == "192.0.2.1"  # no host's, so it has no name
    unresolved = await java_name(HostPort("nn1.example.invalid", 8020))
    assert unresolved == "NameNode at nn1.example.invalid/<unresolved>:8020"


async def test_a_silent_name_server_costs_a_name_and_not_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = threading.Event()

    def slow(*_: object) -> tuple[str, str]:
        asked.wait(30)
        return "late.example.invalid", "0"

    monkeypatch.setattr("ha.cli.hadoop.java_address.NAMING_SECONDS", 0.1)
    monkeypatch.setattr("socket.getnameinfo", slow)
    began = asyncio.get_running_loop().time()
    assert await java_host("127.0.0.1") == "127.0.0.1"
    assert asyncio.get_running_loop().time() - began < 10
    asked.set()


def test_hadoops_program_names_are_installed() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert {"nnha", "haadmin", "zkfc"} <= scripts.keys()
    for place in scripts.values():
        module, _, name = place.partition(":")
        assert callable(getattr(import_module(module), name))
