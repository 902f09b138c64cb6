"""A restore: what it gives out is apart from what was lost, and it does all or nothing."""

from pathlib import Path

import pytest

from journal.model import TxId
from namenode_sim.image.reader import load_image
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from spark.backup.create import verify
from spark.backup.restore import move_apart, restore_namespace
from tests.namenode_sim.startup import startup_world
from tests.spark.backup.published_life import directories_of
from tests.spark.backup.test_folder import INFO, backup_in


def test_transactions_block_ids_and_stamps_move_apart(tmp_path: Path) -> None:
    namespace = Namespace.empty("hdfs")
    namespace.last_applied, namespace.counters.last_block_id = TxId(70), 2**30 + 5
    namespace.counters.generation_stamp_v2 = 1005
    move_apart(namespace)
    save_image(namespace, tmp_path / "fsimage", INFO)
    found = load_image(tmp_path / "fsimage")
    assert found.last_applied == 2**40 + 70
    assert found.counters.last_block_id == 2**40 + 2**30 + 5
    assert found.counters.generation_stamp_v2 == 2**40 + 1005


async def restore(at: startup_world.World, backup: Path, *, keep_journal: bool) -> None:
    await restore_namespace(
        at.conf(),
        at.place(),
        startup_world.FORCE,
        backup,
        *verify(backup),
        keep_journal=keep_journal,
    )


@pytest.mark.parametrize("keep_journal", [True, False])
async def test_a_restore_that_cannot_fill_each_directory_changes_none(
    tmp_path: Path, *, keep_journal: bool
) -> None:
    backup, directories = backup_in(tmp_path / "backups"), directories_of(tmp_path)
    dirs = ",".join(map(str, directories))
    async with startup_world.world(tmp_path, **{"dfs.namenode.name.dir": dirs}) as at:
        if keep_journal:
            writer = at.writer(INFO)
            await writer.format()
            await writer.close()
        in_the_way = directories[1] / "current.restore"
        in_the_way.parent.mkdir()
        in_the_way.touch()
        with pytest.raises(FileExistsError):
            await restore(at, backup, keep_journal=keep_journal)
        assert [list(one.rglob("*")) for one in directories] == [[], [in_the_way]]
        in_the_way.unlink()
        await restore(at, backup, keep_journal=keep_journal)
        assert all((one / "current/VERSION").exists() for one in directories)
