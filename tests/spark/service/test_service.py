"""The checkpoint service against a real NameNode and real JournalNodes, all in this process."""

import asyncio
import os
import select
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hadoop.errors import InUse
from journal.model import TxId
from namenode_sim.image.files import digest_path, image_name
from namenode_sim.image.reader import load_image
from spark.ends.hadoop_files import HadoopFiles
from spark.ends.options import Ends, open_sink, open_source
from spark.ends.sinks.model import Sink, SinkFailed, SinkOutcome, SinkRefused
from spark.ends.sources.directory import DirectorySource
from spark.ends.sources.model import Staged
from spark.service.log_roll import roll_log
from spark.service.merge_process import MergeFailed, MergeProcess
from spark.service.service import CheckpointService
from tests.journal.node.process import until
from tests.namenode_sim.startup.startup_world import ROLLED, in_use
from tests.spark.service import service_world as worlds


def decided(service: CheckpointService) -> object:
    told = service.status()["last_decision"]
    assert isinstance(told, dict)
    return told["decision"]


def taken(service: CheckpointService) -> object:
    told = service.status()["last_taken"]
    assert isinstance(told, dict)
    return told["txid"]


def assert_image_has(world: worlds.ServiceWorld, paths: list[str]) -> None:
    (txid,) = world.images()
    namespace = load_image(world.name_dirs[0] / "current" / image_name(TxId(txid)))
    children = {node.name.decode() for node in namespace.tree.inodes.values()}
    assert {path.rpartition("/")[2] for path in paths} <= children


async def test_checkpoints_follow_the_edits_and_old_edits_go(tmp_path: Path) -> None:
    merger = worlds.HereMerger()
    async with worlds.service_world(tmp_path) as world, world.service("work", merger) as service:
        await until(lambda: decided(service) == "checkpoint.not_due", "a look")
        assert world.images() == [0]
        await world.mkdirs(*(f"/a{i}" for i in range(6)))
        await until(lambda: taken(service) is not None, "the first checkpoint")
        first = merger.merged[0]
        assert world.images() == world.images(1) == [first]
        assert_image_has(world, world.paths)
        await world.mkdirs(*(f"/b{i}" for i in range(6)))
        await until(lambda: len(merger.merged) == 2 and taken(service) != first, "the second")
        # It is durable in both directories, so what it holds goes from every JournalNode; a node
        # keeps its newest closed segment all the same.
        await until(lambda: set(world.first_edits()) == {first + 1}, "the edits to be purged")
        assert_image_has(world, world.paths)
        image = tmp_path / "work" / "7-CID-test" / image_name(merger.merged[1])
        assert merger.fetched[1] < image.stat().st_size  # the base was here
        assert service.trouble() is None


async def test_an_image_of_an_earlier_term_is_refused_and_planned_anew(tmp_path: Path) -> None:
    async with worlds.service_world(tmp_path) as world:
        terms: list[int] = []

        async def a_new_term() -> None:
            terms.append(len(world.images()))
            if len(terms) == 1:
                await world.make_active()

        await world.mkdirs(*(f"/a{i}" for i in range(6)))
        merger = worlds.HereMerger(before=a_new_term)
        slow = replace(worlds.RULES, retry_first_seconds=3600.0)
        async with world.service("work", merger, slow) as service:
            await until(lambda: decided(service) == "checkpoint.superseded", "the refusal")
            assert world.images() == [0]
            assert "planned under epoch" in (service.trouble() or "")
        async with world.service("work", merger) as service:
            await until(lambda: taken(service) is not None, "the checkpoint of the new term")
            assert_image_has(world, world.paths)


async def test_of_two_services_the_later_one_takes_it_for_done(tmp_path: Path) -> None:
    async with worlds.service_world(tmp_path) as world:
        both, first_taken = asyncio.Barrier(2), asyncio.Event()
        await world.mkdirs(*(f"/a{i}" for i in range(6)))

        async def wait_for_the_first() -> None:
            await both.wait()
            await first_taken.wait()

        late = worlds.HereMerger(before=wait_for_the_first)
        async with (
            world.service("one", worlds.HereMerger(before=both.wait)) as one,
            world.service("two", late) as two,
        ):
            await until(lambda: taken(one) is not None, "the first one's image to be taken")
            images = world.images()
            first_taken.set()
            await until(lambda: decided(two) == "checkpoint.made_elsewhere", "the second one")
            assert (two.status()["failures"], two.status()["ready_txid"]) == (0, None)
            assert world.images() == images


async def test_failures_are_told_and_waited_out(tmp_path: Path) -> None:
    async with worlds.service_world(tmp_path) as world:
        problems = ["the disk is full", "", ""]

        async def sometimes() -> None:
            if problem := problems.pop(0) if problems else "":
                raise MergeFailed(problem)

        await world.mkdirs(*(f"/a{i}" for i in range(6)))
        slow = replace(worlds.RULES, retry_first_seconds=0.5)
        async with world.service("work", worlds.HereMerger(before=sometimes), slow) as service:
            await until(lambda: service.trouble() is not None, "the failure")
            assert service.trouble() == "the disk is full"
            await until(lambda: taken(service) is not None, "the checkpoint after it")
            assert service.trouble() is None
            with pytest.raises(InUse):
                await CheckpointService(
                    world.cluster, worlds.RULES, tmp_path / "work", worlds.HereMerger()
                ).run()


async def test_edits_stay_while_the_image_is_in_no_majority_of_the_directories(
    tmp_path: Path,
) -> None:
    merger = worlds.HereMerger()
    async with worlds.service_world(tmp_path) as world, world.service("work", merger) as service:
        (tmp_path / "name2" / "current").rename(tmp_path / "name2" / "gone")
        for number in range(3):
            await world.mkdirs(*(f"/d{number}/{i}" for i in range(6)))
            await until(lambda n=number: len(merger.merged) > n, "a merge")
            await until(lambda n=number: taken(service) == merger.merged[n], "it to be taken")
        assert_image_has(world, world.paths)
        # Three checkpoints, and one directory of two has them: if it is lost, the edits are needed.
        assert set(world.first_edits()) == {1}


async def staged_here(folder: Path) -> Staged:
    await asyncio.to_thread(in_use, folder / "name")
    return DirectorySource(folder / "name", folder / "name").stage(folder, print)


async def test_the_merge_is_a_process_that_says_where_its_image_is(tmp_path: Path) -> None:
    staged = await staged_here(tmp_path)
    merger = MergeProcess(("--engine", "local"), tmp_path)
    image = await merger.merge(staged, tmp_path / "out")
    assert image == tmp_path / "out" / image_name(TxId(len(ROLLED)))
    assert load_image(image).last_applied == len(ROLLED)
    staged.image.write_bytes(b"x")
    with pytest.raises(MergeFailed, match=r"exit code 4: .*is corrupt"):
        await merger.merge(staged, tmp_path / "out")


async def test_a_merge_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    """Leave not even one that the merge started itself, and that ignores SIGTERM."""
    staged, pid_file = await staged_here(tmp_path), tmp_path / "pid"
    script = f"sh -c 'trap : TERM; echo $$ > {pid_file}; while :; do sleep 1; done' & wait"
    merger = MergeProcess((), tmp_path, program=("sh", "-c", script))
    merging = asyncio.create_task(merger.merge(staged, tmp_path / "out"))
    await until(lambda: pid_file.exists() and pid_file.read_text().strip(), "it to run")
    stat = Path("/proc", pid_file.read_text().strip(), "stat")
    assert stat.exists()
    merging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await merging
    await until(lambda: not stat.exists() or " Z " in stat.read_text(), "it to be gone")


async def test_a_merge_ends_with_a_service_that_was_killed(tmp_path: Path) -> None:
    """End it, as it would go on for hours, with gigabytes, for nothing."""
    staged = await staged_here(tmp_path)
    digest = digest_path(staged.image)
    digest.unlink()
    os.mkfifo(digest)  # the merge stops where it reads this
    script = f"""
import asyncio
from pathlib import Path
from spark.service.merge_process import MergeProcess
from spark.ends.sources.directory import DirectorySource
folder = Path({str(tmp_path)!r})
staged = DirectorySource(folder / "name", folder / "name").stage(folder, print)
asyncio.run(MergeProcess(("--engine", "local"), folder).merge(staged, folder / "out"))
"""
    service = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
    writing: list[int] = []

    def read_by_the_merge() -> bool:
        with suppress(OSError):  # it is not open for reading yet
            writing.append(os.open(digest, os.O_WRONLY | os.O_NONBLOCK))
        return bool(writing)

    try:
        await until(read_by_the_merge, "the merge to begin")
    finally:
        service.kill()
        await service.wait()
    watched = select.poll()
    watched.register(writing[0], 0)  # an error is reported once there is no reader any more
    await until(lambda: watched.poll(0), "the merge to be gone")
    os.close(writing[0])


def ends_of(world: worlds.ServiceWorld) -> Ends:
    return Ends(from_cluster=True, upload=True, conf_dir=world.servers.conf_dir)


def no_java() -> HadoopFiles:
    raise AssertionError("nothing here takes a JVM")


async def stage_and_merge(world: worlds.ServiceWorld, sink: Sink) -> tuple[Path, Staged]:
    """Merge by hand, outside of the event loop as a command does it."""
    work = world.servers.folder / "by-hand"
    work.mkdir(exist_ok=True)
    source = open_source(ends_of(world), no_java)
    staged = await asyncio.to_thread(source.stage, work, print)
    return await worlds.HereMerger().merge(staged, sink.folder(work)), staged


async def test_one_merge_by_hand_is_taken_once(tmp_path: Path) -> None:
    async with worlds.service_world(tmp_path) as world:
        sink = open_sink(ends_of(world), no_java)
        await world.mkdirs(*(f"/a{i}" for i in range(6)))
        await world.make_active()  # which ends a segment
        image, staged = await stage_and_merge(world, sink)
        done = await asyncio.to_thread(sink.publish, image, staged, print)
        assert (done.outcome, done.where) == (SinkOutcome.PUBLISHED, "NameNode nn1")
        assert_image_has(world, world.paths)
        again = await asyncio.to_thread(sink.publish, image, staged, print)
        assert again.outcome is SinkOutcome.ALREADY_THERE
        await world.mkdirs("/b")
        await roll_log(world.cluster)
        image, staged = await stage_and_merge(world, sink)
        with pytest.raises(SinkRefused, match=r"does not need .* taken an image lately"):
            await asyncio.to_thread(sink.publish, image, staged, print)


async def test_one_merge_by_hand_of_an_earlier_term_is_refused(tmp_path: Path) -> None:
    async with worlds.service_world(tmp_path) as world:
        sink = open_sink(ends_of(world), no_java)
        await world.mkdirs("/a")
        await roll_log(world.cluster)
        image, staged = await stage_and_merge(world, sink)
        await world.make_active()
        with pytest.raises(SinkRefused, match="superseded"):
            await asyncio.to_thread(sink.publish, image, staged, print)
        await world.make_standby()
        with pytest.raises(SinkFailed, match="no NameNode is active"):
            await asyncio.to_thread(sink.publish, image, staged, print)
        assert world.images() == [0]
