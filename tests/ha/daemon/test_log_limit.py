"""A library's lines are bounded; a ZKFC without ZooKeeper is counted, as a real process."""

import asyncio
import itertools
import json
import logging
import sys
from pathlib import Path

import structlog

from ha.daemon.log_limit import LINES_A_MINUTE, LineLimit
from tests.ha.cli.test_own_certificate import SITE

LIMIT_SECONDS = 60.0


def line(name: str, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord(name, level, "", 0, "away", (), None)


def test_each_library_and_level_has_its_lines_of_a_minute() -> None:
    now = [0.0]
    limit = LineLimit(lambda: now[0])
    assert [limit(line("kazoo.client")) for _ in range(15)] == [True] * 10 + [False] * 5
    assert not limit(line("kazoo.protocol.connection"))
    assert limit(line("kazoo.client", logging.ERROR))
    assert limit(line("asyncio"))
    now[0] = 59.9
    assert not limit(line("kazoo.client"))
    now[0] = 60.0
    with structlog.testing.capture_logs() as logs:
        assert [limit(line("kazoo.client")) for _ in range(12)] == [True] * 10 + [False] * 2
    (said,) = logs
    assert (said["of"], said["lines"], said["seconds"]) == ("kazoo", 7, 60)


def test_each_warning_of_our_own_has_its_lines_of_a_minute() -> None:
    now = [0.0]
    limit = LineLimit(lambda: now[0])

    def written(event: str, level: str = "warning") -> bool:
        try:
            limit.of_own(None, "", {"event": event, "level": level})
        except structlog.DropEvent:
            return False
        return True

    assert [written("tailer.cannot_follow") for _ in range(25)] == [True] * 20 + [False] * 5
    assert all(written("elector.step", "info") for _ in range(100))
    assert all(written("storage.failed", "error") for _ in range(100))
    assert all(written("audit") and written("audit.hadoop") for _ in range(100))
    assert written("datanode.namenode_lost")
    now[0] = 60.0
    with structlog.testing.capture_logs() as logs:
        assert written("tailer.cannot_follow")
    assert [(one["of"], one["lines"]) for one in logs] == [("tailer.cannot_follow", 5)]


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
