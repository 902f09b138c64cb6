"""TestDFSHAAdminMiniCluster and TestNNHealthCheck: haadmin, real NameNodes.

Each NameNode writes to real JournalNodes and serves HAServiceProtocol; haadmin alone orders them
what to be.  They have no safe mode: one that has not read the journal is not ready instead.
"""

import asyncio
import getpass
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import structlog

from ha.cli.hadoop.haadmin import run
from ha.conf.topology import HostPort
from ha.health.core import Health, HealthSettings
from ha.health.monitor import HealthMonitor
from ha.rpc.server import RpcServer
from ha.service.client import ServiceClient
from ha.service.errors import HealthCheckFailed
from ha.service.ha_service import ha_service_protocol
from ha.service.model import ServiceStatus
from namenode_sim.process.ha_service import NameNodeHaService
from namenode_sim.term.namenode import NameNode
from namenode_sim.term.role import Role
from tests.ha.cli.stand_ins import LOOPBACK, write_configuration
from tests.journal.writer.journal_cluster import Nodes, formatted_nodes
from tests.namenode_sim.term.test_in_progress_tail import namenode, until

NAMES = ("nn1", "nn2")
Captured = pytest.CaptureFixture[str]


@dataclass
class Machine:
    """A NameNode and its RPC server."""

    namenode: NameNode
    server: RpcServer
    trouble: str | None = None


@dataclass
class MiniCluster:
    """Two NameNodes, and haadmin's command line for them."""

    folder: Path
    journal: Nodes
    capsys: Captured
    machines: dict[str, Machine] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    async def haadmin(self, *words: str) -> tuple[int, str, str]:
        line = ("--conf-dir", str(self.folder), *words)
        code = await asyncio.to_thread(run, line)
        out, err = self.capsys.readouterr()
        return code, out, err

    def roles(self) -> list[Role]:
        return [machine.namenode.state.role for machine in self.machines.values()]

    def fencer(self) -> tuple[str, ...]:
        said = self.folder / "fenced"
        script = (
            f'env | grep -E "^(target_|dfs_ha_namenode_id)" | sort > {said} && '
            f"test ! -e {self.folder}/broken"
        )
        return ("-D", f"dfs.ha.fencing.methods=shell({script})")

    def fenced(self) -> dict[str, str]:
        said = self.folder / "fenced"
        if not said.exists():
            return {}
        lines = said.read_text().splitlines()
        said.unlink()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


@asynccontextmanager
async def running(folder: Path, capsys: Captured) -> AsyncIterator[MiniCluster]:
    async with AsyncExitStack() as stack:
        journal = await stack.enter_async_context(formatted_nodes(folder))
        cluster = MiniCluster(folder, journal, capsys)
        for name in NAMES:
            node = await stack.enter_async_context(namenode(journal, name))
            await add(cluster, stack, name, node)
        for machine in cluster.machines.values():
            await until(lambda machine=machine: machine.namenode.tailer.trouble is None)  # type: ignore[misc]
        write_configuration(folder, cluster.ports)
        yield cluster


async def add(cluster: MiniCluster, stack: AsyncExitStack, name: str, node: NameNode) -> None:
    face = NameNodeHaService(
        node,
        superuser=getpass.getuser(),
        automatic_failover=False,
        disk_trouble=lambda: cluster.machines[name].trouble,
    )
    server = RpcServer([ha_service_protocol(face)])
    cluster.ports[f"rpc-{name}"] = await server.start(LOOPBACK, 0)
    stack.push_async_callback(server.stop)
    # Nothing listens on these: without controllers, haadmin asks none of them.
    cluster.ports |= {f"{kind}-{name}": 1 for kind in ("zkfc", "http", "zkfc-http")}
    cluster.machines[name] = Machine(node, server)


@pytest.mark.row("8.11 MC.testGetServiceState")
async def test_row_8_11_mc_get_service_state(tmp_path: Path, capsys: Captured) -> None:
    async with running(tmp_path, capsys) as cluster:
        for name in NAMES:
            assert await cluster.haadmin("-getServiceState", name) == (0, "standby\n", "")
        assert (await cluster.haadmin("-transitionToActive", "nn1"))[0] == 0
        assert await cluster.haadmin("-getServiceState", "nn1") == (0, "active\n", "")
        # Not ready is no other state, as with safe mode.
        await cluster.journal.stop(1, 2)
        await until(lambda: cluster.machines["nn2"].namenode.tailer.trouble is not None)
        assert await cluster.haadmin("-getServiceState", "nn2") == (0, "standby\n", "")


@pytest.mark.row("8.11 MC.testStateTransition")
async def test_row_8_11_mc_state_transition(tmp_path: Path, capsys: Captured) -> None:
    async with running(tmp_path, capsys) as cluster:
        for number, name in enumerate(NAMES):
            assert await cluster.haadmin("-transitionToActive", name) == (0, "", "")
            assert cluster.roles()[number] is Role.ACTIVE
            assert await cluster.haadmin("-transitionToStandby", name) == (0, "", "")
            assert cluster.roles() == [Role.STANDBY, Role.STANDBY]


@pytest.mark.row(
    "8.11 MC.testTryFailoverToSafeMode",
    because="without blocks there is no safe mode; who has not read the journal is not ready",
)
async def test_row_8_11_mc_try_failover_to_one_that_is_not_ready(
    tmp_path: Path, capsys: Captured
) -> None:
    async with running(tmp_path, capsys) as cluster:
        assert (await cluster.haadmin("-transitionToActive", "nn1"))[0] == 0
        second = cluster.machines["nn2"].namenode
        await second.tailer.stop()
        second.tailer.trouble = "the journal has not been read yet"
        code, out, err = await cluster.haadmin(*cluster.fencer(), "-failover", "nn1", "nn2")
        assert (code, out) == (255, "")
        assert "nn2 is not ready to become active: the journal has not been read yet" in err
        assert cluster.roles() == [Role.ACTIVE, Role.STANDBY]
        assert cluster.fenced() == {}


@pytest.mark.row("8.11 MC.testFencer")
async def test_row_8_11_mc_fencer(tmp_path: Path, capsys: Captured) -> None:
    async with running(tmp_path, capsys) as cluster:
        fencer, failover = cluster.fencer(), ("-failover", "nn1", "nn2")
        assert (await cluster.haadmin("-transitionToActive", "nn1"))[0] == 0
        # Without a fencer nothing is tried.
        assert (await cluster.haadmin(*failover))[0] == 255
        assert cluster.roles() == [Role.ACTIVE, Role.STANDBY]
        # It steps back when asked: the script has not to run.
        assert (await cluster.haadmin(*fencer, *failover))[0] == 0
        assert cluster.roles() == [Role.STANDBY, Role.ACTIVE]
        assert cluster.fenced() == {}
        # Forced, the script gets the victim, nn2 now.
        assert (await cluster.haadmin(*fencer, "-failover", "--forcefence", "nn2", "nn1"))[0] == 0
        port = str(cluster.ports["rpc-nn2"])
        assert cluster.fenced() == {
            "dfs_ha_namenode_id": "nn2",
            "target_address": f"127.0.0.1:{port}",
            "target_host": "127.0.0.1",
            "target_namenodeid": "nn2",
            "target_nameserviceid": "ns1",
            "target_port": port,
        }
        assert (await cluster.haadmin(*fencer, "-failover", "nn1", "nn2", "--forceactive"))[0] == 0
        assert cluster.fenced() == {}
        for bad in ("", "foobar!"):
            settings = ("-D", f"dfs.ha.fencing.methods={bad}")
            assert (await cluster.haadmin(*settings, "-failover", "nn2", "nn1"))[0] == 255
        assert cluster.roles() == [Role.STANDBY, Role.ACTIVE]
        # The script fails: both are standby then, and stay so.
        (tmp_path / "broken").touch()
        forced = ("-failover", "--forcefence", "nn2", "nn1")
        code, _, err = await cluster.haadmin(*fencer, *forced)
        assert code == 255
        assert "Unable to fence nn2" in err
        assert cluster.roles() == [Role.STANDBY, Role.STANDBY]


@pytest.mark.row("8.11 MC.testCheckHealth")
async def test_row_8_11_mc_check_health(tmp_path: Path, capsys: Captured) -> None:
    async with running(tmp_path, capsys) as cluster:
        for name in NAMES:
            assert await cluster.haadmin("-checkHealth", name) == (0, "", "")


@pytest.mark.row("8.11 MC.testTransitionToActiveWhenOtherNamenodeisActive")
async def test_row_8_11_mc_transition_to_active_when_other_namenode_is_active(
    tmp_path: Path, capsys: Captured
) -> None:
    async with running(tmp_path, capsys) as cluster:
        assert (await cluster.haadmin("-transitionToActive", "nn1"))[0] == 0
        code, out, err = await cluster.haadmin("-transitionToActive", "nn2")
        assert (code, out) == (255, "")
        assert "transitionToActive: Node nn1 is already active" in err
        assert cluster.roles() == [Role.ACTIVE, Role.STANDBY]
        # It goes away altogether: that it is not active cannot be checked, so force is needed.
        gone = cluster.machines["nn1"]
        await gone.server.stop()
        await gone.namenode.stop()
        code, _, err = await cluster.haadmin("-transitionToActive", "nn2")
        assert (code, "Unexpected error occurred" in err) == (255, True)
        assert (await cluster.haadmin("-transitionToActive", "nn2", "--forceactive"))[0] == 0
        assert cluster.machines["nn2"].namenode.state.role is Role.ACTIVE


@pytest.mark.row(
    "8.11 MC.testObserverTransition",
    "8.11 MC.testObserverIllegalTransition",
    because="there is no observer role: each of these transitions is refused",
)
async def test_row_8_11_mc_observer_is_refused_and_changes_nothing(
    tmp_path: Path, capsys: Captured
) -> None:
    async with running(tmp_path, capsys) as cluster:
        assert (await cluster.haadmin("-transitionToActive", "nn1"))[0] == 0
        for name in NAMES:
            assert (await cluster.haadmin("-transitionToObserver", name))[0] == 255
        assert cluster.roles() == [Role.ACTIVE, Role.STANDBY]


@dataclass
class Listener:
    states: list[tuple[Health, str]] = field(default_factory=list)

    def status_reported(self, status: ServiceStatus) -> None: ...

    def health_changed(self, health: Health, reason: str) -> None:
        self.states.append((health, reason))


@pytest.mark.row("8.11 HC.testNNHealthCheck")
@pytest.mark.row(
    "8.11 HC.testNNHealthCheckWithLifelineAddress",
    because="the lifeline address is one of its cases",
)
@pytest.mark.parametrize("own_port", [False, True], ids=["service", "lifeline"])
async def test_row_8_11_hc_nn_health_check(
    tmp_path: Path, capsys: Captured, own_port: bool
) -> None:
    """Check by RPC and by the monitor, on the service's port or on one for health alone."""
    async with running(tmp_path, capsys) as cluster:
        machine = cluster.machines["nn1"]
        port = cluster.ports["rpc-nn1"]
        face = NameNodeHaService(
            machine.namenode,
            superuser=getpass.getuser(),
            automatic_failover=False,
            disk_trouble=lambda: machine.trouble,
        )
        lifeline = RpcServer([ha_service_protocol(face)])
        if own_port:
            port = await lifeline.start(LOOPBACK, 0)
        settings = HealthSettings(check_interval_seconds=0.02, rpc_timeout_seconds=5.0)
        listener = Listener()
        monitor = HealthMonitor(HostPort(LOOPBACK, port), settings, listener)
        watching = asyncio.create_task(monitor.run())
        client = await ServiceClient.open(HostPort(LOOPBACK, port), deadline_seconds=5.0)
        try:
            await client.monitor_health(deadline_seconds=5.0)
            await until(lambda: monitor.state.health is Health.HEALTHY)
            machine.trouble = "/data has 0 bytes left"
            with pytest.raises(HealthCheckFailed, match="0 bytes left"):
                await client.monitor_health(deadline_seconds=5.0)
            await until(lambda: monitor.state.health is Health.UNHEALTHY)
            assert "0 bytes left" in listener.states[-1][1]
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await client.close()
            await lifeline.stop()
