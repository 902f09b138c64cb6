"""Three DataNodes in a pipeline on real sockets: writes, reads, failures in the middle."""

import os
from pathlib import Path

import pytest

from datanode import model
from datanode.replicas.operations import News
from datanode.transfers.send import open_stretch, send_stretch
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire.checksums import checksums_of
from hadoop.wire.connection import PeerLost
from hadoop.wire.errors import ChecksumMismatch
from tests.datanode import block_client
from tests.datanode.block_client import STAGE, Node, begin, idle, places, read, write_whole
from tests.datanode.stores import CHECKSUM, block
from tests.log_lines import captured

DATA = bytes(range(251)) * 400
"""100,400 bytes: 25 packets, and a short chunk at the end."""
OK = pb.Status.SUCCESS


async def test_what_is_written_is_read_from_each(nodes: list[Node]) -> None:
    heard: list[News] = []
    nodes[2].store.listeners.append(lambda told: heard.append(told.news))
    await write_whole(places(nodes), block(), DATA)
    for one in nodes:
        assert await read(one.place, block(), 0, len(DATA)) == DATA
        assert await read(one.place, block(), 1000, 2500) == DATA[1000:3500]
        assert await read(one.place, block(), len(DATA), 0) == b""
    assert heard == [News.RECEIVING, News.RECEIVED]


async def test_reads_share_a_connection_and_refusals_do_not_end_it(nodes: list[Node]) -> None:
    await write_whole(places(nodes[:1]), block(), DATA)
    peer = await block_client.connect(nodes[0].place.port)
    assert await read(nodes[0].place, block(), 0, 10, peer=peer) == DATA[:10]
    with pytest.raises(block_client.ReadRefused, match="don't match block"):
        await read(nodes[0].place, block(), 0, len(DATA) + 1, peer=peer)
    with pytest.raises(block_client.ReadRefused, match="is not here"):
        await read(nodes[0].place, block(stamp=1002), 0, 1, peer=peer)
    assert await read(nodes[0].place, block(), 10, 10, peer=peer) == DATA[10:20]
    peer.close()


@pytest.mark.row("B26")
async def test_an_open_block_is_read_up_to_what_all_have(nodes: list[Node]) -> None:
    writing = await begin(places(nodes), block())
    await writing.write(DATA[:700])
    for one in nodes:
        assert await read(one.place, block(), 0, 700) == DATA[:700]
    # A flush in mid-chunk: the client sends the chunk again, longer.
    await writing.send(DATA[512:1000], at=512)
    assert set((await writing.ack()).reply) == {OK}
    await writing.heartbeat()
    assert (await writing.ack()).seqno == -1
    await writing.send(DATA[512:1200], at=512, sync=True)
    await writing.ack()
    await writing.close()
    for one in nodes:
        assert await read(one.place, block(), 0, 1200) == DATA[:1200]


@pytest.fixture
def durable(monkeypatch: pytest.MonkeyPatch) -> dict[Path, set[str]]:
    seen: dict[Path, set[str]] = {}
    sync = os.fsync

    def noting(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_dir():
            seen[path] = {child.name for child in path.iterdir()}
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    return seen


async def test_what_is_synced_is_found_after_a_power_cut(
    nodes: list[Node], durable: dict[Path, set[str]]
) -> None:
    kept = nodes[0].store
    writing = await begin(places(nodes[:1]), block())
    await writing.send(DATA[:1000], sync=True)
    await writing.ack()
    replica = kept.find(block())
    before = kept.volumes[replica.storage].paths(replica)
    names = {before.block.name, before.meta.name}
    assert names <= durable[before.block.parent]
    await writing.end(sync=True)
    assert list((await writing.ack()).reply) == [OK]
    after = kept.volumes[replica.storage].paths(kept.find(block())).block
    assert names <= durable[after.parent]
    for folder in list(after.parents)[:3]:
        assert folder.name in durable[folder.parent]
    assert names.isdisjoint(durable[before.block.parent])


async def test_a_reader_in_mid_chunk_sees_the_checksum_of_what_it_may_read(
    nodes: list[Node],
) -> None:
    writing = await begin(places(nodes[:1]), block())
    await writing.write(DATA[:700])
    replica = nodes[0].store.find(block())
    assert isinstance(replica, model.BeingWritten)
    # Ahead on the disk, not acknowledged: what a slow DataNode downstream looks like.
    files = await nodes[0].store.open(replica, writable=True)
    ahead = DATA[512:900]
    sums = checksums_of(ahead, CHECKSUM)
    files.write(512, [memoryview(ahead)], [memoryview(sums)])
    files.close()
    assert await read(nodes[0].place, block(), 600, 100) == DATA[600:700]
    writing.peer.abort()


async def test_a_flipped_bit_is_found_by_the_reader(nodes: list[Node]) -> None:
    await write_whole(places(nodes), block(), DATA)
    replica = nodes[1].store.find(block())
    path = nodes[1].store.volumes[replica.storage].paths(replica).block
    damaged = bytearray(path.read_bytes())
    damaged[50_000] ^= 4
    path.write_bytes(damaged)
    with pytest.raises(ChecksumMismatch) as found:
        await read(nodes[1].place, block(), 0, len(DATA))
    assert found.value.offset == 50_000 // 512 * 512
    assert await read(nodes[0].place, block(), 0, len(DATA)) == DATA


@pytest.mark.row("B26")
async def test_append_in_mid_chunk(nodes: list[Node]) -> None:
    await write_whole(places(nodes), block(), DATA[:700])
    writing = await begin(
        places(nodes), block(), stage=STAGE.PIPELINE_SETUP_APPEND, stamp=1002, length=700
    )
    assert writing.set_up.status == OK
    await writing.send(DATA[700:900])  # flushed in the chunk ...
    await writing.send(DATA[700:1024], at=700)  # ... and sent again, whole
    await writing.send(DATA[1024:2000])
    for _ in range(3):
        assert set((await writing.ack()).reply) == {OK}
    await writing.close()
    for one in nodes:
        assert await read(one.place, block(stamp=1002), 0, 2000) == DATA[:2000]


async def test_an_append_in_mid_chunk_does_not_spoil_what_is_being_read(nodes: list[Node]) -> None:
    await write_whole(places(nodes[:1]), block(), DATA[:700])
    stretch = await open_stretch(nodes[0].store, block(), 0, None)
    writing = await begin(
        places(nodes[:1]), block(), stage=STAGE.PIPELINE_SETUP_APPEND, stamp=1002, length=700
    )
    await writing.write(DATA[700:900])
    copying = await begin(places(nodes[1:2]), block(), client="")
    await send_stretch(copying.peer, stretch, seconds=5)
    stretch.files.close()
    await idle(nodes[1])
    assert [one.length for one in nodes[1].store] == [700]


async def test_an_append_to_a_damaged_chunk_is_refused(nodes: list[Node]) -> None:
    await write_whole(places(nodes[:1]), block(), DATA[:700])
    replica = nodes[0].store.find(block())
    path = nodes[0].store.volumes[replica.storage].paths(replica).block
    path.write_bytes(DATA[:600] + b"x" * 100)
    writing = await begin(
        places(nodes[:1]), block(), stage=STAGE.PIPELINE_SETUP_APPEND, stamp=1002, length=700
    )
    await writing.send(DATA[700:900])
    assert list((await writing.ack()).reply) == [pb.Status.ERROR_CHECKSUM]
    with pytest.raises(PeerLost):
        await writing.ack()


async def failure_seen(writing: block_client.Writing) -> None:
    """Wait until the client knows that a node is lost, as Java's client does."""
    try:
        while set((await writing.ack()).reply) == {OK}:
            await writing.heartbeat()
    except PeerLost:
        pass


@pytest.mark.row("B22")
@pytest.mark.parametrize("victim", [0, 1, 2])
async def test_a_node_dies_in_mid_write_and_the_client_goes_on(
    nodes: list[Node], victim: int
) -> None:
    writing = await begin(places(nodes), block())
    await writing.write(DATA[:50_000])
    await nodes[victim].server.stop()
    await writing.send(DATA[50_000:50_100])
    await failure_seen(writing)
    writing.peer.abort()
    left = [one for one in nodes if one is not nodes[victim]]
    again = await begin(
        places(left),
        block(),
        stage=STAGE.PIPELINE_SETUP_STREAMING_RECOVERY,
        stamp=1002,
        length=50_000,
        received=len(DATA),
    )
    assert again.set_up.status == OK, again.set_up.message
    await again.send(DATA[49_664:54_272], at=49_664)
    assert set((await again.ack()).reply) == {OK}
    await again.write(DATA[54_272:])
    await again.close()
    for one in left:
        assert await read(one.place, block(stamp=1002), 0, len(DATA)) == DATA


async def test_the_client_hears_which_packets_are_safe_when_the_mirror_dies(
    nodes: list[Node],
) -> None:
    writing = await begin(places(nodes), block())
    await writing.write(DATA[:1000])
    await nodes[1].server.stop()
    await writing.send(DATA[512:1200], at=512)
    assert list((await writing.ack()).reply) == [OK, pb.Status.ERROR]
    assert model.readable_length(nodes[0].store.find(block())) == 1000
    writing.peer.abort()


async def test_a_dead_target_is_named_at_set_up(nodes: list[Node]) -> None:
    await nodes[2].server.stop()
    writing = await begin(places(nodes), block())
    assert writing.set_up.status == pb.Status.ERROR
    assert writing.set_up.firstBadLink == nodes[2].place.address


async def test_a_refused_set_up_is_named_too(nodes: list[Node]) -> None:
    await write_whole(places(nodes[2:]), block(), DATA)
    writing = await begin(places(nodes), block())
    assert writing.set_up.status == pb.Status.ERROR
    assert writing.set_up.firstBadLink == nodes[2].place.address
    assert "cannot be created" in writing.set_up.message


async def test_a_new_writer_stops_the_old_one(nodes: list[Node]) -> None:
    first = await begin(places(nodes), block())
    await first.write(DATA[:1000])
    again = await begin(
        places(nodes),
        block(),
        stage=STAGE.PIPELINE_SETUP_STREAMING_RECOVERY,
        stamp=1002,
        length=1000,
    )
    assert again.set_up.status == OK, again.set_up.message
    with pytest.raises(PeerLost):
        await first.ack()
    await again.close()
    for one in nodes:
        assert await read(one.place, block(stamp=1002), 0, 1000) == DATA[:1000]


async def test_a_refused_set_up_disturbs_no_writer(nodes: list[Node]) -> None:
    writing = await begin(places(nodes), block())
    await writing.write(DATA[:1000])
    for stage, stamp in (
        (STAGE.PIPELINE_SETUP_CREATE, 0),
        (STAGE.PIPELINE_SETUP_APPEND, 1002),
        (STAGE.PIPELINE_CLOSE_RECOVERY, 1000),
    ):
        refused = await begin(places(nodes), block(), stage=stage, stamp=stamp, length=1000)
        assert refused.set_up.status == pb.Status.ERROR
    await writing.send(DATA[512:2048], at=512)
    assert set((await writing.ack()).reply) == {OK}
    await writing.close()
    for one in nodes:
        assert await read(one.place, block(), 0, 2048) == DATA[:2048]


async def test_a_block_is_closed_after_a_lost_answer(nodes: list[Node]) -> None:
    writing = await begin(places(nodes), block())
    await writing.write(DATA[:1000])
    writing.peer.abort()
    again = await begin(
        places(nodes), block(), stage=STAGE.PIPELINE_CLOSE_RECOVERY, stamp=1002, length=1000
    )
    assert again.set_up.status == OK, again.set_up.message
    for one in nodes:
        assert isinstance(one.store.find(block()), model.Finalized)
        assert await read(one.place, block(stamp=1002), 0, 1000) == DATA[:1000]


async def test_a_client_that_stops_in_mid_block_leaves_what_it_has_sent(nodes: list[Node]) -> None:
    writing = await begin(places(nodes), block())
    await writing.write(DATA[:1000])
    writing.peer.abort()
    for one in nodes:
        await idle(one)
        assert model.readable_length(one.store.find(block())) == 1000
        assert await read(one.place, block(), 0, 1000) == DATA[:1000]


BAD_PACKETS = {
    "gap": "at 2048, and the bytes from 1024 on have not come",
    "the next but one first": "at 1536, and the bytes from 1024 on have not come",
    "checksum": "the chunk at 1024 does not fit its checksum",
    "beyond its chunk": "at 900, inside a chunk, goes beyond it",
    "short end": "ends at 500, and 1024 bytes have come",
}
"""Each with what the DataNode's log says of it; its client is hung up on, as Hadoop's is."""


@pytest.mark.parametrize("case", BAD_PACKETS)
async def test_bad_packets_end_the_write(nodes: list[Node], case: str) -> None:
    with captured("datanode.operation_failed") as lines:
        await _bad_packet(nodes, case)
    (why,) = [line["why"] for line in lines if line["event"] == "datanode.operation_failed"]
    assert BAD_PACKETS[case] in why
    assert await read(nodes[0].place, block(), 0, 1024) == DATA[:1024]


async def _bad_packet(nodes: list[Node], case: str) -> None:
    writing = await begin(places(nodes[:1]), block())
    await writing.write(DATA[:1024])
    match case:
        case "gap":
            await writing.send(DATA[:512], at=2048)
        case "the next but one first":
            await writing.send(DATA[1536:2048], at=1536)
            await writing.send(DATA[1024:1536], at=1024)
        case "checksum":
            await writing.send(DATA[:512], bad_sum=True)
            assert list((await writing.ack()).reply) == [pb.Status.ERROR_CHECKSUM]
        case "beyond its chunk":
            await writing.send(DATA[:600], at=900)
        case _:
            await writing.send(b"", at=500)
            await writing.ack()
            await writing.end()
    with pytest.raises(PeerLost):
        await writing.ack()
    await idle(nodes[0])
    replica = nodes[0].store.find(block())
    assert isinstance(replica, model.BeingWritten)
    assert model.readable_length(replica) == 1024


async def test_the_last_node_checks_for_all(nodes: list[Node]) -> None:
    writing = await begin(places(nodes), block())
    await writing.send(DATA[:512], bad_sum=True)
    assert list((await writing.ack()).reply)[2] == pb.Status.ERROR_CHECKSUM
    assert model.readable_length(nodes[0].store.find(block())) == 0
    writing.peer.abort()
