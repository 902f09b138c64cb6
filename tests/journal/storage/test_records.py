"""The side record of a segment file, and what happens to a file that does not match it."""

from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from struct import pack
from zlib import crc32

import pytest

from journal.core.replies import Manifest, Prepared, Promised
from journal.core.requests import AcceptRecovery, GetEditLogManifest, PrepareRecovery, ReportDamage
from journal.errors import InvariantBroken, StorageFailed
from journal.model import LAYOUT_VERSION, NO_EPOCH, Epoch, Segment, TxId
from journal.storage import layout
from journal.storage.records import SegmentRecord, delimited, parse_record, record_bytes
from journal.storage.small_files import committed_bytes
from tests.journal.core import requests_of
from tests.journal.core.requests_of import segment

FIRST = TxId(1)
OPEN = layout.in_progress_name(FIRST)
CLOSED = Segment(FIRST, TxId(5), finalized=True).name()


def written(root: Path, epoch: int = 1, committed: int | None = None) -> requests_of.LocalJournal:
    journal, writer = requests_of.formatted(root), requests_of.Writer(epoch)
    journal.ask(writer.new_epoch())
    journal.ask(writer.start(1))
    journal.ask(writer.batch(1, 1, 3))
    writer.committed = committed
    journal.ask(writer.batch(1, 4, 5))
    return journal


def finalized(root: Path) -> requests_of.LocalJournal:
    journal = written(root)
    journal.ask(requests_of.Writer(1, 9).finalize(1, 5))
    return journal


def flip(path: Path, offset: int, bit: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= bit
    path.write_bytes(data)


def reopened(journal: requests_of.LocalJournal, root: Path) -> requests_of.LocalJournal:
    journal.close()
    return requests_of.LocalJournal(root)


@pytest.mark.parametrize("left", [None, b"2\n"], ids=["lost", "too old"])
@pytest.mark.parametrize("decided", [False, True], ids=["written", "decided"])
def test_a_promise_that_was_lost_lets_no_older_writer_in(
    tmp_path: Path, left: bytes | None, *, decided: bool
) -> None:
    """Remove the file, as from a mended disk; a new node has none either."""
    journal, later = finalized(tmp_path), requests_of.Writer(3)
    journal.ask(later.new_epoch())
    if decided:
        journal.ask(AcceptRecovery(later.stamp(), segment(1, 5, 1, finalized=True)))
    else:
        journal.ask(later.start(6))
    journal = reopened(journal, tmp_path)
    assert journal.state.promised == 3
    journal.close()
    promise = tmp_path / "current" / layout.PROMISE
    promise.unlink()
    if left is not None:
        promise.write_bytes(left)
    before = sorted(path.name for path in (tmp_path / "current").iterdir())
    with pytest.raises(StorageFailed, match=r"promises \d, while epoch 3 .*Restore the file"):
        requests_of.LocalJournal(tmp_path)
    assert sorted(path.name for path in (tmp_path / "current").iterdir()) == before


def ensure_has_no_vote(journal: requests_of.LocalJournal) -> None:
    """Check that it is in no list, not served, and refused by prepare, but not hidden."""
    assert journal.state.find(FIRST) is None
    assert journal.ask(requests_of.Writer(2).new_epoch()) == Promised(FIRST)
    with pytest.raises(StorageFailed, match="is damaged"):
        journal.ask(PrepareRecovery(requests_of.Writer(2).stamp(), FIRST))
    listed = journal.ask(GetEditLogManifest(FIRST, in_progress_ok=True))
    assert isinstance(listed, Manifest)
    assert listed.segments == ()
    for request in (requests_of.Writer(2, 1).finalize(1, 5, 1), requests_of.Writer(2, 2).start(1)):
        with pytest.raises(StorageFailed, match="is damaged"):
            journal.ask(request)


RECORD = SegmentRecord(FIRST, Epoch(3), LAYOUT_VERSION, TxId(5), b"d" * 32, 108)


@pytest.mark.parametrize("record", [RECORD, SegmentRecord(FIRST, Epoch(3))])
def test_a_record_reads_as_it_was_written_and_no_flipped_bit_passes(record: SegmentRecord) -> None:
    data = record_bytes(record)
    assert parse_record(Path("1"), FIRST, data) == record
    for offset in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[offset] ^= 1 << bit
            with pytest.raises(StorageFailed):
                parse_record(Path("1"), FIRST, bytes(flipped))
    for end in range(len(data)):
        with pytest.raises(StorageFailed):
            parse_record(Path("1"), FIRST, data[:end])
    with pytest.raises(StorageFailed, match="is about segment 1"):
        parse_record(Path("2"), TxId(2), data)
    no_message = delimited(b"\xff")
    with pytest.raises(StorageFailed, match=r"^1 is corrupt \("):
        parse_record(Path("1"), FIRST, no_message + pack(">I", crc32(no_message)))


def test_a_segment_keeps_its_writer_while_others_come_and_go(tmp_path: Path) -> None:
    journal = written(tmp_path)
    second = requests_of.Writer(2)
    journal.ask(second.new_epoch())
    journal.ask(second.start(9))  # 1-5 was recovered without us
    journal = reopened(journal, tmp_path)
    assert (journal.state.writer, journal.state.segments[FIRST].writer) == (2, 1)
    reply = journal.ask(PrepareRecovery(requests_of.Writer(3).stamp(), FIRST))
    assert isinstance(reply, Prepared)
    assert reply.segment == segment(1, 5)


def test_a_finalized_segment_needs_no_scan_at_start(tmp_path: Path) -> None:
    journal = finalized(tmp_path)
    flip(tmp_path / "current" / CLOSED, 40)  # only reading it all could see that
    journal = reopened(journal, tmp_path)
    assert journal.state.segments == {FIRST: segment(1, 5, finalized=True)}
    extent = journal.disk.extent(journal.state.segments[FIRST])
    assert extent.end == len(requests_of.segment_bytes(1, 5))
    assert not journal.state.damaged


def test_an_unreadable_record_of_a_finalized_segment_costs_only_a_scan(tmp_path: Path) -> None:
    journal = finalized(tmp_path)
    flip(tmp_path / "current/segments/1", 3)
    journal = reopened(journal, tmp_path)
    assert journal.state.segments[FIRST].digest == b""
    reply = journal.ask(PrepareRecovery(requests_of.Writer(2).stamp(), FIRST))
    assert isinstance(reply, Prepared)
    assert reply.segment == replace(segment(1, 5, finalized=True), writer=NO_EPOCH)


def test_files_that_hadoop_wrote_have_no_records(tmp_path: Path) -> None:
    """Use the node's last writer for the newest one only, as Hadoop does."""
    requests_of.formatted(tmp_path).close()
    current = tmp_path / "current"
    (current / OPEN).write_bytes(requests_of.segment_bytes(1, 5))
    (current / layout.in_progress_name(TxId(9))).write_bytes(requests_of.segment_bytes(9, 10))
    (current / layout.WRITER).write_text("4\n")
    (current / layout.PROMISE).write_text("4\n")
    segments = requests_of.LocalJournal(tmp_path).state.segments
    assert {first: held.writer for first, held in segments.items()} == {1: 0, 9: 4}


def test_an_adopted_copy_has_the_decided_writer(tmp_path: Path) -> None:
    journal, third = written(tmp_path), requests_of.Writer(3)
    journal.ask(third.new_epoch())
    journal.accept(third, segment(1, 4, 2), requests_of.segment_bytes(1, 4, 2))
    assert reopened(journal, tmp_path).state.segments[FIRST] == segment(1, 4, 2)


def test_a_kept_copy_has_the_decided_writer(tmp_path: Path) -> None:
    journal, third = written(tmp_path), requests_of.Writer(3)
    journal.ask(third.new_epoch())
    decided = replace(segment(1, 5), writer=Epoch(2))
    journal.ask(AcceptRecovery(third.stamp(), decided))
    assert reopened(journal, tmp_path).state.segments[FIRST] == decided


DAMAGE = {
    "an unreadable record": ("segments/1", 3, "checksum is wrong"),
    "a flipped header": (OPEN, 3, "its header says"),
    "an unreadable header": (OPEN, 7, "its header says"),
    "a flipped bit below what is committed": (OPEN, 40, "though 3 was committed"),
}


@pytest.mark.row("X8")
@pytest.mark.parametrize(("name", "offset", "why"), DAMAGE.values(), ids=list(DAMAGE))
def test_x08_damage_in_an_unclosed_segment_has_no_vote(
    tmp_path: Path, name: str, offset: int, why: str
) -> None:
    """Hadoop's scan skips a byte and goes on, and reports an end behind a hole."""
    journal = written(tmp_path, committed=3)
    flip(tmp_path / "current" / name, offset)
    journal = reopened(journal, tmp_path)
    assert why in journal.state.damaged[FIRST].why
    ensure_has_no_vote(journal)
    assert (tmp_path / "current" / OPEN).exists(), "evidence is kept"


def test_x08_an_unclosed_copy_that_was_fetched_whole_and_is_shorter_now(tmp_path: Path) -> None:
    journal, third = requests_of.formatted(tmp_path), requests_of.Writer(3)
    journal.ask(third.new_epoch())
    journal.accept(third, segment(1, 5, 2), requests_of.segment_bytes(1, 5, 2))
    path = tmp_path / "current" / OPEN
    path.write_bytes(requests_of.segment_bytes(1, 4, 2))
    journal = reopened(journal, tmp_path)
    assert "5 was its end once" in journal.state.damaged[FIRST].why


def test_a_torn_tail_behind_what_is_committed_is_cut(tmp_path: Path) -> None:
    journal = written(tmp_path, committed=3)
    path = tmp_path / "current" / OPEN
    path.write_bytes(path.read_bytes()[:-10])
    journal = reopened(journal, tmp_path)
    assert journal.state.segments == {FIRST: segment(1, 4)}
    assert path.read_bytes() == requests_of.segment_bytes(1, 4)
    # Others go on and commit more: our copy is short, and not damaged.
    journal.ask(requests_of.Writer(2, committed=9).new_epoch())
    journal.ask(PrepareRecovery(requests_of.Writer(2, committed=9).stamp(), FIRST))
    assert not reopened(journal, tmp_path).state.damaged


FINAL_DAMAGE = {
    "a flipped header": (lambda path: flip(path, 3), "its header says"),
    "a cut file": (lambda path: path.write_bytes(path.read_bytes()[:-1]), "bytes of"),
}


@pytest.mark.parametrize(("harm", "why"), FINAL_DAMAGE.values(), ids=list(FINAL_DAMAGE))
def test_x08_damage_of_a_finalized_segment_is_found_and_repaired(
    tmp_path: Path, harm: object, why: str
) -> None:
    journal = finalized(tmp_path)
    path = tmp_path / "current" / CLOSED
    harm(path)  # type: ignore[operator]
    journal = reopened(journal, tmp_path)
    assert why in journal.state.damaged[FIRST].why
    ensure_has_no_vote(journal)
    writer = requests_of.Writer(2, 10)
    for other in (segment(1, 5, 2), segment(1, 4)):
        with pytest.raises(InvariantBroken, match="is finalized"):
            journal.ask(AcceptRecovery(writer.stamp(), other))
    journal.accept(writer, segment(1, 5), requests_of.segment_bytes(1, 5))
    assert path.read_bytes() == requests_of.segment_bytes(1, 5)
    for found in (journal, reopened(journal, tmp_path)):
        assert found.state.segments == {FIRST: segment(1, 5, finalized=True)}
        assert not found.state.damaged
    assert not (tmp_path / "current" / OPEN).exists()


def test_x08_what_a_scan_reports_loses_its_vote_and_is_replaced(tmp_path: Path) -> None:
    journal = written(tmp_path)
    journal.ask(requests_of.Writer(2).new_epoch())
    journal.ask(ReportDamage(FIRST, "a test said so"))
    journal.ask(ReportDamage(TxId(99), "there is none"))
    assert list(journal.state.damaged) == [FIRST]
    assert journal.state.last_written == 5
    writer = requests_of.Writer(3)
    journal.ask(writer.new_epoch())
    with pytest.raises(StorageFailed, match="a test said so"):
        journal.ask(PrepareRecovery(writer.stamp(), FIRST))
    journal.accept(writer, segment(1, 6, 2), requests_of.segment_bytes(1, 6, 2))
    assert journal.state.segments == {FIRST: segment(1, 6, 2)}
    assert not journal.state.damaged


def test_a_fetched_header_of_another_layout_is_refused(tmp_path: Path) -> None:
    journal, third = requests_of.formatted(tmp_path), requests_of.Writer(3)
    journal.ask(third.new_epoch())
    decided: Segment = segment(1, 5, 2)
    with pytest.raises(ValueError, match="header says layout"):
        journal.accept(
            third, decided, b"\xff\xff\xff\xbe" + bytes(4) + requests_of.records(1, 5, 2)
        )


@pytest.mark.row("X14")
def test_x14_an_older_writers_edit_never_inherits_a_newer_epoch() -> None:
    """Killed, or cut off from power, at every operation of a start over one older edit."""
    root = Path("/j")
    for survives, fail_at in product((True, False), range(1, 40)):
        files = requests_of.MemoryFiles()
        journal = requests_of.formatted(root, files)
        journal.ask(requests_of.Writer(1).new_epoch())
        journal.ask(requests_of.Writer(1).start(1))
        journal.ask(requests_of.Writer(1, 0).batch(1, 1, 1))
        files.fail_at = files.operations + fail_at
        with suppress(requests_of.PowerCut):
            journal.ask(requests_of.Writer(2).start(1))
        files.cut_power(lambda survives=survives: survives)  # type: ignore[misc]
        held = requests_of.LocalJournal(root, files).state.segments.get(FIRST)
        assert held in (None, segment(1, 1)), f"cut at {fail_at}"


@pytest.mark.row("X18")
def test_x18_a_lost_committed_txid_breaks_no_recovery(tmp_path: Path) -> None:
    """Leave an older or an empty file: it is never synced, so a crash may do that."""
    journal = written(tmp_path, committed=3)
    journal.close()
    for left in (committed_bytes(TxId(1)), b""):
        (tmp_path / "current" / layout.COMMITTED).write_bytes(left)
        journal = requests_of.LocalJournal(tmp_path)
        writer = requests_of.Writer(journal.state.promised + 1)
        journal.ask(writer.new_epoch())
        prepared = journal.ask(PrepareRecovery(writer.stamp(), FIRST))
        assert isinstance(prepared, Prepared)
        assert prepared.segment == segment(1, 5)
        journal.accept(writer, segment(1, 5), requests_of.segment_bytes(1, 5))
        journal.close()
