"""Replicas that fail, lie or are damaged while a file is read."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import pytest
from google.protobuf.message import Message

from files.errors import Unreadable
from files.read import Reader
from files.replica import ReadLimits
from files.write import Writer
from ha.rpc.protocol import Call
from tests.files.cuts import Door, doors
from tests.files.world import MIB, Handle, World, get, noise, put, world
from tests.namenode_sim.datanode_protocol.served import seen

DATA = noise(2 * MIB + 77_777)
LATER = 300_000


async def read_into(got: bytearray, parts: AsyncIterator[bytes]) -> None:
    async for part in parts:
        got += part


async def test_reading_goes_on_at_another_replica(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await put(made.client, "/f", DATA)
        async with doors(made, Door(0, after=LATER, reading=True, most_deeds=2)) as found:
            reader = await Reader.open(made.client, "/f", limits=ReadLimits(round_seconds=0.01))
            got = bytearray()
            async with aclosing(reader.read()) as parts:
                await read_into(got, parts)
            assert got == DATA
            assert sum(one.deeds for one in found.values()) > 1


async def test_a_replica_that_stalls_is_left(tmp_path: Path) -> None:
    limits = ReadLimits(packet_seconds=0.3)
    async with world(tmp_path) as made:
        await put(made.client, "/f", DATA[:MIB])
        async with doors(made, Door(0, after=LATER, reading=True, stalls=True)) as found:
            reader = await Reader.open(made.client, "/f", limits=limits)
            async with aclosing(reader.read()) as parts:
                assert b"".join([part async for part in parts]) == DATA[:MIB]
            assert any(one.deeds for one in found.values())


def flip(path: Path, at: int = 400_000) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


async def test_a_damaged_replica_is_left_and_reported(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await put(made.client, "/f", DATA[:MIB])
        for path in made.blocks()[:2]:
            flip(path)
        for _ in range(20):
            assert await get(made.client, "/f") == DATA[:MIB]
            if "reportBadBlocks" in made.asked:
                break
        assert "reportBadBlocks" in made.asked


async def test_damage_everywhere_is_no_files_content(tmp_path: Path) -> None:
    limits = ReadLimits(rounds=2, round_seconds=0.01)
    async with world(tmp_path) as made:
        await put(made.client, "/f", DATA[:MIB])
        for path in made.blocks():
            flip(path)
        got = bytearray()
        reader = await Reader.open(made.client, "/f", limits=limits)
        async with aclosing(reader.read()) as parts:
            with pytest.raises(Unreadable, match=r"no replica of block .* does not fit its check"):
                await read_into(got, parts)
        assert DATA.startswith(got)
        assert len(got) < MIB
        assert "reportBadBlocks" not in made.asked, "it may be this reader that damages them"


async def test_an_open_file_is_read_as_far_as_all_datanodes_have_it(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        writer = await Writer.create(made.client, "/f", block_size=MIB)
        await writer.write(DATA[: MIB + 200_000])
        assert writer.block is not None
        window = writer.block.window
        await seen(lambda: not window.waiting)
        found = await get(made.client, "/f")
        assert len(found) == MIB + window.acked > MIB
        assert DATA.startswith(found)
        await writer.write(DATA[MIB + 200_000 :])
        await writer.close()
        assert await get(made.client, "/f") == DATA


async def test_a_file_that_is_replaced_is_not_mixed_with_its_successor(tmp_path: Path) -> None:
    limits = ReadLimits(rounds=2, round_seconds=0.01)
    async with world(tmp_path, 1) as made:
        await put(made.client, "/f", DATA)
        reader = await Reader.open(made.client, "/f", limits=limits)
        async with aclosing(reader.read()) as parts:
            got = bytearray(await anext(parts))
            await put(made.client, "/f", bytes(len(DATA)), overwrite=True)
            for path in made.blocks():
                with suppress(FileNotFoundError):  # the DataNode has deleted it in the meantime
                    if path.read_bytes() in DATA:
                        path.unlink()
            with pytest.raises(Unreadable):
                await read_into(got, parts)
        assert DATA.startswith(got)


@asynccontextmanager
async def begun(made: World) -> AsyncIterator[tuple[Reader, bytearray, AsyncIterator[bytes]]]:
    """Yield what was read of a file first, and the rest, for which blocks are located anew.

    However that ends, nothing of what readers share is left over.
    """
    await put(made.client, "/f", DATA)
    reader = await Reader.open(made.client, "/f")
    reader.ahead_bytes = 1
    await reader.locate(0)
    async with aclosing(reader.read()) as parts:
        yield reader, bytearray(await anext(parts)), parts
    await seen(lambda: reader.budget.held == 0)


async def test_a_file_that_is_replaced_between_two_looks_is_not_mixed(tmp_path: Path) -> None:
    async with world(tmp_path, 1) as made, begun(made) as (_, got, parts):
        await put(made.client, "/f", bytes(len(DATA)), overwrite=True)
        with pytest.raises(Unreadable, match="it was replaced or cut"):
            await read_into(got, parts)
        assert DATA.startswith(got)


async def test_a_reader_that_stops_early_leaves_nothing_over(tmp_path: Path) -> None:
    async with world(tmp_path, 1) as made:
        async with begun(made) as (_, got, _parts):
            assert DATA.startswith(got)
        await seen(lambda: made.datanodes[0].condition().connections == 0)


async def test_a_file_that_grows_is_still_the_same(tmp_path: Path) -> None:
    async with world(tmp_path, 1) as made, begun(made) as (reader, got, parts):
        async with await Writer.append(made.client, "/f") as writer:
            await writer.write(DATA)
        await read_into(got, parts)
        assert got == DATA
        async with aclosing(reader.read(2 * MIB + 5, 3)) as parts:
            assert b"".join([part async for part in parts]) == DATA[2 * MIB + 5 : 2 * MIB + 8]


async def test_a_block_that_is_only_being_made_has_no_bytes(tmp_path: Path) -> None:
    """Each DataNode that is to have it says that it has no such replica."""
    async with world(tmp_path) as made:
        writer = await Writer.create(made.client, "/f", block_size=MIB)
        await writer.write(DATA[: MIB + 70_000])

        async def early(handle: Handle, call: Call, request: Message) -> Message:
            answer = await handle(call, request)
            locations = getattr(answer, "locations", None)
            if locations is not None:
                locations.lastBlock.b.blockId += 1000
            return answer

        made.meddle = early
        reader = await Reader.open(made.client, "/f")
        assert reader.length == MIB
        await writer.abort()
