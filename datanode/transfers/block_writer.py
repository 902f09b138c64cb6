"""Writes the packets of one block into its files, and verifies them if no DataNode behind us does.

Packets of whole chunks that follow each other are written together.

See docs/reference/datanode.md#packets-of-a-write.
"""

import contextlib

from datanode.model import Replica
from datanode.replicas.replica_files import ReplicaFiles
from datanode.replicas.store import Store
from hadoop.blocks import Block, Checksum
from hadoop.wire.checksums import checksums_of, verify
from hadoop.wire.errors import MalformedTransfer
from hadoop.wire.packets import Packet, PacketHeader


class BlockWriter:
    """The open files of a replica while packets come in."""

    def __init__(
        self, store: Store, replica: Replica, files: ReplicaFiles, sent: Checksum, *, checks: bool
    ) -> None:
        """Take packets with checksums of kind ``sent``; ``checks``: verify them here.

        No DataNode behind us does then.
        """
        self.block: Block = replica.block
        self._store, self._replica, self._files = store, replica, files
        self._sent = sent
        self._checks = checks or sent.kind is not files.checksum.kind
        self._length = replica.length
        self._together: list[Packet] = []
        self._named = False
        """Whether the disk knows the names of the files."""
        if sent.bytes_per_chunk != files.checksum.bytes_per_chunk:
            raise MalformedTransfer(
                f"{replica.block} has a checksum for each {files.checksum.bytes_per_chunk} bytes, "
                f"and the client sends one for each {sent.bytes_per_chunk}"
            )
        # The checksum on the disk will soon be that of a longer chunk.
        store.acknowledged(self.block, self._length, self._tail(self._length))

    @property
    def length(self) -> int:
        return self._length

    def take(self, packet: Packet) -> bytes:
        """Take a packet, which is on the disk after ``flush`` at the latest.

        Return the checksum of the chunk that its end cuts, or nothing.

        Raises:
            MalformedTransfer: if bytes before it are missing, or checksums.
            ChecksumMismatch: if its bytes, or those of its first chunk on the disk, are damaged.
            ReplicaMissing: if the replica has been deleted in the meantime.
            OSError: if the disk refuses.
        """
        header, sent = packet.header, self._sent
        if header.offset > self._length:
            raise MalformedTransfer(
                f"a packet of {self.block} at {header.offset}, and the bytes from {self._length} "
                "on have not come"
            )
        if len(packet.sums) != sent.chunks(header.length) * sent.size:
            raise MalformedTransfer(
                f"{len(packet.sums)} bytes of checksums for {header.length} bytes of data"
            )
        if self._checks:
            verify(packet.data, packet.sums, sent, at=header.offset, what=str(self.block))
        if self._follows(header):
            self._together.append(packet)
            self._length = header.end
            return b""
        self.flush()
        if header.end > self._length:  # else it was sent again after a flush
            self._put(packet)
            self._grown(header.end)
        return self._tail(header.end)

    def flush(self) -> None:
        """Write what was taken; raises ``ReplicaMissing`` and ``OSError`` as ``take``."""
        taken, self._together = self._together, []
        if taken:
            data, sums = [one.data for one in taken], [one.sums for one in taken]
            self._length = begin = taken[0].header.offset
            self._write(begin, data, sums)
            self._grown(taken[-1].header.end)

    def _write(self, begin: int, data: list[memoryview], sums: list[memoryview]) -> None:
        try:
            self._files.write(begin, data, sums)
        except OSError:
            with contextlib.suppress(OSError):
                self._files.shorten(self._length)  # A part may be there, and is in no record.
            raise

    def _follows(self, header: PacketHeader) -> bool:
        """Return whether a packet consists of whole chunks and can be appended unchanged."""
        chunk = self._files.checksum.bytes_per_chunk
        return (
            header.offset == self._length
            and header.offset % chunk == 0
            and header.length > 0
            and header.length % chunk == 0
            and self._sent.kind is self._files.checksum.kind
        )

    def _grown(self, end: int) -> None:
        self._store.received(self.block, end)
        self._length = end

    def finish(self, header: PacketHeader) -> None:
        """Check that the packet that ends the block stands at its end; raises as ``take``."""
        if header.offset != self._length:
            raise MalformedTransfer(
                f"{self.block} ends at {header.offset}, and {self._length} bytes have come"
            )

    async def sync(self) -> None:
        """Wait for the disk; raises ``VolumeFailed``."""
        await self._store.sync(self._replica, self._files)
        if not self._named:
            await self._store.sync_names(self._replica)
            self._named = True

    def _put(self, packet: Packet) -> None:
        disk, begin = self._files.checksum, packet.header.offset
        start = disk.chunk_start(begin)
        data, sums = packet.data, packet.sums
        if start < begin:
            data, sums = self._merge(packet, start)
            begin = start
        elif disk.kind is not self._sent.kind:
            sums = memoryview(checksums_of(data, disk))
        self._write(begin, [data], [sums])

    def _merge(self, packet: Packet, start: int) -> tuple[memoryview, memoryview]:
        """Join a packet that begins inside a chunk with the bytes of that chunk before it."""
        disk, header = self._files.checksum, packet.header
        if header.end > start + disk.bytes_per_chunk:
            raise MalformedTransfer(
                f"a packet of {self.block} at {header.offset}, inside a chunk, goes beyond it"
            )
        there = self._files.checked(start, self._length - start, str(self.block))
        merged = there[: header.offset - start] + bytes(packet.data)
        return memoryview(merged), memoryview(checksums_of(merged, disk))

    def _tail(self, end: int) -> bytes:
        disk = self._files.checksum
        if end % disk.bytes_per_chunk == 0 or end != self._length:
            return b""
        return self._files.read_sums(disk.chunk_start(end), end - disk.chunk_start(end))
