"""DataNodes that fail while a file is written or read, and lost answers of the NameNode."""

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from google.protobuf.message import Message

from files.errors import NotFound, OutcomeUnknown, Refused, Unwritable
from files.namenodes import Namenodes
from files.pipeline import WriteLimits
from files.write import DEFAULT_LIMITS, Writer
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import IO_EXCEPTION, NOT_REPLICATED_YET
from ha.rpc.protocol import Call
from hadoop.proto import client_namenode_pb2 as calls
from tests.files.cuts import Door, doors, located
from tests.files.world import MIB, Handle, get, noise, put, world
from tests.namenode_sim.datanode_protocol.served import seen

DATA = noise(2 * MIB + 77_777)
LATER = 300_000


@dataclass(frozen=True, slots=True)
class Cut:
    """When the DataNode in a place of the first pipeline is cut off."""

    place: int = 0
    after: int | None = None
    at_end: bool = False
    passed: bool = False


CUTS = {
    f"{when}, DataNode {place}": replace(cut, place=place)
    for place in range(3)
    for when, cut in {
        "while it is set up": Cut(after=0),
        "in the middle": Cut(after=LATER),
        "before the last packet": Cut(at_end=True),
        "after the last packet": Cut(at_end=True, passed=True),
    }.items()
}


@pytest.mark.parametrize("name", CUTS)
async def test_a_file_is_written_whole_without_a_datanode(tmp_path: Path, name: str) -> None:
    cut = CUTS[name]
    async with world(tmp_path) as made, doors(made) as found:
        before = made.meddle
        chosen: list[Door] = []

        async def choose(handle: Handle, call: Call, request: Message) -> Message:
            assert before is not None
            answer = await before(handle, call, request)
            if call.method == "addBlock" and not chosen:
                port = located(answer)[0].locs[cut.place].id.xferPort
                one = next(one for one in found.values() if one.port == port)
                one.after, one.at_end, one.passed = cut.after, cut.at_end, cut.passed
                chosen.append(one)
            return answer

        made.meddle = choose
        await put(made.client, "/f", DATA)
        assert chosen[0].deeds == 1
        assert await get(made.client, "/f") == DATA
        gone_on = "abandonBlock" if cut.after == 0 else "updatePipeline"
        assert made.asked.count(gone_on) == 1


@pytest.mark.parametrize("after", [0, LATER])
async def test_an_append_goes_on_without_a_datanode(tmp_path: Path, after: int) -> None:
    async with world(tmp_path) as made:
        await put(made.client, "/f", DATA[:1000])
        async with doors(made, Door(0, after=after)) as found:
            first = next(iter(found.values()))
            for one in found.values():
                one.most_deeds = int(one is first)
            async with await Writer.append(made.client, "/f") as writer:
                await writer.write(DATA[1000:])
            assert first.deeds == 1
        made.meddle = None
        assert await get(made.client, "/f") == DATA


async def _written(writer: Writer, data: bytes) -> None:
    await writer.write(data)
    await writer.close()


async def test_without_datanodes_the_file_stays_open_and_that_is_said(tmp_path: Path) -> None:
    async with world(tmp_path) as made, doors(made, Door(0, after=LATER, most_deeds=99)) as found:
        writer = await Writer.create(made.client, "/f", block_size=MIB)
        with pytest.raises(Unwritable, match=r"/f cannot be written on: the DataNodes.*stays open"):
            await _written(writer, DATA)
        assert sum(one.deeds for one in found.values()) == 3
        with pytest.raises(Unwritable, match="no longer open here"):
            await writer.write(b"more")
        with pytest.raises(Unwritable, match="no longer open here"):
            await writer.close()
        assert "complete" not in made.asked
        await writer.discard()
        with pytest.raises(NotFound):
            await get(made.client, "/f")


async def test_only_its_own_file_is_discarded(tmp_path: Path) -> None:
    async with world(tmp_path, 1) as made:
        writer = await Writer.create(made.client, "/f")
        await put(made.client, "/f", b"of another", overwrite=True)
        await writer.discard()
        assert await get(made.client, "/f") == b"of another"
        appended = await Writer.append(made.client, "/f")
        await appended.discard()
        assert made.asked.count("delete") == 0


LOST = [
    "create", "addBlock", "complete", "updateBlockForPipeline", "updatePipeline", "abandonBlock",
    "getServerDefaults", "append",
]  # fmt: skip


@pytest.mark.parametrize("method", LOST)
async def test_a_lost_answer_changes_nothing(tmp_path: Path, method: str) -> None:
    """The call is carried out and its answer lost, each time that it is made."""
    async with world(tmp_path) as made:
        await put(made.client, "/f", DATA[:700])
        lost: set[int] = set()
        after = {"abandonBlock": 0}.get(method, LATER)
        async with doors(made) as found:
            before = made.meddle
            first = next(iter(found.values()))
            first.after = after

            async def lose(handle: Handle, call: Call, request: Message) -> Message:
                assert before is not None
                answer = await before(handle, call, request)
                if call.method == method and call.call_id not in lost:
                    lost.add(call.call_id)
                    made.hang_up()
                return answer

            made.meddle = lose
            old = made.client  # it has the NameNode's defaults
            async with Namenodes(old.addresses, user=old.user, limits=old.limits) as client:
                await put(client, "/g", DATA)
                async with await Writer.append(client, "/f") as writer:
                    await writer.write(DATA[700:])
        assert lost
        made.meddle = None
        assert await get(made.client, "/g") == DATA
        assert await get(made.client, "/f") == DATA


async def test_a_slow_writer_keeps_its_lease_and_pipeline(tmp_path: Path) -> None:
    limits = replace(DEFAULT_LIMITS, alive_seconds=0.05)
    async with world(tmp_path) as made:
        writer = await Writer.create(made.client, "/f", limits=limits)
        await writer.write(DATA[:100_000])
        await seen(lambda: made.asked.count("renewLease") > 3)
        await writer.write(DATA[100_000:])
        await writer.close()
        asked = made.asked.count("renewLease")
        assert await get(made.client, "/f") == DATA
        assert made.asked.count("renewLease") == asked, "it has ended with the file"


async def test_few_packets_are_under_way(tmp_path: Path) -> None:
    limits = WriteLimits(window_bytes=lambda: 400_000, packet_bytes=150_000)
    async with world(tmp_path) as made:
        writer = await Writer.create(made.client, "/f", limits=limits)
        for at in range(0, len(DATA), 50_000):
            await writer.write(DATA[at : at + 50_000])
            block = writer.block
            assert block is None or block.window.sent - block.window.acked <= 400_000
            assert block is None or block.file.packet_bytes == 290 * 512
        await writer.close()
        assert await get(made.client, "/f") == DATA


async def test_an_unknown_end_of_a_file_is_said(tmp_path: Path) -> None:
    """The NameNode is gone when the file is completed: it may be, or may not."""
    async with world(tmp_path, 1) as made:

        async def silent(handle: Handle, call: Call, request: Message) -> Message:
            if call.method == "complete":
                await handle(call, request)
                await asyncio.Event().wait()
            return await handle(call, request)

        made.meddle = silent
        made.client.limits = replace(
            made.client.limits, connect_seconds=3, attempt_seconds=3, total_seconds=3
        )
        with pytest.raises(OutcomeUnknown, match="complete was sent"):
            await asyncio.wait_for(put(made.client, "/f", b"x"), 30)


async def test_a_namenode_may_need_time_for_a_block_and_for_the_end(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        patience = {"addBlock": 2, "complete": 2}

        async def slowly(handle: Handle, call: Call, request: Message) -> Message:
            if not patience.get(call.method):
                return await handle(call, request)
            patience[call.method] -= 1
            if call.method == "addBlock":
                raise RemoteFault(NOT_REPLICATED_YET, "Not replicated yet: /f")
            return calls.CompleteResponseProto(result=False)

        made.meddle = slowly
        await put(made.client, "/f", DATA)
        assert patience == {"addBlock": 0, "complete": 0}
        assert await get(made.client, "/f") == DATA


@pytest.mark.parametrize("method", ["addBlock", "complete"])
async def test_its_time_ends(tmp_path: Path, method: str) -> None:
    limits = replace(DEFAULT_LIMITS, complete_seconds=0.3)
    async with world(tmp_path, 1) as made:

        async def never(handle: Handle, call: Call, request: Message) -> Message:
            if call.method == method == "addBlock":
                raise RemoteFault(NOT_REPLICATED_YET, "Not replicated yet: /f")
            if call.method == method:
                return calls.CompleteResponseProto(result=False)
            return await handle(call, request)

        made.meddle = never
        writer = await Writer.create(made.client, "/f", limits=limits)
        with pytest.raises(Unwritable, match="too few DataNodes have reported"):
            await _written(writer, DATA[:1000])


async def test_another_refusal_of_a_block_is_raised_at_once(tmp_path: Path) -> None:
    async with world(tmp_path, 1) as made:

        async def full(handle: Handle, call: Call, request: Message) -> Message:
            if call.method == "addBlock":
                raise RemoteFault(IO_EXCEPTION, "File /f could only be written to 0 of the 1")
            return await handle(call, request)

        made.meddle = full
        with pytest.raises(Refused, match="could only be written to 0"):
            await put(made.client, "/f", b"x")
        assert made.asked.count("addBlock") == 1
        assert "complete" not in made.asked


async def test_a_file_without_bytes_needs_no_datanode(tmp_path: Path) -> None:
    async with world(tmp_path, 0) as made:
        await put(made.client, "/f", b"")
        assert await get(made.client, "/f") == b""
        assert "addBlock" not in made.asked


async def test_a_writer_that_is_given_up_stays_given_up(tmp_path: Path) -> None:
    """The bad schedule: a deadline ends while an abort waits for the writer's own tasks."""
    async with world(tmp_path) as made:
        for turns in range(4):
            writer = await Writer.create(made.client, f"/f{turns}", block_size=MIB)
            await writer.write(DATA[:200_000])
            ending = asyncio.create_task(writer.abort())
            for _ in range(turns):
                await asyncio.sleep(0)
            was_done = ending.done()
            ending.cancel()
            await asyncio.wait([ending])
            assert ending.cancelled() or was_done
            await writer.abort()


async def test_a_datanode_that_takes_nothing_is_asked_once_for_each_block(tmp_path: Path) -> None:
    async with world(tmp_path) as made, doors(made) as found:
        bad = next(iter(found.values()))
        bad.after, bad.most_deeds = 0, 99
        await put(made.client, "/f", DATA)
        assert made.asked.count("abandonBlock") == 3
        assert made.asked.count("addBlock") == 6
        # The NameNode may already have had a third replica made of a block.
        replicas = Counter(path.name for path in made.blocks())
        assert len(replicas) == 3
        assert min(replicas.values()) >= 2
