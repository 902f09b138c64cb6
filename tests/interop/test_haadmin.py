"""Our haadmin and Hadoop's own, side by side on the same servers: equal stdout, codes, effects.

Hadoop's translators drive our HAServiceProtocol and ZKFCProtocol servers here, too.
"""

import asyncio
import contextlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog

from ha.cli.hadoop.haadmin import run
from ha.service.model import RequestSource, ServiceState
from tests.ha.cli.stand_ins import Cluster, running_cluster
from tests.interop.hadoop_server import Hadoop

pytestmark = pytest.mark.interop

AUTO = {"dfs.ha.automatic-failover.enabled": "true"}
FENCER = {"dfs.ha.fencing.methods": "shell(true)"}
DEAD = {"dfs.namenode.rpc-address.ns1.nn2": "127.0.0.1:1"}

SAME_TO_THE_LAST_BYTE = {
    "no words": ([], {}),
    "a word without a dash": (["badCommand"], {}),
    "an unknown command": (["-badCommand"], {}),
    "help": (["-help"], {}),
    "help for one": (["-help", "transitionToActive"], {}),
    "help for one with a dash": (["-help", "-transitionToActive"], {}),
    "help of several lines": (["-help", "failover"], {}),
    "help for checkHealth": (["-help", "checkHealth"], {}),
    "help without arguments": (["-help", "getAllServiceState"], {}),
    "help for getServiceState": (["-help", "getServiceState"], {}),
    "help for transitionToStandby": (["-help", "transitionToStandby"], {}),
    "help for transitionToObserver": (["-help", "transitionToObserver"], {}),
    "help for help": (["-help", "help"], {}),
    "help for nothing known": (["-help", "x"], {}),
    "help for two": (["-help", "a", "b"], {}),
    "help in a strange nameservice": (["-ns", "bogus", "-help", "failover"], {}),
    "-ns alone": (["-ns"], {}),
    "-ns and nothing more": (["-ns", "ns1"], {}),
    "too few": (["-transitionToActive"], {}),
    "too many": (["-checkHealth", "a", "b"], {}),
    "none": (["-getServiceState"], {}),
    "one of two": (["-failover", "a"], {}),
    "a third": (["-failover", "nn1", "nn2", "nn3"], {}),
    "an unknown option": (["-checkHealth", "--x", "a"], {}),
    "too many options": (["-failover", "nn1", "nn2", *(["--forcefence"] * 4)], FENCER),
    "a state": (["-getServiceState", "nn1"], {}),
    "a state by -ns": (["-ns", "ns1", "-getServiceState", "nn2"], {}),
    "a state with controllers": (["-getServiceState", "nn1"], AUTO),
    "all states": (["-getAllServiceState"], {}),
    "all states and a word": (["-getAllServiceState", "x"], {}),
    "health": (["-checkHealth", "nn1"], {}),
    "health with controllers": (["-checkHealth", "nn2"], AUTO),
    "to standby": (["-transitionToStandby", "nn1"], {}),
    "to active by force": (["-transitionToActive", "--forceactive", "nn1"], {}),
    "failover by controllers": (["-failover", "nn1", "nn2"], AUTO),
    "failover of one to itself": (["-failover", "nn1", "nn1"], AUTO),
    "failover by hand": (["-failover", "nn1", "nn2"], FENCER),
    "failover by hand, options last": (
        ["-failover", "nn1", "nn2", "--forceactive", "-forcefence"],
        FENCER,
    ),
}
"""stdout and stderr are those of Hadoop, byte for byte."""

SAME_BUT_FOR_REASONS = {
    "an unknown node": (["-getServiceState", "nn9"], {}, "Illegal argument: Unable to determine"),
    "a node of a strange nameservice": (
        ["-ns", "bogus", "-getServiceState", "nn1"],
        {},
        "Illegal argument: Unable to determine service address for namenode 'nn1'",
    ),
    "several nameservices": (
        ["-getServiceState", "nn1"],
        {"dfs.nameservices": "ns1,ns2"},
        "Illegal argument: ",
    ),
    "another is active": (
        ["-transitionToActive", "nn2"],
        {},
        "transitionToActive: Node nn1 is already active",
    ),
    "another does not answer": (["-transitionToActive", "nn1"], DEAD, "Unexpected error occurred"),
    "one does not answer": (["-getServiceState", "nn2"], DEAD, "Operation failed: "),
    "by hand with controllers": (
        ["-transitionToActive", "nn2"],
        AUTO,
        "Automatic failover is enabled for NameNode at ",
    ),
    "standby by hand with controllers": (
        ["-transitionToStandby", "nn1"],
        AUTO,
        "Automatic failover is enabled for NameNode at ",
    ),
    "force with controllers": (
        ["-failover", "--forcefence", "nn1", "nn2"],
        AUTO,
        "forcefence and forceactive flags not supported with auto-failover enabled.",
    ),
    "no fencer": (["-failover", "nn1", "nn2"], {}, "Illegal argument: failover requires a fencer"),
    "itself by hand": (
        ["-failover", "nn1", "nn1"],
        FENCER,
        "Failover failed: Can't failover a service to itself",
    ),
    "an observer": (["-transitionToObserver", "nn2"], {}, "transitionToObserver"),
}
"""Equal stdout and code; stderr begins with the same words, and ours goes on with more."""


@dataclass(frozen=True, slots=True)
class Printed:
    """What a haadmin ended with (as a shell sees it) and wrote."""

    code: int
    out: str
    err: str


def run_java(
    hadoop: Hadoop, site: Path, settings: Mapping[str, str], words: list[str], typed: str = ""
) -> Printed:
    """Run one command line, ``typed`` being what stands on its standard input."""
    jvm = hadoop.gateway.jvm
    configuration = hadoop.hadoop.hdfs.HdfsConfiguration()
    configuration.addResource(hadoop.path(str(site)))
    for name, value in settings.items():
        configuration.set(name, value)
    out, err = jvm.java.io.ByteArrayOutputStream(), jvm.java.io.ByteArrayOutputStream()
    kept = jvm.System.out, jvm.System.err, getattr(jvm.System, "in")
    jvm.System.setOut(jvm.java.io.PrintStream(out, True))
    jvm.System.setErr(jvm.java.io.PrintStream(err, True))
    jvm.System.setIn(jvm.java.io.ByteArrayInputStream(typed.encode()))
    try:
        tool = hadoop.hadoop.hdfs.tools.DFSHAAdmin()
        tool.setConf(configuration)
        code = tool.run(hadoop.strings(*words))
    finally:
        jvm.System.setOut(kept[0])
        jvm.System.setErr(kept[1])
        jvm.System.setIn(kept[2])
    return Printed(code & 255, out.toString(), err.toString())


@dataclass(slots=True)
class Both:
    """The same command line for the two of them, from the same start."""

    cluster: Cluster
    hadoop: Hadoop
    folder: Path

    async def run(
        self, words: list[str], settings: Mapping[str, str], typed: str = ""
    ) -> tuple[Printed, Printed]:
        """Return what Hadoop's and ours have printed; their effects are compared here."""
        self.reset()
        site = self.folder / "hdfs-site.xml"
        java = await asyncio.to_thread(run_java, self.hadoop, site, settings, words, typed)
        theirs = self.effects()
        self.reset()
        ours = await asyncio.to_thread(self._ours, words, settings, typed)
        assert self.effects() == theirs
        return java, ours

    def reset(self) -> None:
        """Make nn1 active and nn2 standby, and forget all requests."""
        for name, node in self.cluster.namenodes.items():
            node.state = ServiceState.ACTIVE if name == "nn1" else ServiceState.STANDBY
            node.asked.clear()
        for controller in self.cluster.controllers.values():
            controller.asked = 0

    def effects(self) -> tuple[object, ...]:
        nodes = self.cluster.namenodes.values()
        return (
            [(node.state, tuple(node.asked)) for node in nodes],
            [controller.asked for controller in self.cluster.controllers.values()],
        )

    def _ours(self, words: list[str], settings: Mapping[str, str], typed: str) -> Printed:
        out, err = io.StringIO(), io.StringIO()
        overrides = [part for name, value in settings.items() for part in ("-D", f"{name}={value}")]
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr("sys.stdin", io.StringIO(typed))
            code = run(("--conf-dir", str(self.folder), *overrides, *words))
        return Printed(code, out.getvalue(), err.getvalue())


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keep this process's servers from logging to stdout, where haadmin's lines are expected."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


@pytest.mark.row("8.11 ZK.testManualFailoverWithDFSHAAdmin")
@pytest.mark.parametrize("case", SAME_TO_THE_LAST_BYTE)
async def test_the_same_to_the_last_byte(case: str, hadoop: Hadoop, tmp_path: Path) -> None:
    words, settings = SAME_TO_THE_LAST_BYTE[case]
    async with running_cluster(tmp_path) as cluster:
        java, ours = await Both(cluster, hadoop, tmp_path).run(words, settings)
    assert ours == java


@pytest.mark.parametrize("case", SAME_BUT_FOR_REASONS)
async def test_the_same_but_for_better_reasons(case: str, hadoop: Hadoop, tmp_path: Path) -> None:
    words, settings, start = SAME_BUT_FOR_REASONS[case]
    async with running_cluster(tmp_path) as cluster:
        java, ours = await Both(cluster, hadoop, tmp_path).run(words, settings)
    assert (ours.code, ours.out) == (java.code, java.out) == (255, "")
    assert java.err.startswith(start)
    assert ours.err.startswith(start)


async def test_a_dead_node_in_the_table_differs_in_its_reason_only(
    hadoop: Hadoop, tmp_path: Path
) -> None:
    async with running_cluster(tmp_path) as cluster:
        java, ours = await Both(cluster, hadoop, tmp_path).run(["-getAllServiceState"], DEAD)
    assert (java.code, ours.code) == (0, 0)
    (first, second), (own_first, own_second) = java.out.splitlines(), ours.out.splitlines()
    assert own_first == first
    reason = "Failed to connect: "
    assert own_second.partition(reason)[:2] == second.partition(reason)[:2]


async def test_bad_health_and_a_refused_failover_print_the_same(
    hadoop: Hadoop, tmp_path: Path
) -> None:
    async with running_cluster(tmp_path) as cluster:
        both = Both(cluster, hadoop, tmp_path)
        cluster.namenodes["nn1"].unwell = "disk full"
        java, ours = await both.run(["-checkHealth", "nn1"], {})
        assert ours == java
        assert ours == Printed(255, "", "Health check failed: disk full\n")
        cluster.controllers["nn2"].refusal = "nn2 is not healthy"
        java, ours = await both.run(["-failover", "nn1", "nn2"], AUTO)
        assert (ours.code, ours.out) == (java.code, java.out) == (255, "")
        assert "nn2 is not healthy" in java.err
        assert "nn2 is not healthy" in ours.err


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 255)], ids=["yes", "no"])
async def test_forcemanual_asks_and_goes_out_as_forced(
    hadoop: Hadoop, tmp_path: Path, typed: str, code: int
) -> None:
    async with running_cluster(tmp_path) as cluster:
        both = Both(cluster, hadoop, tmp_path)
        words = ["-transitionToStandby", "--forcemanual", "nn1"]
        java, ours = await both.run(words, AUTO, typed)
        asked = [("standby", RequestSource.USER_FORCED)] if code == 0 else []
        assert cluster.namenodes["nn1"].asked == asked
    assert (ours.code, ours.out) == (java.code, java.out) == (code, "")
