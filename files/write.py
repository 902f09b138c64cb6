"""Writes a file: created or appended to, block after block, and completed."""

import asyncio
import random
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, TypeVar

import structlog
from google.protobuf.message import Message

from files.block_writer import BlockWriter, OpenFile, Stage
from files.errors import FilesError, NotFound, Refused, Unsupported, Unwritable
from files.namenodes import Namenodes
from files.pipeline import NodeFailed, WriteLimits, places_of
from files.window import Window
from ha.rpc.java_names import NOT_REPLICATED_YET
from hadoop.blocks import Checksum, ChecksumType
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as hdfs

M = TypeVar("M", bound=Message)
log = structlog.get_logger()

_CREATE, _OVERWRITE = 1, 2
_PACKET_HEADER_BYTES: Final = 33
_SUMS_BYTES: Final = 4
_AGAIN_SECONDS: Final = 0.1
_LONGEST_AGAIN_SECONDS: Final = 5.0


@dataclass(slots=True)
class Writer:
    """A file that is open for writing, by one task at a time.

    Leave it with ``close``, which completes the file, or with ``abort`` or ``discard``.
    """

    file: OpenFile
    packet_bytes: int
    is_new: bool
    _block: BlockWriter | None = None
    _last: hdfs.ExtendedBlockProto | None = None
    _buffer: bytearray = field(default_factory=bytearray)
    _is_whole: bool = True
    _keeper: asyncio.Task[None] | None = None

    @classmethod
    async def create(
        cls,
        namenodes: Namenodes,
        path: str,
        *,
        overwrite: bool = False,
        create_parent: bool = True,
        permission: int = 0o644,
        replication: int = 0,
        block_size: int = 0,
    ) -> "Writer":
        """Create a file and open it; 0 means the NameNode's default.

        ``permission`` is what the umask has left.

        Raises:
            FilesError: if the NameNode refuses or is not there.
        """
        defaults = await _defaults(namenodes)
        client = _new_client()
        answer = await namenodes.call(
            "create",
            calls.CreateRequestProto(
                src=path,
                masked=hdfs.FsPermissionProto(perm=permission),
                clientName=client,
                createFlag=_CREATE | (_OVERWRITE if overwrite else 0),
                createParent=create_parent,
                replication=replication or defaults.replication,
                blockSize=block_size or defaults.blockSize,
            ),
            calls.CreateResponseProto,
        )
        writer = cls(
            _opened(namenodes, path, answer.fs, defaults, client), _packet(defaults), is_new=True
        )
        if answer.fs.HasField("ecPolicy") or answer.fs.HasField("fileEncryptionInfo"):
            await writer.discard()
            raise Unsupported(f"{path} would be erasure-coded or encrypted; → hdfs dfs writes it")
        writer._keeper = asyncio.create_task(writer._keep(), name=f"lease of {path}")
        return writer

    @classmethod
    async def append(cls, namenodes: Namenodes, path: str) -> "Writer":
        """Open a file to write behind its end; raise as ``create``."""
        defaults = await _defaults(namenodes)
        client = _new_client()
        answer = await namenodes.call(
            "append",
            calls.AppendRequestProto(src=path, clientName=client),
            calls.AppendResponseProto,
        )
        file = _opened(namenodes, path, answer.stat, defaults, client)
        writer = cls(file, _packet(defaults), is_new=False)
        if answer.HasField("block"):
            block, length = answer.block, answer.block.b.numBytes
            writer._block = BlockWriter(
                file, block, places_of(block), Window(length, length), Stage.PIPELINE_SETUP_APPEND
            )
        writer._keeper = asyncio.create_task(writer._keep(), name=f"lease of {path}")
        return writer

    async def __aenter__(self) -> "Writer":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
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
            block = self._block = self._block or await self._next_block()
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
            if self._block is not None:
                if self._buffer:
                    await self._send_buffer(self._block)
                await self._end_block()
            await self._complete()
        finally:
            await self.abort()

    async def abort(self) -> None:
        """Stop writing; the file stays open with what it has until its lease ends."""
        self._is_whole = False
        if self._keeper is not None:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
            self._keeper = None
        if self._block is not None:
            await self._block.hang_up()

    async def discard(self) -> None:
        """Stop writing and delete the file, if it was created here and is still the same."""
        await self.abort()
        if not self.is_new:
            return
        path = self.file.path
        found = await self._call(
            "getFileInfo", calls.GetFileInfoRequestProto(src=path), calls.GetFileInfoResponseProto
        )
        if found.HasField("fs") and found.fs.fileId == self.file.status.fileId:
            request = calls.DeleteRequestProto(src=path, recursive=False)
            with suppress(NotFound):
                await self._call("delete", request, calls.DeleteResponseProto)

    def _begin(self) -> None:
        """Mark the file as broken until what begins here has ended well."""
        if not self._is_whole:
            raise Unwritable(f"{self.file.path} is no longer open here")
        self._is_whole = False

    def _room(self, block: BlockWriter) -> int:
        """Return how many bytes the packet that is being filled still takes."""
        begin, chunk = block.window.sent, self.file.checksum.bytes_per_chunk
        # After an append the first packet fills the chunk that is there.
        most = chunk - begin % chunk if begin % chunk else self.packet_bytes
        return min(most, self.file.status.blocksize - begin) - len(self._buffer)

    async def _send_buffer(self, block: BlockWriter) -> None:
        data, self._buffer = bytes(self._buffer), bytearray()
        await block.send(data)
        if block.window.sent >= self.file.status.blocksize:
            await self._end_block()

    async def _end_block(self) -> None:
        if self._block is not None:
            await self._block.end()
            self._last, self._block = self._block.name, None

    async def _next_block(self) -> BlockWriter:
        """Have the NameNode add a block, and its DataNodes set up a pipeline."""
        excluded: list[hdfs.DatanodeInfoProto] = []
        why = ""
        for _ in range(self.file.limits.attempts):
            located = await self._added(excluded)
            places = places_of(located)
            if not places:
                raise Unwritable(f"{self.file.path}: the NameNode gave a block without DataNodes")
            block = BlockWriter(self.file, located, places, Window(0, 0), Stage.DATA_STREAMING)
            try:
                await block.create()
            except NodeFailed as failure:
                bad, why = places[failure.index], str(failure)
                log.info("files.pipeline_refused", path=self.file.path, datanode=str(bad), why=why)
                excluded.append(bad.node)
                request = calls.AbandonBlockRequestProto(
                    b=located.b,
                    src=self.file.path,
                    holder=self.file.client,
                    fileId=self.file.status.fileId,
                )
                await self._call("abandonBlock", request, calls.AbandonBlockResponseProto)
            else:
                return block
        raise Unwritable(
            f"{self.file.path} cannot be written on: {len(excluded)} pipelines could not be set "
            f"up, the last because {why}. The file stays open with its blocks before this one. "
            "→ nnha status shows the DataNodes."
        )

    async def _added(self, excluded: list[hdfs.DatanodeInfoProto]) -> hdfs.LocatedBlockProto:
        request = calls.AddBlockRequestProto(
            src=self.file.path,
            clientName=self.file.client,
            previous=self._last,
            excludeNodes=excluded,
            fileId=self.file.status.fileId,
        )
        async with aclosing(_attempts(self.file.limits.complete_seconds)) as attempts:
            async for _ in attempts:
                try:
                    answer = await self._call("addBlock", request, calls.AddBlockResponseProto)
                except Refused as refusal:
                    if refusal.java_class != NOT_REPLICATED_YET:
                        raise
                else:
                    return answer.block
        raise Unwritable(
            f"{self.file.path} stays open without its next block: too few DataNodes have reported "
            "the one before it. → nnha status shows the DataNodes."
        )

    async def _complete(self) -> None:
        request = calls.CompleteRequestProto(
            src=self.file.path,
            clientName=self.file.client,
            last=self._last,
            fileId=self.file.status.fileId,
        )
        seconds = self.file.limits.complete_seconds
        async with aclosing(_attempts(seconds)) as attempts:
            async for _ in attempts:
                if (await self._call("complete", request, calls.CompleteResponseProto)).result:
                    return
        raise Unwritable(
            f"{self.file.path} has all its bytes, but too few DataNodes have reported its last "
            f"block within {seconds:g} s: it stays open, and the NameNode closes it when they have "
            "and its lease has ended."
        )

    async def _keep(self) -> None:
        """Renew the lease and keep the pipeline alive, however slowly bytes come."""
        request = calls.RenewLeaseRequestProto(clientName=self.file.client)
        seconds = self.file.limits.alive_seconds
        while True:
            await asyncio.sleep(seconds)
            if self._block is not None:
                self._block.keep_alive()
            try:
                await self.file.namenodes.call(
                    "renewLease", request, calls.RenewLeaseResponseProto, seconds=seconds
                )
            except FilesError as problem:
                log.warning("files.lease_not_renewed", path=self.file.path, why=str(problem))

    async def _call(self, method: str, request: Message, response: type[M]) -> M:
        return await self.file.namenodes.call(method, request, response)


async def _attempts(seconds: float) -> AsyncGenerator[None, None]:
    """Yield at once, and again after waits that double, until the time is over."""
    loop = asyncio.get_running_loop()
    until, wait = loop.time() + seconds, _AGAIN_SECONDS
    while True:
        yield
        if loop.time() + wait > until:
            return
        await asyncio.sleep(wait * (0.5 + random.random() / 2))
        wait = min(2 * wait, _LONGEST_AGAIN_SECONDS)


def _new_client() -> str:
    return f"nnha_{uuid.uuid4().hex}"


async def _defaults(namenodes: Namenodes) -> hdfs.FsServerDefaultsProto:
    request = calls.GetServerDefaultsRequestProto()
    answer = await namenodes.call(
        "getServerDefaults", request, calls.GetServerDefaultsResponseProto
    )
    return answer.serverDefaults


def _packet(defaults: hdfs.FsServerDefaultsProto) -> int:
    """Return how many bytes of a file go into a packet: whole chunks, with their checksums."""
    chunk = defaults.bytesPerChecksum
    return (
        max(1, (defaults.writePacketSize - _PACKET_HEADER_BYTES) // (chunk + _SUMS_BYTES)) * chunk
    )


def _opened(
    namenodes: Namenodes,
    path: str,
    status: hdfs.HdfsFileStatusProto,
    defaults: hdfs.FsServerDefaultsProto,
    client: str,
) -> OpenFile:
    checksum = Checksum(ChecksumType(defaults.checksumType), defaults.bytesPerChecksum)
    return OpenFile(namenodes, path, status, checksum, client, WriteLimits())
