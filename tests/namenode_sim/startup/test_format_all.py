"""Formatting: the journal and every name directory, or no name directory."""

import pytest

from ha.daemon.process import ExitWith
from journal.errors import JournalError
from journal.links.quorum_call import ask_once
from journal.model import NamespaceInfo, TxId
from namenode_sim.edits.ops import StartLogSegment
from namenode_sim.startup.format import format_all, new_namespace_info
from namenode_sim.startup.prepare.look import journal_address
from namenode_sim.storage.errors import NotEmpty
from namenode_sim.storage.storage import open_name_dirs
from tests.namenode_sim.startup.startup_world import World, in_use, mkdir, snapshot
from tests.worlds.files import frames, info

OTHER = info(namespace_id=8)


async def run(at: World, *, force: bool = False) -> None:
    await format_all(at.conf(), at.place(), OTHER, force=force)


async def of_nodes(at: World) -> list[NamespaceInfo | JournalError | None]:
    answers = await ask_once(
        at.nodes.addresses, journal_address(at.place()), lambda one: one.namespace(5.0)
    )
    return list(answers.values())


async def write_journal(at: World, namespace_info: NamespaceInfo) -> None:
    writer = at.writer(namespace_info)
    await writer.format()
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    await writer.write(TxId(1), 2, frames(1, (StartLogSegment(), mkdir("/a"))))
    await writer.finalize_segment(TxId(2))
    await writer.settle(timeout_seconds=30)
    await writer.close()


def ids_and_size(at: World) -> tuple[NamespaceInfo, int, int]:
    storage = open_name_dirs([at.name_dir])
    namespace = storage.load()
    storage.close()
    return storage.namespace_info, namespace.last_applied, len(namespace.tree.inodes)


async def test_all_journal_nodes_and_name_directories_have_the_new_ids(at: World) -> None:
    await run(at)
    assert ids_and_size(at) == (OTHER, 0, 1)
    assert await of_nodes(at) == [OTHER] * 3


async def test_by_force_nothing_of_the_file_system_before_is_left(at: World) -> None:
    in_use(at.name_dir)
    await write_journal(at, info())
    await run(at, force=True)
    assert ids_and_size(at) == (OTHER, 0, 1)
    assert await of_nodes(at) == [OTHER] * 3
    assert await at.journal_ops(OTHER) == []


async def test_a_journal_that_exists_is_erased_only_by_force(at: World) -> None:
    await write_journal(at, info())
    with pytest.raises(ExitWith, match="formatting stopped at the journal ns1") as refused:
        await run(at)
    assert (refused.value.code, "No name directory was changed" in refused.value.message) == (
        1,
        True,
    )
    assert not at.name_dir.exists()
    assert len(await at.journal_ops(info())) == 2


async def test_a_node_that_is_away_stops_it(at: World) -> None:
    await at.nodes.stop(2)
    with pytest.raises(ExitWith, match="All JournalNodes must be up"):
        await run(at, force=True)
    assert not at.name_dir.exists()


async def test_a_file_system_that_is_here_is_erased_only_by_force(at: World) -> None:
    in_use(at.name_dir)
    before = snapshot(at.name_dir)
    with pytest.raises(NotEmpty):
        await run(at)
    assert snapshot(at.name_dir) == before
    assert await of_nodes(at) == [None] * 3


def test_ids_are_drawn_anew_but_for_the_cluster_that_is_given() -> None:
    one, other = (new_namespace_info(given, layout_version=-66) for given in (None, "CID-given"))
    assert (one.layout_version, one.ctime, other.cluster_id) == (-66, 0, "CID-given")
    assert one.cluster_id.startswith("CID-")
    assert one.namespace_id != other.namespace_id
    assert one.namespace_id > 0 < other.namespace_id
    assert one.block_pool_id != other.block_pool_id
