"""A writer's end of a lane whose other end is no node, or says no, or speaks no TLS."""

import asyncio
import ssl
from pathlib import Path

import pytest

from ha.conf.keys.security import Mode
from ha.security.caller import Role
from journal.errors import Fenced, JournalError, Unavailable
from journal.lane import ANSWER, KEY_BYTES, SERIAL_BYTES, WELCOME, Hello, hello_bytes
from journal.links.lane_client import Lane
from journal.links.link import WriterMessage
from journal.links.probed_link import ProbedLink, speaks_grpc
from journal.model import Epoch
from journal.proto import journal_pb2 as pb
from journal.refusals import refusal
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import Authority
from tests.stand_in import Speak, say_nothing, stand_in

HOST = "127.0.0.1"
HELLO = Hello(b"k" * KEY_BYTES, "ns1", None)
MESSAGE = WriterMessage(7, Epoch(1), None, 0)
SECONDS = 30.0


def answered(refused: bytes, *, length: int | None = None, serial: int = MESSAGE.serial) -> bytes:
    length = SERIAL_BYTES + len(refused) if length is None else length
    return ANSWER.pack(length, serial) + refused


def node(answer: bytes) -> Speak:
    """Let a lane in, and answer its first message."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(len(hello_bytes(HELLO))) == hello_bytes(HELLO)
        writer.write(WELCOME)
        await reader.read(1)
        writer.write(answer)
        await reader.read()

    return speak


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """End the connection in the midst of a handshake."""
    await reader.read(2**14)
    writer.close()


@pytest.mark.parametrize(
    ("answer", "error", "text", "closed"),
    [
        (answered(refusal(Fenced("a newer one", promised=Epoch(9))).SerializeToString()),
         Fenced, "a newer one", False),
        (answered(b"\xff" * 5), Unavailable, "a refusal that cannot be read", False),
        (answered(b"", serial=8), Unavailable, "it answers message 8, and 7 is under way", True),
        (answered(b"", length=SERIAL_BYTES - 1), Unavailable, "its answers make no sense", True),
        (answered(b"", length=2**20), Unavailable, "its answers make no sense", True),
    ],
    ids=["a refusal", "no refusal", "another message", "too short", "too long"],
)  # fmt: skip
async def test_who_waits_for_an_answer_hears_what_it_was(
    answer: bytes, error: type[JournalError], text: str, closed: bool
) -> None:
    async with stand_in(node(answer)) as port, asyncio.timeout(SECONDS):
        lane = await Lane.open(HOST, port, HELLO, SECONDS)
        with pytest.raises(error, match=text):
            await lane.exchange(MESSAGE)
        assert lane.closed is closed
        lane.drop()
        await lane.wait_closed()


async def test_what_begins_with_other_bytes_is_no_lane() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0")

    async with stand_in(greet) as port:
        with pytest.raises(Unavailable, match="it answered nonsense"):
            await Lane.open(HOST, port, HELLO, SECONDS)


async def test_a_lane_that_is_not_answered_in_time_hangs_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hung_up = asyncio.Event()

    async def speak(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()
        hung_up.set()

    monkeypatch.setattr("journal.links.lane_client.CONNECT_SECONDS", 0.05)
    async with stand_in(speak) as port, asyncio.timeout(SECONDS):
        with pytest.raises(Unavailable, match=r"not within 0\.05 s"):
            await Lane.open(HOST, port, HELLO, SECONDS)
        await hung_up.wait()


async def test_a_node_that_speaks_no_tls_is_reached_in_plain_in_permissive_alone(
    tmp_path: Path,
) -> None:
    """Both its ports: that of lanes, and that of which a tool must find the protocol."""
    files = Authority(tmp_path).holder(Role.NAMENODE, "nn1")

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.readexactly(1) == b"\x16":  # a handshake of TLS
            writer.close()
            return
        writer.write(WELCOME + bytes(8))

    async with stand_in(speak) as port:
        with acting_as(files, Mode.AUTO):
            with pytest.raises(Unavailable):
                await Lane.open(HOST, port, HELLO, SECONDS)
            with pytest.raises((ConnectionError, ssl.SSLError)):
                await speaks_grpc(HOST, port)
        with acting_as(files, Mode.PERMISSIVE):
            lane = await Lane.open(HOST, port, HELLO, SECONDS)
            lane.drop()
            await lane.wait_closed()
            assert not await speaks_grpc(HOST, port)


async def test_a_port_where_nothing_listens_is_refused_at_once(tmp_path: Path) -> None:
    files = Authority(tmp_path).holder(Role.NAMENODE, "nn1")
    async with stand_in(say_nothing) as port:
        pass
    for mode in (Mode.AUTO, Mode.PERMISSIVE):
        with acting_as(files, mode), pytest.raises(Unavailable, match="Connect call failed"):
            await Lane.open(HOST, port, HELLO, SECONDS)


async def test_what_hangs_up_in_the_handshake_is_named(tmp_path: Path) -> None:
    """Python's own error has no words there."""
    files = Authority(tmp_path).holder(Role.NAMENODE, "nn1")
    async with stand_in(hang_up) as port:
        with acting_as(files, Mode.AUTO), pytest.raises(Unavailable, match="ConnectionResetError"):
            await Lane.open(HOST, port, HELLO, SECONDS)


async def test_a_tool_hears_at_once_that_nothing_listens_and_soon_that_nothing_answers() -> None:
    async def ask(port: int, seconds: float) -> None:
        link = ProbedLink(HOST, port)
        try:
            await link.call("GetStatus", pb.JournalRequest(), pb.JournalStatus, seconds)
        finally:
            await link.close()

    async with stand_in(say_nothing) as port:
        with pytest.raises(Unavailable, match=r"no answer in 0\.05 s"):
            await ask(port, 0.05)
    with pytest.raises(Unavailable, match="connection refused"):
        await ask(port, SECONDS)
