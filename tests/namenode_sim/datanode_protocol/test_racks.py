"""Racks by a table and by a real script: looked up in a thread, remembered, bounded in time."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from namenode_sim.datanode_protocol.racks import LookupFailed, Racks, Script, Table
from namenode_sim.datanodes.model import DatanodeId
from tests.log_lines import captured


def datanode(ip: str, host: str = "dn") -> DatanodeId:
    return DatanodeId(f"uuid-{ip}", ip, host, 9866, 9864, 9867)


def script(directory: Path, body: str, **more: float) -> Script:
    file = directory / "racks.sh"
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return Script(str(file), most_arguments=2, seconds=more.get("seconds", 10.0))


def test_a_script_gets_few_hosts_at_a_time(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    source = script(tmp_path, f'echo $# >>{calls}; for h in "$@"; do echo /r/$h; done')
    assert source(["a", "b", "c"]) == {"a": "/r/a", "b": "/r/b", "c": "/r/c"}
    assert calls.read_text().split() == ["2", "1"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param("echo broken >&2; exit 3", "exited with 3: broken", id="an exit code"),
        pytest.param("echo /r", "printed 1 racks, 2 were asked for", id="too few racks"),
        pytest.param("echo /r bad", "printed 'bad', which is no rack", id="no rack"),
        pytest.param("seq 3", "printed 3 racks, 2 were asked for", id="too many racks"),
        pytest.param("exec yes", "was ended after 10 s or 65536 bytes", id="a flood"),
    ],
)
def test_a_script_that_fails_says_how(tmp_path: Path, body: str, why: str) -> None:
    with pytest.raises(LookupFailed, match=why):
        script(tmp_path, body)(["a", "b"])


def test_a_script_that_is_not_there() -> None:
    with pytest.raises(LookupFailed, match="cannot be run"):
        Script("/no/such/script")(["a"])


def test_a_script_that_hangs_is_ended_with_all_that_it_has_started(tmp_path: Path) -> None:
    """What it has started holds its output open."""
    pid = tmp_path / "pid"
    began = time.monotonic()
    source = script(tmp_path, f"sleep 60 & echo $! >{pid}; wait", seconds=1.5)
    with pytest.raises(LookupFailed, match=r"was ended after 1.5 s"):
        source(["a"])
    assert time.monotonic() < began + 30
    gone = time.monotonic() + 10
    while _runs(int(pid.read_text())) and time.monotonic() < gone:
        os.sched_yield()
    assert not _runs(int(pid.read_text()))


def _runs(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


async def test_while_a_script_runs_the_loop_goes_on(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    racks = Racks(script(tmp_path, f"read x <{go}; echo /r"))
    found = asyncio.create_task(racks.of(datanode("10.0.0.1")))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not found.done()
    await asyncio.to_thread(go.write_text, "x\n")
    assert await found == "/r"


async def test_a_table_names_addresses_or_hosts(tmp_path: Path) -> None:
    file = tmp_path / "table"
    file.write_text("10.0.0.1 /a\nDn2 /b\nbad\n")
    racks = Racks(Table(file))
    assert await racks.of(datanode("10.0.0.1")) == "/a"
    assert await racks.of(datanode("10.0.0.2", "dn2")) == "/b"
    assert await racks.of(datanode("10.0.0.3", "dn3")) == "/default-rack"
    file.write_text("10.0.0.1 /c\n")
    assert await racks.of(datanode("10.0.0.1")) == "/a"  # remembered
    racks.forget(datanode("10.0.0.1"))
    assert await racks.of(datanode("10.0.0.1")) == "/c"
    assert await racks.of(datanode("10.0.0.2", "dn2")) == "/b"
    racks.forget()
    assert await racks.of(datanode("10.0.0.2", "dn2")) == "/default-rack"


async def test_a_table_that_cannot_be_read_says_so_once(tmp_path: Path) -> None:
    racks, now = Racks(Table(tmp_path / "none"), clock=lambda: now), 0.0
    with captured("racks.") as lines:
        for number in range(5):
            assert await racks.of(datanode(f"10.0.0.{number}")) is None
    assert [line["event"] for line in lines] == ["racks.lookup_failed"]
    assert "cannot be read" in lines[0]["why"]
    (tmp_path / "none").write_text("10.0.0.1 /a\n")
    assert await racks.of(datanode("10.0.0.1")) is None
    now = 61.0
    with captured("racks.") as lines:
        assert await racks.of(datanode("10.0.0.1")) == "/a"
    assert [line["event"] for line in lines] == ["racks.lookup_works"]


class Asked:
    """A source that keeps what it was asked for."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, names: Sequence[str]) -> Mapping[str, str]:
        """Say that all are on one rack."""
        self.calls.append(sorted(names))
        return dict.fromkeys(names, "/r")


async def test_hosts_that_are_asked_for_at_once_are_looked_up_together() -> None:
    source = Asked()
    racks = Racks(source)
    await asyncio.gather(*(racks.of(datanode(f"10.0.0.{n}")) for n in range(5)))
    await racks.of(datanode("10.0.0.1"))
    assert sorted(name for call in source.calls for name in call) == [
        f"10.0.0.{n}" for n in range(5)
    ]
    assert len(source.calls) < 5


async def test_a_client_does_not_wait_for_its_rack() -> None:
    racks = Racks(Asked())
    assert racks.of_client("10.0.0.9") is None
    assert racks.of_client("10.0.0.8") is None
    async with asyncio.timeout(10):
        while racks.of_client("10.0.0.9") is None or racks.of_client("10.0.0.8") is None:
            await asyncio.sleep(0)
    assert racks.of_client("10.0.0.9") == "/r"
    assert Racks().of_client("10.0.0.9") == "/default-rack"


async def test_a_rack_of_before_the_tables_change_does_not_stay() -> None:
    """The bad schedule: the table is read, changed, all is forgotten, and the answer comes."""
    racks, answers = Racks(lambda names: dict.fromkeys(names, answers.pop(0))), ["/old", "/new"]
    found = asyncio.create_task(racks.of(datanode("10.0.0.1")))
    while len(answers) == 2:
        await asyncio.sleep(0)
    racks.forget()
    assert await found == "/new"


@pytest.mark.parametrize("problem", [OSError("no space"), ValueError("embedded null byte")])
async def test_a_lookup_that_cannot_be_made_leaves_nothing_over(problem: Exception) -> None:
    problems = [problem]

    def look_up(names: Sequence[str]) -> Mapping[str, str]:
        if problems:
            raise problems.pop()
        return dict.fromkeys(names, "/r")

    racks = Racks(look_up)
    with captured("racks.") as lines:
        assert await racks.of(datanode("10.0.0.1")) is None
    assert [line["event"] for line in lines] == ["racks.lookup_failed"]
    assert await racks.of(datanode("10.0.0.2")) == "/r"


async def test_a_client_without_a_host_is_not_asked_for() -> None:
    """Edits of old may name none, and a script would print one rack too few for all."""
    source = Asked()
    racks = Racks(source)
    for host in ("", "a\0b"):
        assert racks.of_client(host) is None
    assert await racks.of(datanode("10.0.0.1")) == "/r"
    assert source.calls == [["10.0.0.1"]]
