"""How a namespace follows the journal: what ends the process, what is waited for and reported."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from journal.errors import InvariantBroken, JournalError, QuorumLost, Unavailable, WrongNamespace
from journal.model import LAYOUT_VERSION, NodeName, TxId
from journal.reader.reader import Chunk
from namenode_sim.edits.codec import encode
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.ops import Delete
from namenode_sim.edits.values import NO_RPC_IDS
from namenode_sim.namespace.errors import TxIdOutOfOrder
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.term.tailer import EDITS_PER_TURN, CatchUpFailed, Tailer
from tests.simulation.engine.clock import VirtualLoop

NOBODY = Delete("/nobody", 0, NO_RPC_IDS)
FOREIGN, SILENT = WrongNamespace("another cluster's"), Unavailable("no answer")


def on_virtual_time(play: Coroutine[Any, Any, None]) -> None:
    loop = VirtualLoop(lambda _process: 0.0)
    try:
        loop.run_until_complete(play)
    finally:
        loop.close()


def chunk(first: int, last: int) -> Chunk:
    records = b"".join(encode(NOBODY, TxId(txid)) for txid in range(first, last + 1))
    return Chunk(TxId(first), TxId(last), LAYOUT_VERSION, records)


@dataclass
class Source:
    """A journal that takes its time before each chunk, and may end in trouble."""

    last: int = 0
    chunk_edits: int = 3
    seconds: float = 0.0
    trouble: Exception | None = None
    through: list[TxId | None] = field(default_factory=list)

    async def edits(self, first: TxId, *, through: TxId | None = None) -> AsyncGenerator[Chunk]:
        self.through.append(through)
        for start in range(first, self.last + 1, self.chunk_edits):
            await asyncio.sleep(self.seconds)
            yield chunk(start, min(self.last, start + self.chunk_edits - 1))
        if self.trouble is not None:
            raise self.trouble

    async def durable_edits(self, first: TxId) -> AsyncGenerator[Chunk]:
        async for one in self.edits(first):
            yield one


def follower(
    source: Source, damage: Callable[[str], None] = pytest.fail
) -> tuple[Tailer, Namespace]:
    namespace = Namespace.empty("root")
    return Tailer(source, namespace, period_seconds=1.0, on_damage=damage), namespace


def lost(*failures: JournalError) -> QuorumLost:
    return QuorumLost("too few", failures={NodeName(f"jn{i}"): f for i, f in enumerate(failures)})


TROUBLES: dict[str, tuple[Exception, str]] = {
    "two facts that cannot both hold": (InvariantBroken("forked"), "contradicts itself: forked"),
    "an edit that cannot be read": (EditsError("no frame"), "cannot be applied: no frame"),
    "an edit that is missing": (TxIdOutOfOrder(3, 4), "cannot be applied: expected transaction 3"),
    "another cluster's journal": (lost(FOREIGN, FOREIGN), "dfs.namenode.shared.edits.dir"),
    "another cluster's node, and a silent one": (lost(FOREIGN, SILENT), ""),
    "edits that one node alone has": (lost(), ""),
    "silence": (SILENT, ""),
}


@pytest.mark.parametrize("case", TROUBLES)
def test_damage_ends_the_process_and_anything_else_is_told_and_tried_again(case: str) -> None:
    trouble, reason = TROUBLES[case]
    told: list[str] = []

    async def play() -> None:
        source = Source(last=2, trouble=trouble)
        tailer, namespace = follower(source, told.append)
        tailer.start()
        await asyncio.sleep(0.5)
        assert [reason in one for one in told] == ([True] if reason else [])
        if not reason:
            assert (tailer.trouble, tailer.lag_seconds) == (str(trouble), None)
        source.last, source.trouble = 4, None
        await asyncio.sleep(1.0)
        assert namespace.last_applied == (2 if reason else 4)
        if not reason:
            assert tailer.trouble is None
        await tailer.stop()

    on_virtual_time(play())


@pytest.mark.parametrize(
    "trouble",
    [SILENT, EditsError("no frame"), TxIdOutOfOrder(3, 4)],
    ids=["silence", "an edit that cannot be read", "an edit that is missing"],
)
async def test_a_takeover_that_cannot_read_all_edits_says_why(trouble: Exception) -> None:
    tailer, namespace = follower(source := Source(last=2, trouble=trouble))
    with pytest.raises(CatchUpFailed, match=f"edits up to 2 cannot be read: {trouble}"):
        await tailer.catch_up(TxId(2))
    assert (namespace.last_applied, source.through) == (2, [2])


@pytest.mark.parametrize("end", [2, 4], ids=["behind it", "before it"])
async def test_a_takeover_ends_where_the_journal_was_recovered_to(end: int) -> None:
    tailer, _ = follower(Source(last=end))
    with pytest.raises(CatchUpFailed, match=f"up to transaction 3, but .* stands at {end} after"):
        await tailer.catch_up(TxId(3))


async def test_a_long_chunk_lets_others_run_and_a_takeover_go_on_from_its_middle() -> None:
    last = 2 * EDITS_PER_TURN + 1
    tailer, namespace = follower(Source(last, chunk_edits=last))
    tailer.start()
    while not namespace.last_applied:
        await asyncio.sleep(0)
    assert namespace.last_applied == EDITS_PER_TURN
    assert tailer.lag_transactions == EDITS_PER_TURN + 1
    await tailer.stop()
    assert namespace.last_applied == EDITS_PER_TURN
    await tailer.catch_up(TxId(last))
    assert tailer.lag_transactions == 0


def test_the_lag_counts_from_when_a_round_began_and_each_chunk_breaks_the_silence() -> None:
    async def play() -> None:
        source = Source(last=6, seconds=40.0)
        tailer, _ = follower(source)
        tailer.start()
        await asyncio.sleep(79.0)
        assert (tailer.lag_seconds, tailer.silent_seconds) == (None, 39.0)
        assert tailer.trouble == "the journal has not been read yet"
        await asyncio.sleep(1.5)  # the round is over, and the next has not begun
        assert (tailer.lag_seconds, tailer.silent_seconds) == (80.5, 0.0)
        await asyncio.sleep(0.5)  # it finds nothing
        assert (tailer.lag_seconds, tailer.silent_seconds) == (0.0, 0.0)
        source.trouble = SILENT
        await asyncio.sleep(7.0)
        assert tailer.lag_seconds == 7.0
        await tailer.stop()

    on_virtual_time(play())


def test_one_that_was_told_twice_to_follow_is_stopped_by_one_word() -> None:
    """Give up a takeover before it has stopped the following, and so begin that anew."""

    async def play() -> None:
        source = Source()
        tailer, _ = follower(source)
        tailer.start()
        tailer.start()
        await asyncio.sleep(2.5)
        assert len(source.through) == 3
        await tailer.stop()
        await asyncio.sleep(2.0)
        assert len(source.through) == 3
        tailer.start()
        await asyncio.sleep(0.5)
        assert len(source.through) == 4
        await tailer.stop()

    on_virtual_time(play())
