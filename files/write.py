"""Writes a file: created or appended to, block after block, and completed."""

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

import structlog
from google.protobuf.message import Message

from files.block_writer import BlockWriter, OpenFile, Stage
from files.errors import FilesError, NotFound, Refused, Unsupported, Unwritable
from files.namenodes import Namenodes
from files.pipeline import NodeFailed, WriteLimits, places_of
from files.window import Window
from ha.record import dataclass, field
from ha.rpc.java_names import NOT_REPLICATED_YET
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as hdfs

M = TypeVar("M", bound=Message)
T = TypeVar("T")
log = structlog.get_logger()

DEFAULT_LIMITS: Final = WriteLimits()
_CREATE, _OVERWRITE = 1, 2
_AGAIN_SECONDS: Final = 0.1
_LONGEST_AGAIN_SECONDS: Final = 5.0


@dataclass(slots=True)
class Writer:
    """A file that is open for writing, by one task at a time.

    Leave it with ``close``, which completes the file, or with ``abort`` or ``discard``.
    """

    file: OpenFile
    is_new: bool
    block: BlockWriter | None = None
    _last: hdfs.ExtendedBlockProto | None = None
    _buffer: bytearray = field(default_factory=bytearray)
    _is_whole: bool = True
    _keeper: asyncio.Task[None] | None = None

    @classmethod
    async def create(  # noqa: PLR0913 - what a file is created with
        cls,
        namenodes: Namenodes,
        path: str,
        *,
        overwrite: bool = False,
        create_parent: bool = True,
        permission: int = 0o644,
        unmasked: int | None = None,
        replication: int = 0,
        block_size: int = 0,
        limits: WriteLimits = DEFAULT_LIMITS,
    ) -> "Writer":
        """Create a file and open it; 0 means the NameNode's default.

        ``permission`` is what the umask has left of ``unmasked``, which a default ACL takes.

        Raises:
            FilesError: if the NameNode refuses or is not there.
        """
        defaults, client = await namenodes.defaults(), _new_client()
        answer = await namenodes.ask(
            calls.CreateResponseProto,
            src=path,
            masked=hdfs.FsPermissionProto(perm=permission),
            unmasked=None if unmasked is None else hdfs.FsPermissionProto(perm=unmasked),
            clientName=client,
            createFlag=_CREATE | (_OVERWRITE if overwrite else 0),
            createParent=create_parent,
            replication=replication or defaults.replication,
            blockSize=block_size or defaults.blockSize,
        )
        file = OpenFile(namenodes, path, client, answer.fs, defaults, limits)
        writer = cls(file, is_new=True)
        if answer.fs.HasField("ecPolicy") or answer.fs.HasField("fileEncryptionInfo"):
            await writer.discard()
            raise Unsupported(f"{path} would be erasure-coded or encrypted; → hdfs dfs writes it")
        return writer._start()

    @classmethod
    async def append(
        cls, namenodes: Namenodes, path: str, *, limits: WriteLimits = DEFAULT_LIMITS
    ) -> "Writer":
        """Open a file to write behind its end; raise as ``create``."""
        defaults, client = await namenodes.defaults(), _new_client()
        answer = await namenodes.ask(calls.AppendResponseProto, src=path, clientName=client)
        file = OpenFile(namenodes, path, client, answer.stat, defaults, limits)
        writer = cls(file, is_new=False)
        if answer.HasField("block"):
            there = Window(answer.block.b.numBytes, answer.block.b.numBytes)
            stage, places = Stage.PIPELINE_SETUP_APPEND, places_of(answer.block)
            writer.block = BlockWriter(file, answer.block, places, there, stage)
        return writer._start()

    def _start(self) -> "Writer":
        self._keeper = asyncio.create_task(self._keep(), name=f"lease of {self.file.path}")
        return self

    async def __aenter__(self) -> "Writer":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await (self.close() if kind is None else self.abort())

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes; return when they are on their way, with a bounded number before them.

        After an error the file stays open as it is: ``abort`` or ``discard`` it.

        Raises:
            Unwritable: if no DataNode is left that takes them.
            FilesError: if the NameNode refuses or is not there.
        """
        self._begin()
        view = memoryview(data)
        while view:
            block = self.block = self.block or await self._next_block()
            room = self._room(block)
            self._buffer += view[:room]
            if len(view) >= room:
                await self._send_buffer(block)
            view = view[room:]
        self._is_whole = True

    async def close(self) -> None:
        """Send the rest, wait until all DataNodes have everything, and complete the file."""
        try:
            self._begin()
            if self.block is not None and self._buffer:
                await self._send_buffer(self.block)
            await self._end_block()
            await self._complete()
        finally:
            await self.abort()

    async def abort(self) -> None:
        """Stop writing; the file stays open with what it has until its lease ends."""
        self._is_whole = False
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
        if self.block is not None:
            await self.block.hang_up()
        if keeper is not None:
            await asyncio.wait([keeper])

    async def discard(self) -> None:
        """Stop writing and delete the file, if it was created here and is still the same."""
        await self.abort()
        ask, path = self.file.namenodes.ask, self.file.path
        if self.is_new:
            found = await ask(calls.GetFileInfoResponseProto, src=path)
            if found.fs.fileId == self.file.status.fileId:
                with suppress(NotFound):
                    await ask(calls.DeleteResponseProto, src=path, recursive=False)

    def _begin(self) -> None:
        """Mark the file as broken until what begins here has ended well."""
        if not self._is_whole:
            raise Unwritable(f"{self.file.path} is no longer open here")
        self._is_whole = False

    def _room(self, block: BlockWriter) -> int:
        """Return how many bytes the packet that is being filled still takes."""
        begin, chunk = block.window.sent, self.file.checksum.bytes_per_chunk
        # After an append the first packet fills the chunk that is there.
        most = chunk - begin % chunk if begin % chunk else self.file.packet_bytes
        return min(most, self.file.status.blocksize - begin) - len(self._buffer)

    async def _send_buffer(self, block: BlockWriter) -> None:
        data, self._buffer = self._buffer, bytearray()
        await block.send(data)
        if block.window.sent >= self.file.status.blocksize:
            await self._end_block()

    async def _end_block(self) -> None:
        if self.block is not None:
            await self.block.end()
            self._last, self.block = self.block.name, None

    async def _next_block(self) -> BlockWriter:
        """Have the NameNode add a block, and its DataNodes set up a pipeline."""
        file, why = self.file, ""
        excluded: list[hdfs.DatanodeInfoProto] = []
        for _ in range(file.limits.attempts):
            located = await self._add_block(excluded)
            places = places_of(located)
            block = BlockWriter(file, located, places, Window(0, 0), Stage.DATA_STREAMING)
            try:
                await block.create()
            except NodeFailed as failure:
                bad, why = places[failure.index], str(failure)
                log.info("files.pipeline_refused", path=file.path, datanode=str(bad), why=why)
                excluded.append(bad.node)
                await file.namenodes.ask(
                    calls.AbandonBlockResponseProto,
                    b=located.b,
                    src=file.path,
                    holder=file.client,
                    fileId=file.status.fileId,
                )
            else:
                return block
        raise Unwritable(
            f"{file.path} cannot be written on: {len(excluded)} pipelines could not be set up, the "
            f"last because {why}. The file stays open with its blocks before this one. "
            "→ nnha status shows the DataNodes."
        )

    async def _add_block(self, excluded: list[hdfs.DatanodeInfoProto]) -> hdfs.LocatedBlockProto:
        async def ask() -> hdfs.LocatedBlockProto | None:
            try:
                return (await self._ask(calls.AddBlockResponseProto, **fields)).block
            except Refused as refusal:
                if refusal.java_class == NOT_REPLICATED_YET:
                    return None
                raise

        fields = {"previous": self._last, "excludeNodes": excluded}
        found = await self._repeat(ask)
        if found is None:
            raise Unwritable(
                f"{self.file.path} stays open without its next block: too few DataNodes have "
                "reported the one before it. → nnha status shows the DataNodes."
            )
        return found

    async def _complete(self) -> None:
        async def ask() -> bool:
            return (await self._ask(calls.CompleteResponseProto, last=self._last)).result

        if not await self._repeat(ask):
            raise Unwritable(
                f"{self.file.path} has all its bytes, but too few DataNodes have reported its last "
                "block in time: it stays open, and the NameNode closes it when they have and its "
                "lease has ended."
            )

    async def _ask(self, response: type[M], **fields: object) -> M:
        file = self.file
        number = file.status.fileId
        return await file.namenodes.ask(
            response, seconds=None, src=file.path, clientName=file.client, fileId=number, **fields
        )

    async def _repeat(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until the answer is not empty, with waits that double, or the time is over."""
        loop = asyncio.get_running_loop()
        until, wait = loop.time() + self.file.limits.complete_seconds, _AGAIN_SECONDS
        while not (found := await ask()) and loop.time() + wait <= until:
            await asyncio.sleep(wait * (0.5 + random.random() / 2))
            wait = min(2 * wait, _LONGEST_AGAIN_SECONDS)
        return found

    async def _keep(self) -> None:
        """Renew the lease and keep the pipeline alive, however slowly bytes come."""
        file = self.file
        seconds = file.limits.alive_seconds
        while True:
            await asyncio.sleep(seconds)
            if self.block is not None:
                self.block.keep_alive()
            try:
                await file.namenodes.ask(
                    calls.RenewLeaseResponseProto, clientName=file.client, seconds=seconds
                )
            except FilesError as problem:
                log.warning("files.lease_not_renewed", path=file.path, why=str(problem))


def _new_client() -> str:
    return f"nnha_{uuid.uuid4().hex}"
