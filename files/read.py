"""Reads a file: block after block, from whichever replica gives the right bytes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Final

import structlog

from files import replica
from files.errors import FilesError, Unreadable, Unsupported
from files.namenodes import Namenodes
from files.replica import ReadLimits, ReplicaRead
from ha.record import dataclass, field
from ha.rpc.errors import RemoteFault, RpcError
from ha.rpc.java_names import REPLICA_NOT_FOUND
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import address_of, block_id_of
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.connection import PeerLost
from hadoop.wire.errors import ChecksumMismatch, DataNodeError

log = structlog.get_logger()

BUFFER_BYTES: Final = 4 * 1024 * 1024
"""For the packets of one reader: the longest of Hadoop's DataNodes and ours fit several times."""
_AHEAD_BYTES: Final = 1280 * 1024 * 1024
"""How much of a file is located at once: ten blocks of the usual size."""
_CLIENT: Final = "nnha-reader"


@dataclass(slots=True)
class Reader:
    """A file as it was when it was opened; what is appended later is not read."""

    namenodes: Namenodes
    path: str
    limits: ReadLimits = field(default_factory=ReadLimits)
    budget: ByteBudget = field(default_factory=lambda: ByteBudget(BUFFER_BYTES))
    length: int = 0
    ahead_bytes: int = _AHEAD_BYTES
    _located: hdfs.LocatedBlocksProto = field(default_factory=hdfs.LocatedBlocksProto)

    @classmethod
    async def open(
        cls,
        namenodes: Namenodes,
        path: str,
        *,
        offset: int = 0,
        limits: ReadLimits | None = None,
        budget: ByteBudget | None = None,
    ) -> "Reader":
        """Locate a file's blocks around ``offset``, and ask how long it is.

        ``budget`` is what this reader shares with others for packets that have come.

        Raises:
            FilesError: if the NameNode refuses or is not there, or if the length of an open last
                block is not to be had.
        """
        reader = cls(namenodes, path, limits or ReadLimits(), budget or ByteBudget(BUFFER_BYTES))
        located = await reader.locate(offset)
        reader.length = located.fileLength
        if not located.isLastBlockComplete and located.HasField("lastBlock"):
            reader.length = located.lastBlock.offset + await reader._open_length(located.lastBlock)
        return reader

    async def read(self, offset: int = 0, length: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from ``offset``, at most ``length`` of them, in parts of a packet.

        Iterate within ``contextlib.aclosing``, so that a connection is not left open.

        Raises:
            Unreadable: if no replica of a block gives its bytes.
            FilesError: as ``open``.
        """
        end = self.length if length is None else min(self.length, offset + length)
        while offset < end:
            stop = min(end, _end_of(await self.block_at(offset)))
            async with aclosing(self._of_block(offset, stop)) as parts:
                async for part in parts:
                    offset += len(part)
                    yield part

    async def _of_block(self, at: int, stop: int) -> AsyncGenerator[bytes, None]:
        """Yield a part of one block, from one replica after the other until all have failed."""
        failed: dict[str, str] = {}
        damaged: list[hdfs.DatanodeInfoProto] = []
        rounds = 0
        while at < stop:
            block = await self.block_at(at)
            node = next((one for one in block.locs if address_of(one) not in failed), None)
            if node is None:
                await self._report(block, damaged)
                rounds += 1
                if rounds >= self.limits.rounds:
                    raise self._unreadable(block, at, failed)
                await asyncio.sleep(self.limits.round_seconds * rounds)
                await self.locate(at)
                failed, damaged = {}, []
                continue
            asked = ReplicaRead(block, node, at - block.offset, stop - block.offset)
            try:
                async with aclosing(
                    replica.parts(self.namenodes, asked, _CLIENT, self.limits, self.budget)
                ) as parts:
                    async for part in parts:
                        at, rounds = at + len(part), 0
                        yield part
            except (PeerLost, DataNodeError) as problem:
                log.info("files.replica_failed", path=self.path, at=at, why=str(problem))
                failed[address_of(node)] = str(problem)
                if isinstance(problem, ChecksumMismatch):
                    damaged.append(node)
        if damaged:
            await self._report(await self.block_at(stop - 1), damaged)

    def _unreadable(
        self, block: hdfs.LocatedBlockProto, at: int, failed: dict[str, str]
    ) -> Unreadable:
        found = "; ".join(f"{node}: {why}" for node, why in failed.items())
        number = block_id_of(block.b.blockId)
        return Unreadable(
            f"{self.path} cannot be read from byte {at} on: no replica of block "
            f"{number} gave its bytes ({found or 'no DataNode has one'}). "
            f"→ nnha explain block {number} shows its replicas."
        )

    async def _report(
        self, block: hdfs.LocatedBlockProto, damaged: list[hdfs.DatanodeInfoProto]
    ) -> None:
        """Report damaged replicas; if all are, then perhaps it is our own memory that is."""
        if not damaged or (len(damaged) == len(block.locs) and len(damaged) > 1):
            return
        storages = dict(zip(map(address_of, block.locs), block.storageIDs, strict=False))
        bad = hdfs.LocatedBlockProto(
            b=block.b,
            offset=block.offset,
            locs=damaged,
            corrupt=True,
            blockToken=block.blockToken,
            storageIDs=[storages.get(address_of(node), "") for node in damaged],
        )
        with suppress(FilesError):  # the DataNode's own scanner finds it, too
            await self.namenodes.ask(
                calls.ReportBadBlocksResponseProto, blocks=[bad], seconds=self.limits.packet_seconds
            )

    # Locations.

    async def block_at(self, offset: int) -> hdfs.LocatedBlockProto:
        """Return the block that holds the byte at ``offset``; raise as ``open``."""
        found = self._find_located(offset)
        if found is None:
            await self.locate(offset)
            found = self._find_located(offset)
        if found is None:
            raise Unreadable(f"{self.path} has fewer than {offset} bytes now")
        return found

    def _find_located(self, offset: int) -> hdfs.LocatedBlockProto | None:
        for block in self._located.blocks:
            if block.offset <= offset < _end_of(block):
                return block
        last = self._located.lastBlock
        is_open = self._located.HasField("lastBlock") and not self._located.isLastBlockComplete
        if is_open and last.offset <= offset < self.length:
            last.b.numBytes = self.length - last.offset
            return last
        return None

    async def locate(self, offset: int) -> hdfs.LocatedBlocksProto:
        """Ask where the blocks from ``offset`` on are, and check that they are still the same.

        Raises:
            Unreadable: if the path is another file by now, whose bytes must not follow these.
            FilesError: as ``open``.
        """
        seen = self._find_located(offset) or self._find_located(offset - 1)
        last, begin = self._located.lastBlock.b.blockId, seen.offset if seen else offset
        answer = await self.namenodes.ask(
            calls.GetBlockLocationsResponseProto,
            src=self.path,
            offset=begin,
            length=offset - begin + self.ahead_bytes,
        )
        self._located = found = answer.locations
        if found.HasField("ecPolicy") or found.HasField("fileEncryptionInfo"):
            raise Unsupported(f"{self.path} is erasure-coded or encrypted; → hdfs dfs reads it")
        now = self._find_located(begin)
        is_same = (
            now is not None and now.b.blockId == seen.b.blockId
            if seen
            else (last in (0, found.lastBlock.b.blockId))
        )
        if not is_same:
            raise Unreadable(f"{self.path} is no longer what was opened: it was replaced or cut")
        return found

    async def _open_length(self, block: hdfs.LocatedBlockProto) -> int:
        """Return how much of the last block, which is being written, every reader sees."""
        missing = 0
        found = {}
        for node in block.locs:
            try:
                return await replica.visible_length(block.b, node, self.limits)
            except (RpcError, RemoteFault) as problem:
                found[address_of(node)] = str(problem)
                missing += getattr(problem, "java_class", "") == REPLICA_NOT_FOUND
        if missing == len(block.locs):
            return 0  # the pipeline is only being made
        raise self._unreadable(block, block.offset, found)


def _end_of(block: hdfs.LocatedBlockProto) -> int:
    return block.offset + block.b.numBytes
