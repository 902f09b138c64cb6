"""Disks that are full, and disks that fail while the DataNode runs."""

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from datanode.model import BeingWritten, Finalized, Replica, readable_length
from datanode.process.node import DataNode
from datanode.replicas.store import Store
from ha.daemon.process import ExitWith
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire.connection import PeerLost
from tests.datanode import block_client, name_nodes
from tests.datanode.stores import block
from tests.needs import MOUNT

DATA = bytes(range(251)) * 400
"""100,400 bytes."""
MEGABYTE = 1 << 20
OK, ERROR = pb.Status.SUCCESS, pb.Status.ERROR


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 4 MiB and 64 files."""
    if not MOUNT.here:
        MOUNT.skip()
    folder = tmp_path / "disk"
    folder.mkdir()
    options = "size=4m,nr_inodes=64"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, *, leave: int) -> Path:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    with filler.open("r+b") as file:
        file.truncate(filler.stat().st_size - leave)
    return filler


async def hung_up(writing: block_client.Writing) -> None:
    """Hear nothing but acknowledgements until the connection ends."""
    while True:
        try:
            assert list((await writing.ack()).reply) == [OK]
        except PeerLost:
            return


async def refused_for_want_of_room(one: block_client.Node) -> bool:
    writing = await block_client.begin([one.place], block(99), size=MEGABYTE)
    if writing.set_up.status == OK:
        writing.peer.abort()
        await block_client.idle(one)
        return False
    return "volumes has 1048576 bytes left" in writing.set_up.message


async def test_a_disk_that_gets_full_is_not_a_failed_one(small_disk: Path) -> None:
    async with block_client.node(small_disk / "data") as one:
        await block_client.write_whole([one.place], block(0), DATA)
        filler = fill(small_disk, leave=65_536)
        writing = await block_client.begin([one.place], block(1), size=MEGABYTE)
        await writing.write(DATA[:4096])
        with contextlib.suppress(PeerLost):
            for at in range(4096, len(DATA), 4096):
                await writing.send(DATA[at : at + 4096])
        await hung_up(writing)
        await block_client.idle(one)
        replica = one.store.find(block(1))
        assert isinstance(replica, BeingWritten)
        assert 4096 <= readable_length(replica) == replica.length == on_disk(one.store, replica)
        assert one.store.volumes.failed == []
        assert await block_client.read(one.place, block(0), 0, len(DATA)) == DATA
        assert (
            await block_client.read(one.place, block(1), 0, replica.length)
            == DATA[: replica.length]
        )
        assert await refused_for_want_of_room(one)
        filler.unlink()
        await one.store.volumes.measure()
        assert not await refused_for_want_of_room(one)


async def test_of_a_packet_that_does_not_fit_nothing_stays(small_disk: Path) -> None:
    async with block_client.node(small_disk / "data") as one:
        writing = await block_client.begin([one.place], block(), size=MEGABYTE)
        await writing.write(DATA[:4096])
        fill(small_disk, leave=65_536)
        await writing.send(DATA[4096:])
        await hung_up(writing)
        await block_client.idle(one)
        replica = one.store.find(block())
        assert on_disk(one.store, replica) == replica.length == 4096


async def test_a_block_without_room_for_its_first_byte_goes(small_disk: Path) -> None:
    async with block_client.node(small_disk / "data") as one:
        usage = one.store.volumes.usage()[0].remaining
        fill(small_disk, leave=8192)
        assert one.store.volumes.usage()[0].remaining == usage, "not measured anew yet"
        writing = await block_client.begin([one.place], block(), size=MEGABYTE)
        await writing.send(DATA)
        with pytest.raises(PeerLost):
            await writing.ack()
        await block_client.idle(one)
        assert len(one.store) == 0
        assert not list((small_disk / "data").rglob("blk_*"))
        assert one.store.volumes.usage()[0].remaining < MEGABYTE


async def test_a_block_that_cannot_be_closed_stays_open(small_disk: Path) -> None:
    async with block_client.node(small_disk / "data") as one:
        writing = await block_client.begin([one.place], block(), size=MEGABYTE)
        await writing.write(DATA)
        fillers = [small_disk / f"file{number}" for number in range(64)]
        with contextlib.suppress(OSError):
            for path in fillers:
                path.touch()
        await writing.end()
        with pytest.raises(PeerLost):
            await writing.ack()
        await block_client.idle(one)
        assert isinstance(one.store.find(block()), BeingWritten)
        assert one.store.volumes.failed == []
        for path in fillers:
            path.unlink(missing_ok=True)
        again = await block_client.begin(
            [one.place], block(), stage=pb.OpWriteBlockProto.PIPELINE_CLOSE_RECOVERY,
            stamp=1002, length=len(DATA),
        )  # fmt: skip
        assert again.set_up.status == OK, again.set_up.message
        assert isinstance(one.store.find(block()), Finalized)
        assert await block_client.read(one.place, block(stamp=1002), 0, len(DATA)) == DATA


def on_disk(store: Store, replica: Replica) -> int:
    return store.volumes[replica.storage].paths(replica).block.stat().st_size


def place(running: DataNode) -> block_client.Place:
    port = running.status()["data_port"]
    assert isinstance(port, int)
    return block_client.Place(port)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Remount as the kernel does after errors of a file system's disk."""
    subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.row("B22")
@MOUNT.mark
async def test_b22_a_volume_that_became_read_only_is_out_until_it_is_repaired(
    tmp_path: Path,
) -> None:
    folders = [tmp_path / name for name in "ab"]
    async with name_nodes.name_node() as model:
        async with name_nodes.started(
            name_nodes.settings(folders, [model], tolerated=1), model
        ) as running:
            for number in range(4):
                await block_client.write_whole([place(running)], block(number), DATA)
            with read_only(folders[0]):
                for number in range(4):
                    assert (
                        await block_client.read(place(running), block(number), 0, len(DATA)) == DATA
                    )
                said = [await refusal(place(running), number) for number in (4, 5)]
                assert sorted(map(bool, said)) == [False, True], "volumes take turns"
                assert f"{folders[0]} failed: [Errno 30] Read-only file system" in "".join(said)
                await name_nodes.seen(lambda: model.heartbeats[-1].failedVolumes == 1)
                assert running.status()["failed_volumes"] == [str(folders[0])]
                assert await refusal(place(running), 6) == ""
        async with name_nodes.started(
            name_nodes.settings(folders, [model], tolerated=1), model
        ) as running:
            assert running.status()["failed_volumes"] == []
            assert running.status()["replicas"] == 6
            for number in range(4):
                assert await block_client.read(place(running), block(number), 0, len(DATA)) == DATA


@MOUNT.mark
@pytest.mark.parametrize("below", ["", "current"])
async def test_a_start_on_a_volume_that_is_read_only_is_refused_or_tolerated(
    tmp_path: Path, below: str
) -> None:
    folders = [tmp_path / name for name in "ab"]
    async with name_nodes.name_node() as model:
        both = name_nodes.settings(folders, [model], tolerated=1)
        async with name_nodes.started(both, model) as running:
            for number in range(4):
                await block_client.write_whole([place(running)], block(number), DATA)
        with read_only(folders[0] / below):
            with pytest.raises(ExitWith, match=f"{folders[0]}.*Read-only file system"):
                await DataNode(name_nodes.settings(folders[:1], [model])).run(asyncio.Event())
            heard = len(model.heartbeats)
            async with name_nodes.started(both, model) as running:
                assert model.heartbeats[heard].failedVolumes == 1
                assert running.status()["failed_volumes"] == [str(folders[0])]
                assert running.status()["replicas"] == 2
        async with name_nodes.started(both, model) as running:
            assert running.status()["replicas"] == 4


def make_unlistable(folder: Path) -> None:
    """Put folders into each other until their path is longer than the kernel takes."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(20):
        name = "n" * 250
        os.mkdir(name, dir_fd=at)
        inner = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)


async def test_a_start_on_a_volume_that_cannot_be_listed_is_refused_or_tolerated(
    tmp_path: Path,
) -> None:
    folders = [tmp_path / name for name in "ab"]
    async with name_nodes.name_node() as model:
        both = name_nodes.settings(folders, [model], tolerated=1)
        async with name_nodes.started(both, model) as running:
            for number in range(4):
                await block_client.write_whole([place(running)], block(number), DATA)
        (pool,) = (folders[0] / "current").glob("BP-*")
        make_unlistable(pool / "current" / "finalized")
        heard, registered = len(model.heartbeats), len(model.registrations)
        with pytest.raises(ExitWith, match="1 data directories have failed, 0 are tolerated"):
            await DataNode(name_nodes.settings(folders, [model])).run(asyncio.Event())
        assert len(model.registrations) == registered, "it is not heard of"
        async with name_nodes.started(both, model) as running:
            assert model.heartbeats[heard].failedVolumes == 1
            assert running.status()["failed_volumes"] == [str(folders[0])]
            assert running.status()["replicas"] == 2


async def refusal(of: block_client.Place, number: int) -> str:
    """Return why a DataNode takes no new block; empty, and the block is written, where it does."""
    writing = await block_client.begin([of], block(number))
    if writing.set_up.status == OK:
        await writing.write(DATA)
        await writing.close()
    return writing.set_up.message


async def broken_volume(running: DataNode, folder: Path, model: name_nodes.NameNode) -> None:
    shutil.rmtree(folder / "current")
    failed = len(model.heartbeats[-1].volumeFailureSummary.failedStorageLocations)
    for number in range(4):
        try:
            await block_client.read(place(running), block(number), 0, 10)
        except (block_client.ReadRefused, PeerLost):
            continue
    await name_nodes.seen(lambda: model.heartbeats[-1].failedVolumes == failed + 1)


@pytest.mark.row("B22")
async def test_failed_volumes_are_told_of_and_too_many_end_it(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "ab"]
    async with name_nodes.name_node() as model:
        running = DataNode(name_nodes.settings(folders, [model], tolerated=1))
        task = asyncio.create_task(running.run(asyncio.Event()))
        await name_nodes.seen(
            lambda: running.status()["data_port"] is not None and len(model.heartbeats) > 0
        )
        for number in range(4):
            await block_client.write_whole([place(running)], block(number), DATA)
        await name_nodes.rounds(model)
        heard = model.heartbeats[-1]
        assert (len(heard.reports), heard.failedVolumes) == (2, 0)

        await broken_volume(running, folders[0], model)
        heard = model.heartbeats[-1]
        summary = heard.volumeFailureSummary
        assert list(summary.failedStorageLocations) == [str(folders[0])]
        assert summary.lastVolumeFailureDate > 1_700_000_000_000
        assert summary.estimatedCapacityLostTotal > 0
        assert len(heard.reports) == 1
        assert running.status()["failed_volumes"] == [str(folders[0])]
        assert running.status()["replicas"] == 2
        await block_client.write_whole([place(running)], block(10), DATA)
        model.lease = 3
        await name_nodes.seen(lambda: len(model.reports) > 0)
        assert [one.numberOfBlocks for one in model.reports[-1].reports] == [3]

        await broken_volume(running, folders[1], model)
        with pytest.raises(ExitWith, match="2 data directories have failed, 1 are tolerated"):
            await asyncio.wait_for(task, 30)
        block_client.hang_up()
