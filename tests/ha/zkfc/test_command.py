"""``nnha zkfc`` as a process: exit codes and their order, and its end."""

import asyncio
import json
import signal
import urllib.request
from pathlib import Path

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import read_active
from ha.service.model import ServiceState
from tests.ha.daemon.notified import Manager
from tests.ha.zkfc.site import Site
from tests.ha.zkfc.toy_namenode import SharedResource, ToyNameNode
from tests.ha.zkfc.zkfc_world import free_port, until
from tests.stand_in import say_nothing, stand_in

pytestmark = pytest.mark.zookeeper


@pytest.mark.row("W21")
@pytest.mark.row(
    "8.1 testFormatZK",
    "8.1 testFormatOneClusterLeavesOtherClustersAlone",
    because="one run of -formatZK with each exit code, and another cluster's znode beside it",
)
async def test_format_and_its_codes(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    site = Site(tmp_path, zookeeper.connect)
    other = Site(tmp_path, zookeeper.connect)
    code, said = await site.run()
    assert (code, "--format-zk" in said) == (3, True)
    assert (await site.run("-formatZK"))[0] == 0
    code, said = await site.run("-formatZK", "-nonInteractive")
    assert (code, "--force" in said) == (2, True)
    # The end of input is a no (Hadoop asks for ever).
    code, said = await site.run("--format-zk")
    assert (code, "Y or N" in said) == (2, True)
    assert (await site.run("--format-zk", "--non-interactive", "--force"))[0] == 0
    assert (await other.run())[0] == 3
    assert (await other.run("-formatZK"))[0] == 0
    assert (await site.run("-formatZK", "-nonInteractive"))[0] == 2


async def test_znodes_are_prepared_where_nobody_can_tell_which_namenode_runs(site: Site) -> None:
    """Use an operator's machine, or both NameNodes on one: the znode is the nameservice's."""
    del site.values["dfs.ha.namenode.id"]
    assert (await site.run("--check-zk"))[0] == 3
    assert (await site.run("--format-zk"))[0] == 0
    assert (await site.run("--check-zk"))[0] == 0
    code, said = await site.run("--check-zk", "-D", "dfs.ha.namenode.id=nn9")
    assert (code, "There is no NameNode 'nn9'" in said) == (1, True)
    code, said = await site.run()
    assert (code, "Which NameNode" in said) == (78, True)


@pytest.mark.row(
    "8.1 testWontRunWhenAutoFailoverDisabled",
    "8.1 testFencingMustBeConfigured",
    because="each of these rows is one exit code, and the test walks them in their order",
)
async def test_what_no_waiting_can_mend_is_told_before_zookeeper_is_looked_for(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    site = Site(tmp_path, f"127.0.0.1:{free_port()}")
    code, said = await site.run("-D", "dfs.ha.automatic-failover.enabled=false", "-formatZK")
    assert (code, "automatic-failover" in said) == (5, True)
    code, said = await site.run("-D", "dfs.ha.fencing.methods=")
    assert (code, "dfs.ha.fencing.methods" in said) == (4, True)
    code, said = await site.run("-D", "ha.zookeeper.acl=nonsense")
    assert (code, "ha.zookeeper.acl" in said) == (78, True)
    assert (await site.run("--no-such-option"))[0] == 1
    site = Site(tmp_path, zookeeper.connect)
    assert (await site.run("-formatZK", "-D", "dfs.ha.fencing.methods="))[0] == 0
    for bad in ("", "foobar!"):
        code, said = await site.run("-D", f"dfs.ha.fencing.methods={bad}")
        assert (code, "dfs.ha.fencing.methods" in said) == (4, True)


@pytest.mark.row("8.1 testNoZK")
async def test_no_zk_a_task_tells_what_it_could_not_do_and_nothing_else(tmp_path: Path) -> None:
    """testNoZK: exit code 6, and the log says the same."""
    away = f"127.0.0.1:{free_port()}"
    quick = ("-D", "nnha.zookeeper.open-acl=allow", "-D", "ha.zookeeper.session-timeout.ms=1000")
    tasks = ("check", "format", "clear")
    runs = (Site(tmp_path, away).run(f"--{task}-zk", *quick) for task in tasks)
    for task, (code, told) in zip(tasks, await asyncio.gather(*runs), strict=True):
        logged, said = told.splitlines(keepends=True)
        assert '"event": "daemon.exit", "code": 6' in logged
        assert (code, said) == (
            6,
            f"zkfc: Unable to {task} the znodes: no ZooKeeper of {away} answered within 5 s "
            f"({away}: Connection refused); check ha.zookeeper.quorum and that the ensemble has "
            "a quorum\n",
        )


async def test_a_task_tells_a_doubtful_setting_in_plain_words(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    code, said = await Site(tmp_path, zookeeper.connect).run("--format-zk")
    created, doubt = sorted(said.splitlines())
    assert (code, created.startswith("Successfully created /hadoop-ha/")) == (0, True)
    assert doubt.startswith("warning: ha.zookeeper.acl lets anybody who reaches ZooKeeper")


async def test_a_signal_while_zookeeper_does_not_answer_is_obeyed_at_once(tmp_path: Path) -> None:
    """End neither at the limit for the first connection, nor as a failure."""
    reached = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        await say_nothing(reader, writer)

    async with stand_in(silent) as port, asyncio.timeout(30):
        process = await Site(tmp_path, f"127.0.0.1:{port}").begin()
        await reached.wait()
        process.send_signal(signal.SIGTERM)
        _, err = await process.communicate()
        assert process.returncode == 0, err


async def test_a_port_in_use_is_told_with_its_key(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    namenode = ToyNameNode("nn1", SharedResource())
    await namenode.start()
    site = Site(tmp_path, zookeeper.connect, namenode.port)
    assert (await site.run("-formatZK"))[0] == 0
    scope = f"{site.nameservice}.nn1"
    try:
        for key, value in {
            "dfs.ha.zkfc.port": f"{namenode.port}",
            "nnha.zkfc.http-address": f"127.0.0.1:{namenode.port}",
        }.items():
            code, said = await site.run("-D", f"{key}.{scope}={value}")
            last = said.splitlines()[-1]
            assert (code, "Traceback" in said) == (1, False), said
            assert f"{key}: cannot listen on 127.0.0.1:{namenode.port}" in last
            assert f"give {key} another port" in last
    finally:
        await namenode.die()


async def test_the_process_serves_its_status_and_leaves_on_sigterm(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    namenode = ToyNameNode("nn1", SharedResource())
    await namenode.start()
    site = Site(tmp_path, zookeeper.connect, namenode.port)
    assert (await site.run("-formatZK"))[0] == 0
    process = await site.begin()
    gathering = asyncio.create_task(process.communicate())
    try:
        await until(lambda: namenode.state is ServiceState.ACTIVE, "active")
        await until(lambda: process.returncode is None, "alive")
        status = await asyncio.to_thread(_get, f"http://127.0.0.1:{site.http_port}/status")
        assert status["role"] == "zkfc"
        assert status["fencing_methods"] == ["shell(/bin/true)"]
        assert status["pid"] == process.pid
        assert status["session_timeout_seconds"] == 5.0
        scope = ZooKeeperSettings(
            hosts=zookeeper.connect, session_timeout_seconds=5.0,
            scope=f"/hadoop-ha/{site.nameservice}",
        )  # fmt: skip
        assert (await read_active(scope, deadline_seconds=5.0)) is not None
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            _, err = await gathering
        assert process.returncode == 0
        assert (await read_active(scope, deadline_seconds=5.0)) is None
        assert namenode.state is ServiceState.ACTIVE  # it was not touched
        phases = [
            line["phase"]
            for line in map(json.loads, err.decode().splitlines())
            if line["event"] == "failover.phase"
        ]
        assert phases == ["lock", "promoting", "active", "released"]
    finally:
        if process.returncode is None:
            process.kill()
        await asyncio.wait({gathering})
        await namenode.die()


def _get(url: str) -> dict[str, object]:
    with urllib.request.urlopen(url, timeout=5) as answer:
        found: dict[str, object] = json.load(answer)
        return found


async def test_systemd_hears_when_a_supervised_controller_is_ready_and_what_it_is(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    namenode = ToyNameNode("nn1", SharedResource())
    await namenode.start()
    site = Site(tmp_path, zookeeper.connect, namenode.port)
    assert (await site.run("-formatZK"))[0] == 0
    manager = Manager(str(tmp_path / "notify"))
    told = {"NOTIFY_SOCKET": manager.socket.getsockname(), "WATCHDOG_USEC": "3000000"}
    parent = await site.begin("--supervised", environment=told)
    gathering = asyncio.create_task(parent.communicate())
    try:
        await asyncio.to_thread(manager.hear, lambda text: text.startswith("STATUS=active"))
        await until(lambda: namenode.state is ServiceState.ACTIVE, "active")
        if "READY=1" not in manager.heard:
            await asyncio.to_thread(manager.hear, lambda text: text == "READY=1")
        await asyncio.to_thread(manager.hear, lambda text: text == "WATCHDOG=1")
        parent.send_signal(signal.SIGTERM)
        await asyncio.to_thread(manager.hear, lambda text: text == "STOPPING=1")
        assert await parent.wait() == 0
    finally:
        if parent.returncode is None:
            parent.kill()
        await gathering
        manager.socket.close()
        await namenode.die()
