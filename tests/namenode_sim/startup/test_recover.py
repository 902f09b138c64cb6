"""Recovery: every trouble is shown once, the answer is obeyed, and the damaged file is kept."""

from dataclasses import replace
from pathlib import Path

import pytest

from ha.daemon.process import ExitWith
from journal.model import TxId
from journal.node.repair.scrub import scrub
from namenode_sim.edits.ops import StartLogSegment
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage.storage import open_name_dirs
from tests.namenode_sim.startup import recover_world
from tests.namenode_sim.startup.recover_world import run
from tests.namenode_sim.startup.startup_world import World, mkdir, snapshot, world
from tests.worlds.files import frames, info, write_segment
from tests.worlds.name_dirs import format_name_dirs


async def test_continue_leaves_out_what_is_damaged_and_keeps_the_file(at: World) -> None:
    path = recover_world.broken(at.name_dir)
    damaged = path.read_bytes()
    operator = recover_world.Operator("c")
    said = await run(at, operator)
    assert recover_world.loaded(at.name_dir) == (["/", "/b", "/c", "/d"], 6)
    (trouble,) = operator.asked
    assert trouble.startswith(f"{path}: offset 25: ")
    assert "transaction 2 lost" in trouble
    assert path.with_name(path.name + ".damaged").read_bytes() == damaged
    assert not path.exists()
    assert "1 problems were found" in said
    assert "Bootstrap every other NameNode" in said


async def test_stop_drops_the_rest_and_never_gives_its_numbers_again(at: World) -> None:
    recover_world.broken(at.name_dir)
    await run(at, recover_world.Operator("s"))
    assert recover_world.loaded(at.name_dir) == (["/"], 6)


async def test_quit_changes_nothing_and_ends_with_0(at: World) -> None:
    recover_world.broken(at.name_dir)
    before = snapshot(at.name_dir)
    with pytest.raises(ExitWith) as left:
        await run(at, recover_world.Operator("q"))
    assert left.value.code == 0
    assert snapshot(at.name_dir) == before


async def test_always_asks_only_once(at: World) -> None:
    path = recover_world.broken(at.name_dir)
    recover_world.flip(path, path.stat().st_size - 10)
    operator = recover_world.Operator("a")
    said = await run(at, operator)
    assert recover_world.loaded(at.name_dir) == (["/", "/b", "/d"], 6)
    assert len(operator.asked) == 1
    assert "2 problems were found" in said


async def test_an_edit_that_does_not_apply_is_left_out_and_nothing_else(at: World) -> None:
    misfit = replace(mkdir("/none/x"), inode_id=99_999)
    recover_world.broken(at.name_dir, StartLogSegment(), mkdir("/a"), misfit, mkdir("/a/below"))
    operator = recover_world.Operator("c")
    await run(at, operator)
    assert recover_world.loaded(at.name_dir) == (["/", "/a", "/a/below", "/d"], 6)
    storage = open_name_dirs([at.name_dir])
    # What the misfit had changed before it was found out is gone too.
    assert storage.load().counters.last_inode_id < 99_999
    storage.close()
    (trouble,) = operator.asked
    assert "transaction 3, Mkdir, cannot be applied" in trouble


async def test_a_missing_segment_is_one_trouble(at: World) -> None:
    recover_world.broken(at.name_dir).unlink()
    operator = recover_world.Operator("c")
    await run(at, operator)
    assert recover_world.loaded(at.name_dir) == (["/", "/d"], 6)
    assert "transactions 1 to 4 are missing" in operator.asked[0]


async def test_a_sound_copy_in_another_directory_is_taken_without_asking(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    async with world(tmp_path, **{"dfs.namenode.name.dir": f"{a},{b}"}) as at:
        format_name_dirs([a, b], info(), Namespace.empty("hdfs"))
        write_segment(a / "current", 1, recover_world.SEGMENT)
        recover_world.flip(write_segment(b / "current", 1, recover_world.SEGMENT), 40)
        await run(at, recover_world.Operator(""))
        assert recover_world.loaded(a) == recover_world.loaded(b) == (["/", "/a", "/b", "/c"], 4)


async def test_a_header_that_cannot_be_read_costs_the_segment(at: World) -> None:
    path = recover_world.broken(at.name_dir)
    recover_world.flip(path, 2)
    operator = recover_world.Operator("c")
    await run(at, operator)
    assert recover_world.loaded(at.name_dir) == (["/", "/d"], 6)
    assert "nothing of it can be read" in operator.asked[0]


async def test_shared_edits_that_do_not_apply_are_asked_for_too(at: World) -> None:
    format_name_dirs([at.name_dir], info(), Namespace.empty("hdfs"))
    writer = at.writer(info())
    await writer.format()
    await writer.become_writer()
    ops = (StartLogSegment(), mkdir("/a"), mkdir("/none/x"), mkdir("/c"))
    await writer.start_segment(TxId(1))
    await writer.write(TxId(1), 4, frames(1, ops))
    await writer.finalize_segment(TxId(4))
    await writer.settle(timeout_seconds=30)
    await writer.close()
    operator = recover_world.Operator("c")
    await run(at, operator)
    assert recover_world.loaded(at.name_dir) == (["/", "/a", "/c"], 4)
    assert len(operator.asked) == 1


async def test_a_shared_segment_that_is_damaged_everywhere_is_asked_for(
    at: World, tmp_path: Path
) -> None:
    await recover_world.journal_with_a_damaged_segment(at, tmp_path, 3)
    operator = recover_world.Operator("c")
    await run(at, operator)
    assert recover_world.loaded(at.name_dir) == (["/", "/a", "/a2", "/b", "/c", "/c2"], 6)
    assert "the journal: edits 4 to 4 cannot be read" in operator.asked[0]


async def test_the_last_segment_is_asked_for_when_all_nodes_know_that_theirs_is_damaged(
    at: World, tmp_path: Path
) -> None:
    """Give its numbers to no other edits although no node lists it then."""
    await recover_world.journal_with_a_damaged_segment(at, tmp_path, 5)
    for daemon in at.nodes.daemons:
        assert daemon is not None
        (owner,) = daemon.node.owners()
        assert await scrub(owner, 0) == 1
    operator = recover_world.Operator("c")
    await run(at, operator)
    assert recover_world.loaded(at.name_dir) == (["/", "/a", "/a2", "/b", "/b2", "/c"], 6)
    assert "the journal: edits 6 to 6 cannot be read" in operator.asked[0]


async def test_the_command_asks_before_it_begins(at: World) -> None:
    path = recover_world.broken(at.name_dir)
    before = snapshot(at.name_dir)
    code, out = await at.command("-recover", stdin="n\n")
    assert (code, snapshot(at.name_dir)) == (1, before)
    assert "Are you ready to proceed? (Y or N)" in out
    code, out = await at.command("-recover", "-nonInteractive")
    assert (code, snapshot(at.name_dir)) == (1, before)
    code, out = await at.command("-recover", stdin="Y\nwhat\nc\n")
    assert code == 0, out
    assert "Please answer C or S or Q or A." in out
    assert recover_world.loaded(at.name_dir) == (["/", "/b", "/c", "/d"], 6)
    path.with_name(path.name + ".damaged").unlink()


async def test_with_force_the_command_asks_nothing(at: World) -> None:
    recover_world.broken(at.name_dir)
    code, out = await at.command("--recover", "--force")
    assert code == 0, out
    assert "offset 25" in out
    assert recover_world.loaded(at.name_dir) == (["/", "/b", "/c", "/d"], 6)
