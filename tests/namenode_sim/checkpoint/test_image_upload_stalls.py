"""An image is offered to a NameNode that hangs: the sender gives up at any stage."""

import asyncio
import hashlib
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ha.conf.topology import HostPort
from journal.model import TxId
from namenode_sim.checkpoint.image_upload import UploadFailed, upload_image
from namenode_sim.checkpoint.schedule import UploadAnswer
from namenode_sim.image.files import image_name, write_digest
from tests.stand_in import HOST, stand_in
from tests.worlds.files import info

STALL_SECONDS = 0.3
LARGER_THAN_SOCKETS = 32 * 1024 * 1024
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
TAKEN = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

Talk = Callable[[StreamReader, StreamWriter], Awaitable[None]]


async def say_nothing(_reader: StreamReader, _writer: StreamWriter) -> None:
    """Answer as the kernel does for a process that was stopped."""


async def read_none_of_it(_reader: StreamReader, writer: StreamWriter) -> None:
    writer.write(GO_ON)


async def never_answer(reader: StreamReader, writer: StreamWriter) -> None:
    writer.write(GO_ON)
    await reader.readexactly(LARGER_THAN_SOCKETS)


@asynccontextmanager
async def talking(talk: Talk) -> AsyncIterator[HostPort]:
    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await talk(reader, writer)

    async with stand_in(serve) as port:
        yield HostPort(HOST, port)


def image_of(size: int, folder: Path) -> Path:
    path = folder / image_name(TxId(5))
    path.write_bytes(b"x" * size)
    write_digest(path, hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest())
    return path


@pytest.mark.parametrize("talk", [say_nothing, read_none_of_it, never_answer])
async def test_who_hangs_is_given_up(talk: Talk, tmp_path: Path) -> None:
    image = image_of(LARGER_THAN_SOCKETS, tmp_path)
    async with talking(talk) as at, asyncio.timeout(30):
        with pytest.raises(UploadFailed, match=f"{at} did not take {image.name}: "):
            await upload_image(at, image, TxId(5), info(), stall_seconds=STALL_SECONDS)


async def test_to_keep_to_a_low_rate_is_no_stall(tmp_path: Path) -> None:
    """Send a piece of 512 at 600 bytes/s: each 0.85 s, which is longer than the limit."""
    size = 1100

    async def take(reader: StreamReader, writer: StreamWriter) -> None:
        writer.write(GO_ON)
        await reader.readexactly(size)
        writer.write(TAKEN)

    async with talking(take) as at, asyncio.timeout(30):
        answer = await upload_image(
            at, image_of(size, tmp_path), TxId(5), info(),
            stall_seconds=STALL_SECONDS, bytes_per_second=600,
        )  # fmt: skip
    assert answer is UploadAnswer.ACCEPTED
