"""Upgrade, finalize, roll back, discard: fenced, whole after any crash."""

from dataclasses import replace
from pathlib import Path

import pytest

from journal.core import requests
from journal.core.effects import AbandonSegment, RememberCommitted
from journal.core.machine import step
from journal.core.replies import CTime, Done, RollBackAnswer
from journal.core.state import JournalState, OpenSegment
from journal.errors import BadRequest, Fenced, OutOfSync
from journal.model import NO_TXID, Epoch, NamespaceInfo, TxId
from tests.journal.core.requests_of import NAMESPACE, LocalJournal, Writer, formatted, segment
from tests.journal.storage.crash import Crash, CrashingFiles

UPGRADED = replace(NAMESPACE, ctime=77, layout_version=-67)
HELD = JournalState(namespace=NAMESPACE, promised=Epoch(1))
TO_BE_TAKEN_BACK = replace(HELD, namespace=UPGRADED, previous=NAMESPACE)


def written(root: Path) -> tuple[LocalJournal, Writer]:
    journal, writer = formatted(root), Writer(1)
    journal.ask(writer.new_epoch())
    grown(journal, writer, 1, 4)
    return journal, writer


def grown(journal: LocalJournal, writer: Writer, *firsts: int) -> None:
    for first in firsts:
        journal.ask(writer.start(first))
        journal.ask(writer.batch(first, first, first + 2))
        writer.committed = first + 2
        journal.ask(writer.finalize(first, first + 2))


def upgraded(journal: LocalJournal, writer: Writer) -> None:
    journal.ask(requests.PreUpgrade(writer.stamp()))
    journal.ask(requests.Upgrade(writer.stamp(), UPGRADED))


def folders(root: Path) -> set[str]:
    return {path.name for path in root.iterdir() if path.is_dir()}


def again(journal: LocalJournal, root: Path) -> LocalJournal:
    journal.close()
    return LocalJournal(root)


def may_go_back(journal: LocalJournal, layout: int = NAMESPACE.layout_version) -> bool:
    answer = journal.ask(requests.CanRollBack(UPGRADED, layout))
    assert isinstance(answer, RollBackAnswer)
    return answer.possible


@pytest.mark.row("8.7 DFSUpgradeWithHA")
def test_upgrade_keeps_the_way_back_and_finalize_gives_it_up(tmp_path: Path) -> None:
    """UpgradeWithJournalNodes, Finalize..: previous is there, then gone; ctime follows."""
    journal, writer = written(tmp_path)
    assert not may_go_back(journal)
    upgraded(journal, writer)
    assert journal.ask(requests.GetJournalCTime()) == CTime(77)
    assert folders(tmp_path) == {"current", "previous"}
    journal = again(journal, tmp_path)
    assert journal.state.namespace == UPGRADED
    assert may_go_back(journal)
    assert (journal.state.promised, journal.state.committed) == (1, 6)
    writer = Writer(2, committed=6)
    journal.ask(writer.new_epoch())
    grown(journal, writer, 7)
    for _ in range(2):
        journal.ask(requests.FinalizeUpgrade(writer.stamp()))
    assert folders(tmp_path) == {"current"}
    assert not may_go_back(journal)
    assert list(again(journal, tmp_path).state.segments) == [1, 4, 7]


@pytest.mark.row("8.7 DFSUpgradeWithHA")
def test_roll_back_drops_edits_and_forgets_no_promise(tmp_path: Path) -> None:
    """Rollback..: committed-txid carried over and usable (HDFS-7131), VERSION read again."""
    journal, writer = written(tmp_path)
    was = journal.state
    upgraded(journal, writer)
    grown(journal, writer, 7)
    writer = Writer(5, committed=9)
    journal.ask(writer.new_epoch())
    journal.ask(requests.RollBack(replace(writer.stamp(), read_lease_micros=7)))
    assert folders(tmp_path) == {"current"}
    assert again(journal, tmp_path).state.read_lease_micros == 7
    for one in (journal, again(journal, tmp_path)):
        assert one.state.namespace == NAMESPACE
        assert list(one.state.segments) == [1, 4]
        assert (one.state.promised, one.state.committed) == (5, 6)
        assert (one.state.incarnation, one.state.learner) == (was.incarnation, False)
        with pytest.raises(Fenced):
            one.ask(Writer(4).start(7))
    one.ask(Writer(5, serial=10, committed=6).start(7))


def test_roll_back_is_for_the_layout_that_was(tmp_path: Path) -> None:
    journal, writer = written(tmp_path)
    with pytest.raises(BadRequest):
        journal.ask(requests.RollBack(writer.stamp()))
    upgraded(journal, writer)
    assert may_go_back(journal)
    with pytest.raises(BadRequest, match="layout"):
        may_go_back(journal, -60)


def test_what_is_promised_and_written_during_an_upgrade_stays(tmp_path: Path) -> None:
    """Hadoop's half-done upgrade is undone by a restart, and with it a promise would be."""
    journal, writer = written(tmp_path)
    journal.ask(requests.PreUpgrade(writer.stamp()))
    later = Writer(9, committed=6)
    journal.ask(later.new_epoch())
    grown(journal, later, 7)
    journal = again(journal, tmp_path)
    assert folders(tmp_path) == {"current"}
    assert journal.state.promised == 9
    assert list(journal.state.segments) == [1, 4, 7]
    with pytest.raises(OutOfSync):
        journal.ask(requests.Upgrade(later.stamp(), UPGRADED))


def test_no_step_is_for_a_fenced_writer(tmp_path: Path) -> None:
    journal, writer = written(tmp_path)
    upgraded(journal, writer)
    journal.ask(Writer(2).new_epoch())
    for request in (
        requests.PreUpgrade(writer.stamp()),
        requests.Upgrade(writer.stamp(), UPGRADED),
        requests.FinalizeUpgrade(writer.stamp()),
        requests.RollBack(writer.stamp()),
        requests.DiscardSegments(writer.stamp(), TxId(4)),
    ):
        with pytest.raises(Fenced):
            journal.ask(request)
    assert folders(tmp_path) == {"current", "previous"}


def test_steps_out_of_order_are_refused(tmp_path: Path) -> None:
    journal, writer = written(tmp_path)
    with pytest.raises(OutOfSync):
        journal.ask(requests.Upgrade(writer.stamp(), UPGRADED))
    journal.ask(requests.PreUpgrade(writer.stamp()))
    journal.ask(requests.PreUpgrade(writer.stamp()))
    with pytest.raises(BadRequest):
        journal.ask(requests.Upgrade(writer.stamp(), NAMESPACE))
    journal.ask(requests.Upgrade(writer.stamp(), UPGRADED))
    journal.ask(requests.Upgrade(writer.stamp(), UPGRADED))
    with pytest.raises(BadRequest):
        journal.ask(requests.PreUpgrade(writer.stamp()))


NOT_BEGUN = {
    "one that changes nothing": (HELD, NAMESPACE),
    "one after another": (TO_BE_TAKEN_BACK, replace(UPGRADED, ctime=78)),
}


@pytest.mark.parametrize(("state", "asked"), NOT_BEGUN.values(), ids=list(NOT_BEGUN))
def test_an_upgrade_that_was_not_begun_is_refused(
    state: JournalState, asked: NamespaceInfo
) -> None:
    done = step(state, requests.Upgrade(Writer(1).stamp(), asked))
    assert isinstance(done.reply, OutOfSync)
    assert (done.state.namespace, done.effects) == (state.namespace, ())


MOVING: dict[str, tuple[JournalState, requests.UpgradeStep]] = {
    "into a snapshot": (HELD, requests.PreUpgrade(Writer(1).stamp())),
    "back": (TO_BE_TAKEN_BACK, requests.RollBack(Writer(1).stamp())),
    "out of the way": (HELD, requests.DiscardSegments(Writer(1).stamp(), TxId(7))),
}


@pytest.mark.parametrize(("state", "request_"), MOVING.values(), ids=list(MOVING))
def test_the_open_segment_is_closed_before_files_are_moved(
    state: JournalState, request_: requests.UpgradeStep
) -> None:
    done = step(replace(state, open=OpenSegment(TxId(7), TxId(10))), request_)
    assert done.reply == Done()
    assert done.effects[0] == AbandonSegment(TxId(7), empty=False)
    assert done.state.open is None


def test_edits_are_discarded_from_the_first_one_on_and_not_from_0(tmp_path: Path) -> None:
    journal, writer = written(tmp_path)
    with pytest.raises(BadRequest, match="cannot discard"):
        journal.ask(requests.DiscardSegments(writer.stamp(), TxId(0)))
    assert list(journal.state.segments) == [1, 4]
    journal.ask(requests.DiscardSegments(writer.stamp(), TxId(1)))
    assert not journal.state.segments


@pytest.mark.parametrize(
    ("known", "claimed", "left"), [(NO_TXID, NO_TXID, NO_TXID), (6, 6, 6), (7, 9, 6), (6, 9, 6)]
)
def test_what_is_discarded_is_not_committed_any_more(known: int, claimed: int, left: int) -> None:
    state = replace(HELD, committed=TxId(known), claimed=TxId(claimed))
    done = step(state, requests.DiscardSegments(Writer(1).stamp(), TxId(7)))
    assert (done.state.committed, done.state.claimed) == (left, left)
    assert (RememberCommitted(TxId(left)) in done.effects) == (left != known)


@pytest.mark.row("8.7 RollingUpgradeRollback")
def test_rolling_upgrade_rollback_discards_what_is_behind_the_marker(tmp_path: Path) -> None:
    """RollbackWithQJM: segments behind it become .trash, earlier ones stay."""
    journal, writer = written(tmp_path)
    grown(journal, writer, 7)
    journal.ask(writer.start(10))
    journal.ask(writer.batch(10, 10, 11))
    with pytest.raises(BadRequest, match="inside"):
        journal.ask(requests.DiscardSegments(writer.stamp(), TxId(5)))
    assert list(journal.state.segments) == [1, 4, 7, 10]
    journal.ask(requests.DiscardSegments(writer.stamp(), TxId(7)))
    names = {path.name for path in (tmp_path / "current").glob("edits_*")}
    kept = {segment(first, first + 2, finalized=True).name() for first in (1, 4)}
    trash = {segment(7, 9, finalized=True).name(), segment(10, 11).name()}
    assert names == kept | {f"{name}.trash" for name in trash}
    assert journal.state.committed == 6
    journal = again(journal, tmp_path)
    assert list(journal.state.segments) == [1, 4]
    assert journal.state.committed == 6
    assert not (tmp_path / "current" / "segments" / "7").exists()


@pytest.mark.parametrize("steps", ["upgrade", "finalize", "roll back", "discard"])
def test_a_crash_at_any_point_is_undone_or_completed(tmp_path: Path, steps: str) -> None:
    crashes, at = 0, 0
    while True:
        at += 1
        root = tmp_path / str(at)
        journal, writer = written(root)
        if steps in ("finalize", "roll back"):
            upgraded(journal, writer)
            grown(journal, writer, 7)
        journal.close()
        files = CrashingFiles(at)
        crashed = False
        try:
            journal = LocalJournal(root, files)
            writer = Writer(2)
            journal.ask(writer.new_epoch())
            match steps:
                case "upgrade":
                    upgraded(journal, writer)
                case "finalize":
                    journal.ask(requests.FinalizeUpgrade(writer.stamp()))
                case "roll back":
                    journal.ask(requests.RollBack(writer.stamp()))
                case _:
                    journal.ask(requests.DiscardSegments(writer.stamp(), TxId(4)))
        except Crash:
            crashed = True
        journal.close()
        loaded = LocalJournal(root)
        assert loaded.state.promised in ({1, 2} if crashed else {2})
        ends = [one.last for one in loaded.state.segments.values()]
        assert ends in ([3], [3, 6], [3, 6, 9])
        assert folders(root) <= {"current", "previous"}
        assert not loaded.state.learner
        assert loaded.state.namespace in (NAMESPACE, UPGRADED)
        went_on = Writer(3)
        loaded.ask(went_on.new_epoch())
        grown(loaded, went_on, ends[-1] + 1)
        loaded.close()
        if not crashed:
            break
        crashes += 1
    assert crashes > 5
