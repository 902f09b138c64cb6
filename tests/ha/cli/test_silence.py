"""No answer in time is unknown, never down: slow, silent and busy machines and our own lateness."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog

from ha.cluster.daemon_queries import look_at
from ha.cluster.view import ClusterView
from ha.conf.configuration import load_configuration
from tests.ha.cli.nnha_run import nnha
from tests.ha.cli.schema import FOLDER
from tests.ha.cli.stand_ins import LOOPBACK, Cluster, frozen_process
from tests.ha.cli.test_status import text_of
from tests.stand_in import say_nothing, stand_in

BLOCKED_SECONDS = 1.5
SHORT_SECONDS = 0.4
"""A look this short would be over during the standstill."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


@asynccontextmanager
async def answering_from(connection: int, port: int) -> AsyncIterator[int]:
    """Keep the first connections silent, and pass the others on to ``port``."""
    count = 0

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        if count < connection:
            await say_nothing(reader, writer)
        there, back = await asyncio.open_connection(LOOPBACK, port)
        try:
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        finally:
            back.transport.abort()

    async with stand_in(speak) as own_port:
        yield own_port


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(64 * 1024):
        sink.write(data)
    sink.close()


async def look_from_a_loop_that_stands_still(conf_dir: Path) -> ClusterView:
    """Look in a loop of its own, blocked while the questions are on their way."""

    async def look() -> ClusterView:
        asyncio.get_running_loop().call_later(0.0, time.sleep, BLOCKED_SECONDS)
        configuration = load_configuration(conf_dir, (), environment={})
        return await look_at(configuration, "ns1", deadline_seconds=SHORT_SECONDS)

    return await asyncio.to_thread(asyncio.run, look())


@pytest.mark.usefixtures("cluster")
async def test_a_standstill_of_our_own_loop_is_not_the_peers_silence(tmp_path: Path) -> None:
    view = await look_from_a_loop_that_stands_still(tmp_path)
    assert view.own_delay_seconds > BLOCKED_SECONDS - SHORT_SECONDS
    assert [row.error for row in view.namenodes] == [None, None]
    assert "this command itself stood still for 1." in text_of(view)


@pytest.mark.usefixtures("cluster")
async def test_a_silent_namenode_is_unknown_and_nobody_is_told_to_kill_it(tmp_path: Path) -> None:
    async with frozen_process() as port:
        where = (
            "--conf-dir",
            str(tmp_path),
            "-D",
            f"dfs.namenode.rpc-address.ns1.nn1=127.0.0.1:{port}",
        )
        shown = await nnha("status", *where, "--timeout", "0.5")
        explained = await nnha("explain", *where, "--timeout", "0.5")
        document = (await nnha("status", *where, "--timeout", "0.5", "-o", "json")).document
        checked = await nnha("doctor", *where, "--timeout", "0.5", "-o", "json")
    assert "active UNKNOWN" in shown.out
    assert "UNKNOWN" in next(line for line in shown.out.splitlines() if line.startswith("nn1"))
    assert "DOWN" not in shown.out
    assert document["silent"] == ["NameNode nn1"]
    assert explained.out.startswith("NO NameNode says that it is active\n")
    verdicts = {one["check"]: one["verdict"] for one in checked.document["checks"]}
    assert verdicts["NameNode nn1"] == verdicts["one active"] == "unknown"
    for told in (shown.out, explained.out, checked.out):
        assert "kill" not in told.replace("a method that kills", "")


def silent_everywhere(port: int) -> tuple[str, ...]:
    """Make every process of the cluster the one that says nothing."""
    keys = [f"{kind}.ns1.{name}=127.0.0.1:{port}" for name in ("nn1", "nn2") for kind in (
        "dfs.namenode.rpc-address", "dfs.namenode.http-address", "nnha.zkfc.http-address"
    )]  # fmt: skip
    keys += [f"dfs.ha.zkfc.port.ns1.{name}={port}" for name in ("nn1", "nn2")]
    keys += [
        "dfs.ha.automatic-failover.enabled=true",
        "dfs.ha.fencing.methods=journal-epoch",
        f"ha.zookeeper.quorum=127.0.0.1:{port}",
        f"dfs.namenode.shared.edits.dir=qjournal://127.0.0.1:{port}/ns1",
    ]
    return tuple(word for key in keys for word in ("-D", key))


@pytest.mark.usefixtures("cluster")
async def test_where_nobody_answers_only_that_is_said_and_check_exits_6(tmp_path: Path) -> None:
    async with frozen_process() as port:
        words = ("--conf-dir", str(tmp_path), *silent_everywhere(port), "--timeout", "0.5")
        shown, checked = await nnha("status", *words), await nnha("status", "--check", *words)
        explained = await nnha("explain", *words)
        judged = await nnha("doctor", *words, "-o", "json")
    assert (shown.code, checked.code) == (0, 6)
    # One frozen port stands for all here, which the configuration's check finds.
    failed = {one["check"] for one in judged.document["checks"] if one["verdict"] == "fail"}
    assert failed == {"configuration"}
    headline, only = [line for line in shown.out.splitlines() if line[:1] in "C!"]
    assert "UNKNOWN" in headline
    assert only.startswith("! none of 6 processes gave an answer in 0.5 s, so nothing is known")
    assert explained.out.startswith("none of 6 processes gave an answer in 0.5 s")
    for told in (shown.out, explained.out):
        assert "DOWN" not in told
        assert "no NameNode is active" not in told
        assert "quorum" not in told


@pytest.mark.parametrize("command", ["switchover", "failover", "drain"])
@pytest.mark.usefixtures("cluster")
async def test_silence_is_not_a_refusal(tmp_path: Path, command: str) -> None:
    async with frozen_process() as port:
        words = ("--conf-dir", str(tmp_path), *silent_everywhere(port), "--timeout", "10.5")
        more = ("--for", "1h", "--reason", "a test") if command == "drain" else ("--yes",)
        told = await nnha(command, "nn2", *more, *words, "-o", "json")
    assert (told.code, told.document["code"]) == (6, "NO_ANSWER")
    assert told.document["outcome"] == "unreachable"


async def test_a_standby_that_answers_late_is_asked_again_and_not_refused(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Let the first look find it silent, as on a busy machine; the second one lasts longer."""
    async with answering_from(2, cluster.ports["rpc-nn2"]) as port:
        told = await nnha(
            "switchover", "nn2", "--dry-run", "--conf-dir", str(tmp_path),
            "-D", "dfs.ha.automatic-failover.enabled=true",
            "-D", "dfs.ha.fencing.methods=journal-epoch",
            "-D", f"dfs.namenode.rpc-address.ns1.nn2=127.0.0.1:{port}",
            "-D", "ha.zookeeper.quorum=127.0.0.1:1",
            "--timeout", "0.5",
        )  # fmt: skip
    assert told.code == 0, told
    assert "asking once more" in told.err
    assert "nn2 would become active" in told.out


async def test_a_zkfc_that_is_silent_is_not_to_be_started(cluster: Cluster, tmp_path: Path) -> None:
    cluster.controllers["nn2"].page = {"namenode": "nn2"}
    async with frozen_process() as port:
        told = await nnha(
            "explain", "nn2", "--conf-dir", str(tmp_path),
            "-D", "dfs.ha.automatic-failover.enabled=true",
            "-D", "ha.zookeeper.quorum=127.0.0.1:1",
            "-D", f"nnha.zkfc.http-address.ns1.nn2=127.0.0.1:{port}",
            "--timeout", "0.5",
        )  # fmt: skip
    line = next(line for line in told.out.splitlines() if "ZKFC: no answer" in line)
    assert line.strip().startswith("nn2  not known:")
    assert "start it" not in line


IMPORTS = """
import asyncio, sys
from pathlib import Path
import ha.cli.status.command
from ha.cluster.daemon_queries import look_at
from ha.conf.configuration import load_configuration

asked, loaded = [], []

def hook(event, arguments):
    if event == "socket.connect":
        asked.append(arguments)
    elif event == "import" and asked:
        loaded.append(arguments[0])

sys.addaudithook(hook)
conf = load_configuration(Path(sys.argv[1]), sys.argv[2:], environment={})
view = asyncio.run(look_at(conf, "ns1", deadline_seconds=10.0))
assert asked and view.namenodes[0].state == "active", view
print(*loaded)
"""
"""What a look imports after its first question is on its way."""


@pytest.mark.usefixtures("cluster")
async def test_nothing_big_is_loaded_while_the_clock_runs(tmp_path: Path) -> None:
    """Time spent on loading code is not the peers' fault."""
    told = await asyncio.to_thread(
        subprocess.run,
        [
            sys.executable, "-c", IMPORTS, str(tmp_path),
            "dfs.ha.automatic-failover.enabled=true", "ha.zookeeper.quorum=127.0.0.1:1",
            "dfs.namenode.shared.edits.dir=qjournal://127.0.0.1:1/ns1",
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    loaded = {name.partition(".")[0] for name in told.stdout.split()}
    assert loaded.isdisjoint({"grpc", "google", "paramiko", "kazoo", "aiohttp", "journal", "rich"})


async def test_haadmin_takes_a_timeout(cluster: Cluster, tmp_path: Path) -> None:
    async with frozen_process() as port:
        told = await nnha(
            "haadmin", "--conf-dir", str(tmp_path), "--timeout", "0.3",
            "-D", f"dfs.namenode.rpc-address.ns1.nn1=127.0.0.1:{port}",
            "-getServiceState", "nn1",
        )  # fmt: skip
        wrong = await nnha("haadmin", "--timeout", "soon", "-getServiceState", "nn1")
    assert (told.code, wrong.code) == (255, 255)
    assert "0.3 s" in told.err or "in time" in told.err, told.err
    assert "--timeout takes seconds" in wrong.err


def test_every_command_that_asks_somebody_takes_a_timeout() -> None:
    words = [
        ["status"], ["explain"], ["doctor"], ["history"], ["switchover"], ["failover"], ["drain"],
        ["pause"], ["resume"], ["journal", "status"], ["journal", "segments"],
    ]  # fmt: skip
    for one in words:
        assert "--timeout" in asyncio.run(nnha(*one, "--help")).out, one


def test_the_document_names_the_silent(tmp_path: Path) -> None:
    """Let a script distinguish silence from a closed port."""
    schema = json.loads((FOLDER / "status.json").read_text())
    assert {"silent", "own_delay_seconds", "own_start_seconds"} <= set(schema["required"])
