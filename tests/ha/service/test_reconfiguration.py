"""A running daemon takes over what has changed in its files, key by key."""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.keys import blocks, datanode
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, IO_EXCEPTION
from ha.rpc.protocol import Call
from ha.service.reconfiguration import Reconfiguration, check_is

KEYS = (datanode.HEARTBEAT_INTERVAL, blocks.RECHECK, blocks.DELETIONS)
BEAT, RECHECK, DELETIONS = (key.name for key in KEYS)


class Daemon:
    """Files, and what a daemon made of them."""

    def __init__(self, folder: Path, *overrides: str) -> None:
        self.folder, self.overrides = folder, overrides
        self.used: list[tuple[float, float]] = []
        self.write()
        ticks = count(100)
        self.subject = Reconfiguration(
            self.read(), KEYS, self.use, clock=lambda: float(next(ticks))
        )

    def write(self, **values: str) -> None:
        rows = "".join(
            f"<property><name>{name.replace('_', '.')}</name><value>{value}</value></property>"
            for name, value in values.items()
        )
        (self.folder / "hdfs-site.xml").write_text(f"<configuration>{rows}</configuration>")

    def read(self) -> Configuration:
        return load_configuration(self.folder, self.overrides, environment={})

    def use(self, conf: Configuration) -> None:
        found = conf.get(datanode.HEARTBEAT_INTERVAL), conf.get(blocks.RECHECK)
        conf.get(blocks.DELETIONS)
        self.used.append(found)

    async def ask(self, method: str, user: str = "hdfs") -> Any:  # noqa: ANN401
        found = self.subject.methods(check_is("hdfs"))[method]
        call = Call("protocol", method, b"client", 1, 0, user, None, "127.0.0.1")
        return await found.handle(call, found.request())

    async def change(self) -> list[tuple[str, str, str, str]]:
        await self.ask("startReconfiguration")
        status = await self.ask("getReconfigurationStatus")
        return [(o.name, o.oldValue, o.newValue, o.errorMessage) for o in status.changes]


@pytest.fixture
def daemon(tmp_path: Path) -> Daemon:
    return Daemon(tmp_path)


async def test_before_the_first_change_there_is_none(daemon: Daemon) -> None:
    status = await daemon.ask("getReconfigurationStatus")
    assert (status.startTime, status.endTime, len(status.changes)) == (0, 0, 0)
    names = await daemon.ask("listReconfigurableProperties")
    assert list(names.name) == sorted((BEAT, RECHECK, DELETIONS))


async def test_what_differs_is_taken_and_what_is_gone_has_its_default_again(
    daemon: Daemon,
) -> None:
    daemon.write(**{BEAT: "7s", "dfs.replication": "2"})
    assert await daemon.change() == [(BEAT, "3s", "7s", "")]
    assert daemon.used == [(7.0, 300.0)]
    assert await daemon.change() == []
    daemon.write(**{RECHECK: "1000"})
    assert await daemon.change() == [(BEAT, "7s", "3s", ""), (RECHECK, "300000", "1000", "")]
    assert daemon.used[1:] == [(3.0, 300.0), (3.0, 1.0)]
    status = await daemon.ask("getReconfigurationStatus")
    assert (status.startTime, status.endTime) == (104_000, 105_000)


async def test_a_bad_value_leaves_the_others_alone_and_is_tried_again(daemon: Daemon) -> None:
    daemon.write(**{BEAT: "often", RECHECK: "1000"})
    for taken in ([(RECHECK, "300000", "1000", "")], []):
        (name, _, new, error), *others = await daemon.change()
        assert (name, new, others) == (BEAT, "often", taken)
        assert "hdfs-site.xml" in error
        assert BEAT in error
    assert daemon.used == [(3.0, 1.0)]
    daemon.write(**{BEAT: "4s", RECHECK: "1000"})
    assert await daemon.change() == [(BEAT, "3s", "4s", "")]


async def test_the_command_line_still_counts_more(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, f"{BEAT}=9s")
    daemon.write(**{BEAT: "7s"})
    assert await daemon.change() == []


async def test_files_that_cannot_be_read_change_nothing(daemon: Daemon) -> None:
    (daemon.folder / "hdfs-site.xml").write_text("<configuration>")
    with pytest.raises(RemoteFault) as refused:
        await daemon.change()
    assert refused.value.java_class == IO_EXCEPTION
    assert "hdfs-site.xml" in refused.value.reason
    daemon.write(**{BEAT: "4s"})
    assert await daemon.change() == [(BEAT, "3s", "4s", "")]


@pytest.mark.parametrize(
    "method", ["startReconfiguration", "getReconfigurationStatus", "listReconfigurableProperties"]
)
async def test_it_is_for_the_superuser(daemon: Daemon, method: str) -> None:
    daemon.write(**{BEAT: "4s"})
    with pytest.raises(RemoteFault) as refused:
        await daemon.ask(method, user="eve")
    assert refused.value.java_class == ACCESS_CONTROL
    assert daemon.used == []


async def test_one_change_at_a_time(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    first = asyncio.create_task(daemon.ask("startReconfiguration"))
    await asyncio.sleep(0)
    status = await daemon.ask("getReconfigurationStatus")
    assert (status.startTime, status.HasField("endTime")) == (100_000, False)
    with pytest.raises(RemoteFault, match="Another reconfiguration task is running"):
        await daemon.ask("startReconfiguration")
    await first
