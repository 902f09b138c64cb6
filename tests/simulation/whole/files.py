"""Clients that write files to DataNodes, each its own; no other may change what it was answered.

What a writer was answered about a path is what every client then reads, whole, and for ever. Where
it got no answer, or a failure, the path is asked for no more.
"""

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Final

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import FILE_NOT_FOUND
from hadoop.blocks import Block
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import LocatedBlockProto
from tests.simulation.blocks.client import Client, GaveUp
from tests.simulation.blocks.datanode import block
from tests.simulation.blocks.disks import NotDone
from tests.simulation.blocks.namenode import BLOCK_SIZE
from tests.simulation.blocks.pipeline import BadLink, read
from tests.simulation.blocks.wires import Broken
from tests.simulation.engine.trace import Trace
from tests.simulation.engine.verdict import Violated

LONGEST: Final = 3 * BLOCK_SIZE
PAUSE_SECONDS: Final = (0.05, 0.8)
AUDIT_SECONDS: Final = 60.0
_WHOLE_FILE: Final = 1_000_000
_DEEDS: Final = (
    "write", "write", "write", "append", "append", "spread", "spread", "read", "read", "delete",
)  # fmt: skip


class Books:
    """Which bytes a writer has sent since ``begin``; the rest that it hears counts at the end."""

    def __init__(self) -> None:
        self.sent = b""

    def begin(self) -> None:
        """Begin another file, or an append."""
        self.sent = b""

    def sends(self, block: Block, start: int, payload: bytes, pipeline: Iterable[str]) -> None:
        del block, start, pipeline
        self.sent += payload

    def given(self, block: Block, places: int) -> None:
        """See ``Ledger``."""

    def restamped(self, block_id: int, stamp: int) -> None:
        """See ``Ledger``."""

    def acked(self, block: Block, length: int, pipeline: Iterable[str]) -> None:
        """See ``Ledger``."""

    def finished(self, block: Block, length: int, pipeline: Iterable[str]) -> None:
        """See ``Ledger``."""

    def completed(self, path: str) -> None:
        """See ``Ledger``."""

    def reads(self, block: Block, data: bytes) -> None:
        """See ``Ledger``."""


class Writer:
    """Writes, appends to, reads and deletes its own files."""

    def __init__(self, client: Client, books: Books, rng: Random, trace: Trace) -> None:
        self._client, self._books, self._rng, self._trace = client, books, rng, trace
        self._made = 0
        self.files: dict[str, bytes | None] = {}
        """What was answered last about each path: its bytes, or None where it was deleted."""
        self.told = 0

    async def wander(self) -> None:
        """Do one thing after another, for ever."""
        while True:
            deed = self._rng.choice(_DEEDS)
            there = sorted(path for path, data in self.files.items() if data is not None)
            try:
                if deed == "write" or not there:
                    await self._write()
                else:
                    await getattr(self, f"_{deed}")(self._rng.choice(there))
                self.told += 1
            except (RemoteFault, GaveUp, BadLink) as failure:
                self._trace.add(self._client.name, f"fails: {failure}"[:200])
            await asyncio.sleep(self._rng.uniform(*PAUSE_SECONDS))

    async def _write(self) -> None:
        self._made += 1
        path, length = f"/{self._client.name}f{self._made}", self._rng.randrange(LONGEST)
        self._trace.add(self._client.name, f"writes {length} bytes to {path}")
        self._books.begin()
        await self._client.write(path, length, self._rng.choice((2, 3)))
        self.files[path] = self._books.sent

    async def _append(self, path: str) -> None:
        before, length = self.files.pop(path), self._rng.randrange(1, BLOCK_SIZE)
        assert before is not None
        self._trace.add(self._client.name, f"appends {length} bytes to {path}")
        self._books.begin()
        await self._client.append(path, length)
        self.files[path] = before + self._books.sent

    async def _delete(self, path: str) -> None:
        del self.files[path]
        self._trace.add(self._client.name, f"deletes {path}")
        await self._client.ask(
            "delete",
            calls.DeleteRequestProto(src=path, recursive=True),
            calls.DeleteResponseProto,
        )
        self.files[path] = None

    async def _spread(self, path: str) -> None:
        """Have more replicas of a file, or fewer: DataNodes copy and delete."""
        number = self._rng.choice((1, 1, 2, 3))
        self._trace.add(self._client.name, f"wants {number} replicas of {path}")
        await self._client.ask(
            "setReplication",
            calls.SetReplicationRequestProto(src=path, replication=number),
            calls.SetReplicationResponseProto,
        )

    async def _read(self, path: str) -> None:
        await self.looked(path)

    async def audit(self) -> None:
        """Look at every path until all its bytes can be had.  Raises Violated."""
        ends = self._client.loop.now + AUDIT_SECONDS
        for path in sorted(self.files):
            while True:
                try:
                    if await self.looked(path):
                        break
                except GaveUp:
                    pass
                if self._client.loop.now > ends:
                    late = f"{AUDIT_SECONDS:g} s after all faults"
                    raise Violated("W6", f"{path} cannot be read {late}")
                await asyncio.sleep(0.5)

    async def looked(self, path: str) -> bool:
        """Return whether all of a file could be read; raise Violated if it is another."""
        wanted, answer = self.files[path], await self._located(path)
        length = None if answer is None else answer.locations.fileLength
        if length != (None if wanted is None else len(wanted)):
            raise Violated("W6", f"{path} is {length} bytes long, and was told to be "
                           f"{'deleted' if wanted is None else len(wanted)}")  # fmt: skip
        if answer is None:
            return True
        parts = [await self._part(one) for one in answer.locations.blocks]
        got = [part for part in parts if part is not None]
        if len(got) < len(parts):
            return False
        if b"".join(got) != wanted:
            raise Violated("W6", f"{path} has other bytes than were written")
        return True

    async def _located(self, path: str) -> calls.GetBlockLocationsResponseProto | None:
        try:
            return await self._client.ask(
                "getBlockLocations",
                calls.GetBlockLocationsRequestProto(src=path, offset=0, length=_WHOLE_FILE),
                calls.GetBlockLocationsResponseProto,
            )
        except RemoteFault as fault:
            if fault.java_class != FILE_NOT_FOUND:
                raise
            return None

    async def _part(self, located: LocatedBlockProto) -> bytes | None:
        """Return the bytes of a block from any DataNode that gives them; None where none does."""
        what = block(located.b.blockId, located.b.generationStamp)
        for place in located.locs:
            owner = self._client.datanodes[place.id.hostName]
            try:
                return await read(self._client.name, owner, what, located.b.numBytes)
            except (Broken, TimeoutError, NotDone):
                continue
        return None
