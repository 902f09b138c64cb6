"""Recovery in doubt: what is lost without a question, and when it does not begin at all."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest

from ha.daemon.process import ExitWith
from ha.rpc.server import RpcServer
from ha.service.ha_service import ha_service_protocol
from ha.service.model import ServiceState, ServiceStatus
from journal.model import TxId
from journal.node.repair.scrub import scrub
from namenode_sim.edits.ops import Op, Rename, StartLogSegment
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage.storage import open_name_dirs
from tests.namenode_sim.startup import recover_world
from tests.namenode_sim.startup.recover_world import run
from tests.namenode_sim.startup.startup_world import World, held_by, mkdir, snapshot, world
from tests.worlds.files import frames, info, write_segment
from tests.worlds.name_dirs import format_name_dirs

LATER: tuple[Op, ...] = (StartLogSegment(), mkdir("/later"))


def seen(directory: Path, txid: int) -> None:
    (directory / "current" / "seen_txid").write_text(f"{txid}\n")


def start(directory: Path, namespace: Namespace | None = None) -> Path:
    format_name_dirs([directory], info(), namespace or Namespace.empty("hdfs"))
    return directory / "current"


async def fill_journal(at: World, first: int, ops: tuple[Op, ...]) -> None:
    await write_journal(at, first, len(ops), frames(first, ops))


def unknown_edit(txid: int) -> bytes:
    frame = struct.pack(">Biq", 200, 4 + 8 + 5, txid) + b"what?"
    return frame + struct.pack(">I", crc32(frame))


async def write_journal(at: World, first: int, count: int, records: bytes) -> None:
    writer = at.writer(info())
    await writer.format()
    await writer.become_writer()
    await writer.start_segment(TxId(first))
    await writer.write(TxId(first), count, records)
    await writer.finalize_segment(TxId(first + count - 1))
    await writer.settle(timeout_seconds=30)
    await writer.close()


async def test_a_trouble_does_not_account_for_a_whole_segment_behind_it(at: World) -> None:
    current = start(at.name_dir)
    path = write_segment(current, 1, recover_world.SEGMENT)
    recover_world.flip(path, path.stat().st_size - 1)
    write_segment(current, 9, LATER)
    operator = recover_world.Operator("cs")
    await run(at, operator)
    assert recover_world.loaded(at.name_dir) == (["/", "/a", "/b"], 10)
    damage, gap = operator.asked
    assert "offset" in damage
    assert "everything behind transaction 3 lost: the checksum is wrong" in damage
    assert gap.endswith("transactions 5 to 8 are missing")


async def test_a_segment_of_which_nothing_is_known_accounts_for_the_gap_after_it(at: World) -> None:
    current = start(at.name_dir)
    (current / f"edits_inprogress_{1:019d}").write_bytes(b"\xff" * 40)
    write_segment(current, 9, LATER)
    write_segment(current, 20, (mkdir("/x"),))
    operator = recover_world.Operator("cc")
    await run(at, operator)
    assert recover_world.loaded(at.name_dir) == (["/", "/later", "/x"], 20)
    assert "nothing of it can be read" in operator.asked[0]
    assert "transactions 11 to 19 are missing" in operator.asked[1]


@pytest.mark.parametrize("held", [2, 3])
async def test_damage_to_what_the_image_holds_is_no_question(at: World, held: int) -> None:
    """Go on: to stop at it would drop all later edits for nothing."""
    current = start(at.name_dir, held_by(recover_world.SEGMENT[:held]))
    path = write_segment(current, 1, recover_world.SEGMENT)
    recover_world.flip(path, 8 + 17 + 20)
    said = await run(at, recover_world.Operator(""))
    assert recover_world.loaded(at.name_dir) == (["/", "/a", "/b", "/c"], 4)
    assert "0 problems were found" in said
    assert "Bootstrap every other" not in said


async def test_what_the_image_holds_is_not_applied_again(at: World) -> None:
    ops = (*recover_world.SEGMENT, Rename("/a", "/z", 7, ()), mkdir("/d"))
    write_segment(start(at.name_dir, held_by(ops[:5])), 1, ops)
    await run(at, recover_world.Operator(""))
    assert recover_world.loaded(at.name_dir) == (["/", "/b", "/c", "/d", "/z"], 6)


async def test_only_what_is_damaged_is_put_aside(at: World) -> None:
    path = recover_world.broken(at.name_dir)
    (sound,) = (at.name_dir / "current").glob("edits_*5-*")
    said = await run(at, recover_world.Operator("c"))
    assert f"Damaged files are kept: {path}.damaged. " in said
    assert sound.exists()
    assert not Path(f"{sound}.damaged").exists()


STOPS = {
    "at damage": (recover_world.broken, ["/"]),
    "at an edit that does not apply": (
        lambda at: recover_world.broken(
            at, StartLogSegment(), mkdir("/a"), mkdir("/none/x"), mkdir("/c")
        ),
        ["/", "/a"],
    ),
    "at a gap": (lambda at: recover_world.broken(at).unlink(), ["/"]),
}


@pytest.mark.parametrize(("make", "held"), STOPS.values(), ids=STOPS)
async def test_numbers_that_the_journal_tells_of_are_spent_after_a_stop(
    at: World, make: Callable[[Path], object], held: list[str]
) -> None:
    make(at.name_dir)
    await fill_journal(at, 7, LATER)
    operator = recover_world.Operator("s")
    await run(at, operator)
    assert recover_world.loaded(at.name_dir) == (held, 8)
    assert (at.name_dir / "current" / "seen_txid").read_text() == "8\n"
    assert len(operator.asked) == 1


async def test_a_stop_does_not_give_the_numbers_again_that_seen_txid_tells_of(at: World) -> None:
    recover_world.broken(at.name_dir)
    seen(at.name_dir, 9)
    await run(at, recover_world.Operator("s"))
    assert recover_world.loaded(at.name_dir) == (["/"], 9)
    assert (at.name_dir / "current" / "seen_txid").read_text() == "9\n"


@pytest.mark.parametrize("answer", "cq")
async def test_edits_that_only_seen_txid_tells_of_are_asked_for(at: World, answer: str) -> None:
    write_segment(start(at.name_dir), 1, recover_world.SEGMENT)
    seen(at.name_dir, 9)
    before = snapshot(at.name_dir)
    operator = recover_world.Operator(answer)
    if answer == "c":
        await run(at, operator)
        assert recover_world.loaded(at.name_dir) == (["/", "/a", "/b", "/c"], 9)
    else:
        with pytest.raises(ExitWith):
            await run(at, operator)
        assert snapshot(at.name_dir) == before
    (asked,) = operator.asked
    assert asked == "the edits end at 4, but seen_txid says that 9 was written"


async def test_a_quit_at_a_later_question_changes_nothing_either(at: World) -> None:
    recover_world.broken(
        at.name_dir, StartLogSegment(), mkdir("/none/x"), mkdir("/none/y"), mkdir("/c")
    )
    before = snapshot(at.name_dir)
    operator = recover_world.Operator("cq")
    with pytest.raises(ExitWith):
        await run(at, operator)
    assert len(operator.asked) == 2
    assert snapshot(at.name_dir) == before


@pytest.mark.parametrize("behind", [(mkdir("/later"),), LATER], ids=["by one", "by more"])
async def test_the_journal_goes_on_where_the_local_edits_end(
    at: World, behind: tuple[Op, ...]
) -> None:
    write_segment(start(at.name_dir), 1, recover_world.SEGMENT)
    await fill_journal(at, 3, (mkdir("/not/again"), mkdir("/nor/this"), *behind))
    await run(at, recover_world.Operator(""))
    assert recover_world.loaded(at.name_dir) == (["/", "/a", "/b", "/c", "/later"], 4 + len(behind))


async def test_a_shared_edit_that_says_nothing_we_know_is_left_out_alone(at: World) -> None:
    """Give it a right checksum, so that the JournalNodes have taken it."""
    start(at.name_dir)
    unknown = b"".join(unknown_edit(txid) for txid in (2, 3))
    records = frames(1, (StartLogSegment(),)) + unknown + frames(4, (mkdir("/c"),))
    await write_journal(at, 1, 4, records)
    operator = recover_world.Operator("cc")
    await run(at, operator)
    assert recover_world.loaded(at.name_dir) == (["/", "/c"], 4)
    told = [text.split(":")[0] for text in operator.asked]
    assert told == ["the journal, transaction 2", "the journal, transaction 3"]


@pytest.mark.parametrize("first", [1, 3, 5])
async def test_what_no_node_lists_any_more_is_asked_for_once(
    at: World, tmp_path: Path, first: int
) -> None:
    """Take all before and behind the gap, whatever the gap is in."""
    await recover_world.journal_with_a_damaged_segment(at, tmp_path, first)
    for daemon in at.nodes.daemons:
        assert daemon is not None
        (owner,) = daemon.node.owners()
        assert await scrub(owner, 0) == 1
    operator = recover_world.Operator("c")
    await run(at, operator)
    lost = {1: "/a2", 3: "/b2", 5: "/c2"}[first]
    left = [path for path in ("/", "/a", "/a2", "/b", "/b2", "/c", "/c2") if path != lost]
    assert recover_world.loaded(at.name_dir) == (left, 6)
    (asked,) = operator.asked
    assert f"the journal: edits {first + 1} to {first + 1} cannot be read" in asked


@pytest.mark.parametrize(("blank", "down"), [([0, 1], []), ([0, 1], [2]), ([0], [1, 2])])
async def test_a_journal_that_only_some_nodes_have_lost_is_not_passed_over(
    at: World, tmp_path: Path, blank: list[int], down: list[int]
) -> None:
    start(at.name_dir)
    await fill_journal(at, 1, recover_world.SEGMENT)
    await at.nodes.stop(*blank, *down)
    for i in blank:
        shutil.rmtree(tmp_path / "journal" / f"jn{i}")
    await at.nodes.start(*blank)
    before = snapshot(at.name_dir)
    with pytest.raises(ExitWith, match="the journal cannot be read, and nothing was changed") as no:
        await run(at, recover_world.Operator(""))
    assert no.value.code != 0
    assert snapshot(at.name_dir) == before


async def test_beside_an_active_nothing_is_recovered(tmp_path: Path) -> None:
    class Active:
        async def status(self) -> ServiceStatus:
            return ServiceStatus(ServiceState.ACTIVE, ready_to_become_active=True)

    server = RpcServer([ha_service_protocol(Active())])  # type: ignore[arg-type]
    port = await server.start("127.0.0.1", 0)
    try:
        peer = {"dfs.namenode.rpc-address.ns1.nn2": f"127.0.0.1:{port}"}
        async with world(tmp_path, **peer) as at:
            recover_world.broken(at.name_dir)
            before = snapshot(at.name_dir)
            with pytest.raises(ExitWith, match="is active, so its namespace is complete") as no:
                await run(at, recover_world.Operator(""))
            assert no.value.code != 0
            assert snapshot(at.name_dir) == before
    finally:
        await server.stop()


async def test_the_namespace_is_locked_while_the_operator_thinks(at: World) -> None:
    """Keep out a NameNode that starts: it would write behind what is about to be saved."""
    recover_world.broken(at.name_dir)

    def start_beside(*_: object) -> str:
        with pytest.raises(Exception, match="is locked by"):
            open_name_dirs([at.name_dir])
        return "c"

    operator = recover_world.Operator("")
    operator.choose = start_beside  # type: ignore[assignment, method-assign]
    await run(at, operator)
    assert recover_world.loaded(at.name_dir)[1] == 6
