"""Rows of Hadoop's TestJournal, by name, each with the set-up that the row gives."""

from dataclasses import replace
from pathlib import Path

import pytest

from journal.core.replies import Promised
from journal.core.requests import Format, PrepareRecovery
from journal.errors import BadRequest, OutOfSync, StorageFailed
from journal.model import NO_TXID, Epoch, NamespaceInfo, Segment, TxId
from journal.node.process.daemon import JournalNodeDaemon
from journal.node.settings import NodeSettings
from journal.storage import layout
from tests.journal.core import requests_of
from tests.journal.core.test_state import begun, names, newest
from tests.journal.node.process import node_and_client, running


def again(journal: requests_of.LocalJournal, root: Path) -> requests_of.LocalJournal:
    journal.close()
    return requests_of.LocalJournal(root)


@pytest.mark.row("8.1 testScanEditLog")
def test_scan_edit_log(tmp_path: Path) -> None:
    """Scan a future layout, and unknown ops: 1-5 in progress, then finalized."""
    journal, writer = requests_of.formatted(tmp_path), requests_of.Writer(1)
    journal.ask(writer.new_epoch())
    journal.ask(writer.start(1, layout=-1000))
    journal.ask(writer.batch(1, 1, 5))
    journal = again(journal, tmp_path)
    expected = replace(requests_of.segment(1, 5), layout_version=-1000)
    assert journal.state.segments == {1: expected}
    second = requests_of.Writer(2)
    journal.ask(second.new_epoch())
    journal.ask(second.finalize(1, 5, 1))
    for one in (journal, again(journal, tmp_path)):
        (held,) = one.state.segments.values()
        assert (held.first, held.last, held.finalized) == (1, 5, True)
    one.close()


@pytest.mark.row("8.1 testEmptyEditsInProgressMovedAside")
@pytest.mark.parametrize("recorded", [False, True])
def test_empty_edits_in_progress_moved_aside(tmp_path: Path, *, recorded: bool) -> None:
    """Overwrite the whole file with 0xFF.

    Hadoop takes that for a file that never held an edit.  So do we without a record of ours; with
    one it is known that the header was there: the copy has no vote until a peer has mended it.
    """
    journal, writer = begun(tmp_path, last=5)
    journal.ask(writer.finalize(1, 5))
    journal.ask(writer.start(6))
    journal.ask(writer.batch(6, 6, 10))
    journal.close()
    path = tmp_path / "current" / f"edits_inprogress_{6:019}"
    path.write_bytes(b"\xff" * path.stat().st_size)
    if not recorded:
        (tmp_path / "current" / layout.SEGMENTS / "6").unlink()
    journal = requests_of.LocalJournal(tmp_path)
    if recorded:
        assert 6 in journal.state.damaged
        with pytest.raises(StorageFailed, match="damaged"):
            journal.ask(PrepareRecovery(requests_of.Writer(2).stamp(), TxId(6)))
    else:
        assert f"{path.name}.empty" in names(tmp_path)
        assert path.name not in names(tmp_path)
        assert newest(journal, requests_of.Writer(2)) == 1
    journal.close()


@pytest.mark.row("8.1 testMaintainCommittedTxId")
def test_maintain_committed_tx_id(tmp_path: Path) -> None:
    journal, writer = requests_of.formatted(tmp_path), requests_of.Writer(1, committed=0)
    journal.ask(writer.new_epoch())
    journal.ask(writer.start(1))
    journal.ask(writer.batch(1, 1, 3))
    assert journal.state.committed == 0
    writer.committed = 3
    journal.ask(writer.batch(1, 4, 6))
    assert journal.state.committed == 3
    assert again(journal, tmp_path).state.committed == 3


@pytest.mark.row("8.1 testRestartJournal")
def test_restart_journal(tmp_path: Path) -> None:
    journal, _ = begun(tmp_path, last=2)
    before = journal.state
    journal = again(journal, tmp_path)
    assert journal.state.namespace == before.namespace == requests_of.NAMESPACE
    assert journal.state.incarnation == before.incarnation
    assert (journal.state.promised, journal.state.writer) == (1, 1)
    assert newest(journal, requests_of.Writer(2)) == 1
    journal.close()


@pytest.mark.row("8.1 testFormatResetsCachedValues")
def test_format_resets_cached_values(tmp_path: Path) -> None:
    journal, writer = requests_of.formatted(tmp_path), requests_of.Writer(12345, committed=7)
    journal.ask(writer.new_epoch())
    journal.ask(writer.start(1))
    assert (journal.state.promised, journal.state.writer) == (12345, 12345)
    other = NamespaceInfo(-65, 6789, "other", 0)
    asked = Format(other, force=True, incarnation=requests_of.LIFE, seen_promised=Epoch(12345))
    journal.ask(replace(asked, seen_namespace_id=requests_of.NAMESPACE.namespace_id))
    for one in (journal, again(journal, tmp_path)):
        assert (one.state.promised, one.state.writer) == (0, 0)
        assert (one.state.namespace, one.state.committed) == (other, NO_TXID)
        assert not one.state.segments
        assert one.state.open is None
    one.close()


@pytest.mark.row("8.1 testFormatNonEmptyStorageDirectories")
@pytest.mark.parametrize("force", [False, True])
def test_format_non_empty_storage_directories(tmp_path: Path, *, force: bool) -> None:
    """Cover Hadoop's WhenforceOptionIsTrue, too."""
    journal, _ = begun(tmp_path, last=2)
    again_please = Format(
        requests_of.NAMESPACE,
        force=force,
        incarnation=requests_of.LIFE,
        seen_promised=journal.state.promised,
        seen_namespace_id=requests_of.NAMESPACE.namespace_id,
    )
    if force:
        journal.ask(again_please)
        assert not any(name.startswith("edits") for name in names(tmp_path))
    else:
        before = names(tmp_path)
        with pytest.raises(BadRequest, match="current directory is not empty"):
            journal.ask(again_please)
        assert names(tmp_path) == before
    journal.close()


@pytest.mark.row("8.1 testNewEpochAtBeginningOfSegment")
def test_new_epoch_at_beginning_of_segment(tmp_path: Path) -> None:
    journal, writer = begun(tmp_path, last=2)
    journal.ask(writer.finalize(1, 2))
    journal.ask(writer.start(3))
    assert journal.ask(requests_of.Writer(2).new_epoch()) == Promised(TxId(1))
    journal.close()


@pytest.mark.row("8.1 testJournalLocking")
async def test_journal_locking(tmp_path: Path) -> None:
    second = JournalNodeDaemon(NodeSettings(folder=tmp_path))
    async with node_and_client(tmp_path) as (_, client):
        await client.format()
        with pytest.raises(StorageFailed, match="Cannot lock storage"):
            await second.start()
    async with running(tmp_path):
        pass


@pytest.mark.row("8.1 testFinalizeWhenEditsAreMissed")
def test_finalize_when_edits_are_missed(tmp_path: Path) -> None:
    journal, writer = begun(tmp_path, last=3)
    with pytest.raises(OutOfSync, match="but only written up to txid 3"):
        journal.ask(writer.finalize(1, 6))
    journal = again(journal, tmp_path)
    with pytest.raises(OutOfSync, match="disk only contains up to txid 3"):
        journal.ask(requests_of.Writer(1).finalize(1, 6))
    journal.close()
    assert Segment(TxId(1), TxId(3), finalized=True).name() not in names(tmp_path)


@pytest.mark.row("X18")
@pytest.mark.parametrize("left", [b"", b"123", (3).to_bytes(8, "big")], ids=["0", "3", "8"])
def test_x18_a_committed_txid_file_of_any_length(tmp_path: Path, left: bytes) -> None:
    """Empty is unknown, three bytes are an error that names the file, eight are a number."""
    journal, _ = begun(tmp_path, last=5)
    journal.close()
    (tmp_path / "current" / layout.COMMITTED).write_bytes(left)
    if len(left) == 3:
        with pytest.raises(StorageFailed, match="committed-txid is corrupt"):
            requests_of.LocalJournal(tmp_path)
        return
    journal = requests_of.LocalJournal(tmp_path)
    assert journal.state.committed == (3 if left else NO_TXID)
    assert newest(journal, requests_of.Writer(2)) == 1
    journal.close()
