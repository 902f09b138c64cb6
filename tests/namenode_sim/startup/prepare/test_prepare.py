"""Preparations of real directories and JournalNodes, cut short at every step, and two at once."""

import asyncio
import shutil
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from deploy.local.cluster.ports import free_ports
from ha.daemon.process import ExitWith
from namenode_sim.startup.prepare.look import BEGUN
from namenode_sim.storage.version_file import parse_version
from tests.namenode_sim.startup.prepare import prepare_world
from tests.namenode_sim.startup.prepare.prepare_world import AT_ONCE, FOUNDS, Killed, Pair, Steps
from tests.namenode_sim.startup.startup_world import World, in_use, snapshot, world
from tests.worlds.files import info


@pytest.fixture
async def pair(at: World) -> Pair:
    return Pair(at, [0, *free_ports(4)])


async def test_one_founds_and_the_other_follows_and_nothing_is_done_twice(pair: Pair) -> None:
    second = asyncio.create_task(pair.prepare(2, prepare_world.FOLLOWS))
    assert (await pair.prepare(1, FOUNDS)).startswith("founded ns1: cluster CID-")
    async with AsyncExitStack() as running:
        await pair.serve(1, running)
        assert await second == "copied the image of transaction 0 from nn1"
        assert pair.namespace(1) == pair.namespace(2)
        assert await pair.cluster_ids() == {pair.namespace(1).cluster_id}
        before = snapshot(pair.at.folder)
        for n in (1, 2):
            assert "nothing was changed" in await pair.prepare(n, FOUNDS)
        assert snapshot(pair.at.folder) == before


@pytest.mark.parametrize("step", range(1, 8))
async def test_a_founding_that_is_cut_short_anywhere_goes_on_with_its_ids(
    pair: Pair, step: int
) -> None:
    steps = Steps(kill_before=step)
    with pytest.raises(Killed):
        await pair.prepare(1, FOUNDS, steps)
    begun = {
        parse_version(record.read_bytes()).cluster_id
        for record in (one / BEGUN for one in pair.directories(1))
        if record.exists()
    }
    assert (await pair.prepare(1, AT_ONCE)).startswith(("founded", "there is an image"))
    cluster_id = pair.namespace(1).cluster_id
    assert await pair.cluster_ids() == {cluster_id}
    assert begun <= {cluster_id}


@pytest.mark.parametrize("lost", [("b",), ("a", "b")])
async def test_a_founding_that_is_cut_short_in_its_name_directories_goes_on(
    pair: Pair, lost: tuple[str, ...]
) -> None:
    """VERSION is written last, so that a directory without one may hold anything."""
    with pytest.raises(Killed):
        await pair.prepare(1, FOUNDS, Steps(kill_before=7))
    (cluster_id,) = await pair.cluster_ids()
    for which in lost:
        (pair.at.folder / f"name1{which}" / "current" / "VERSION").unlink()
    assert (await pair.prepare(1, AT_ONCE)).startswith(f"founded ns1: cluster {cluster_id}")
    assert pair.namespace(1).cluster_id == cluster_id


async def test_files_without_version_that_no_founding_left_are_left_alone(pair: Pair) -> None:
    await pair.prepare(1, FOUNDS)
    for one in pair.directories(1):
        (one / "current" / "VERSION").unlink()
    before = snapshot(pair.at.folder)
    with pytest.raises(ExitWith, match="holds files but no VERSION") as refused:
        await pair.prepare(1, AT_ONCE)
    assert refused.value.code == 3
    assert snapshot(pair.at.folder) == before


async def test_the_steps_of_a_founding_are_those_that_are_cut(pair: Pair) -> None:
    steps = Steps()
    await pair.prepare(1, FOUNDS, steps)
    assert steps.taken == [
        *["prepare.draws"] * 2, *["prepare.journal"] * 3, "prepare.name_directories",
        "prepare.done",
    ]  # fmt: skip


async def test_two_that_found_at_once_have_one_cluster_id_wherever_one_is_killed(
    tmp_path: Path,
) -> None:
    """Both are allowed to found, which only one should be; the first is killed, or none."""
    for killed in (0, 2, 3, 4, 6):
        folder = tmp_path / str(killed)
        folder.mkdir()
        async with world(folder) as at, AsyncExitStack() as running:
            pair = Pair(at, [0, *free_ports(4)])

            async def one(
                n: int, kill_before: int, pair: Pair = pair, running: AsyncExitStack = running
            ) -> str:
                try:
                    done = await pair.prepare(n, FOUNDS, Steps(kill_before))
                except Killed:
                    done = await pair.prepare(n, FOUNDS)
                await pair.serve(n, running)
                return done

            done = await asyncio.gather(one(1, killed), one(2, 0))
            assert sorted(text.split()[0] for text in done) == ["copied", "founded"], done
            assert pair.namespace(1) == pair.namespace(2)
            assert await pair.cluster_ids() == {pair.namespace(1).cluster_id}


async def test_a_node_that_is_away_is_a_doubt(pair: Pair) -> None:
    await pair.at.nodes.stop(2)
    before = snapshot(pair.at.folder)
    with pytest.raises(ExitWith) as refused:
        await pair.prepare(1, AT_ONCE)
    assert refused.value.code == 3
    assert "it is not known whether there is a file system" in refused.value.message
    assert snapshot(pair.at.folder) == before


async def test_the_command_refuses_with_3_and_says_why(at: World) -> None:
    code, out = await at.command("--prepare", "--wait", "0")
    assert code == 3, out
    assert "One NameNode of the nameservice must be given --found" in out
    code, out = await at.command("--prepare", "--found", "--cluster-id", "CID-x")
    assert code == 0, out
    assert "founded ns1: cluster CID-x, block pool BP-" in out
    code, out = await at.command("--format", "--found")
    assert (code, "--found goes with --prepare" in out) == (2, True)


async def test_an_image_of_another_file_system_is_left_alone(at: World) -> None:
    await at.command("--format")
    shutil.rmtree(at.name_dir)
    in_use(at.name_dir, info())
    before = snapshot(at.name_dir)
    code, out = await at.command("--prepare", "--found")
    assert (code, "there are several file systems" in out) == (3, True), out
    assert snapshot(at.name_dir) == before
