"""Real threads: a lane that writes on and on while the event loop does everything else."""

import asyncio
import threading
from contextlib import closing
from pathlib import Path

import aiohttp

from journal.lane import Offer
from journal.node.owner.owner import JournalOwner
from journal.proto import journal_pb2 as pb
from tests.journal.core.requests_of import Writer, records
from tests.journal.node.lane_client import RawLane, hello
from tests.journal.node.process import JID, NodeClient, Refused, node_and_client

HOST = "127.0.0.1"
SEGMENTS = 2
BATCHES = 12


class LaneWriter:
    """Writes a segment batch by batch from a thread of its own."""

    def __init__(self, lane: RawLane, writer: Writer) -> None:
        self.lane = lane
        self.writer = writer
        self.next = 1
        self.refused: list[pb.Refusal] = []

    def segment(self) -> None:
        first = self.next
        for size in range(BATCHES):
            last = self.next + size % 5
            refusal = self.lane.ask(self.writer.batch(first, self.next, last))
            if refusal is not None:
                self.refused.append(refusal)
                return
            self.writer.committed, self.next = last, last + 1


async def test_a_lane_writes_while_the_loop_is_asked_everything_else(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, lane_host=HOST, edits_cache_bytes=4000) as (
        daemon,
        client,
    ):
        await client.format()
        won = await client.new_epoch(1)
        writer, offer = Writer(1), Offer(won.lane_port, won.lane_key)
        lane = await asyncio.to_thread(RawLane.begun, offer.port, hello(offer.key))
        load = LaneWriter(lane, writer)
        over = asyncio.Event()
        with closing(lane):
            async with asyncio.TaskGroup() as group:
                asking = [
                    group.create_task(work)
                    for work in (
                        _asks_for_status(client, over),
                        _asks_for_manifests(client, over),
                        _asks_for_edits(client, over),
                        _formats_others(daemon.rpc_port, over),
                        _scrapes(daemon.http_port, over),
                        _works_in_the_journals_thread(daemon.node.owner_of(JID), over),
                    )
                ]
                for _ in range(SEGMENTS):
                    first = load.next
                    await client.start(writer, first)
                    await asyncio.to_thread(load.segment)
                    assert load.refused == []
                    await client.finalize(writer, first, load.next - 1)
                over.set()
        rounds = [task.result() for task in asking]
        assert min(rounds) > 0, rounds
        assert daemon.node.owner_of(JID).failed_because is None
    written = b"".join(
        path.read_bytes() for path in sorted((tmp_path / JID / "current").glob("edits_0*"))
    )
    assert records(1, load.next - 1)[-200:] in written


async def _asks_for_status(client: NodeClient, over: asyncio.Event) -> int:
    rounds, seen = 0, 0
    while not over.is_set():
        last = (await client.status()).last_written_txid
        assert last >= seen, "what is durable never goes back"
        seen, rounds = last, rounds + 1
    return rounds


async def _asks_for_manifests(client: NodeClient, over: asyncio.Event) -> int:
    rounds = 0
    while not over.is_set():
        asked = pb.GetEditLogManifestRequest(journal_id=JID, since_txid=1, in_progress_ok=True)
        told = await client.call("GetEditLogManifest", asked)
        ends = [segment.last_txid for segment in told.segments]
        assert ends == sorted(ends)
        rounds += 1
    return rounds


async def _asks_for_edits(client: NodeClient, over: asyncio.Event) -> int:
    """Check that memory gives what was written, while a lane stores and evicts."""
    rounds, refused = 0, set()
    while not over.is_set():
        since = max(1, (await client.status()).last_written_txid - 3)
        asked = pb.GetJournaledEditsRequest(journal_id=JID, since_txid=since, max_txns=50)
        try:
            told = await client.call("GetJournaledEdits", asked)
        except Refused as miss:
            refused.add(None if miss.refusal is None else miss.refusal.kind)
        else:
            assert told.records == records(since, since + told.count - 1)
        rounds += 1
    assert refused <= {pb.Refusal.CACHE_MISS, pb.Refusal.AHEAD_OF_NODE}
    return rounds


async def _formats_others(port: int, over: asyncio.Event) -> int:
    rounds = 0
    while not over.is_set() and rounds < 5:
        other = NodeClient(port, f"other{rounds}")
        await other.format()
        await other.new_epoch(1)
        await other.written(Writer(1), 1, 3)
        await other.close()
        rounds += 1
    return rounds


async def _scrapes(port: int, over: asyncio.Event) -> int:
    rounds = 0
    async with aiohttp.ClientSession() as session:
        while not over.is_set():
            for page in ("/metrics", "/jmx", "/status"):
                async with session.get(f"http://{HOST}:{port}{page}") as response:
                    assert response.status == 200
                    await response.read()
            rounds += 1
    return rounds


async def _works_in_the_journals_thread(owner: JournalOwner, over: asyncio.Event) -> int:
    """Check that no other thread writes in the journal's own thread's turn."""
    rounds, inside = 0, threading.Event()

    def alone() -> bool:
        before = owner.state
        inside.wait(0.0005)
        return owner.state is before

    while not over.is_set():
        assert await owner.in_thread(alone), "the journal went on in somebody's turn"
        rounds += 1
    return rounds
