"""What the simulator has found in the product, each as a small story of its own."""

from pathlib import Path

import pytest

from journal.errors import OutOfSync
from tests.journal.jn_world import LocalJournal, MemoryFiles, Writer, formatted


def test_a_repeated_start_after_a_restart_destroys_no_edit() -> None:
    """Seed 159: the serial that refuses repeated requests does not survive a restart.

    A node holds one acknowledged edit, 1, and restarts.  A late twin of the request that began
    segment 1 arrives: "an in-progress file with one edit may be begun anew" threw the edit away.
    """
    root, files, writer = Path("/jn"), MemoryFiles(), Writer(1)
    journal = formatted(root, files)
    journal.ask(writer.new_epoch())
    twin = writer.start(1)
    journal.ask(twin)
    journal.ask(writer.batch(1, 1, 1))

    journal = LocalJournal(root, files)
    with pytest.raises(OutOfSync, match="has begun segment 1 already"):
        journal.ask(twin)
    held = journal.state.find(twin.first)
    assert held is not None
    assert held.last == 1


def test_a_newer_writer_begins_a_segment_with_one_edit_anew() -> None:
    """The other side of it: an older writer's single edit was not adopted, and makes room."""
    root, files, old, new = Path("/jn"), MemoryFiles(), Writer(1), Writer(2)
    journal = formatted(root, files)
    for request in (old.new_epoch(), old.start(1), old.batch(1, 1, 1)):
        journal.ask(request)

    journal = LocalJournal(root, files)
    journal.ask(new.new_epoch())
    journal.ask(new.start(1))
    assert journal.state.open is not None
    assert journal.state.open.empty
