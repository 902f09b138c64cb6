"""Sends the bytes of a replica with their checksums, to readers and to other DataNodes."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Final

from datanode import model
from datanode.errors import ReplicaRefused
from datanode.replicas.replica_files import ReplicaFiles
from datanode.replicas.store import Store
from ha.record import dataclass
from hadoop.blocks import Block, Checksum, ChecksumType
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.packets import PacketHeader, encode_packet
from hadoop.wire.peer import NO_BUDGET, Peer

Paced = Callable[[int], Awaitable[None]]
"""Notes that bytes have passed, and waits until more may."""

_PACKET_BYTES: Final = 64 * 1024
_LARGE_PACKET_BYTES: Final = 256 * 1024
"""Of one packet to a reader, while the budget lasts."""
_GROW_SECONDS: Final = 3.0
_LOOK_SECONDS: Final = 0.05


@dataclass(slots=True)
class Stretch:
    """A part of a replica that is about to be sent: whole chunks from ``start`` to ``end``."""

    files: ReplicaFiles
    checksum: Checksum
    start: int
    end: int
    last_sum: bytes
    """The checksum of a last chunk that is not full: an append puts a later one's on the disk."""


async def open_stretch(
    store: Store, block: Block, offset: int, length: int | None, *, with_sums: bool = True
) -> Stretch:
    """Open the part of a replica that holds these bytes; ``length`` None means all.

    The caller must close ``files``.

    Raises:
        ReplicaMissing: if there is no such replica.
        ReplicaRefused: if it does not have these bytes.
        VolumeFailed, OSError: if the disk refuses.
    """
    replica = await _await_growth(store, block, offset + (length or 0))
    visible = model.readable_length(replica)
    wanted = visible - offset if length is None else length
    if offset > visible or offset + wanted > visible:
        raise ReplicaRefused(
            f"Offset {offset} and length {wanted} don't match block {replica.block} "
            f"( blockLen {visible} )"
        )
    files = await store.open(replica)
    disk = files.checksum
    end = min(visible, disk.chunks(offset + wanted) * disk.bytes_per_chunk)
    last, last_sum = disk.chunk_start(end), b""
    if end == visible and with_sums:
        try:
            last_sum = _tail(replica) or files.read_sums(last, end - last)
        except OSError:
            files.close()
            raise
    return Stretch(
        files,
        disk if with_sums else Checksum(ChecksumType.NULL),
        disk.chunk_start(offset),
        end,
        last_sum,
    )


async def _await_growth(store: Store, block: Block, end: int) -> model.Replica:
    """Return the replica, and wait for these bytes if a writer may be about to send them."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _GROW_SECONDS
    while True:
        replica = store.find(block)
        if not isinstance(replica, model.BeingWritten) or replica.acked >= end:
            return replica
        if loop.time() >= deadline:
            return replica
        await asyncio.sleep(_LOOK_SECONDS)


def _tail(replica: model.Replica) -> bytes:
    before = replica.original if isinstance(replica, model.UnderRecovery) else replica
    return before.tail if isinstance(before, model.BeingWritten) else b""


def opening(stretch: Stretch) -> pb.BlockOpResponseProto:
    """Return the answer that the packets of a stretch follow."""
    return pb.BlockOpResponseProto(
        status=pb.Status.SUCCESS,
        readOpChecksumInfo=pb.ReadOpChecksumInfoProto(
            checksum=pb.ChecksumProto(
                type=hdfs.ChecksumTypeProto.ValueType(stretch.checksum.kind),
                bytesPerChecksum=stretch.checksum.bytes_per_chunk,
            ),
            chunkOffset=stretch.start,
        ),
    )


async def _unpaced(_count: int) -> None:
    return


async def send_stretch(
    peer: Peer,
    stretch: Stretch,
    *,
    seconds: float,
    budget: ByteBudget = NO_BUDGET,
    paced: Paced = _unpaced,
) -> None:
    """Send packets with the stretch, and the empty one that ends it.

    ``paced`` is awaited with the number of bytes after each packet.

    Raises:
        PeerLost: if the other side goes away.
        OSError: if the disk refuses.
    """
    large = budget.try_take(_LARGE_PACKET_BYTES)
    try:
        most = _LARGE_PACKET_BYTES if large else _PACKET_BYTES
        await _send_packets(peer, stretch, most, seconds, paced)
    finally:
        if large:
            budget.give(_LARGE_PACKET_BYTES)


async def _send_packets(
    peer: Peer, stretch: Stretch, packet_bytes: int, seconds: float, paced: Paced
) -> None:
    step = stretch.files.checksum.bytes_per_chunk
    most = max(1, packet_bytes // step) * step
    offset, seqno = stretch.start, 0
    while offset < stretch.end:
        length = min(most, stretch.end - offset)
        data, sums = await _read(stretch, offset, length)
        if len(data) < length:
            raise OSError(f"the block file ends at {offset + len(data)}, before {stretch.end}")
        header = PacketHeader(offset, seqno, last=False, length=length)
        await peer.send(encode_packet(header, sums, data), seconds=seconds)
        await paced(length)
        offset, seqno = offset + length, seqno + 1
    end = PacketHeader(offset, seqno, last=True, length=0)
    await peer.send(encode_packet(end, b"", b""), seconds=seconds)


async def _read(stretch: Stretch, offset: int, length: int) -> tuple[bytes | bytearray, bytes]:
    files = stretch.files
    data: bytes | bytearray | None = _read_cached(files.block_fd, offset, length)
    if data is None:
        data = await asyncio.to_thread(files.read, offset, length)
    if stretch.checksum.kind is ChecksumType.NULL:
        return data, b""
    sums = files.read_sums(offset, length)
    if stretch.last_sum and offset + length == stretch.end:
        sums = sums[: -len(stretch.last_sum)] + stretch.last_sum
    return data, sums


def _read_cached(fd: int, offset: int, length: int) -> bytearray | None:
    """Return bytes that the kernel has in memory; None where a disk would have to be read."""
    buffer = bytearray(length)
    try:
        got = os.preadv(fd, [buffer], offset, os.RWF_NOWAIT)
    except OSError:
        return None  # Not in memory, or a file system without RWF_NOWAIT.
    return buffer if got == length else None
