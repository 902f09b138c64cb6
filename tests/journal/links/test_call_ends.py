"""What a link lets go of where a question ends early: its connection, its timer, its lookup."""

import asyncio
import socket
import threading

import pytest

from ha.names import Names
from journal.errors import Unavailable
from journal.links import grpc_link
from journal.links.countdown import STEPS, Countdown
from journal.links.grpc_link import GrpcLink
from journal.links.probed_link import speaks_grpc
from journal.proto import journal_pb2 as pb
from tests.journal.node.process import until
from tests.stand_in import stand_in

ASKED = pb.JournalRequest()
EMPTY_SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))


@pytest.mark.parametrize(("answer", "grpc"), [(EMPTY_SETTINGS, True), (b"x" * 9, False)])
async def test_who_asks_a_port_for_its_protocol_hangs_up(answer: bytes, *, grpc: bool) -> None:
    hung_up = asyncio.Event()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await reader.read()
        hung_up.set()

    async with stand_in(speak) as port, asyncio.timeout(30):
        assert await speaks_grpc("127.0.0.1", port) is grpc
        await hung_up.wait()


async def test_a_link_that_is_closed_while_its_name_is_looked_up_makes_no_channel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, let_go = threading.Event(), threading.Event()

    def look(*_: object) -> list[object]:
        asked.set()
        assert let_go.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1))]

    monkeypatch.setattr(grpc_link, "NAMES", Names(look))
    link = GrpcLink("jn", 1)
    reply = pb.GetJournalStateReply
    question = asyncio.create_task(link.call("GetJournalState", ASKED, reply, 30))
    await asyncio.sleep(0)  # the lookup is older than the question, which waits for it now
    await until(asked.is_set, "the name is looked up")
    await link.close()
    let_go.set()
    with pytest.raises(Unavailable, match="the connection is closed"):
        await question
    assert not link.connected


async def test_a_countdown_that_was_stopped_steps_no_more() -> None:
    steps = list[str]()
    over = asyncio.Event()

    def stepped(name: str, counted: Countdown) -> bool:
        steps.append(name)
        if name == "second" and counted.step == STEPS:
            over.set()
        return counted.step < STEPS

    first = Countdown(0.05, lambda: stepped("first", first))
    second = Countdown(0.05, lambda: stepped("second", second))
    first.start()
    first.stop()
    second.start()  # the timers of both are due in turn
    async with asyncio.timeout(30):
        await over.wait()
    assert steps == ["second"] * STEPS
