"""A NameNode that serves no blocks does not become active on files that have some."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from journal.model import TxId
from namenode_sim.edits.ops import Op
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.term.gate import Gate
from namenode_sim.term.namenode import NameNode, TransitionRefused
from namenode_sim.term.role import Role
from tests.namenode_sim.image.image_world import EDITS
from tests.namenode_sim.term.memory_journal import MemoryJournal
from tests.worlds.files import frames

REFUSED = "clients could read no file.*nnha.namenode.active-without-blocks"


@asynccontextmanager
async def namenode(
    journal: MemoryJournal, applied: tuple[Op, ...], *, accepted: bool
) -> AsyncIterator[NameNode]:
    namespace = Namespace.empty("hdfs")
    for txid, op in enumerate(applied, start=1):
        namespace.apply(TxId(txid), op)
    node = NameNode(
        name="nn1",
        namespace=namespace,
        journal=journal.access(),
        gate=Gate(any_peer_active=nobody_else, park_timeout_seconds=1.0),
        tail_period_seconds=60.0,
        accept_blocks=accepted,
    )
    node.start()
    try:
        yield node
    finally:
        await node.stop()


async def nobody_else() -> bool:
    return False


def written() -> MemoryJournal:
    return MemoryJournal(open_first=TxId(1), open_records=frames(1, EDITS))


async def test_it_is_refused_before_the_journal_is_asked() -> None:
    journal = written()
    async with namenode(journal, EDITS, accepted=False) as node:
        assert node.unserved.any
        with pytest.raises(TransitionRefused, match=REFUSED):
            await node.become_active()
        assert node.state.role is Role.STANDBY
        assert journal.promised == 0


async def test_blocks_of_the_last_edits_are_seen_too() -> None:
    async with namenode(written(), (), accepted=False) as node:
        assert node.unserved.refusal() is None
        with pytest.raises(TransitionRefused, match=REFUSED):
            await node.become_active()


async def test_an_operator_may_accept_it() -> None:
    async with namenode(written(), EDITS, accepted=True) as node:
        assert node.unserved.refusal() is None
        await node.become_active()
        assert node.unserved.any
