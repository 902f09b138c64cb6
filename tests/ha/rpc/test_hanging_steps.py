"""Steps of a handshake that end late, or in an error of ours: callers get an answer."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from ha.conf.keys.security import Mode
from ha.rpc import packets
from ha.rpc.frames import FrameSplitter
from ha.rpc.packets import CallAnswer, Status
from ha.rpc.proto.rpc_header_pb2 import RpcSaslProto
from ha.rpc.server import RpcServer
from ha.security.access_control import AccessControl
from ha.security.caller import Method
from ha.security.sasl import steps
from ha.security.sasl.mechanism import Challenge, Protection, Proven
from ha.security.sasl.way import Way
from tests.ha.rpc.test_negotiation import INITIATE, NEGOTIATE, PREAMBLE
from tests.ha.rpc.wire import echo_protocol
from tests.ha.security.test_unproven import Lines
from tests.log_lines import captured

HANGING = 3
"""More than there are threads for steps."""


class Disk:
    """A mechanism whose keys are on a disk that may hang."""

    def __init__(self) -> None:
        self.there = threading.Event()
        self.read = list[bytes]()

    def step(self, token: bytes) -> Challenge | Proven:
        self.there.wait()
        self.read.append(token)
        return Proven("alice@R", Protection.AUTHENTICATION)


@asynccontextmanager
async def server(
    disk: Disk, user_of: Callable[[str], tuple[str, str]] = lambda name: (name, "")
) -> AsyncIterator[tuple[int, Lines]]:
    lines = Lines()
    access = AccessControl(Mode.AUTO, target="t", audit=lines)
    access.ways = (Way(Method.KERBEROS, "GSSAPI", "nn", "host", lambda: disk, user_of),)
    serving = RpcServer([echo_protocol()], access=access)
    try:
        yield await serving.start("127.0.0.1", 0), lines
    finally:
        disk.there.set()
        await serving.stop()


async def said(port: int) -> list[CallAnswer]:
    """Return all that a caller is answered until it is hung up on, or has its proof."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(PREAMBLE + NEGOTIATE + INITIATE)
    splitter, found = FrameSplitter(), list[CallAnswer]()
    try:
        async with asyncio.timeout(8):  # a handshake has 10 s
            while len(found) < 2:
                splitter.feed(data := await reader.read(65536))
                while (frame := splitter.take_frame(1 << 20)) is not None:
                    found.append(packets.decode_answer(frame))
                if not data:
                    break
    finally:
        writer.close()
    return found


async def test_a_disk_that_hangs_is_an_answer_and_the_next_callers_get_one_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(steps, "STEP_SECONDS", 0.2)
    monkeypatch.setattr(steps, "MOST_WAITING", HANGING)
    disk = Disk()
    async with server(disk) as (port, lines):
        for _ in range(2):  # the second time, no step more is begun
            for answers in await asyncio.gather(*(said(port) for _ in range(HANGING))):
                assert answers[-1].status is Status.FATAL
                assert answers[-1].message == "try again later"
        assert {entry.reason for entry in lines.entries} == {
            "no outcome in time: is the keytab readable?"
        }
        disk.there.set()
        tries = 1
        async with asyncio.timeout(20):
            while (last := (await said(port))[-1]).status is Status.FATAL:
                tries += 1
        assert packets.parse(RpcSaslProto, last.body).state == RpcSaslProto.SUCCESS
        assert len(disk.read) <= HANGING + tries, "what is never taken any more does not pile up"


async def test_an_error_of_ours_after_a_proof_ends_the_connection_at_once() -> None:
    asked = list[str]()

    def user_of(name: str) -> tuple[str, str]:
        asked.append(name)
        if len(asked) > 1:
            raise RuntimeError("it was known a moment ago")
        return name, ""

    disk = Disk()
    disk.there.set()
    async with server(disk, user_of) as (port, _):
        (offer,) = await said(port)
    assert packets.parse(RpcSaslProto, offer.body).state == RpcSaslProto.NEGOTIATE


async def test_a_crash_and_a_step_that_hangs_are_said_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def crash(_: str) -> tuple[str, str]:
        raise KeyError("ours")

    disk = Disk()
    disk.there.set()
    with captured("sasl.") as lines:
        async with server(disk, crash) as (port, _):
            await said(port)
    assert [line["event"] for line in lines] == ["sasl.step_crashed"]
    assert lines[0]["exc_info"]
    monkeypatch.setattr(steps, "STEP_SECONDS", 0.05)
    with captured("sasl.") as lines:
        async with server(Disk()) as (port, _):
            await said(port)
    assert [line["event"] for line in lines] == ["sasl.step_hangs"]
    assert "keytab" in lines[0]["do"]
