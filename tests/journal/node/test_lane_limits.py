"""Write lanes of strangers who say little, or announce much: they cost little, and end."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from journal.core.requests import Heartbeat
from journal.lane import HEADER, LEAST_LENGTH, NoLane
from journal.node.lanes.lane import MAX_MUTE, Incoming
from journal.node.lanes.lane_budget import FREE_BYTES, LaneBudget
from tests.journal.core.requests_of import Writer
from tests.journal.node.lane_client import RawLane, hello, message
from tests.journal.node.process import DEADLINE_SECONDS, node_and_client

MOST = 8 * FREE_BYTES
LARGE = 2 * FREE_BYTES


def header(records: int) -> bytes:
    return HEADER.pack(LEAST_LENGTH + records, 0, 1, -1, 0, 1, 1, 1)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    pair = socket.socketpair()
    yield pair
    for end in pair:
        end.close()


Ends = tuple[socket.socket, socket.socket]


@pytest.mark.parametrize("said", [header(100)[:5], header(100) + b"x" * 50, header(LARGE)])
def test_a_message_must_end(said: bytes, ends: Ends) -> None:
    budget = LaneBudget()
    incoming = Incoming(ends[0], MOST, budget, seconds=0.05)
    ends[1].sendall(said)
    with pytest.raises((NoLane, TimeoutError)):
        incoming.next()
    incoming.close()
    assert budget.used_bytes == 0


def test_a_writer_may_be_idle_between_messages_and_send_one_in_pieces(ends: Ends) -> None:
    incoming = Incoming(ends[0], MOST, LaneBudget(), seconds=DEADLINE_SECONDS)
    first, second = header(3) + b"abc", header(2) + b"de"
    ends[1].sendall(first + second[:10])
    assert incoming.next() == (header(3), b"abc")
    ends[1].sendall(second[10:-1])
    rest = threading.Timer(0.05, ends[1].sendall, (second[-1:],))
    rest.start()
    assert incoming.next() == (header(2), b"de")
    assert ends[0].gettimeout() is None, "the next one may come at any time"
    rest.join()
    ends[1].close()
    assert incoming.next() is None


def test_large_messages_wait_for_each_other() -> None:
    budget = LaneBudget(total_bytes=3 * FREE_BYTES)
    assert budget.take(FREE_BYTES, 0) == 0, "it neither waits nor counts"
    held = budget.take(LARGE, 0)
    with pytest.raises(NoLane, match="no room for"):
        budget.take(LARGE, 0.01)
    taken: list[int] = []
    other = threading.Thread(target=lambda: taken.append(budget.take(LARGE, DEADLINE_SECONDS)))
    other.start()
    budget.give(held)
    other.join()
    assert taken == [LARGE]
    assert budget.used_bytes == LARGE


def test_a_lane_holds_its_message_until_the_next(ends: Ends) -> None:
    budget = LaneBudget(total_bytes=LARGE + 100)
    incoming = Incoming(ends[0], MOST, budget, seconds=DEADLINE_SECONDS)
    sending = threading.Thread(target=ends[1].sendall, args=(header(LARGE) + bytes(LARGE),))
    sending.start()
    received = incoming.next()
    sending.join()
    assert received == (header(LARGE), bytes(LARGE))
    assert budget.used_bytes > LARGE
    ends[1].close()
    assert incoming.next() is None
    assert budget.used_bytes == 0


async def test_a_silent_crowd_keeps_no_writer_out(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, lane_host="127.0.0.1") as (daemon, client):
        await client.format()
        key = (await client.new_epoch(1)).lane_key
        with ExitStack() as stack:
            crowd = [
                stack.enter_context(
                    socket.create_connection(("127.0.0.1", daemon.lane_port), DEADLINE_SECONDS)
                )
                for _ in range(MAX_MUTE + 4)
            ]
            lane = await asyncio.to_thread(RawLane.begun, daemon.lane_port, hello(key))
            stack.callback(lane.close)
            for one in crowd[:4]:
                assert await asyncio.to_thread(one.recv, 1) == b"", "the longest there are closed"
            lane.send(message(Heartbeat(Writer(1).stamp())))
            assert (await asyncio.to_thread(lane.answer))[1] is None
