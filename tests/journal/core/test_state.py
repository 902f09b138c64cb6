"""Rows about one node's state machine, by name, on core and disk."""

from pathlib import Path

import pytest

from journal.core.replies import Promised
from journal.errors import Fenced, JournalError
from journal.model import NamespaceInfo
from tests.journal.core.requests_of import LocalJournal, Writer, formatted


def newest(journal: LocalJournal, writer: Writer) -> int | None:
    """Return what newEpoch answers."""
    reply = journal.ask(writer.new_epoch())
    assert isinstance(reply, Promised)
    return reply.last_segment_first


def names(root: Path) -> set[str]:
    return {path.name for path in (root / "current").iterdir()}


def begun(root: Path, *, first: int = 1, last: int = 3) -> tuple[LocalJournal, Writer]:
    journal, writer = formatted(root), Writer(1)
    journal.ask(writer.new_epoch())
    journal.ask(writer.start(first))
    journal.ask(writer.batch(first, first, last))
    return journal, writer


@pytest.mark.row("8.1 testEpochHandling")
def test_epoch_handling(tmp_path: Path) -> None:
    journal = formatted(tmp_path / "jn")
    assert newest(journal, Writer(1)) is None
    assert newest(journal, Writer(3)) is None
    assert journal.state.promised == 3
    with pytest.raises(Fenced, match="3 <= last promise 3"):
        journal.ask(Writer(3).new_epoch())
    for request in (Writer(1).start(12345), Writer(1).batch(12345, 12345, 12345)):
        with pytest.raises(Fenced, match="less than the last promised epoch 3"):
            journal.ask(request)


@pytest.mark.row("8.1 testFinalizeMissingSegment")
def test_finalize_missing_segment(tmp_path: Path) -> None:
    journal, writer = formatted(tmp_path / "jn"), Writer(1)
    journal.ask(writer.new_epoch())
    with pytest.raises(JournalError, match="No log file to finalize at transaction ID 1000"):
        journal.ask(writer.finalize(1000, 1001))


@pytest.mark.row("8.1 testAbortOldSegmentIfFinalizeIsMissed")
def test_abort_old_segment_if_finalize_is_missed(tmp_path: Path) -> None:
    journal, writer = begun(tmp_path / "jn")
    journal.ask(writer.start(6))
    journal.ask(writer.batch(6, 6, 8))
    held = names(tmp_path / "jn")
    assert f"edits_inprogress_{1:019}" in held
    assert f"edits_inprogress_{6:019}" in held
    assert f"edits_{1:019}-{3:019}" not in held


@pytest.mark.row("8.1 testStartLogSegmentWhenAlreadyExists")
def test_start_log_segment_when_already_exists(tmp_path: Path) -> None:
    """While it is open only: after a restart the same writer may not, unlike in Hadoop."""
    journal, writer = begun(tmp_path / "jn", last=1)
    journal.ask(writer.start(1))
    journal.ask(writer.batch(1, 1, 4))
    with pytest.raises(JournalError, match="seems to contain valid transactions"):
        journal.ask(writer.start(1))
    journal.ask(writer.finalize(1, 4))
    with pytest.raises(JournalError, match="have a finalized segment"):
        journal.ask(writer.start(1))


@pytest.mark.row("8.1 testNamespaceVerification")
def test_namespace_verification(tmp_path: Path) -> None:
    journal = formatted(tmp_path / "jn")
    with pytest.raises(JournalError, match="Incompatible namespaceID"):
        journal.ask(Writer(1).new_epoch(NamespaceInfo(-65, 54321, "mycluster", 0, "my-bp")))
    assert journal.state.promised == 0


@pytest.mark.row("8.2 testReturnsSegmentInfoAtEpochTransition")
def test_returns_segment_info_at_epoch_transition(tmp_path: Path) -> None:
    journal, _ = begun(tmp_path / "jn", last=2)
    second = Writer(2)
    assert newest(journal, second) == 1
    journal.ask(second.finalize(1, 2, writer=1))
    third = Writer(3)
    assert newest(journal, third) == 1
    journal.ask(third.start(3))
    assert newest(journal, Writer(4)) == 1


@pytest.mark.row("X13")
def test_x13_an_empty_segment_of_an_older_writer_makes_room(tmp_path: Path) -> None:
    """Let the node miss newEpoch 2.

    Hadoop refuses the start, and is one node short until a roll.
    """
    root = tmp_path / "jn"
    journal, old = formatted(root), Writer(1)
    journal.ask(old.new_epoch())
    journal.ask(old.start(1))
    new = Writer(2)
    journal.ask(new.start(1))
    journal.ask(new.batch(1, 1, 2))
    assert any(name.endswith(".empty") for name in names(root))
    assert newest(journal, Writer(3)) == 1
    assert journal.state.writer == 2
