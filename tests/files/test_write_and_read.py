"""Whole files through real DataNodes of this process."""

from pathlib import Path

import pytest

from files.errors import AlreadyExists, NotFound
from files.write import Writer
from tests.files.world import MIB, get, noise, put, world

SIZES = [0, 1, 511, 512, 513, 64512, 64513, MIB - 1, MIB, MIB + 1, 3 * MIB + 12345]

RANGES = [(0, 1), (5, 700), (MIB - 3, 7), (MIB, MIB), (2 * MIB - 1, None), (SIZES[-1], 5)]


async def test_what_is_written_is_read(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        for size in SIZES:
            data = noise(size)
            await put(made.client, f"/f{size}", data)
            assert await get(made.client, f"/f{size}") == data, size
        data = noise(SIZES[-1])
        for offset, length in [
            (0, 1),
            (5, 700),
            (MIB - 3, 7),
            (MIB, MIB),
            (2 * MIB - 1, None),
            (len(data), 5),
        ]:
            found = await get(made.client, f"/f{SIZES[-1]}", offset, length)
            assert found == data[offset : None if length is None else offset + length]
        assert len(made.blocks()) == 3 * (3 * 1 + 5 + 1 + 1 + 2 + 4 - 2)


async def test_appends_fill_chunks_and_blocks(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        data = b""
        await put(made.client, "/f", data)
        for size in (1, 510, 1, 100, MIB - 612, 5, 0, MIB - 5, 70_000):
            more = noise(size, seed=size)
            async with await Writer.append(made.client, "/f") as writer:
                await writer.write(more)
            data += more
            assert await get(made.client, "/f") == data, size


async def test_refusals(tmp_path: Path) -> None:
    async with world(tmp_path, 1) as made:
        await put(made.client, "/f", b"one")
        with pytest.raises(AlreadyExists):
            await put(made.client, "/f", b"two")
        await put(made.client, "/f", b"three", overwrite=True)
        assert await get(made.client, "/f") == b"three"
        with pytest.raises(NotFound):
            await get(made.client, "/none")
        with pytest.raises(NotFound):
            await Writer.append(made.client, "/none")
