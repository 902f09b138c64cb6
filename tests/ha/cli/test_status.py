"""nnha status: one look at real servers, some frozen or gone, as a table and as JSON."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from rich.console import Console

from ha.cli.status.status_table import as_text
from ha.cluster.daemon_queries import look_at
from ha.cluster.problems import problems
from ha.cluster.status_json import as_json
from ha.cluster.view import ClusterView
from ha.conf.configuration import load_configuration
from tests.ha.cli import schema
from tests.ha.cli.stand_ins import Cluster, frozen_process

DEADLINE_SECONDS = 2.0
"""Long enough that a busy machine answers within it; the journal's client is loaded in it, too."""
SLACK_SECONDS = 10.0


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


async def look(conf_dir: Path, *overrides: str) -> ClusterView:
    configuration = load_configuration(conf_dir, overrides, environment={})
    return await look_at(configuration, "ns1", deadline_seconds=DEADLINE_SECONDS)


def text_of(view: ClusterView) -> str:
    console = Console(width=160, no_color=True)
    with console.capture() as captured:
        console.print(as_text(view))
    return captured.get()


async def test_the_active_its_epoch_and_the_standbys_lag_are_shown(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.namenodes["nn1"].page = {"epoch": 7, "last_txid": 12345}
    cluster.namenodes["nn2"].page = {"epoch": None, "last_txid": 12000}
    view = await look(tmp_path)
    assert view.active is not None
    assert view.active.namenode == "nn1"
    assert view.epoch == 7
    assert problems(view) == ()
    headline, _, nn1, nn2 = text_of(view).splitlines()
    assert "epoch 7   active nn1   failover: BY HAND   healthy" in headline
    assert "12,345" in nn1
    assert "345 tx" in nn2


@pytest.mark.usefixtures("cluster")
async def test_a_frozen_process_costs_no_more_than_the_deadline_and_is_named(
    tmp_path: Path,
) -> None:
    async with frozen_process() as port:
        started = time.monotonic()
        view = await look(tmp_path, f"dfs.namenode.rpc-address.ns1.nn2=127.0.0.1:{port}")
        assert time.monotonic() - started < DEADLINE_SECONDS + SLACK_SECONDS
    assert [row.error for row in view.namenodes] == [None, "no answer in 2 s"]
    assert problems(view) == ("NameNode nn2: no answer in 2 s",)


@pytest.mark.usefixtures("cluster")
async def test_frozen_journalnode_zkfc_and_zookeeper_are_named_in_time(tmp_path: Path) -> None:
    async with frozen_process() as port:
        started = time.monotonic()
        view = await look(
            tmp_path,
            "dfs.ha.automatic-failover.enabled=true",
            f"ha.zookeeper.quorum=127.0.0.1:{port}",
            f"nnha.zkfc.http-address.ns1.nn1=127.0.0.1:{port}",
            f"dfs.namenode.shared.edits.dir=qjournal://127.0.0.1:{port}/ns1",
        )
        assert time.monotonic() - started < DEADLINE_SECONDS + SLACK_SECONDS
    silent = "no answer in 2 s"
    assert [row.error for row in view.zkfcs] == [silent, None]
    assert [row.error for row in view.journalnodes] == [silent]
    assert [row.error for row in view.zookeepers] == [silent]
    assert view.lock.error == "no answer in 2 s from any ZooKeeper server"
    told = text_of(view)
    assert "! whether ZooKeeper has a quorum is not known" in told
    assert "! whether the journal has a quorum is not known" in told
    assert "failover: UNKNOWN" in told


@pytest.mark.usefixtures("cluster")
async def test_processes_that_do_not_run_are_told_from_silent_ones(tmp_path: Path) -> None:
    view = await look(
        tmp_path,
        "dfs.ha.automatic-failover.enabled=true",
        "ha.zookeeper.quorum=127.0.0.1:1",
        "dfs.namenode.rpc-address.ns1.nn1=127.0.0.1:1",
        "nnha.zkfc.http-address.ns1.nn1=127.0.0.1:1",
        "dfs.ha.zkfc.port.ns1.nn1=1",
        "dfs.namenode.shared.edits.dir=qjournal://127.0.0.1:1/ns1",
    )
    refused = "not running (connection refused)"
    assert view.namenodes[0].error == refused
    assert view.zkfcs[0].error == refused
    assert view.journalnodes[0].error == refused
    assert view.zookeepers[0].error == refused
    assert "no NameNode is active" in problems(view)


async def test_something_else_behind_a_port_is_an_error_in_its_row_only(
    cluster: Cluster, tmp_path: Path
) -> None:
    http = cluster.ports["http-nn1"]
    view = await look(
        tmp_path,
        f"dfs.namenode.rpc-address.ns1.nn2=127.0.0.1:{http}",
        f"dfs.namenode.shared.edits.dir=qjournal://127.0.0.1:{http}/ns1",
    )
    assert view.namenodes[0].error is None
    assert view.namenodes[1].error
    assert view.journalnodes[0].error


async def test_pages_full_of_nonsense_neither_crash_nor_steer_the_terminal(
    cluster: Cluster, tmp_path: Path
) -> None:
    nn2 = cluster.namenodes["nn2"]
    nn2.unwell = "\x1b[2J[bold]not markup[/bold] " + "x" * 5000
    nn2.page = {"epoch": "seven", "last_txid": True, "journal": [1, {"node": 3}, None]}
    cluster.namenodes["nn1"].page = {"journal": "all of them"}
    view = await look(tmp_path)
    told = text_of(view)
    assert view.namenodes[1].last_txid is None
    assert "\x1b" not in told
    assert "[bold]not markup[/bold]" in told


@pytest.mark.usefixtures("cluster")
async def test_json_has_fixed_keys_whatever_was_found(tmp_path: Path) -> None:
    well = as_json(await look(tmp_path))
    ill = as_json(await look(tmp_path, "dfs.namenode.rpc-address.ns1.nn1=127.0.0.1:1"))
    for document in (well, ill):
        assert schema.faults("status", json.loads(json.dumps(document))) == []
    assert json.loads(json.dumps(ill)) == ill
    for rows in ("namenodes", "zkfcs", "journalnodes"):
        assert keys_of(well[rows]) == keys_of(ill[rows])


def keys_of(rows: object) -> list[list[str]]:
    assert isinstance(rows, list)
    return [list(row) for row in rows]


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ha.cli.main", "status", *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_the_command_exits_0_whatever_it_finds_and_8_with_check(tmp_path: Path) -> None:
    keys = {
        "dfs.nameservices": "ns1",
        "dfs.ha.namenodes.ns1": "nn1",
        "dfs.namenode.rpc-address.ns1.nn1": "127.0.0.1:1",
        "dfs.namenode.http-adress.ns1.nn1": "127.0.0.1:1",
    }
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in keys.items()
    )
    (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{properties}</configuration>")
    where = ("--conf-dir", str(tmp_path))
    plain, checked = command(*where), command(*where, "--check", "-o", "json")
    assert (plain.returncode, checked.returncode) == (0, 8)
    assert "! no NameNode is active" in plain.stdout
    assert "Did you mean dfs.namenode.http-address.ns1.nn1?" in plain.stderr
    assert json.loads(checked.stdout)["healthy"] is False


def test_a_bad_configuration_is_one_clear_message_and_exit_code_2(tmp_path: Path) -> None:
    told = command("--conf-dir", str(tmp_path))
    assert told.returncode == 2
    assert told.stdout == ""
    assert told.stderr.startswith("nnha status: ")
    assert len(told.stderr.splitlines()) == 1


@pytest.mark.usefixtures("cluster")
async def test_a_watch_into_a_pipe_tells_each_look_at_once(tmp_path: Path) -> None:
    """``nnha status -w | tee log``: nothing is held back until the end."""
    words = ("-m", "ha.cli.main", "status", "-w", "--conf-dir", str(tmp_path))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    looks = 0
    try:
        async with asyncio.timeout(30):
            while looks < 2:
                looks += (await process.stdout.readline()).startswith(b"Cluster ns1")
    finally:
        process.kill()
        await process.wait()
