"""Moves of replicas between DataNodes, as a balancer orders them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from datanode import model
from datanode.namenodes.claim import NameNodeId
from datanode.namenodes.commands import Bandwidth, Ignored
from datanode.namenodes.executor import Executor
from datanode.namenodes.identity import Identity, Namespace
from datanode.replicas.operations import News
from datanode.replicas.store import Announcement, Store
from datanode.transfers.balance_throttle import BalanceThrottle, MoveRules
from datanode.transfers.send import Stretch, open_stretch, opening, send_stretch
from datanode.transfers.transfer import DamagedSource
from hadoop.proto import client_datanode_pb2 as client
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.connection import Connection
from hadoop.wire.errors import DataNodeError
from hadoop.wire.packets import OP_HEAD, Op, encode_op
from hadoop.wire.peer import Peer
from tests.datanode.block_client import (
    LIMITS,
    SECONDS,
    Place,
    connect,
    node,
    read,
    until,
    write_whole,
)
from tests.datanode.moves_world import (
    CALL,
    DATA,
    ERROR,
    HERE,
    SUCCESS,
    Pair,
    at_the_target,
    being_written,
    leftovers,
    newer,
    on_both,
    pair,
    pinned,
    replace_block,
    request,
    whole,
)
from tests.datanode.stores import POOL, block, finalized, store, volume


async def test_a_replica_comes_with_the_hint_which_other_may_go(tmp_path: Path) -> None:
    async with pair(tmp_path) as two:
        await write_whole([two.source.place], block(), DATA)
        answer = await replace_block(two.target, request(two.source.place, kind="ARCHIVE"))
        assert (answer.status, answer.message) == (SUCCESS, "")
        archive = model.StorageId("DS-b-ARCHIVE")
        assert two.told == [
            Announcement(News.RECEIVED, archive, block(), len(DATA), "uuid-of-the-source")
        ]
        for each in (two.source, two.target):
            assert await read(each.place, block(), 0, len(DATA)) == DATA


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A move that is asked for, and how the answer begins and goes on."""

    prepare: Callable[[Pair], Awaitable[None]] = whole
    asks: Callable[[Place], pb.OpReplaceBlockProto] = request
    at_source: MoveRules | None = None
    at_target: MoveRules | None = None
    status: pb.Status.ValueType = ERROR
    says: tuple[str, ...]


FULL = MoveRules(most=0)
EXCEEDED = "because threads quota=0 is exceeded."
REFUSED = {
    "the target has no slot": Refusal(
        at_target=FULL, says=("Not able to receive block 1073741825 from 127.0.0.1:", EXCEEDED)
    ),
    "the source has no slot": Refusal(
        at_source=FULL, says=("Not able to copy block 1073741825 to 127.0.0.1:", EXCEEDED)
    ),
    "it is pinned": Refusal(
        prepare=pinned, at_source=MoveRules(pinning=True), says=("because it's pinned",),
        status=pb.Status.ERROR_BLOCK_PINNED,
    ),
    "the source has none": Refusal(
        asks=lambda at: request(at, block(7)), says=("blk_1073741832_1001 is not here",)
    ),
    "it is still written": Refusal(prepare=being_written, says=("is not whole here",)),
    "the source has a newer one": Refusal(prepare=newer, says=("is not whole here",)),
    "the target has one": Refusal(prepare=on_both, says=("cannot be copied here",)),
    "no volume is of the type": Refusal(
        asks=partial(request, kind="SSD"), says=("volumes of type SSD",)
    ),
    "nothing listens": Refusal(asks=lambda _: request(Place(1)), says=("no connection",)),
    "another pool": Refusal(
        asks=partial(request, pool="BP-2"), says=("'BP-2' is not the pool",),
        status=pb.Status.ERROR_INVALID,
    ),
    "it is on such a volume": Refusal(
        prepare=at_the_target, asks=partial(request, uuid="uuid-b"),
        says=("Replica blk_1073741825_1001 already exists on storage DISK",),
    ),
    "it has another length": Refusal(
        prepare=at_the_target, asks=partial(HERE, length=5),
        says=("with a length of 100400 expected length is 5",),
    ),
    "it is not here to be put on another volume": Refusal(asks=HERE, says=("is not here",)),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
async def test_what_is_refused_changes_nothing(tmp_path: Path, case: Refusal) -> None:
    async with pair(tmp_path, source=case.at_source, target=case.at_target) as two:
        await case.prepare(two)
        before = [*two.source.store], [*two.target.store]
        two.told.clear()
        answer = await replace_block(two.target, case.asks(two.source.place))
        assert answer.status == case.status, answer.message
        assert all(part in answer.message for part in case.says), answer.message
        assert ([*two.source.store], [*two.target.store]) == before
        assert two.told == []
        await begun_is_discarded(two.source.store)


async def begun_is_discarded(kept: Store) -> None:
    """Nothing waits for the rest of a block that the test has begun."""
    for replica in kept:
        if isinstance(replica, model.BeingWritten):
            await kept.delete(kept.forget(replica.block))


@asynccontextmanager
async def scripted(script: Callable[[Peer], Awaitable[None]]) -> AsyncIterator[Place]:
    """Run the source of moves whose answer is ``script``."""
    tasks: list[asyncio.Task[None]] = []

    async def serve(peer: Peer) -> None:
        await peer.read(OP_HEAD.size, seconds=SECONDS)
        await peer.read_message(pb.OpCopyBlockProto, seconds=SECONDS)
        try:
            await script(peer)
        finally:
            peer.close()

    def connected(connection: Connection) -> None:
        tasks.append(asyncio.get_running_loop().create_task(serve(Peer(connection))))

    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(ByteBudget(1 << 20), connected), "127.0.0.1", 0
    )
    try:
        yield Place(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def stretch_of(folder: Path, data: bytes = DATA) -> AsyncIterator[Stretch]:
    kept = await store(volume(folder))
    await finalized(kept, block(), data)
    stretch = await open_stretch(kept, block(), 0, None)
    try:
        yield stretch
    finally:
        stretch.files.close()
        await kept.volumes.close()


async def test_a_source_that_dies_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    async with stretch_of(tmp_path / "scripted") as stretch:

        async def half(peer: Peer) -> None:
            await peer.send_message(opening(stretch), seconds=SECONDS)
            cut = replace_end(stretch, stretch.end // 2 // 512 * 512)
            with suppress(DataNodeError):
                await send_packets_only(peer, cut)

        async with scripted(half) as place, pair(tmp_path) as two:
            answer = await replace_block(two.target, request(place))
            assert answer.status == ERROR
            assert "opReplaceBlock blk_1073741825_1001 received exception" in answer.message
            assert (two.told, len(two.target.store)) == ([], 0)


async def send_packets_only(peer: Peer, stretch: Stretch) -> None:
    """Send the bytes of a stretch without the packet that ends it."""

    async def all_are_sent(_: int) -> None:
        raise DataNodeError("the source dies")

    await send_stretch(peer, stretch, seconds=SECONDS, paced=all_are_sent)


def replace_end(stretch: Stretch, end: int) -> Stretch:
    return replace(stretch, end=end, last_sum=b"")


async def test_a_damaged_source_is_reported_and_its_bytes_do_not_stay(tmp_path: Path) -> None:
    async with pair(tmp_path) as two:
        await write_whole([two.source.place], block(), DATA)
        (path,) = (tmp_path / "a").rglob(f"blk_{block().block_id}")
        path.write_bytes(DATA[:600] + b"~" + DATA[601:])
        answer = await replace_block(two.target, request(two.source.place))
        assert answer.status == ERROR
        holder = two.source.place.info.id
        assert two.damaged == [DamagedSource(block(), len(DATA), holder)]
        assert (two.told, len(two.target.store)) == ([], 0)


async def test_the_caller_hears_that_a_slow_move_goes_on(tmp_path: Path) -> None:
    goes_on = asyncio.Event()
    quick = replace(LIMITS, packet_seconds=0.4)
    async with stretch_of(tmp_path / "scripted") as stretch:

        async def slow(peer: Peer) -> None:
            await peer.send_message(opening(stretch), seconds=SECONDS)
            await goes_on.wait()
            await send_stretch(peer, stretch, seconds=SECONDS)

        async with scripted(slow) as place, node(tmp_path / "b", quick) as target:
            caller = await connect(target.place.port)
            asked = encode_op(Op.REPLACE_BLOCK, request(place))
            await caller.send(asked, seconds=SECONDS)
            first = await caller.read_message(pb.BlockOpResponseProto, seconds=SECONDS)
            assert first.status == pb.Status.IN_PROGRESS
            goes_on.set()
            status = pb.Status.IN_PROGRESS
            while status == pb.Status.IN_PROGRESS:
                answer = await caller.read_message(pb.BlockOpResponseProto, seconds=SECONDS)
                status = answer.status
            assert status == SUCCESS
            assert [one.length for one in target.store] == [len(DATA)]


async def test_a_target_that_dies_in_the_middle_leaves_its_source_a_free_slot(
    tmp_path: Path,
) -> None:
    async with node(tmp_path / "a", moves=MoveRules(bytes_per_second=1)) as source:
        await write_whole([source.place], block(), DATA)
        throttle = source.server.moves.throttle
        target = await connect(source.place.port)
        asked = pb.OpCopyBlockProto(header=request(source.place).header)
        await target.send(encode_op(Op.COPY_BLOCK, asked), seconds=SECONDS)
        await until(lambda: throttle.running == 1)
        target.abort()
        throttle.use(1 << 40)
        await until(lambda: throttle.running == 0)
        assert await read(source.place, block(), 0, len(DATA)) == DATA


async def test_a_stop_in_the_middle_of_a_move_leaves_nothing(tmp_path: Path) -> None:
    async with (
        node(tmp_path / "a") as source,
        node(tmp_path / "b", moves=MoveRules(bytes_per_second=1)) as target,
    ):
        await write_whole([source.place], block(), DATA)
        caller = await connect(target.place.port)
        asked = encode_op(Op.REPLACE_BLOCK, request(source.place))
        await caller.send(asked, seconds=SECONDS)
        await until(lambda: len(target.store) == 1)
        await target.server.stop()
        assert target.server.moves.throttle.running == 0
        assert len(target.store) == 0
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(("sender", "then"), [("nn1", 1000), ("nn2", 100 << 20)])
async def test_a_bandwidth_is_taken_from_the_obeyed_namenode(
    tmp_path: Path, sender: str, then: int
) -> None:
    async with node(tmp_path) as one:
        throttle = one.server.moves.throttle
        executor = Executor(
            one.store,
            Identity("uuid", "127.0.0.1", 1, 2, 3, Namespace(77, "CID-1", 1234, POOL.pool)),
            LIMITS,
            obeyed=lambda: NameNodeId("nn1"),
            calls=lambda _: None,
            on_bandwidth=throttle.use,
        )
        running = asyncio.create_task(executor.run())
        executor.add(NameNodeId("nn1"), [Bandwidth(0)])
        executor.add(NameNodeId(sender), [Bandwidth(1000), Ignored("the last")])
        await until(lambda: throttle.bytes_per_second == then)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        method = one.server.moves.methods()["getBalancerBandwidth"]
        answer = await method.handle(CALL, client.GetBalancerBandwidthRequestProto())
        assert answer == client.GetBalancerBandwidthResponseProto(bandwidth=then)


async def test_bytes_pass_at_the_bandwidth_and_no_faster() -> None:
    throttle = BalanceThrottle(MoveRules(bytes_per_second=200_000))
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.gather(*(throttle.passed(10_000) for _ in range(4)))
    assert loop.time() - began > 0.15
    throttle.use(1)
    waits = asyncio.create_task(throttle.passed(1 << 30))
    await asyncio.sleep(0)
    throttle.use(0)
    throttle.use(-5)
    assert throttle.bytes_per_second == 1
    throttle.use(1 << 40)
    async with asyncio.timeout(SECONDS):
        await waits
