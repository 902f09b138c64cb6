"""What the simulator has found in the product, each as a small story of its own."""

from dataclasses import replace
from pathlib import Path

import pytest

from journal.core.effects import DropDownload
from journal.core.machine import step
from journal.core.requests import Admit, AdoptRecovery, Done, Stamp
from journal.core.state import JournalState
from journal.core.syncing import missing
from journal.errors import Fenced, OutOfSync
from journal.model import Epoch, NamespaceInfo, Segment, TxId
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


_OLD = Segment(TxId(1), TxId(3), finalized=True, digest=b"1" * 32, writer=Epoch(1))
_KEPT = Segment(TxId(4), TxId(5), finalized=True, digest=b"4" * 32, writer=Epoch(1))
_PURGED = JournalState(
    namespace=NamespaceInfo(-65, 1, "c", 0, "bp"),
    incarnation="0" * 32,
    promised=Epoch(1),
    purged=TxId(4),
    committed=TxId(5),
    segments={_KEPT.first: _KEPT},
)


def test_a_learner_needs_nothing_that_a_writer_has_let_go_of() -> None:
    """Seed 1534: the learner knew of a purge, and one voter that missed it kept listing 1-3.

    The syncer brings nothing from before a purge, so the learner was never admitted.
    """
    learner = replace(_PURGED, learner=True)
    asked = Admit(Stamp(Epoch(1), 1), learner.incarnation, (_OLD, _KEPT), TxId(5))
    admitted = step(learner, asked)
    assert isinstance(admitted.reply, Done)
    assert not admitted.state.learner


def test_damage_below_the_purge_point_is_repaired() -> None:
    """Seed 1130: a purge spares the newest segment.  It rots, and no peer's copy was taken."""
    damaged = replace(_PURGED, purged=TxId(6)).with_damage(_KEPT.first, "a bit has rotted")
    assert missing(damaged, [_KEPT]).segments == (_KEPT,)
    assert missing(replace(_PURGED, purged=TxId(6)), [_OLD]).segments == ()


def test_a_download_that_nobody_needs_any_more_is_dropped() -> None:
    """Seed 4350: the syncer brought the segment while a recovery fetched it as well."""
    fetched = AdoptRecovery(Epoch(1), replace(_KEPT, finalized=False))
    assert DropDownload(_KEPT.first, Epoch(1)) in step(_PURGED, fetched).effects
    fenced = step(replace(_PURGED, promised=Epoch(2)), fetched)
    assert isinstance(fenced.reply, Fenced)
    assert fenced.effects == (DropDownload(_KEPT.first, Epoch(1)),)
