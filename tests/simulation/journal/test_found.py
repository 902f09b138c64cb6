"""The errors that the simulator has found in the product, each as one small test."""

from dataclasses import replace
from pathlib import Path

import pytest

from journal.core import requests
from journal.core.effects import DropDownload, PurgeFiles
from journal.core.machine import step
from journal.core.replies import Done, Fetch
from journal.core.state import JournalState
from journal.core.sync import find_missing, first_txid_to_ask
from journal.errors import BadRequest, Fenced, OutOfSync, StorageFailed
from journal.model import LAYOUT_VERSION, Epoch, JournalId, NamespaceInfo, Segment, TxId
from journal.node.owner.owner import JournalOwner
from tests.journal.core.requests_of import LocalJournal, MemoryFiles, Writer, formatted, segment


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
    """Show the other side of it: an older writer's single edit was not adopted, and makes room."""
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
    asked = requests.Admit(requests.Stamp(Epoch(1), 1), learner.incarnation, (_OLD, _KEPT), TxId(5))
    admitted = step(learner, asked)
    assert isinstance(admitted.reply, Done)
    assert not admitted.state.learner


_NEWER = Segment(TxId(6), TxId(7), finalized=True, digest=b"6" * 32, writer=Epoch(1))


def a_learner(*held: Segment, purged: int = 0) -> JournalState:
    segments = {segment.first: segment for segment in held}
    return replace(_PURGED, learner=True, purged=TxId(purged), segments=segments)


def admitting(*required: Segment, committed: int, purged: int) -> requests.Admit:
    stamp = requests.Stamp(Epoch(1), 1, TxId(committed))
    return requests.Admit(stamp, _PURGED.incarnation, required, TxId(committed), TxId(purged))


def test_a_hole_below_the_purge_point_keeps_nobody_out() -> None:
    """Play seed 119915: a purge reached two of three nodes, and one of these was replaced.

    The third node still lists 1-3, no node lists 4-5, and the learner knows of no purge itself.
    """
    with_hole = (_OLD, _NEWER)
    for held in ((_NEWER,), (_OLD, _NEWER), (_OLD, _KEPT, _NEWER)):
        learner = a_learner(*held)
        admitted = step(learner, admitting(*with_hole, committed=7, purged=6))
        assert isinstance(admitted.reply, Done)
        # Or the purge point is forgotten when the nodes that know it are replaced in turn.
        assert admitted.state.purged == 6
        assert list(admitted.state.segments) == [_NEWER.first]
        assert not admitted.state.learner
    for purged in (0, 4, 5):
        refused = step(a_learner(_OLD, _NEWER), admitting(*with_hole, committed=7, purged=purged))
        assert isinstance(refused.reply, BadRequest), "4-5 may still be needed"


def test_an_abandoned_file_below_the_purge_point_keeps_nobody_out() -> None:
    """Seed 301950: a folder was copied from a node that had 1-2 in progress, and purged later.

    It does not know 1-2 to be on a quorum, so no purge takes it away, and a voter that missed
    the purge lists 1-3.  The syncer brings nothing from before it, in 1-2's place either.
    """
    begun = Segment(TxId(1), TxId(2), finalized=False, digest=b"2" * 32, writer=Epoch(1))
    asked = admitting(_OLD, _KEPT, _NEWER, committed=7, purged=6)
    learner = replace(a_learner(begun, _NEWER, purged=6), committed=TxId(0))
    assert find_missing(learner, list(asked.required)).segments == ()
    admitted = step(learner, asked)
    assert isinstance(admitted.reply, Done)
    assert not admitted.state.learner
    another = replace(_OLD, digest=b"another".ljust(32))
    refused = step(replace(a_learner(another, _NEWER, purged=6), committed=TxId(0)), asked)
    assert isinstance(refused.reply, OutOfSync), "it would be served"


def test_the_newest_segment_is_needed_wherever_the_purge_point_lies() -> None:
    """Keep it, as a purge does, because an empty journal would begin at 1 again.

    Nodes that are replaced in turn would otherwise let go of it one after the other.
    """
    for learner in (a_learner(), a_learner(purged=8)):
        refused = step(learner, admitting(_KEPT, _NEWER, committed=7, purged=8))
        assert isinstance(refused.reply, OutOfSync)
        assert find_missing(learner, [_KEPT, _NEWER]).segments[-1] == _NEWER
        brought = step(learner, requests.AdoptFinalized(_NEWER, fetched=True))
        assert isinstance(brought.reply, Done)
    assert first_txid_to_ask(a_learner(purged=8)) == 1
    assert first_txid_to_ask(a_learner(_NEWER, purged=7)) == 7
    admitted = step(a_learner(_NEWER), admitting(_KEPT, _NEWER, committed=7, purged=8))
    assert isinstance(admitted.reply, Done)
    assert list(admitted.state.segments) == [_NEWER.first]


def test_a_lower_purge_does_not_take_the_purge_point_back() -> None:
    """Remember what is on the disk afterwards."""
    done = step(_PURGED, requests.PurgeLogs(requests.Stamp(Epoch(1), 1), TxId(2)))
    assert done.state.purged == 4
    assert [effect.minimum for effect in done.effects if isinstance(effect, PurgeFiles)] == [4]


def test_damage_below_the_purge_point_is_repaired() -> None:
    """Seed 1130: a purge spares the newest segment.  It rots, and no peer's copy was taken."""
    damaged = replace(_PURGED, purged=TxId(6)).with_damage(_KEPT.first, "a bit has rotted")
    assert find_missing(damaged, [_KEPT]).segments == (_KEPT,)
    assert find_missing(replace(_PURGED, purged=TxId(6)), [_OLD]).segments == ()


def test_a_download_that_nobody_needs_any_more_is_dropped() -> None:
    """Seed 4350: the syncer brought the segment while a recovery fetched it as well."""
    fetched = requests.AdoptRecovery(Epoch(1), replace(_KEPT, finalized=False))
    assert DropDownload(_KEPT.first, Epoch(1)) in step(_PURGED, fetched).effects
    fenced = step(replace(_PURGED, promised=Epoch(2)), fetched)
    assert isinstance(fenced.reply, Fenced)
    assert fenced.effects == (DropDownload(_KEPT.first, Epoch(1)),)


def a_rotten_restart() -> tuple[LocalJournal, Writer]:
    """Write 1-2 as writer 1; the node restarts, scans the file, and then a bit of it rots."""
    root, files, writer = Path("/jn"), MemoryFiles(), Writer(1)
    journal = formatted(root, files)
    for request in (writer.new_epoch(), writer.start(1), writer.batch(1, 1, 2)):
        journal.ask(request)
    journal = LocalJournal(root, files)
    files.names_cached[root / "current" / "edits_inprogress_0000000000000000001"].cached[28] ^= 1
    return journal, writer


async def test_what_rots_behind_the_scan_of_the_start_is_not_voted_with() -> None:
    """Play seed 308849: the running digest of a resumed segment began with the rotten bytes.

    The node accepted a recovery by that digest, no node could fetch those edits from it, and no
    writer came to power while it answered.  Nor may the damage stop the node: its journal used to
    fail with the refusal, at every start again, until a recovery happened to reach it in between.
    """
    journal, writer = a_rotten_restart()
    owner = JournalOwner(JournalId("found"), journal.disk, journal.state)
    with pytest.raises(StorageFailed, match="no vote until it has been replaced"):
        await owner.ask(requests.ResumeSegment(writer.stamp(), TxId(1), LAYOUT_VERSION))
    assert list(owner.state.damaged) == [1]
    # An idle writer has nothing more than this to offer.
    whole = await owner.ask(requests.CatchUp(writer.stamp(), segment(1, 2), LAYOUT_VERSION))
    assert isinstance(whole, Fetch)
    await owner.stop()
    assert owner.failed_because is None


async def test_what_rots_before_a_catch_up_is_fetched_as_well() -> None:
    """Catch up: with all wanted edits here this opens the file as a resume does."""
    journal, writer = a_rotten_restart()
    owner = JournalOwner(JournalId("found"), journal.disk, journal.state)
    reply = await owner.ask(requests.CatchUp(writer.stamp(), segment(1, 2), LAYOUT_VERSION))
    assert isinstance(reply, Fetch)
    await owner.stop()


def test_what_rots_in_the_last_moment_stops_the_journal() -> None:
    """Rot between that look and the opening; what to vote with is not known any more."""
    journal, writer = a_rotten_restart()
    with pytest.raises(StorageFailed, match="has changed since it was read"):
        journal.ask(requests.ResumeSegment(writer.stamp(), TxId(1), LAYOUT_VERSION))
    assert journal.disk.failed_because is not None
