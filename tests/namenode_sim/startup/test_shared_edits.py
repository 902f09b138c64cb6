"""Initializing the shared edits: all edits, byte for byte, or a clear error and nothing lost."""

from pathlib import Path

import pytest

from ha.daemon.process import ExitWith
from hadoop.errors import InUse
from journal.model import TxId
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.ops import StartLogSegment
from namenode_sim.image.errors import ImageError
from namenode_sim.startup.questions import Consent
from namenode_sim.startup.shared_edits import initialize_shared_edits
from namenode_sim.storage.local_copies import MARK
from namenode_sim.storage.local_edits import last_local_edit
from namenode_sim.storage.storage import open_name_dirs
from tests.journal.node.process import until
from tests.namenode_sim.image.image_world import real
from tests.namenode_sim.namespace.dump import differences
from tests.namenode_sim.startup import startup_world
from tests.namenode_sim.startup.startup_world import in_use
from tests.worlds.files import info, write_segment

LAST = len(startup_world.ROLLED) + len(startup_world.OPEN)


async def initialize(at: startup_world.World, consent: Consent = startup_world.NEVER_ASK) -> int:
    done = await initialize_shared_edits(at.conf(), at.place(), consent)
    return done.last_txid


async def test_the_journal_holds_every_edit_byte_for_byte(
    at: startup_world.World, tmp_path: Path
) -> None:
    in_use(at.name_dir)
    assert await initialize(at) == LAST
    assert await at.journal_ops(info()) == list(
        enumerate((*startup_world.ROLLED, *startup_world.OPEN), start=1)
    )
    current = at.name_dir / "current"
    for i in range(3):
        stored = tmp_path / "journal" / f"jn{i}" / "ns1" / "current"
        for path in current.glob("edits_*"):
            copy = stored / path.name
            await until(copy.exists, "the node behind the majority has closed it as well")
            assert path.read_bytes().startswith(copy.read_bytes())
    assert not list(current.glob("edits_inprogress*")), "the open segment was closed"
    assert not (at.name_dir / "in_use.lock").exists()


async def test_only_what_the_image_lacks_is_copied(at: startup_world.World) -> None:
    namespace = in_use(at.name_dir)
    storage = open_name_dirs([at.name_dir])
    storage.save(namespace)
    storage.close()
    assert await initialize(at) == LAST
    assert await at.journal_ops(info()) == []


async def test_a_directory_of_hadoop_is_taken_as_it_is(tmp_path: Path) -> None:
    source = real("name-dir/VERSION").parent
    async with startup_world.world(tmp_path) as at:
        startup_world.copy_dir(source, at.name_dir / "current")
        storage = open_name_dirs([at.name_dir])
        ids = storage.namespace_info
        storage.close()
        assert await initialize(at) == 27
        assert [txid for txid, _ in await at.journal_ops(ids, 27)] == [27]
        stored = tmp_path / "journal" / "jn0" / "ns1" / "current"
        await until(lambda: list(stored.glob("edits_0*")), "this node has closed it as well")
        (segment,) = stored.glob("edits_0*")
        # The header keeps its layout, or the edits could not be decoded.
        ours = source / "edits_inprogress_0000000000000000027"
        assert segment.read_bytes() == ours.read_bytes()[: segment.stat().st_size]


async def test_a_journal_that_exists_is_only_replaced_by_force(at: startup_world.World) -> None:
    in_use(at.name_dir)
    await initialize(at)
    with pytest.raises(ExitWith, match=r"already exists on .*, and nothing was changed") as no:
        await initialize(at)
    assert no.value.code == 1
    asked: list[str] = []

    def refuse(question: str) -> bool:
        asked.append(question)
        return False

    with pytest.raises(ExitWith):
        await initialize(at, Consent(force=False, ask=refuse))
    assert "Re-format the journal ns1" in asked[0]
    assert await initialize(at, startup_world.FORCE) == LAST
    assert len(await at.journal_ops(info())) == LAST


async def test_another_file_system_s_journal_is_never_touched(at: startup_world.World) -> None:
    in_use(at.name_dir)
    foreign = info(namespace_id=99)
    writer = at.writer(foreign)
    await writer.format()
    await writer.close()
    before = startup_world.snapshot(at.name_dir)
    with pytest.raises(ExitWith, match="belongs to another file system") as refusal:
        await initialize(at, startup_world.FORCE)
    assert refusal.value.code == 1
    assert startup_world.snapshot(at.name_dir) == before
    assert await at.journal_ops(foreign) == []


async def test_all_journal_nodes_must_be_up(at: startup_world.World) -> None:
    in_use(at.name_dir)
    before = startup_world.snapshot(at.name_dir)
    await at.nodes.stop(2)
    with pytest.raises(ExitWith, match=r"does not answer.*nothing was changed"):
        await initialize(at)
    assert startup_world.snapshot(at.name_dir) == before


async def test_a_directory_in_use_is_refused(at: startup_world.World) -> None:
    in_use(at.name_dir)
    storage = open_name_dirs([at.name_dir])
    with pytest.raises(InUse):
        await initialize(at)
    storage.close()


def _flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def _damage_first(current: Path) -> None:
    _flip(next(current.glob("edits_0*-*")), 40)


def _damage_open(current: Path) -> None:
    _flip(next(current.glob("edits_inprogress*")), 30)


def _lose_first(current: Path) -> None:
    next(current.glob("edits_0*-*")).unlink()


def _lose_newest(current: Path) -> None:
    next(current.glob("edits_inprogress*")).unlink()


def _spoil_image(current: Path) -> None:
    _flip(next(current.glob("fsimage_*[!5]")), 60)


def _unknown_parent(current: Path) -> None:
    next(current.glob("edits_inprogress*")).unlink()
    write_segment(
        current,
        len(startup_world.ROLLED) + 1,
        [StartLogSegment(), startup_world.mkdir("/no/parent")],
    )


DAMAGES = {
    "a damaged finalized segment": (_damage_first, EditsError, r"edits_.*offset 25, transaction 2"),
    "a hole in the open segment": (_damage_open, EditsError, r"is whole, so this is no torn tail"),
    "a lost segment": (_lose_first, EditsError, r"transactions 1 to 24 are missing"),
    "a lost newest segment": (_lose_newest, EditsError, r"seen_txid says that 25 was written"),
    "a damaged image": (_spoil_image, ImageError, "is corrupt"),
    "an edit that does not apply": (_unknown_parent, EditsError, r"transaction 26: it cannot be"),
}


@pytest.mark.parametrize("case", DAMAGES)
async def test_damage_is_told_before_anything_is_changed(tmp_path: Path, case: str) -> None:
    damage, error, message = DAMAGES[case]
    async with startup_world.world(tmp_path) as at:
        in_use(at.name_dir)
        damage(at.name_dir / "current")
        before = startup_world.snapshot(at.name_dir)
        with pytest.raises(error, match=message):
            await initialize(at)
        assert startup_world.snapshot(at.name_dir) == before
        writer = at.writer(info())
        assert set((await writer.formatted()).values()) == {False}
        await writer.close()


async def test_a_torn_tail_ends_the_edits_as_hadoop_ends_them(at: startup_world.World) -> None:
    expected = in_use(at.name_dir)
    (path,) = (at.name_dir / "current").glob("edits_inprogress*")
    whole = path.read_bytes().rstrip(b"\xff")
    path.write_bytes(whole + whole[8:30])
    assert await initialize(at) == LAST == expected.last_applied


async def test_an_edits_directory_that_nobody_has_used_yet_has_nothing_to_close(
    tmp_path: Path,
) -> None:
    unused = tmp_path / "edits"
    unused.mkdir()
    async with startup_world.world(tmp_path, **{"dfs.namenode.edits.dir": str(unused)}) as at:
        in_use(at.name_dir)
        assert await initialize(at) == LAST


async def test_two_directories_give_their_best_copies(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    async with startup_world.world(tmp_path, **{"dfs.namenode.name.dir": f"{a},{b}"}) as at:
        in_use(a)
        startup_world.copy_dir(a, b)
        next((a / "current").glob("edits_0*-*")).unlink()
        next((b / "current").glob("edits_inprogress*")).unlink()
        assert await initialize(at) == LAST
        assert len(await at.journal_ops(info())) == LAST


@pytest.mark.parametrize("in_ha_before", [False, True])
async def test_a_failure_half_way_is_told_and_a_second_run_completes_it(
    at: startup_world.World, in_ha_before: bool
) -> None:
    """Keep NameNodes from becoming active on less until then, even if these were copies."""
    in_use(at.name_dir)
    current = at.name_dir / "current"
    if in_ha_before:
        (current / MARK).write_text("1\n")
        assert last_local_edit([at.name_dir], TxId(0)) == 0
    before = {name for name in startup_world.snapshot(at.name_dir) if "edits" not in name}
    writer_keys = ("dfs.qjournal.finalize-segment.timeout.ms=1ns",)
    with pytest.raises(ExitWith) as failure:
        await initialize_shared_edits(
            at.conf(*writer_keys), at.place(*writer_keys), startup_world.NEVER_ASK
        )
    assert failure.value.code == 1
    assert "it is not complete. The name directory has everything" in failure.value.message
    assert before - {f"current/{MARK}"} <= set(startup_world.snapshot(at.name_dir))
    assert last_local_edit([at.name_dir], TxId(0)) == LAST
    assert len(list(current.glob("edits_*"))) == 2
    assert await initialize(at, startup_world.FORCE) == LAST
    assert len(await at.journal_ops(info())) == LAST


def test_the_loaded_namespace_is_the_replayed_one(tmp_path: Path) -> None:
    from namenode_sim.storage.local_edits import chain, list_segments, replay

    expected = in_use(tmp_path)
    storage = open_name_dirs([tmp_path])
    namespace = storage.load()
    replay(namespace, chain(list_segments([tmp_path]), TxId(1)))
    assert differences(namespace, expected) == []
    storage.close()
