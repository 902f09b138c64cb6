"""Acknowledgements that cannot be sent any more end the write."""

import asyncio
from pathlib import Path

import pytest

from datanode.transfers.acknowledge import Acknowledger, Due
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire.connection import PeerLost
from hadoop.wire.packets import PacketHeader
from hadoop.wire.peer import Peer
from tests.datanode.block_client import SECONDS
from tests.datanode.stores import block, store, volume
from tests.stand_in import HOST, say_nothing, stand_in

DUE = Due(PacketHeader(0, 0, last=False, length=0), b"", pb.Status.SUCCESS)


async def test_a_writer_hears_that_its_client_is_lost_even_if_it_waits_for_room(
    tmp_path: Path,
) -> None:
    kept = await store(volume(tmp_path))
    async with stand_in(say_nothing) as port, asyncio.timeout(5):
        client, mirror = [await Peer.connect(HOST, port, seconds=SECONDS) for _ in range(2)]
        acknowledger = Acknowledger(kept, block(), client, mirror, seconds=SECONDS)

        async def write() -> None:
            async with acknowledger:
                while True:
                    await acknowledger.add(DUE)

        writing = asyncio.create_task(write())
        for _ in range(10):  # turns, behind which it waits for room, as the mirror is silent
            await asyncio.sleep(0)
        client.abort()
        acknowledger.mirror_lost()
        with pytest.raises(PeerLost):
            await writing
