"""What a node may take over from a peer, and what it never touches."""

import gc
from pathlib import Path

import pytest

from journal.core.replies import Done, Fetch, FetchFinalized
from journal.core.requests import AcceptRecovery, AdoptFinalized, ReportDamage
from journal.core.sync import find_missing, has_hole
from journal.errors import BadRequest, InvariantBroken, OutOfSync
from journal.model import Segment, TxId
from journal.storage.files import RealFiles
from tests.journal.core import requests_of
from tests.journal.core.requests_of import segment


def final(first: int, last: int, writer: int = 1) -> Segment:
    return segment(first, last, writer, finalized=True)


def adopt(
    journal: requests_of.LocalJournal,
    wanted: Segment,
    writer: int = 1,
    stalled_at: int | None = None,
) -> None:
    """Both halves of a sync, with the download in between."""
    at = None if stalled_at is None else TxId(stalled_at)
    if isinstance(journal.ask(AdoptFinalized(wanted, stalled_at=at)), FetchFinalized):
        download = journal.disk.begin_fetch(wanted)
        download.append(requests_of.segment_bytes(wanted.first, wanted.last, writer))
        download.finish()
        assert journal.ask(AdoptFinalized(wanted, fetched=True, stalled_at=at)) == Done()


def started(root: Path, epoch: int = 1) -> tuple[requests_of.LocalJournal, requests_of.Writer]:
    journal, writer = requests_of.formatted(root), requests_of.Writer(epoch)
    journal.ask(writer.new_epoch())
    return journal, writer


def live(root: Path) -> set[str]:
    names = {path.name for path in (root / "current").glob("edits_*")}
    return {name for name in names if "." not in name}


def test_the_open_segment_is_the_writers_business(tmp_path: Path) -> None:
    journal, writer = started(tmp_path)
    journal.ask(writer.start(4))
    journal.ask(writer.batch(4, 4, 5))
    for theirs in (final(4, 5), final(4, 9), final(7, 9)):
        assert not find_missing(journal.state, [theirs]).segments
        with pytest.raises(OutOfSync):
            journal.ask(AdoptFinalized(theirs))
    adopt(journal, final(1, 3))
    assert list(journal.state.segments) == [1]
    journal.ask(writer.batch(4, 6, 7))


def test_a_segment_whose_end_was_missed_is_not_open_for_ever(tmp_path: Path) -> None:
    """Close what is finalized elsewhere and gets no more edits: the node rejoined too late."""
    journal, writer = started(tmp_path)
    journal.ask(writer.start(1))
    for at in (1, 3):
        with pytest.raises(OutOfSync):
            journal.ask(AdoptFinalized(final(1, 3), stalled_at=TxId(at + 1)))
        asked = AdoptFinalized(final(1, 3), stalled_at=TxId(at))
        if at == 1:
            assert isinstance(journal.ask(asked), FetchFinalized)
            assert journal.state.open is not None, "it goes on until the bytes are there"
            journal.ask(writer.batch(1, 1, 2))
    adopt(journal, final(1, 3), stalled_at=3)
    assert live(tmp_path) == {final(1, 3).name()}
    journal.ask(writer.finalize(1, 3))
    journal.ask(writer.start(4))


def test_nothing_is_kept_of_the_file_of_a_segment_that_was_taken_over(tmp_path: Path) -> None:
    journal, _ = started(tmp_path)

    def kept() -> int:
        gc.collect()
        return sum(isinstance(one, type(probe)) for one in gc.get_objects())

    probe = RealFiles().create(tmp_path / "probe")
    probe.close()
    before = kept()
    for first in (1, 4, 7):
        adopt(journal, final(first, first + 2))
    assert kept() == before


def test_equal_bytes_are_finalized_in_place(tmp_path: Path) -> None:
    journal, writer = started(tmp_path)
    journal.ask(writer.start(1))
    journal.ask(writer.batch(1, 1, 3))
    journal.ask(requests_of.Writer(2).new_epoch())
    assert journal.ask(AdoptFinalized(final(1, 3))) == Done()
    assert live(tmp_path) == {final(1, 3).name()}


def test_the_decision_about_a_segment_ends_with_its_finalization(tmp_path: Path) -> None:
    journal, writer = started(tmp_path)
    journal.ask(writer.start(1))
    journal.ask(writer.batch(1, 1, 3))
    second = requests_of.Writer(2)
    journal.ask(second.new_epoch())
    journal.ask(AcceptRecovery(second.stamp(), segment(1, 3)))
    adopt(journal, final(1, 5, 7), writer=7)
    assert not journal.state.decisions
    journal.close()
    again = requests_of.LocalJournal(tmp_path)
    assert live(tmp_path) == {final(1, 5).name()}
    assert not again.state.decisions


def test_a_final_segment_replaces_all_that_was_left_unfinished_in_its_place(tmp_path: Path) -> None:
    journal, writer = started(tmp_path)
    for first, last in ((2, 3), (4, 5), (6, 7)):
        journal.ask(writer.start(first))
        journal.ask(writer.batch(first, first, last))
    second = requests_of.Writer(2)
    journal.ask(second.new_epoch())
    journal.ask(AcceptRecovery(second.stamp(), segment(4, 5)))
    journal.ask(ReportDamage(TxId(6), "rot"))
    adopt(journal, final(1, 6))
    assert live(tmp_path) == {final(1, 6).name()}
    assert (list(journal.state.segments), journal.state.damaged) == ([1], {})
    journal.close()
    again = requests_of.LocalJournal(tmp_path).state
    assert (again.segments, again.damaged, again.decisions) == ({1: final(1, 6)}, {}, {})


def test_a_recovery_that_ends_later_agrees_with_what_was_brought(tmp_path: Path) -> None:
    journal, writer = started(tmp_path)
    journal.ask(writer.start(1))
    journal.ask(writer.batch(1, 1, 2))
    second = requests_of.Writer(2)
    journal.ask(second.new_epoch())
    asked = AcceptRecovery(second.stamp(), segment(1, 3))
    assert isinstance(journal.ask(asked), Fetch)
    adopt(journal, final(1, 3))
    journal.accept(second, segment(1, 3), requests_of.segment_bytes(1, 3))
    journal.ask(second.finalize(1, 3, 1))
    assert live(tmp_path) == {final(1, 3).name()}


def test_contradictions_are_reported_and_nothing_is_touched(tmp_path: Path) -> None:
    journal, writer = started(tmp_path)
    for first in (1, 4):
        journal.ask(writer.start(first))
        journal.ask(writer.batch(first, first, first + 2))
        journal.ask(writer.finalize(first, first + 2))
    journal.ask(AdoptFinalized(final(1, 3)))  # ours, again: nothing to do
    for theirs in (final(1, 3, 2), final(1, 4), final(2, 5)):
        with pytest.raises(InvariantBroken):
            journal.ask(AdoptFinalized(theirs))
    found = find_missing(
        journal.state, [final(1, 3, 2), final(7, 9), final(7, 9, 2), final(10, 11)]
    )
    assert found.forked == (1, 7)
    assert found.segments == (final(10, 11),)
    assert live(tmp_path) == {final(1, 3).name(), final(4, 6).name()}


def test_a_committed_edit_is_never_replaced_by_a_shorter_segment(tmp_path: Path) -> None:
    journal, writer = started(tmp_path)
    journal.ask(writer.start(1))
    journal.ask(writer.batch(1, 1, 5))
    writer.committed = 5
    journal.ask(writer.batch(1, 6, 6))
    journal.ask(requests_of.Writer(2).new_epoch())
    with pytest.raises(InvariantBroken, match="already-committed"):
        journal.ask(AdoptFinalized(final(1, 4)))


def test_what_follows_a_final_segment_makes_an_older_tail_void(tmp_path: Path) -> None:
    """We have 3-6 of an older writer; 3-5 became final elsewhere, and another 6 was committed."""
    journal, writer = started(tmp_path)
    journal.ask(writer.start(3))
    journal.ask(writer.batch(3, 3, 6))
    newer = requests_of.Writer(2)
    journal.ask(newer.new_epoch())
    journal.ask(newer.start(6))
    journal.ask(newer.batch(6, 6, 6))
    newer.committed = 6
    journal.ask(newer.finalize(6, 6))
    assert isinstance(journal.ask(AdoptFinalized(final(3, 5))), FetchFinalized)


def test_a_fresh_journal_takes_nothing_before_a_writer_has_spoken(tmp_path: Path) -> None:
    """Refuse: a peer not yet formatted anew has the edits that were to be destroyed."""
    journal = requests_of.formatted(tmp_path)
    assert not find_missing(journal.state, [final(1, 3)]).segments
    with pytest.raises(OutOfSync):
        journal.ask(AdoptFinalized(final(1, 3)))


def test_nonsense_is_refused(tmp_path: Path) -> None:
    journal, _ = started(tmp_path)
    no_digest = Segment(TxId(1), TxId(3), finalized=True)
    for theirs in (segment(1, 3), no_digest, Segment(TxId(3), TxId(1), True, b"d" * 32)):
        with pytest.raises(BadRequest):
            journal.ask(AdoptFinalized(theirs))


def test_holes_are_seen(tmp_path: Path) -> None:
    journal, writer = started(tmp_path)
    assert not has_hole(journal.state)
    journal.ask(writer.start(4))
    journal.ask(writer.batch(4, 4, 6))
    assert not has_hole(journal.state)
    journal.ask(writer.start(7))
    assert has_hole(journal.state), "segment 4 was left unfinished"
    assert journal.ask(AdoptFinalized(final(4, 6))) == Done()
    assert not has_hole(journal.state)
    writer.committed = 9
    journal.ask(writer.batch(7, 7, 7))
    assert has_hole(journal.state), "9 is on a quorum and we have 7"


def test_a_crash_at_any_operation_leaves_one_file_and_the_right_edits() -> None:
    """Cut the power between any two operations: the old copy or the new one, never both."""
    cuts, root = 0, Path("/jn")
    for at in range(1, 60):
        for keep_all in (False, True):
            files = requests_of.MemoryFiles()
            journal, writer = requests_of.LocalJournal(root, files), requests_of.Writer(1)
            journal = requests_of.formatted(root, files)
            journal.ask(writer.new_epoch())
            journal.ask(writer.start(1))
            journal.ask(writer.batch(1, 1, 3))
            journal.ask(requests_of.Writer(2).new_epoch())
            files.fail_at = files.operations + at
            try:
                adopt(journal, final(1, 3, 5), writer=5)
            except requests_of.PowerCut:
                cuts += 1
                files.cut_power(lambda keep=keep_all: keep)  # type: ignore[misc]
            files.fail_at = None
            again = requests_of.LocalJournal(root, files)
            held = again.state.find(TxId(1))
            assert held is not None
            assert held.last == 3
            expected = final(1, 3, 5) if held.finalized else segment(1, 3, 1)
            assert again.disk.digest(held).digest == expected.digest
            names = [name for name in files.names(root / "current") if name.startswith("edits_")]
            assert len([name for name in names if "." not in name]) == 1, names
            assert not files.names(root / "edits.sync")
    assert cuts > 10


def test_after_a_crash_nothing_is_left_across_a_final_segment() -> None:
    """Let the next round find what is missing, wherever the power has failed."""
    root, cuts = Path("/jn"), 0
    for at in range(1, 60):
        files = requests_of.MemoryFiles()
        journal, writer = requests_of.formatted(root, files), requests_of.Writer(1)
        journal.ask(writer.new_epoch())
        for first in (2, 4):
            journal.ask(writer.start(first))
            journal.ask(writer.batch(first, first, first + 1))
        journal.ask(requests_of.Writer(2).new_epoch())
        files.fail_at = files.operations + at
        try:
            adopt(journal, final(1, 6), writer=2)
        except requests_of.PowerCut:
            cuts += 1
            files.cut_power(lambda: True)
        files.fail_at = None
        again = requests_of.LocalJournal(root, files)
        if find_missing(again.state, [final(1, 6)]).segments:
            adopt(again, final(1, 6), writer=2)
        assert list(again.state.segments) == [1]
        assert not has_hole(again.state)
    assert cuts > 10
