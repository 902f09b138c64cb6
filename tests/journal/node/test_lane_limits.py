"""Write lanes of strangers who say little, or announce much: they cost little, and end.

The percentiles of a JournalNode's syncs, as Hadoop names them at /jmx.

What a stranger's request may not do to a running node, over both of its faces.
"""

import asyncio
import math
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.core.requests import Heartbeat
from journal.lane import HEADER, LEAST_LENGTH, NoLane
from journal.model import MAX_EPOCH_LEAP
from journal.node.lanes.lane import MUTE, Incoming
from journal.node.lanes.lane_budget import FREE_BYTES, LaneBudget
from journal.node.percentiles import MOST_SAMPLES, PERCENTILES, WINDOWS_SECONDS, RecentSyncs
from journal.proto import hadoop_qjournal_pb2 as hp
from journal.proto import journal_pb2 as pb
from tests.journal.core.requests_of import Writer
from tests.journal.node.faces.java_writer import HOST, JID, connected, refused
from tests.journal.node.lane_client import RawLane, hello, message
from tests.journal.node.process import DEADLINE_SECONDS, NodeClient, node_and_client

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


def test_a_message_must_end_also_behind_one_in_pieces(ends: Ends) -> None:
    incoming = Incoming(ends[0], MOST, LaneBudget(), seconds=0.2)
    whole = header(3) + b"abc"
    ends[1].sendall(whole[:-1])
    rest = threading.Timer(0.02, ends[1].sendall, (whole[-1:],))
    rest.start()
    assert incoming.next() == (header(3), b"abc")
    rest.join()
    ends[1].sendall(whole[:-1])
    watchdog = threading.Timer(DEADLINE_SECONDS, ends[1].close)
    watchdog.start()
    with pytest.raises((NoLane, TimeoutError)):
        incoming.next()
    watchdog.cancel()
    incoming.close()


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
                for _ in range(MUTE.most + 4)
            ]
            lane = await asyncio.to_thread(RawLane.begun, daemon.lane_port, hello(key))
            stack.callback(lane.close)
            for one in crowd[:4]:
                assert await asyncio.to_thread(one.recv, 1) == b"", "the longest there are closed"
            lane.send(message(Heartbeat(Writer(1).stamp())))
            assert (await asyncio.to_thread(lane.answer))[1] is None


def test_each_window_counts_its_own_syncs() -> None:
    recent = RecentSyncs()
    for at, seconds in ((0.0, 0.9), (3500.0, 0.5), (3900.0, 0.1), (3990.0, 0.002)):
        recent.add(at, seconds)
    shown = recent.attributes(4000.0)
    assert [shown[f"Syncs{window}sNumOps"] for window in WINDOWS_SECONDS] == [1, 2, 3]
    assert shown["Syncs60s99thPercentileLatencyMicros"] == 2000
    assert shown["Syncs300s99thPercentileLatencyMicros"] == 100_000
    assert shown["Syncs3600s50thPercentileLatencyMicros"] == 100_000
    assert RecentSyncs().attributes(0.0)["Syncs60s50thPercentileLatencyMicros"] == 0


@given(st.lists(st.floats(0, 100), min_size=1, max_size=200))
def test_so_many_per_cent_are_no_slower(durations: list[float]) -> None:
    recent = RecentSyncs()
    for seconds in durations:
        recent.add(0.0, seconds)
    shown = recent.attributes(0.0)
    for percentile in PERCENTILES:
        micros = shown[f"Syncs60s{percentile}thPercentileLatencyMicros"]
        faster = sum(round(seconds * 1e6) <= micros for seconds in durations)
        assert faster >= math.ceil(len(durations) * percentile / 100)
        assert micros in {round(seconds * 1e6) for seconds in durations}


def test_memory_is_bounded() -> None:
    recent = RecentSyncs()
    for number in range(MOST_SAMPLES + 10):
        recent.add(float(number) / 1000, 0.001)
    assert recent.attributes(20.0)["Syncs60sNumOps"] == MOST_SAMPLES


async def test_the_page_has_them_for_each_journal(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, "timed") as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        await client.written(Writer(1), 1, 3)
        url = f"http://127.0.0.1:{daemon.http_port}/jmx?qry=*Journal-timed"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            (bean,) = (await response.json())["beans"]
        assert bean["Syncs60sNumOps"] >= 1
        assert bean["Syncs60sNumOps"] == bean["Syncs3600sNumOps"]
        assert 0 < bean["Syncs60s50thPercentileLatencyMicros"] < 60_000_000


STRAY: dict[str, pb.RequestInfo] = {
    "an enormous epoch": pb.RequestInfo(journal_id=JID, epoch=2**62, serial=0),
    "an epoch just above the promise": pb.RequestInfo(journal_id=JID, epoch=2, serial=0),
    "an enormous serial": pb.RequestInfo(journal_id=JID, epoch=1, serial=2**63),
    "an enormous committed txid": pb.RequestInfo(
        journal_id=JID, epoch=1, serial=100, committed_txid=2**61
    ),
    "a read lease of a day": pb.RequestInfo(
        journal_id=JID, epoch=1, serial=100, read_lease_micros=86_400_000_000
    ),
    "another file system": pb.RequestInfo(journal_id=JID, epoch=1, serial=100, namespace_id=9),
}


def durable(folder: Path) -> dict[str, bytes]:
    """Return what the node keeps of promises and claims."""
    names = ("last-promised-epoch", "committed-txid", "read-lease-micros")
    current = folder / JID / "current"
    return {name: (current / name).read_bytes() for name in names if (current / name).exists()}


async def writing(client: NodeClient) -> Writer:
    await client.format()
    await client.new_epoch(1)
    writer = Writer(1)
    await client.written(writer, 1, 3)
    return writer


@pytest.mark.parametrize("info", STRAY.values(), ids=list(STRAY))
async def test_a_stray_heartbeat_changes_nothing(info: pb.RequestInfo, tmp_path: Path) -> None:
    """Let the writer go on, and the next one, too."""
    async with node_and_client(tmp_path) as (_, client):
        writer = await writing(client)
        before = durable(tmp_path)
        (reply,) = await client.write([pb.WriteRequest(info=info, heartbeat=pb.Heartbeat())])
        assert reply.HasField("refusal")
        assert durable(tmp_path) == before
        (reply,) = await client.write([client.batch(writer, 1, 4, 6)])
        assert not reply.HasField("refusal"), reply
        await client.new_epoch(2)


async def test_nor_over_hadoop_rpc(tmp_path: Path) -> None:
    async with (
        node_and_client(tmp_path, hadoop_host=HOST) as (daemon, client),
        connected(daemon) as java,
    ):
        await writing(client)
        before = durable(tmp_path)
        for epoch, serial, committed in ((2**62, 0, 0), (1, 2**62, 0), (1, 50, 2**61)):
            info = java.at(epoch).info()
            info.ipcSerialNumber, info.committedTxId = serial, committed
            beat = hp.HeartbeatRequestProto(reqInfo=info)
            await refused(java.call("heartbeat", beat, hp.HeartbeatResponseProto))
        await refused(java.new_epoch(2 + MAX_EPOCH_LEAP))
        assert durable(tmp_path) == before
        await java.new_epoch(2)
