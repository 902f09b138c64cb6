"""``nnha checkpoint merge`` as a process: from a cluster and back, and called off by Ctrl-C."""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from journal.model import TxId
from namenode_sim.image.files import digest_path, image_name
from namenode_sim.image.reader import load_image
from spark.ends.sources.directory import newest_image
from tests.journal.node.process import until
from tests.namenode_sim.startup.startup_world import in_use
from tests.spark.service.service_world import service_world

END_SECONDS = 120.0
"""For a process that was interrupted, next to whatever else a machine does."""
MERGE = (sys.executable, "-m", "ha.cli.main", "checkpoint", "merge", "--json", "--engine")


async def merged(*arguments: object) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *MERGE,
        *map(str, ("local", *arguments)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, said = await process.communicate()
    return process.returncode or 0, out.decode(), said.decode()


async def test_a_running_cluster_is_merged_and_given_the_image(tmp_path: Path) -> None:
    work = tmp_path / "by-hand"
    async with service_world(tmp_path) as world:
        ends = ("--from-cluster", "--upload", "--conf-dir", world.servers.conf_dir, "--work", work)
        await world.mkdirs(*(f"/a{i}" for i in range(6)))
        await world.make_active()  # which ends a segment
        code, out, said = await merged(*ends)
        assert code == 0, said
        facts = json.loads(out)
        assert (facts["where"], facts["already_there"]) == ("NameNode nn1", False)
        assert world.images() == world.images(1) == [facts["to_txid"]]
        image = world.name_dirs[0] / "current" / image_name(TxId(facts["to_txid"]))
        held = {inode.name.decode() for inode in load_image(image).tree.inodes.values()}
        assert {path[1:] for path in world.paths} <= held
        code, out, said = await merged(*ends)
        assert (code, json.loads(out)["already_there"]) == (0, True), said
        # There is no active: the answer says so, and nothing has changed.
        await world.make_standby()
        code, out, said = await merged(*ends)
        assert (code, out) == (4, "")
        assert "no NameNode is active" in said
        assert said.rstrip().endswith("Nothing was published.")
        assert world.images() == [facts["to_txid"]]


async def test_a_merge_that_is_called_off_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    await asyncio.to_thread(in_use, tmp_path / "name")
    image, out = newest_image(tmp_path / "name"), tmp_path / "out"
    digest_path(image).unlink()
    os.mkfifo(digest_path(image))  # the merge stops where it reads this
    process = await asyncio.create_subprocess_exec(
        *MERGE,
        *map(str, ("local", "--image", image, "--edits", tmp_path / "name", "--out", out)),
        stderr=asyncio.subprocess.PIPE,
    )
    opened: list[int] = []

    def waits_for_the_digest() -> bool:
        with suppress(OSError):  # it is not read yet
            opened.append(os.open(digest_path(image), os.O_WRONLY | os.O_NONBLOCK))
        return bool(opened)

    try:
        await until(waits_for_the_digest, "the merge to begin")
        process.send_signal(signal.SIGINT)
        # A signal that came just before the read began would not end it.
        os.close(opened[0])
        _, said = await asyncio.wait_for(process.communicate(), END_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    assert process.returncode == 130
    assert b"interrupted: its image is there completely, or not at all" in said
    assert b"Traceback" not in said
    assert not out.exists() or not list(out.iterdir())


def started_for(folder: Path) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if f"{folder}/".encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def end_started_for(folder: Path) -> None:
    for left in started_for(folder):
        with suppress(ProcessLookupError):
            os.kill(left, signal.SIGKILL)


async def test_a_start_of_spark_that_is_called_off_leaves_no_jvm(tmp_path: Path) -> None:
    """PySpark forgets the JVM then, and that waits for a connection for good."""
    scratch = tmp_path / "scratch"
    script = f"""
import sys
from pathlib import Path
from spark.engine.session import SparkSettings, spark_started
try:
    with spark_started(SparkSettings("local[1]", Path({str(scratch)!r}))):
        pass
except KeyboardInterrupt:
    sys.exit(130)
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await until(lambda: started_for(scratch), "the JVM to be begun")
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), END_SECONDS) == 130
        await until(lambda: not started_for(scratch), "nothing of it to be left")
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        end_started_for(scratch)


async def test_a_start_of_spark_that_is_called_off_while_it_forks_is_not_started(
    tmp_path: Path,
) -> None:
    """Raise in a hook of a fork, where it is printed and forgotten; logging has one."""
    scratch = tmp_path / "scratch"
    script = f"""
import os
import signal
import sys
from pathlib import Path
from spark.engine.session import SparkSettings, spark_started
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    with spark_started(SparkSettings("local[1]", Path({str(scratch)!r}))):
        pass
except KeyboardInterrupt:
    sys.exit(130)
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
    try:
        assert await asyncio.wait_for(process.wait(), END_SECONDS) == 130
        await until(lambda: not started_for(scratch), "nothing of it to be left")
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        end_started_for(scratch)


async def test_workers_of_a_pool_go_quietly(tmp_path: Path) -> None:
    """Send Ctrl-C to every process of the terminal's group; one of them reports it."""
    idle, never = tmp_path / "idle", tmp_path / "never"
    script = f"""
import sys
from pathlib import Path
from spark.engine.pool import PoolEngine
from tests.spark.merge.engine_tasks import Square, waits_for
try:
    with PoolEngine(2) as pool:
        for _ in pool.run("wait", waits_for, [Square(0, {str(never)!r}), Square(1)]):
            Path({str(idle)!r}).touch()
except KeyboardInterrupt:
    sys.exit(130)
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stderr=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        await until(idle.exists, "one worker to run a task, and one to wait for the next")
        os.killpg(process.pid, signal.SIGINT)
        _, said = await asyncio.wait_for(process.communicate(), END_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    assert (process.returncode, said) == (130, b"")
