"""TestQuorumJournalManager: real writers, real nodes, and requests lost at the right moment."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from journal.errors import QuorumLost
from journal.model import TxId
from journal.storage.files import Files, OpenFile, RealFiles
from tests.journal.writer.journal_cluster import JOURNAL, edits, formatted_nodes, write_segment
from tests.journal.writer.proxy import Judge, always_pass, behind_proxies
from tests.journal.writer.test_scenarios import Rig, lose, write_on

REJOINING = ("ResumeSegment", "CatchUp")
WRITING = ("StartLogSegment", "Write", "FinalizeLogSegment", *REJOINING)
EVERYTHING = ("GetJournalState", "NewEpoch", "PrepareRecovery", "AcceptRecovery", *WRITING)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with formatted_nodes(tmp_path) as nodes, behind_proxies(nodes.addresses) as proxies:
        yield Rig(nodes, proxies)


def files(rig: Rig, i: int) -> set[str]:
    folder = rig.nodes.current(i)
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def in_progress(first: int) -> str:
    return f"edits_inprogress_{first:019d}"


async def goes_on(rig: Rig, last: int) -> None:
    """Check that the next writer writes behind it, and everything can be read."""
    writer = rig.writer()
    assert (await writer.become_writer()).last_txid == last
    await write_segment(writer, last + 1, last + 3)
    await writer.close()


async def out_of_sync_at_beginning(rig: Rig, k: int) -> int:
    """``k`` has segment 4 with one edit, ``k + 1`` an empty one, ``k + 2`` none; JN2 is stopped."""
    empty, without = (k + 1) % 3, (k + 2) % 3
    writer = rig.writer()
    await writer.become_writer()
    await write_segment(writer, 1, 3)
    await writer.settle(timeout_seconds=30)
    judges: list[Judge] = [always_pass] * 3
    judges[empty], judges[without] = lose("Write", *REJOINING), lose(*WRITING)
    rig.arm(*judges)
    await writer.start_segment(TxId(4))
    with pytest.raises(QuorumLost, match=r"writing transactions 4-4 needs 2 of 3"):
        await writer.write(TxId(4), 1, edits(4, 4))
    await writer.settle(timeout_seconds=30)
    await writer.close()
    rig.heal()
    held = [in_progress(4) in files(rig, i) for i in range(3)]
    assert [held[k], held[empty], held[without]] == [True, True, False]
    await rig.nodes.stop(2)
    return await rig.recover(0, 1)


@pytest.mark.row("8.4 testOutOfSyncAtBeginningOfSegment0")
async def test_out_of_sync_at_beginning_of_segment0(rig: Rig) -> None:
    assert await out_of_sync_at_beginning(rig, 0) == 4
    rig.nodes.ensure_recovered(4, 4)
    await goes_on(rig, 4)


@pytest.mark.row("8.4 testOutOfSyncAtBeginningOfSegment1")
async def test_out_of_sync_at_beginning_of_segment1(rig: Rig) -> None:
    assert await out_of_sync_at_beginning(rig, 1) == 4
    rig.nodes.ensure_recovered(4, 4)
    await goes_on(rig, 4)


@pytest.mark.row("8.4 testOutOfSyncAtBeginningOfSegment2")
async def test_out_of_sync_at_beginning_of_segment2(rig: Rig) -> None:
    assert await out_of_sync_at_beginning(rig, 2) == 3
    rig.nodes.ensure_recovered(1, 3)
    await goes_on(rig, 3)


@pytest.mark.row("8.4 testChangeWritersLogsInSync")
async def test_change_writers_logs_in_sync(rig: Rig) -> None:
    await rig.leave_open([3, 3, 3])
    assert await rig.recover(0, 1, 2) == 3
    rig.nodes.ensure_recovered(1, 3)


async def out_of_sync(rig: Rig, absent: int) -> int:
    """Open ends 3, 4 and 5, and one node absent."""
    await rig.leave_open([3, 4, 5])
    await rig.nodes.stop(absent)
    last = await rig.recover(*({0, 1, 2} - {absent}))
    rig.nodes.ensure_recovered(1, last)
    return last


@pytest.mark.row("8.4 testChangeWritersLogsOutOfSync1")
async def test_change_writers_logs_out_of_sync1(rig: Rig) -> None:
    assert await out_of_sync(rig, 0) == 5


@pytest.mark.row("8.4 testChangeWritersLogsOutOfSync2")
async def test_change_writers_logs_out_of_sync2(rig: Rig) -> None:
    assert await out_of_sync(rig, 1) == 5


@pytest.mark.row("8.4 testChangeWritersLogsOutOfSync3")
async def test_change_writers_logs_out_of_sync3(rig: Rig) -> None:
    assert await out_of_sync(rig, 2) == 4


@pytest.mark.row("8.4 testMissFinalizeAndNextStart")
async def test_miss_finalize_and_next_start(rig: Rig) -> None:
    """JN0 misses the end of 1-3 and the start of 4; JN1 fails at 4."""
    writer = rig.writer()
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    await writer.write(TxId(1), 3, edits(1, 3))
    await writer.settle(timeout_seconds=30)
    rig.arm(lose("FinalizeLogSegment", "StartLogSegment", *REJOINING), *[always_pass] * 2)
    await writer.finalize_segment(TxId(3))
    await writer.start_segment(TxId(4))
    await writer.settle(timeout_seconds=30)
    rig.proxies[1].arm(lose("Write", *REJOINING))
    with pytest.raises(QuorumLost, match="the request was lost"):
        await writer.write(TxId(4), 1, edits(4, 4))
    await writer.close()
    rig.heal()
    assert in_progress(1) in files(rig, 0)
    assert await rig.recover(0, 1) == 3
    rig.nodes.ensure_recovered(1, 3)


@pytest.mark.row("8.4 testRecoverAfterIncompleteRecovery")
async def test_recover_after_incomplete_recovery(rig: Rig) -> None:
    """First without JN2, and every finalize fails; then without JN0: 4, although JN2 has 5."""
    await rig.leave_open([3, 4, 5])
    with pytest.raises(QuorumLost, match=r"finaliz.* needs 2 of 3"):
        await rig.recover(0, 1, without=("FinalizeLogSegment",))
    assert rig.nodes.finalized(0) == rig.nodes.finalized(1) == []
    assert await rig.recover(1, 2) == 4
    rig.nodes.ensure_recovered(1, 4)
    assert await rig.nodes.read_all() == edits(1, 4)


async def edge_state(rig: Rig) -> None:
    """E0: 1-100 everywhere; JN0 alone has 101, and has accepted a recovery to 101 that died."""
    await write_on(rig, "a", 1, 100)
    await rig.leave_open([101, 0, 0], tag="lone")
    writer = rig.writer()
    unheard = lose("NewEpoch", "PrepareRecovery", "AcceptRecovery")
    rig.arm(always_pass, lose("AcceptRecovery"), unheard)
    with pytest.raises(QuorumLost, match=r"accept.* needs 2 of 3"):
        await writer.become_writer()
    await writer.settle(timeout_seconds=30)
    await writer.close()
    rig.heal()
    assert {in_progress(101), "paxos/101"} <= files(rig, 0)
    assert f"{in_progress(101)}.empty" in files(rig, 1)
    assert not any(name.startswith("paxos/") for i in (1, 2) for name in files(rig, i))


@pytest.mark.row("8.4 testNewerVersionOfSegmentWins")
async def test_newer_version_of_segment_wins(rig: Rig) -> None:
    """Recovered to 100 by JN1 and JN2, 101-150 written there; then JN0 comes back."""
    await edge_state(rig)
    rig.arm(lose(*EVERYTHING), always_pass, always_pass)
    newer = rig.writer()
    assert (await newer.become_writer()).last_txid == 100
    await newer.start_segment(TxId(101))
    await newer.write(TxId(101), 50, edits(101, 150, "newer"))
    await newer.close()
    assert await rig.recover(0, 1, 2) == 150
    rig.nodes.ensure_recovered(101, 150)
    assert await rig.nodes.read_all() == edits(1, 100, "a") + edits(101, 150, "newer")


@pytest.mark.row("8.4 testNewerVersionOfSegmentWins2")
async def test_newer_version_of_segment_wins2(rig: Rig) -> None:
    """Recovered to 100 by JN1 and JN2; JN0 is swapped in for JN1, and 101-150 written."""
    await edge_state(rig)
    rig.arm(lose(*EVERYTHING), always_pass, always_pass)
    newer = rig.writer()
    assert (await newer.become_writer()).last_txid == 100
    await newer.settle(timeout_seconds=30)
    rig.arm(always_pass, lose(*EVERYTHING), always_pass)
    await newer.start_segment(TxId(101))
    await newer.write(TxId(101), 50, edits(101, 150, "newer"))
    await newer.close()
    assert "paxos/101" not in files(rig, 0)
    assert await rig.recover(0, 1) == 150
    rig.nodes.ensure_recovered(101, 150)
    assert await rig.nodes.read_all() == edits(1, 100, "a") + edits(101, 150, "newer")


class NoDecisions:
    """A disk that fails when a decision of a recovery is to be written."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any operation of real files
        return getattr(RealFiles(), name)

    def create(self, path: Path) -> OpenFile:
        if "paxos" in path.parts:
            raise OSError(5, "Input/output error", str(path))
        return RealFiles().create(path)


@pytest.mark.row("8.4 testCrashBetweenSyncLogAndPersistPaxosData")
async def test_crash_between_sync_log_and_persist_paxos_data(rig: Rig) -> None:
    """4 was accepted by JN0; a second recovery decides 5, and all end before they persist that."""
    await rig.leave_open([3, 4, 5])
    rig.arm(always_pass, lose("AcceptRecovery"), lose(*EVERYTHING))
    first = rig.writer()
    with pytest.raises(QuorumLost, match=r"accept.* needs 2 of 3"):
        await first.become_writer()
    await first.settle(timeout_seconds=30)
    await first.close()
    assert "paxos/1" in files(rig, 0)
    for daemon in rig.nodes.daemons:
        assert daemon is not None
        owner = daemon.node.find(JOURNAL)
        assert owner is not None
        owner.disk._files = cast(Files, NoDecisions())
    rig.arm(lose("PrepareRecovery"), always_pass, always_pass)
    second = rig.writer()
    with pytest.raises(QuorumLost, match="recovery of segment 1-5"):
        await second.become_writer()
    await second.settle(timeout_seconds=30)
    await second.close()
    await rig.nodes.stop()
    await rig.nodes.start()
    assert "paxos/1" in files(rig, 0)
    assert not any("paxos/1" in files(rig, i) for i in (1, 2))
    last = await rig.recover(0, 1)
    assert last >= 4
    rig.nodes.ensure_recovered(1, last)
    await rig.recover(1, 2)
    assert await rig.nodes.read_all() == edits(1, last)
