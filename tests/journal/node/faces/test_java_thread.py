"""Java's batches in a thread of their connection: the same judge, and real races with the loop."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from google.protobuf.message import Message

from ha.rpc.packets import PREAMBLE, CallAnswer, CallKey, Status, encode_call, encode_context
from journal.node.faces.hadoop_codec import QJOURNAL_PROTOCOL
from journal.node.process.daemon import JournalNodeDaemon
from journal.proto import hadoop_qjournal_pb2 as hp
from tests.ha.rpc.blocking_client import BlockingClient
from tests.journal.core.requests_of import records
from tests.journal.node.faces.java_writer import JID, connected, java_and_node, refused

CLIENT = bytes(16)
WAIT_SECONDS = 60.0
OUT_OF_SYNC = "JournalOutOfSyncException"


class BlockingWriter:
    """A Java writer's connection that needs no event loop."""

    def __init__(self, client: BlockingClient, epoch: int) -> None:
        self.client = client
        self.epoch = epoch
        self.serial = 100
        self._calls = 0

    def info(self) -> hp.RequestInfoProto:
        self.serial += 1
        jid = hp.JournalIdProto(identifier=JID)
        return hp.RequestInfoProto(journalId=jid, epoch=self.epoch, ipcSerialNumber=self.serial)

    def batch(self, first: int, last: int, segment: int = 1) -> hp.JournalRequestProto:
        return hp.JournalRequestProto(
            reqInfo=self.info(),
            segmentTxnId=segment,
            firstTxnId=first,
            numTxns=last - first + 1,
            records=records(first, last, self.epoch),
        )

    def frame(self, method: str, request: Message) -> bytes:
        self._calls += 1
        key = CallKey(CLIENT, self._calls, 0)
        return encode_call(key, QJOURNAL_PROTOCOL, method, request.SerializeToString())

    def ask(self, *requests: hp.JournalRequestProto) -> list[CallAnswer]:
        return self.client.ask(*(self.frame("journal", request) for request in requests))

    def write(self, first: int, last: int) -> None:
        (answer,) = self.ask(self.batch(first, last))
        assert answer.status is Status.SUCCESS, answer


@contextmanager
def blocking(daemon: JournalNodeDaemon, epoch: int) -> Iterator[BlockingWriter]:
    greeting = PREAMBLE + encode_context(CLIENT, QJOURNAL_PROTOCOL, "hdfs", None)
    with BlockingClient(daemon.hadoop_port, greeting) as client:
        yield BlockingWriter(client, epoch)


def reading_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "calls of journal"]


async def test_batches_are_durable_and_answered_while_the_loop_stands_still(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (daemon, java):
        await java.format()
        await java.new_epoch(1)
        await java.at(1).start(1)
        with blocking(daemon, 1) as writer, ThreadPoolExecutor(1) as pool:
            await asyncio.to_thread(writer.write, 1, 2)
            for first in range(3, 43, 2):
                # The loop does nothing else until it is answered.
                pool.submit(writer.write, first, first + 1).result(WAIT_SECONDS)
            beat = writer.frame("heartbeat", hp.HeartbeatRequestProto(reqInfo=writer.info()))
            (answer,) = pool.submit(writer.client.ask, beat).result(WAIT_SECONDS)
            assert answer.status is Status.SUCCESS
        open_segment = tmp_path / JID / "current" / "edits_inprogress_0000000000000000001"
        assert open_segment.read_bytes().endswith(records(1, 42))
        # And the loop goes on where the thread stopped.
        assert (await java.manifest(1, in_progress=True)).manifest.logs[0].endTxId == 42


async def test_edits_are_applied_in_order_with_the_loops_calls_between(tmp_path: Path) -> None:
    """Send all at once: were one call overtaken by another, a batch would be out of sync."""
    async with java_and_node(tmp_path) as (daemon, java):
        await java.format()
        await java.new_epoch(1)
        with blocking(daemon, 1) as writer:
            frames = []
            for first in range(1, 61, 6):
                start = hp.StartLogSegmentRequestProto(
                    reqInfo=writer.info(), txid=first, layoutVersion=-65
                )
                frames.append(writer.frame("startLogSegment", start))
                frames += [
                    writer.frame("journal", writer.batch(at, at + 1, first))
                    for at in range(first, first + 6, 2)
                ]
                end = hp.FinalizeLogSegmentRequestProto(
                    reqInfo=writer.info(), startTxId=first, endTxId=first + 5
                )
                frames.append(writer.frame("finalizeLogSegment", end))
            for number in (1, 3, 10, 36):
                some, frames = frames[:number], frames[number:]
                answers = await asyncio.to_thread(writer.client.ask, *some)
                assert [answer.message for answer in answers if answer.status] == []
        final = [(log.startTxId, log.endTxId) for log in (await java.manifest(1)).manifest.logs]
    assert final == [(first, first + 5) for first in range(1, 61, 6)]


@pytest.mark.parametrize("before", [1, 7, 30])
async def test_a_newer_epoch_ends_the_batches_of_an_older_writers_thread(
    tmp_path: Path, before: int
) -> None:
    """Try the bad schedule: a thread has a batch accepted behind the promise to a newer writer."""
    async with java_and_node(tmp_path) as (daemon, java):
        await java.format()
        await java.new_epoch(1)
        await java.at(1).start(1)
        owner, begun = daemon.node.owner_of(JID), threading.Event()

        def write_on(writer: BlockingWriter) -> tuple[int, CallAnswer]:
            txid = 1
            while True:
                (answer,) = writer.ask(writer.batch(txid, txid))
                if answer.status is not Status.SUCCESS:
                    return txid - 1, answer
                if txid == before:
                    begun.set()
                txid += 1

        with blocking(daemon, 1) as writer:
            writing = asyncio.create_task(asyncio.to_thread(write_on, writer))
            assert await asyncio.to_thread(begun.wait, WAIT_SECONDS)
            await java.new_epoch(2)
            held = owner.state.last_written
            last, answer = await writing
        assert "epoch 1 is less than the last promised epoch 2" in answer.message
        assert held == owner.state.last_written == last >= before
        await java.at(2).start(last + 1)


async def test_of_two_twins_of_a_batch_one_is_accepted(tmp_path: Path) -> None:
    """Repeat a call on a new connection while the old one's thread still holds it."""
    async with java_and_node(tmp_path) as (daemon, java):
        await java.format()
        await java.new_epoch(1)
        await java.at(1).start(1)
        with blocking(daemon, 1) as one, blocking(daemon, 1) as two:
            for first in range(1, 81, 2):
                batch = one.batch(first, first + 1)
                both = await asyncio.gather(
                    asyncio.to_thread(one.ask, batch), asyncio.to_thread(two.ask, batch)
                )
                ends = [answer for (answer,) in both]
                assert sorted(answer.status for answer in ends) == [Status.SUCCESS, Status.ERROR]
                (no,) = [answer for answer in ends if answer.status is Status.ERROR]
                assert no.java_class.endswith(OUT_OF_SYNC) or "serial" in no.message, no
            assert len(reading_threads()) == 2
        written = tmp_path / JID / "current" / "edits_inprogress_0000000000000000001"
        assert written.read_bytes().endswith(records(1, 80))


async def test_a_slow_disk_holds_up_its_writer_and_nobody_else(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (daemon, java), connected(daemon) as other:
        await java.format()
        await java.new_epoch(1)
        await java.at(1).start(1)
        owner, slow = daemon.node.owner_of(JID), threading.Event()
        with blocking(daemon, 1) as writer:
            await asyncio.to_thread(writer.write, 1, 1)
            holding = asyncio.create_task(owner.in_thread(slow.wait))
            writing = asyncio.create_task(asyncio.to_thread(writer.write, 2, 2))
            while not owner.turn.waiting:
                await asyncio.sleep(0)
            assert (await other.state()).lastPromisedEpoch == 1
            assert not writing.done()
            slow.set()
            await writing
            await holding


async def test_a_disk_that_fails_under_a_thread_stops_the_journal(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (daemon, java):
        await java.format()
        await java.new_epoch(1)
        await java.at(1).start(1)
        owner = daemon.node.owner_of(JID)
        with blocking(daemon, 1) as writer:
            await asyncio.to_thread(writer.write, 1, 1)
            owner.disk.close()
            (answer,) = await asyncio.to_thread(writer.ask, writer.batch(2, 2))
            assert answer.status is Status.ERROR
            assert owner.failed_because is not None
            assert "has stopped" in (await refused(java.at(1).finalize(1, 1))).message


async def test_the_end_of_a_node_ends_the_thread_behind_its_batch(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (daemon, java):
        await java.format()
        await java.new_epoch(1)
        await java.at(1).start(1)
        owner, slow = daemon.node.owner_of(JID), threading.Event()
        with blocking(daemon, 1) as writer:
            await asyncio.to_thread(writer.write, 1, 1)
            holding = asyncio.create_task(owner.in_thread(slow.wait))
            writing = asyncio.create_task(asyncio.to_thread(writer.write, 2, 2))
            while not owner.turn.waiting:
                await asyncio.sleep(0)
            stopping = asyncio.create_task(daemon.stop())
            await asyncio.sleep(0)
            slow.set()
            await asyncio.gather(writing, holding, stopping)
            assert not reading_threads()
            assert await asyncio.to_thread(writer.client.closed)
            assert owner.failed_because is None
    written = tmp_path / JID / "current" / "edits_inprogress_0000000000000000001"
    assert written.read_bytes().endswith(records(1, 2))
