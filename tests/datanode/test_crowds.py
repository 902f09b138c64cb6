"""Connections that say nothing keep no others out, and cut off none that is being served."""

import asyncio
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from hadoop.wire.connection import PeerLost
from hadoop.wire.peer import TransferLimits
from tests.datanode import block_client
from tests.datanode.stores import block
from tests.needs import OTHER_USER
from tests.security.strangers import stranger

DATA = bytes(range(250)) * 40


def few(most: int) -> TransferLimits:
    return TransferLimits(
        operation_seconds=block_client.SECONDS, packet_seconds=block_client.SECONDS,
        max_connections=most,
    )  # fmt: skip


def closed_for_others() -> float:
    counted = (
        REGISTRY.get_sample_value(
            "nnha_door_gave_way_total", {"door": "datanode", "limit": "unproven_of_origin"}
        ),
        REGISTRY.get_sample_value(
            "nnha_door_gave_way_total", {"door": "datanode", "limit": "places"}
        ),
    )
    return sum(found or 0.0 for found in counted)


async def test_the_longest_silent_one_gives_way_to_a_writer(tmp_path: Path) -> None:
    async with block_client.node(tmp_path / "a", few(2)) as one:
        silent = [await block_client.connect(one.place.port) for _ in range(2)]
        await block_client.until(lambda: one.server.active == 2)
        writing = await block_client.begin([one.place], block())
        await writing.write(DATA)
        await writing.close()
        with pytest.raises(PeerLost, match="has closed"):
            await silent[0].read(1, seconds=block_client.SECONDS)
        assert await block_client.read(one.place, block(), 0, len(DATA)) == DATA


async def test_none_that_is_served_gives_way(tmp_path: Path) -> None:
    async with block_client.node(tmp_path / "a", few(2)) as one:
        before = closed_for_others()
        writing = await block_client.begin([one.place], block())
        await writing.write(DATA[:4096])
        for _ in range(5):
            await block_client.connect(one.place.port)
        await block_client.until(lambda: closed_for_others() == before + 4)
        await writing.write(DATA[4096:])
        await writing.close()
        assert await block_client.read(one.place, block(), 0, len(DATA)) == DATA


async def test_between_two_operations_a_connection_gives_way_again(tmp_path: Path) -> None:
    async with block_client.node(tmp_path / "a", few(1)) as one:
        writing = await block_client.begin([one.place], block())
        await writing.write(DATA)
        await writing.close()
        for _ in range(3):  # each leaves its connection open
            assert await block_client.read(one.place, block(), 0, len(DATA)) == DATA


@OTHER_USER.mark
async def test_a_stranger_has_its_share_of_silence(tmp_path: Path) -> None:
    async with block_client.node(tmp_path / "a", few(16)) as one:
        before = closed_for_others()
        with ExitStack() as stack:
            port = await asyncio.to_thread(stack.enter_context, stranger(one.place.port))
            for _ in range(9):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            await block_client.until(lambda: closed_for_others() == before + 5)
            await block_client.until(lambda: one.server.active == 4)
            writing = await block_client.begin([one.place], block())
            await writing.write(DATA)
            await writing.close()
            assert closed_for_others() == before + 5, "the writer took no stranger's place"
