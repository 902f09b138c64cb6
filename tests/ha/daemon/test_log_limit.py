"""A library's lines are bounded; a ZKFC without ZooKeeper is counted, as a real process."""

import asyncio
import itertools
import json
import logging
import sys
from pathlib import Path

import pytest
import structlog

from ha.daemon import log_limit
from ha.daemon.log_limit import LINES_A_MINUTE, LineLimit, cut
from ha.daemon.logs import configure_logging
from tests.ha.cli.test_own_certificate import SITE
from tests.log_lines import captured

LIMIT_SECONDS = 60.0


def line(name: str, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord(name, level, "", 0, "away", (), None)


def admitted(limit: LineLimit, event: str, level: str = "info", **fields: object) -> bool:
    try:
        limit.of_own(None, "", {"event": event, "level": level, **fields})
    except structlog.DropEvent:
        return False
    return True


def test_each_library_and_level_has_its_lines_of_a_minute() -> None:
    now = [0.0]
    limit = LineLimit(lambda: now[0], later=lambda *_: None)
    assert [limit(line("kazoo.client")) for _ in range(15)] == [True] * 10 + [False] * 5
    assert not limit(line("kazoo.protocol.connection"))
    assert limit(line("kazoo.client", logging.ERROR))
    assert limit(line("asyncio"))
    now[0] = 59.9
    assert not limit(line("kazoo.client"))
    now[0] = 60.0
    with captured("log.lines_dropped", here=True) as logs:
        assert [limit(line("kazoo.client")) for _ in range(12)] == [True] * 10 + [False] * 2
    (said,) = logs
    assert (said["of"], said["lines"], said["seconds"]) == ("kazoo", 7, 60)


def test_each_warning_of_our_own_has_its_lines_of_a_minute() -> None:
    now = [0.0]
    limit = LineLimit(lambda: now[0], later=lambda *_: None)

    def written(event: str, level: str = "warning") -> bool:
        return admitted(limit, event, level)

    assert [written("tailer.cannot_follow") for _ in range(25)] == [True] * 20 + [False] * 5
    assert all(written("elector.step", "info") for _ in range(100))
    assert all(written("storage.failed", "error") for _ in range(100))
    assert all(written("audit") and written("audit.hadoop") for _ in range(100))
    assert written("datanode.namenode_lost")
    now[0] = 60.0
    with captured("log.lines_dropped", here=True) as logs:
        assert written("tailer.cannot_follow")
    assert [(one["of"], one["lines"]) for one in logs] == [("tailer.cannot_follow", 5)]


@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_each_caller_has_its_lines_of_a_minute_at_every_level(level: str) -> None:
    now = [0.0]
    limit = LineLimit(lambda: now[0], later=lambda *_: None)

    def written(event: str, times: int, **caller: object) -> int:
        return sum(admitted(limit, event, level, **caller) for _ in range(times))

    assert written("rpc.connection.closed", 1000, uid=1, host="127.0.0.1") == 20
    assert written("rpc.connection.closed", 5, uid=2, host="127.0.0.1") == 5, (
        "another's are no less"
    )
    events = ("a", "b", "c", "d")
    assert sum(written(event, 1000, uid=1, host="127.0.0.1") for event in events) == 40
    now[0] = 60.0
    with captured("log.lines_dropped", here=True) as logs:
        assert written("a", 30, uid=1) == 20
    said = {one["of"]: one["lines"] for one in logs}
    assert said == {"rpc.connection.closed": 980, "a": 980, "b": 980, "c": 1000, "d": 1000}


SAME = {
    "all of loopback": ("127.0.0.1", "127.9.8.7:5"),
    "a port is nothing": ("10.0.0.1:1", "10.0.0.1:2"),
    "an IPv6 network": ("2001:db8:0:1::1", "[2001:db8:0:1:ffff::2]:80"),
    "IPv4 in IPv6": ("::ffff:127.0.0.1", "127.0.0.1"),
    "a scope": ("fe80::1%eth0", "fe80::2%lo"),
}


@pytest.mark.parametrize("case", SAME)
@pytest.mark.parametrize("field", ["peer", "host", "asked_by"])
def test_what_a_caller_may_change_at_will_makes_it_no_other(case: str, field: str) -> None:
    limit = LineLimit(lambda: 0.0, later=lambda *_: None)
    one, other = SAME[case]
    assert sum(admitted(limit, "x", **{field: one}) for _ in range(50)) == 20
    assert not admitted(limit, "x", **{field: other})
    assert admitted(limit, "x", **{field: "10.9.9.9"})


def test_callers_of_many_addresses_are_bounded_together() -> None:
    limit = LineLimit(lambda: 0.0, later=lambda *_: None)
    peers = (f"10.{a}.{b}.1" for a in range(100) for b in range(10))
    written = sum(admitted(limit, "x", peer=peer) for peer in peers for _ in range(30))
    assert written == (log_limit.MOST_CALLERS + 1) * 20


def test_what_was_dropped_is_said_when_the_minute_is_over_without_another_line() -> None:
    now, due = [10.0], []
    limit = LineLimit(lambda: now[0], later=lambda seconds, say: due.append((seconds, say)))
    now[0] = 12.0
    for _ in range(50):
        admitted(limit, "x", peer="10.0.0.1")
    ((seconds, say),) = due
    now[0] += seconds
    with captured("log.lines_dropped", here=True) as logs:
        say()
    assert logs == [
        {
            "event": "log.lines_dropped",
            "of": "x",
            "lines": 30,
            "seconds": 60,
            "log_level": "warning",
        }
    ]


def test_a_callers_line_is_cut_and_no_other() -> None:
    long = "x" * 60_000
    event = {"event": "e", "level": "info", "peer": "p", "user": long, "reason": long, "n": 5}
    shown = cut(None, "", dict(event))
    assert shown["user"] == f"{'x' * 100}... (59900 more)"
    assert shown["reason"] == f"{'x' * 500}... (59500 more)"
    assert (shown["peer"], shown["n"]) == ("p", 5)
    assert cut(None, "", {"event": "step", "saw": long})["saw"] == long
    assert len(cut(None, "", {"event": long, "logger": "kazoo"})["event"]) < 600


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_line_with_an_error_in_it_is_cut(form: str, capfd: pytest.CaptureFixture[str]) -> None:
    configure_logging("x", form=form)
    try:
        dict[str, int]()["y" * 60_000]
    except KeyError:
        structlog.get_logger().exception("broken", peer="10.0.0.1", why="z" * 60_000)
    written = capfd.readouterr().err
    assert "broken" in written
    assert "z" * 501 not in written
    assert form == "text" or len(written) < 10_000


ATTEMPTS = 14
"""Of a controller to reach ZooKeeper, each of which kazoo complains of."""


def test_a_controller_writes_few_lines_while_zookeeper_is_away(tmp_path: Path) -> None:
    asyncio.run(_count_lines(tmp_path))


async def _count_lines(tmp_path: Path) -> None:
    attempts, enough = itertools.count(1), asyncio.Event()

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        if next(attempts) >= ATTEMPTS:
            enough.set()

    away = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    quorum = f"127.0.0.1:{away.sockets[0].getsockname()[1]}"
    site = "".join(one for one in SITE.splitlines(keepends=True) if "tls.dir" not in one)
    (tmp_path / "hdfs-site.xml").write_text(site)
    settings = (
        f"ha.zookeeper.quorum={quorum}",
        "dfs.ha.namenode.id=nn1",
        "dfs.ha.zkfc.port=0",
        "nnha.zkfc.http-address=127.0.0.1:0",
    )
    words = [word for one in settings for word in ("-D", one)]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ha.cli.main", "zkfc", "--conf-dir", str(tmp_path), *words),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            await enough.wait()
    finally:
        process.terminate()
        _, text = await process.communicate()
        away.close()
    lines = text.decode().splitlines()
    said = [json.loads(one) for one in lines if one.startswith("{")]
    kazoo = [one["level"] for one in said if one.get("logger", "").startswith("kazoo")]
    assert 0 < kazoo.count("warning") <= LINES_A_MINUTE, text.decode()
    assert len(lines) <= 3 * LINES_A_MINUTE, text.decode()
