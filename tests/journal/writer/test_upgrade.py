"""The upgrade family through a writer and real nodes (DFSUpgradeWithHA, Rollback)."""

from dataclasses import replace

import pytest

from journal.errors import QuorumLost
from journal.model import TxId
from tests.journal.writer import journal_cluster

UPGRADED = replace(journal_cluster.NAMESPACE, ctime=99, layout_version=-67)


def previous(nodes: journal_cluster.Nodes) -> list[bool]:
    return [(nodes.current(i).parent / "previous").is_dir() for i in range(3)]


@pytest.mark.row(
    "8.7 DFSUpgradeWithHA",
    because="four tests of one class: upgrade, finalize on either NameNode, roll back",
)
async def test_upgrade_and_roll_back_on_all_nodes(nodes: journal_cluster.Nodes) -> None:
    writer = nodes.writer()
    await writer.become_writer()
    await journal_cluster.write_segment(writer, 1, 3)
    assert await writer.upgrades.ctime() == 0
    assert not await writer.upgrades.can_roll_back(journal_cluster.NAMESPACE.layout_version)
    await writer.upgrades.pre_upgrade()
    await writer.upgrades.upgrade(UPGRADED)
    assert previous(nodes) == [True] * 3
    assert await writer.upgrades.ctime() == 99
    await journal_cluster.write_segment(writer, 4, 6)
    assert await writer.upgrades.can_roll_back(journal_cluster.NAMESPACE.layout_version)
    await writer.upgrades.roll_back()
    await writer.close()
    assert previous(nodes) == [False] * 3
    assert await nodes.recover() == (2, 3)
    successor = nodes.writer()
    await successor.become_writer()
    assert await successor.upgrades.ctime() == 0
    await journal_cluster.write_segment(successor, 4, 5)
    await successor.close()


@pytest.mark.row("8.7 DFSUpgradeWithHA")
async def test_finalize_and_discard(nodes: journal_cluster.Nodes) -> None:
    writer = nodes.writer()
    await writer.become_writer()
    for first in (1, 4, 7):
        await journal_cluster.write_segment(writer, first, first + 2)
    await writer.upgrades.pre_upgrade()
    await writer.upgrades.upgrade(UPGRADED)
    await writer.upgrades.finalize()
    assert previous(nodes) == [False] * 3
    with pytest.raises(QuorumLost, match="inside"):
        await writer.upgrades.discard_segments(TxId(5))
    await writer.upgrades.discard_segments(TxId(4))
    await writer.close()
    for i in range(3):
        assert nodes.finalized(i)[0] == (1, 3)
        assert len(list(nodes.current(i).glob("*.trash"))) == 2
    assert await nodes.recover() == (2, 3)


async def test_a_majority_is_enough_and_needed(nodes: journal_cluster.Nodes) -> None:
    writer = nodes.writer()
    await writer.become_writer()
    await journal_cluster.write_segment(writer, 1, 3)
    await nodes.stop(0)
    await writer.upgrades.pre_upgrade()
    await writer.upgrades.upgrade(UPGRADED)
    assert previous(nodes) == [False, True, True]
    await nodes.stop(1)
    with pytest.raises(QuorumLost, match="majority"):
        await writer.upgrades.finalize()
    await writer.close()


@pytest.mark.row("8.7 RollingUpgradeRollback", "8.7 RollingUpgradeWithQJM")
async def test_rolling_upgrade_with_qjm_discards_on_all_nodes_and_goes_on(
    nodes: journal_cluster.Nodes,
) -> None:
    """RollingUpgradeWithQJM: the namespace is rolled back to the marker, and new edits go on."""
    upgraded = nodes.writer()
    await upgraded.become_writer()
    await journal_cluster.write_segment(upgraded, 1, 3, "kept")
    await journal_cluster.write_segment(upgraded, 4, 6, "upgraded")
    await upgraded.start_segment(TxId(7))
    await upgraded.write(TxId(7), 1, journal_cluster.edits(7, 7, "upgraded"))
    await upgraded.settle(timeout_seconds=30)
    await upgraded.close()
    rolled_back = nodes.writer()
    assert (await rolled_back.become_writer()).last_txid == 7
    await rolled_back.upgrades.discard_segments(TxId(4))
    await rolled_back.close()
    for i in range(3):
        assert nodes.finalized(i)[:1] == [(1, 3)]
        trash = {path.name[:25] for path in nodes.current(i).glob("*.trash")}
        assert f"edits_{4:019d}" in trash
    writer = nodes.writer()
    assert (await writer.become_writer()).last_txid == 3
    await journal_cluster.write_segment(writer, 4, 8, "new")
    await writer.close()
    assert await nodes.read_all() == journal_cluster.edits(1, 3, "kept") + journal_cluster.edits(
        4, 8, "new"
    )
