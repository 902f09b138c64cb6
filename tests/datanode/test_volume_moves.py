"""Pins, and moves of a replica to another volume of its DataNode, as a mover orders them."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from datanode import errors, model
from datanode.replicas.moving import is_pinned, move
from datanode.replicas.operations import Append, News
from datanode.replicas.store import Announcement, Store
from datanode.transfers.balance_throttle import MoveRules
from hadoop.blocks import GenerationStamp
from tests.datanode.block_client import (
    begin,
    read,
)
from tests.datanode.moves_world import (
    DATA,
    ERROR,
    HERE,
    SUCCESS,
    at_the_target,
    leftovers,
    pair,
    passes,
    pinned,
    replace_block,
)
from tests.datanode.stores import block, finalized, store, volume


async def test_a_pin_goes_along_the_pipeline_and_stays(tmp_path: Path) -> None:
    pins = MoveRules(pinning=True)
    async with pair(tmp_path, source=pins, target=pins) as two:
        both = [two.source.place, two.target.place]
        writing = await begin(both, block(), pins=[False, True])
        await writing.write(DATA)
        await writing.close()
        marks = [await is_pinned(each.store, each.store.find(block())) for each in two.nodes]
        assert marks == [False, True]
        answer = await replace_block(two.target, HERE(two.source.place))
        assert answer.status == SUCCESS, "a pin is about the DataNode, not the volume"
        kept = two.target.store
        assert kept.find(block()).storage == "DS-b-ARCHIVE"
        assert await is_pinned(kept, kept.find(block()))


async def test_without_the_key_nothing_is_pinned(tmp_path: Path) -> None:
    async with pair(tmp_path) as two:
        await pinned(two)
        assert not await is_pinned(two.source.store, two.source.store.find(block()))


async def test_a_replica_changes_its_volume_durably_and_is_reported_there(tmp_path: Path) -> None:
    async with pair(tmp_path) as two:
        await at_the_target(two)
        two.told.clear()
        answer = await replace_block(two.target, HERE(two.source.place))
        assert (answer.status, answer.message) == (SUCCESS, "")
        archive = model.StorageId("DS-b-ARCHIVE")
        assert two.told == [Announcement(News.RECEIVED, archive, block(), len(DATA))]
        assert await read(two.target.place, block(), 0, len(DATA)) == DATA
        (there,) = tmp_path.rglob(f"blk_{block().block_id}")
        assert "ARCHIVE" in there.parts
        assert len([*tmp_path.rglob("*.meta")]) == 1
        usage = {one.storage: one.used for one in two.target.store.volumes.usage()}
        assert usage[model.StorageId("DS-b")] == 0
        assert usage[archive] > len(DATA)
    again = await store(
        volume(tmp_path / "b" / "disk"), volume(tmp_path / "b" / "ARCHIVE", storage_type="ARCHIVE")
    )
    assert [*again] == [model.Finalized(block(), archive, len(DATA))]
    await again.volumes.close()


async def deleted(kept: Store) -> None:
    await kept.delete(kept.forget(block()))


async def appended(kept: Store) -> None:
    await kept.perform(Append(block(), GenerationStamp(1002), len(DATA)))


async def moved_before(kept: Store) -> None:
    replica = kept.find(block())
    assert isinstance(replica, model.Finalized)
    await move(kept, replica, "SSD", model.StorageId(""), paced=passes)


async def replaced(kept: Store) -> None:
    """Let another replica of the very same block come in its place."""
    await deleted(kept)
    await finalized(kept, block(), DATA)


@pytest.mark.parametrize("change", [deleted, appended, moved_before, replaced])
async def test_a_replica_that_changes_during_its_move_stays_as_it_is(
    tmp_path: Path, change: Callable[[Store], Awaitable[None]]
) -> None:
    kinds = ("DISK", "ARCHIVE", "SSD")
    kept = await store(*(volume(tmp_path / kind, f"DS-{kind}", kind) for kind in kinds))
    replica = await finalized(kept, block(), DATA)
    assert isinstance(replica, model.Finalized)
    other = {"DISK": "ARCHIVE", "ARCHIVE": "DISK", "SSD": "ARCHIVE"}
    aim = other[kept.volumes.types[replica.storage]]
    after: list[list[model.Replica]] = []

    async def change_once(_: int) -> None:
        if not after:
            await change(kept)
            after.append([*kept])

    with pytest.raises(errors.ReplicaRefused, match="has changed during its move"):
        await move(kept, replica, aim, model.StorageId(""), paced=change_once)
    assert [[*kept]] == after
    for one in kept:
        files = await kept.open(one)
        assert files.read(0, len(DATA)) == DATA
        files.close()
    assert leftovers(tmp_path) == []
    assert len([*tmp_path.rglob("*.meta")]) == len(kept)
    await kept.volumes.close()


async def test_a_damaged_replica_is_not_moved_to_another_volume(tmp_path: Path) -> None:
    async with pair(tmp_path) as two:
        await at_the_target(two)
        two.told.clear()
        (path,) = tmp_path.rglob(f"blk_{block().block_id}")
        path.write_bytes(DATA[:600] + b"~" + DATA[601:])
        answer = await replace_block(two.target, HERE(two.source.place))
        assert answer.status == ERROR
        assert path.exists()
        assert two.told == []


async def test_a_replica_whose_volume_fails_during_its_move_leaves_no_copy(tmp_path: Path) -> None:
    """A copy that no map knows would be served after the next start."""
    kept = await store(*(volume(tmp_path / kind, f"DS-{kind}", kind) for kind in ("DISK", "SSD")))
    before = await finalized(kept, block(), DATA)
    assert isinstance(before, model.Finalized)
    (other,) = (one for one in kept.volumes.types if one != before.storage)
    after = replace(before, storage=other)
    new = kept.volumes[other].paths(after)

    def lost_meanwhile() -> None:
        new.block.parent.mkdir(parents=True)
        new.block.write_bytes(DATA)
        new.meta.touch()
        kept.volumes.on_failed(before.storage)

    with pytest.raises(errors.ReplicaRefused, match="was lost during its move"):
        await kept.relocate(before, after, lost_meanwhile)
    assert [*kept] == []
    assert not new.block.exists()
    assert not new.meta.exists()
    await kept.volumes.close()
