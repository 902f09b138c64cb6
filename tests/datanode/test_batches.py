"""Packets that come together: each counts as if it had come alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from datanode.model import Replica, readable_length
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire.checksums import checksums_of
from hadoop.wire.connection import PeerLost
from hadoop.wire.packets import Op, PacketHeader, encode_op, encode_packet
from tests.datanode import block_client as client
from tests.datanode.block_client import header
from tests.datanode.stores import CHECKSUM, block, finalized

DATA = bytes(range(251)) * 8000
OK, BAD = pb.Status.SUCCESS, pb.Status.ERROR_CHECKSUM


class Together:
    """Packets that are sent at once."""

    def __init__(self) -> None:
        self.seqnos: list[int] = []
        self.raw = bytearray()
        self._next = 0

    def add(self, at: int, data: bytes, *, sync: bool = False, bad: bool = False) -> None:
        sums = checksums_of(data, CHECKSUM)
        self._put(at, len(data), bytes(len(sums)) if bad else sums, data, sync=sync)

    def heartbeat(self) -> None:
        self.raw += encode_packet(PacketHeader(0, -1, last=False, length=0), b"", b"")
        self.seqnos.append(-1)

    def end(self, at: int) -> None:
        self._put(at, 0, b"", b"", last=True)

    def _put(
        self, at: int, length: int, sums: bytes, data: bytes, *, sync: bool = False,
        last: bool = False,
    ) -> None:  # fmt: skip
        header = PacketHeader(at, self._next, last=last, length=length, sync=sync)
        self.raw += encode_packet(header, sums, data)
        self.seqnos.append(self._next)
        self._next += 1

    async def send(self, writing: client.Writing) -> None:
        await writing.peer.send(bytes(self.raw), seconds=client.SECONDS)


def replica_of(one: client.Node) -> Replica:
    return one.store.find(block())


@pytest.mark.parametrize("shared", [0, 1 << 24])
async def test_many_kinds_of_packets_at_once(tmp_path: Path, shared: int) -> None:
    limits = replace(client.LIMITS, shared_bytes=shared)
    async with client.node(tmp_path / "a", limits) as a, client.node(tmp_path / "b", limits) as b:
        writing = await client.begin(client.places([a, b]), block(), size=len(DATA))
        packets = Together()
        for at in range(0, 1_024_000, 51_200):
            packets.add(at, DATA[at : at + 51_200])
        packets.heartbeat()
        packets.add(1_024_000, DATA[1_024_000:1_024_700], sync=True)
        packets.add(1_024_512, DATA[1_024_512:1_024_900])
        packets.add(1_024_512, DATA[1_024_512:1_024_800])  # shorter than what is there
        packets.add(1_024_512, DATA[1_024_512:1_025_024])
        for at in range(1_025_024, len(DATA), 512):
            packets.add(at, DATA[at : at + 512])
        packets.end(len(DATA))
        await packets.send(writing)
        for number in packets.seqnos:
            answer = await writing.ack()
            assert (answer.seqno, list(answer.reply)) == (number, [OK, OK])
        for one in (a, b):
            assert await client.read(one.place, block(), 0, len(DATA)) == DATA
        writing.peer.close()
        for one in (a, b):
            await client.idle(one)
            await client.until(lambda one=one: one.server.shared_bytes == 0)  # type: ignore[misc]


async def test_what_comes_before_a_bad_packet_is_kept_and_acknowledged(
    nodes: list[client.Node],
) -> None:
    for case, at, bad in (("checksum", 1536, True), ("gap", 4096, False)):
        writing = await client.begin(client.places(nodes[:1]), block(), stamp=int(case == "gap"))
        packets = Together()
        for start in range(0, 1536, 512):
            packets.add(start, DATA[start : start + 512])
        packets.add(at, DATA[at : at + 512], bad=bad)
        packets.add(1536, DATA[1536:2048])
        await packets.send(writing)
        for _ in range(3):
            assert list((await writing.ack()).reply) == [OK]
        if bad:
            assert list((await writing.ack()).reply) == [BAD]
        with pytest.raises(PeerLost):
            await writing.ack()
        await client.idle(nodes[0])
        assert readable_length(replica_of(nodes[0])) == replica_of(nodes[0]).length == 1536


async def test_a_packet_that_makes_no_sense_spoils_none_before_it(nodes: list[client.Node]) -> None:
    writing = await client.begin(client.places(nodes[:1]), block())
    packets = Together()
    packets.add(0, DATA[:512])
    packets.add(512, DATA[512:1024])
    await packets.send(writing)
    await writing.peer.send(b"\xff" * 31, seconds=client.SECONDS)
    for _ in range(2):
        assert list((await writing.ack()).reply) == [OK]
    with pytest.raises(PeerLost):
        await writing.ack()
    await client.idle(nodes[0])
    assert readable_length(replica_of(nodes[0])) == 1024


async def test_memory_for_long_packets_is_shared_and_has_an_end(tmp_path: Path) -> None:
    limits = replace(client.LIMITS, shared_bytes=1_500_000)
    async with client.node(tmp_path / "a", limits) as one:
        long, short = DATA[:1_000_448], DATA[:51_200]
        first = await client.begin([one.place], block(0), size=len(DATA))
        half = Together()
        half.add(0, long)
        await first.peer.send(bytes(half.raw[:100_000]), seconds=client.SECONDS)
        await client.until(lambda: one.server.shared_bytes > 900_000)
        # The second long one has to wait, a usual one does not, one beyond all limits is refused.
        second = await client.begin([one.place], block(1), size=len(DATA))
        await second.send(long)
        third = await client.begin([one.place], block(2))
        await third.write(short)
        fourth = await client.begin([one.place], block(3), size=len(DATA))
        await fourth.send(DATA)
        with pytest.raises(PeerLost):
            await fourth.ack()
        assert replica_of(one).length == 0
        first.peer.abort()
        assert list((await second.ack()).reply) == [OK]
        await second.close()
        await third.close()
        assert await client.read(one.place, block(1), 0, len(long)) == long
        await client.idle(one)
        await client.until(lambda: one.server.shared_bytes == 0)


async def test_readers_that_take_nothing_hold_a_packet_each(tmp_path: Path) -> None:
    limits = replace(client.LIMITS, shared_bytes=600_000)
    async with client.node(tmp_path / "a", limits) as one:
        await finalized(one.store, block(), DATA * 10)
        request = pb.OpReadBlockProto(header=header(block()), offset=0, len=len(DATA) * 10)
        idlers = [await client.connect(one.place.port) for _ in range(3)]
        for idler in idlers:
            await idler.send(encode_op(Op.READ_BLOCK, request), seconds=client.SECONDS)
            await idler.read(100, seconds=client.SECONDS)
        assert one.server.shared_bytes == 256 * 1024
        assert await client.read(one.place, block(), 0, len(DATA)) == DATA
        for idler in idlers:
            idler.abort()
        await client.idle(one)
        assert one.server.shared_bytes == 0
