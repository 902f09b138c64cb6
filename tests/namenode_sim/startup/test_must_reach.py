"""A NameNode with edits next to its image that no journal has never becomes active without them."""

from pathlib import Path

import pytest

from hadoop.errors import StorageError
from journal.model import TxId
from namenode_sim.storage.local_edits import last_local_edit
from namenode_sim.storage.storage import open_name_dirs
from namenode_sim.term.gate import Gate
from namenode_sim.term.namenode import NameNode, TransitionRefused
from tests.namenode_sim.startup.startup_world import OPEN, ROLLED, in_use
from tests.namenode_sim.term.memory_journal import MemoryJournal
from tests.worlds.files import frames

LAST = len(ROLLED) + len(OPEN)


async def nobody_else() -> bool:
    return False


async def active(directory: Path, journal: MemoryJournal) -> NameNode:
    storage = open_name_dirs([directory])
    namespace = storage.load()
    storage.close()
    node = NameNode(
        name="nn1",
        namespace=namespace,
        journal=journal.access(),
        gate=Gate(any_peer_active=nobody_else, park_timeout_seconds=1.0),
        tail_period_seconds=0.01,
        must_reach=last_local_edit([directory], namespace.last_applied),
    )
    node.start()
    try:
        await node.become_active()
    finally:
        await node.stop()
    return node


def test_a_segment_that_cannot_be_read_is_told_with_what_to_do(tmp_path: Path) -> None:
    in_use(tmp_path)
    (tmp_path / "current" / "edits_inprogress_0000000000000000900").mkdir()
    with pytest.raises(StorageError, match=r"cannot be used: .*edits_inprogress_0.*900.* Mend"):
        last_local_edit([tmp_path], TxId(0))


async def test_an_empty_journal_is_refused(tmp_path: Path) -> None:
    in_use(tmp_path)
    with pytest.raises(TransitionRefused, match=f"edits up to {LAST} .*--initialize-shared-edits"):
        await active(tmp_path, MemoryJournal())


async def test_a_journal_that_was_filled_half_way_is_refused(tmp_path: Path) -> None:
    in_use(tmp_path)
    journal = MemoryJournal(open_first=TxId(1), open_records=frames(1, ROLLED))
    with pytest.raises(TransitionRefused, match=f"gives none behind {len(ROLLED)}"):
        await active(tmp_path, journal)


async def test_a_journal_that_has_all_is_taken(tmp_path: Path) -> None:
    in_use(tmp_path)
    everything = frames(1, (*ROLLED, *OPEN))
    node = await active(tmp_path, MemoryJournal(open_first=TxId(1), open_records=everything))
    assert node.namespace.last_applied == LAST + 1
    assert node.lacking() is None


async def test_without_edits_behind_the_image_any_journal_will_do(tmp_path: Path) -> None:
    namespace = in_use(tmp_path)
    storage = open_name_dirs([tmp_path])
    storage.save(namespace)
    storage.close()
    node = await active(tmp_path, MemoryJournal())
    assert node.namespace.last_applied == LAST + 1
