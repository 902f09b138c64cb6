"""Crash a journal after every single disk operation: acknowledged edits must be there."""

import copy
import errno
import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from journal.core.replies import Prepared, Promised
from journal.core.requests import Format, Journal, PrepareRecovery
from journal.core.state import Decision, JournalState
from journal.errors import BadRequest, StorageFailed
from journal.model import Epoch, Segment, TxId
from journal.storage.disk import Disk
from journal.storage.files import remove_durably, write_durably
from tests.journal.core import requests_of
from tests.journal.core.requests_of import segment
from tests.journal.storage.crash import Crash, CrashingFiles

ROOT = Path("/journals/ns1")
CURRENT = ROOT / "current"
Act = Callable[[requests_of.LocalJournal], object]


def life() -> Iterator[Act]:
    """Yield one journal's life: every kind of effect at least once."""
    w1, w2, w3 = requests_of.Writer(1), requests_of.Writer(2), requests_of.Writer(3)
    yield lambda j: j.ask(Format(requests_of.NAMESPACE, incarnation=requests_of.LIFE))
    yield lambda j: j.ask(w1.new_epoch())
    yield lambda j: j.ask(w1.start(1))
    yield lambda j: j.ask(w1.batch(1, 1, 3))
    w1.committed = 3
    yield lambda j: j.ask(w1.batch(1, 4, 5))
    yield lambda j: j.ask(w1.finalize(1, 5))
    yield lambda j: j.ask(w1.start(6))
    yield lambda j: j.ask(w1.batch(6, 6, 6))
    yield lambda j: j.ask(w2.start(6))  # missed newEpoch; one edit may be begun anew
    yield lambda j: j.ask(w2.batch(6, 6, 8))
    yield lambda j: j.ask(w3.new_epoch())
    yield lambda j: j.accept(w3, segment(6, 9, 7), requests_of.segment_bytes(6, 9, 7))
    yield lambda j: j.accept(w3, segment(6, 9, 7), b"")
    yield lambda j: j.ask(w3.finalize(6, 9, 7))
    yield lambda j: j.ask(w3.start(10))
    yield lambda j: j.ask(w3.batch(10, 10, 10))
    yield lambda j: j.ask(requests_of.Writer(4).new_epoch())
    yield lambda j: j.ask(requests_of.Writer(4, 0).start(11))
    yield lambda j: j.ask(requests_of.Writer(5).new_epoch())  # 11 is empty: moved aside
    yield lambda j: j.ask(format_over(j))


def format_over(journal: requests_of.LocalJournal) -> Format:
    """Format by force, with what there is to be seen."""
    return Format(
        requests_of.NAMESPACE,
        incarnation=requests_of.LIFE,
        force=True,
        seen_promised=journal.state.promised,
        seen_namespace_id=requests_of.NAMESPACE.namespace_id,
    )


def held(state: JournalState) -> dict[TxId, Segment]:
    segments = dict(state.segments)
    if state.open is not None and not state.open.empty:
        segments[state.open.first] = state.open.as_segment()
    return segments


def check(before: JournalState, after: JournalState, journal: requests_of.LocalJournal) -> None:
    """Check that what is found lies between the states before and after the cut request."""
    found = journal.state
    if found.namespace is None:
        assert before.namespace is None or after.promised < before.promised, "lost its VERSION"
        return
    assert found.promised in (before.promised, after.promised)
    assert found.writer in (before.writer, after.writer)
    old, new = held(before), held(after)
    now = {first: journal.disk.digest(of) for first, of in held(found).items()}
    for first in {*old, *new, *now}:
        was, becomes, lies = old.get(first), new.get(first), now.get(first)
        if lies is None:
            assert was is None or becomes is None, f"lost {first}"
            continue
        allowed = [_ends(s) for s in (was, becomes) if s is not None]
        if becomes is not None and not becomes.finalized:
            grown = range(first if was is None else was.last, becomes.last + 1)
            allowed += [(last, False) for last in grown]
        assert (lies.last, lies.finalized) in allowed
        tags = [
            tag for tag in (1, 2, 3, 7) if lies.digest == requests_of.digest(first, lies.last, tag)
        ]
        assert tags, f"segment {first} holds nobody's edits"
        if tags == [1] and before.writer == 1 and first == 6:
            assert found.writer == 1, "the older writer's edit has inherited the newer epoch"
    for first in {*before.decisions, *after.decisions, *found.decisions}:
        decision = found.decisions.get(first)
        assert decision in (before.decisions.get(first), after.decisions.get(first))
        _check_decided(decision, now)


def _ends(of: Segment) -> tuple[int, bool]:
    return of.last, of.finalized


def _check_decided(decision: Decision | None, now: dict[TxId, Segment]) -> None:
    """Check that an acceptance is there as a whole or not at all."""
    if decision is not None:
        lies = now[decision.segment.first]
        assert lies.last == decision.segment.last
        assert lies.digest == decision.segment.digest


def undisturbed() -> list[JournalState]:
    journal = requests_of.LocalJournal(ROOT, requests_of.MemoryFiles())
    states = [journal.state]
    for act in life():
        act(journal)
        states.append(journal.state)
    return states


STATES = undisturbed()


def run_until(
    files: requests_of.MemoryFiles,
    fail_at: int | None,
    journal: requests_of.LocalJournal | None = None,
) -> tuple[JournalState, JournalState, bool]:
    """Live until the n-th disk operation; the states around the request that it cut."""
    journal = journal or requests_of.LocalJournal(ROOT, files)
    files.operations, files.fail_at = 0, fail_at
    for act, (before, after) in zip(life(), pairwise(STATES), strict=True):
        try:
            act(journal)
        except (requests_of.PowerCut, StorageFailed):
            return before, after, True
    return STATES[-1], STATES[-1], False


def count_operations() -> int:
    files = requests_of.MemoryFiles()
    run_until(files, None)
    return files.operations


TOTAL = count_operations()


def _survival(kind: str, seed: int) -> Callable[[], bool]:
    """Choose which unsynced names and contents outlive the cut."""
    chance = random.Random(f"{kind} {seed}")
    if kind in ("all", "none"):
        return lambda: kind == "all"
    return lambda: chance.random() < 0.5


@pytest.mark.parametrize("survival", ["all", "none", "some", "other"])
def test_after_a_cut_at_any_operation_everything_acknowledged_is_there(survival: str) -> None:
    for fail_at in range(1, TOTAL + 1):
        files = requests_of.MemoryFiles()
        before, after, cut = run_until(files, fail_at)
        assert cut
        files.cut_power(_survival(survival, fail_at))
        found = requests_of.LocalJournal(ROOT, files)
        try:
            check(before, after, found)
            _goes_on(found)
        except AssertionError as failure:
            raise AssertionError(f"cut at operation {fail_at} of {TOTAL}: {failure}") from failure
        again = requests_of.LocalJournal(ROOT, files)
        assert _all_ends(again) == _all_ends(found), f"a second start at {fail_at} differs"


def test_what_a_restarted_process_reports_outlives_a_power_cut() -> None:
    """Killed between a write and its sync, restarted, asked, and only then the power fails."""
    for fail_at in range(1, TOTAL + 1):
        files = requests_of.MemoryFiles()
        run_until(files, fail_at)
        files.fail_at = None  # the process died; the page cache did not
        reported = requests_of.LocalJournal(ROOT, files)
        files.cut_power(lambda: False)
        found = requests_of.LocalJournal(ROOT, files)
        at = f"cut at operation {fail_at} of {TOTAL}"
        assert _all_ends(found) == _all_ends(reported), at
        for name in ("namespace", "promised", "writer", "decisions"):
            assert getattr(found.state, name) == getattr(reported.state, name), f"{name}: {at}"


def test_the_power_may_fail_at_any_operation_of_the_start_after_a_crash() -> None:
    """Killed between a write and its sync, restarted, and the power fails during that start."""
    for fail_at in range(1, TOTAL + 1):
        crashed = requests_of.MemoryFiles()
        before, after, _ = run_until(crashed, fail_at)
        for again in itertools.count(1):
            files = copy.deepcopy(crashed)
            files.operations, files.fail_at = 0, again
            try:
                requests_of.LocalJournal(ROOT, files)
            except requests_of.PowerCut:
                files.cut_power(_survival("some", 1000 * fail_at + again))
            else:
                break
            try:
                check(before, after, requests_of.LocalJournal(ROOT, files))
            except AssertionError as failure:
                at = f"cut at operation {fail_at} of {TOTAL}, then at {again}"
                raise AssertionError(f"{at}: {failure}") from failure


def _all_ends(journal: requests_of.LocalJournal) -> dict[TxId, tuple[int, bool]]:
    return {first: _ends(of) for first, of in held(journal.state).items()}


def _goes_on(journal: requests_of.LocalJournal) -> None:
    """Check that the next writer is served: it learns what is there, and every decision."""
    if journal.state.namespace is None:
        return
    writer = requests_of.Writer(journal.state.promised + 1)
    assert isinstance(journal.ask(writer.new_epoch()), Promised)
    for first in held(journal.state):
        prepared = journal.ask(PrepareRecovery(writer.stamp(), first))
        assert isinstance(prepared, Prepared)
        assert prepared.segment is not None
    start = max((s.last for s in held(journal.state).values()), default=0) + 1
    journal.ask(writer.start(start))
    journal.ask(writer.batch(start, start, start + 1))
    journal.ask(writer.finalize(start, start + 1))


@pytest.mark.parametrize("at", range(1, 14))
def test_a_first_format_that_was_cut_short_is_given_again_without_force(
    tmp_path: Path, at: int
) -> None:
    """Found without force, as ``nnha namenode --prepare`` does: there is nothing to lose."""
    root, asked = tmp_path / "ns1", Format(requests_of.NAMESPACE, incarnation=requests_of.LIFE)
    root.mkdir()
    with suppress(Crash):
        requests_of.LocalJournal(root, CrashingFiles(at)).ask(asked)
    found = requests_of.LocalJournal(root)
    if found.state.namespace is None:
        found.ask(asked)
    assert requests_of.LocalJournal(root).state.namespace == requests_of.NAMESPACE


@pytest.mark.parametrize("name", ["paxos/1", "segments/1", "last-promised-epoch", "edits_1-2"])
def test_whatever_else_lies_in_an_unformatted_folder_needs_force(tmp_path: Path, name: str) -> None:
    path = tmp_path / "current" / name
    path.parent.mkdir(parents=True)
    path.touch()
    with pytest.raises(BadRequest, match="not empty"):
        requests_of.LocalJournal(tmp_path).ask(
            Format(requests_of.NAMESPACE, incarnation=requests_of.LIFE)
        )


@pytest.mark.row("X10")
def test_x10_after_any_failed_operation_the_journal_stops_and_says_why() -> None:
    for fail_at in range(1, TOTAL + 1):
        files = requests_of.MemoryFiles()
        files.failure = OSError(errno.EIO, "Input/output error")
        journal = requests_of.LocalJournal(ROOT, files)
        before, after, cut = run_until(files, fail_at, journal)
        assert cut
        assert not files.opened, f"left open by a failure at operation {fail_at}"
        files.fail_at = None  # the disk is well again, but what it holds is unknown
        for refused in _calls(journal.disk):
            with pytest.raises(StorageFailed, match=rf"{FAILED} in {ROOT}: .*Input/output error"):
                refused()
        files.cut_power(lambda: True)
        check(before, after, requests_of.LocalJournal(ROOT, files))
    whole = requests_of.MemoryFiles()
    journal = requests_of.LocalJournal(ROOT, whole)
    run_until(whole, None, journal)
    journal.close()
    assert not whole.opened
    whole.failure, whole.fail_at = OSError(errno.EIO, "Input/output error"), whole.operations
    with pytest.raises(StorageFailed, match=f"cannot load the journal in {ROOT}: .*Input/output"):
        requests_of.LocalJournal(ROOT, whole)


FAILED = (
    "could not (write to the journal|create a file for a recovery|(write|sync) a recovery's bytes)"
)


def _calls(disk: Disk) -> Iterator[Callable[[], object]]:
    closed = Segment(TxId(1), TxId(5), finalized=True)
    yield lambda: disk.run(())
    yield disk.load
    yield lambda: disk.begin_download(TxId(6), Epoch(3))
    yield lambda: disk.begin_fetch(closed)
    yield lambda: disk.drop_fetched(closed)


def test_the_model_disk_loses_what_was_not_synced() -> None:
    files = requests_of.MemoryFiles()
    path = CURRENT / "x"
    write_durably(files, path, b"old")
    files.create(CURRENT / "y").append(b"unsynced")
    files.sync_folder(CURRENT)
    write_durably(files, CURRENT / "z", b"gone")
    files.rename(CURRENT / "z", CURRENT / "w")
    files.cut_power(lambda: False)
    assert (files.read(path), files.read(CURRENT / "y")) == (b"old", b"")
    assert (files.read(CURRENT / "z"), files.read(CURRENT / "w")) == (b"gone", None)
    remove_durably(files, path)
    files.cut_power(lambda: False)
    assert files.read(path) is None


def test_a_torn_batch_costs_only_itself() -> None:
    writer = requests_of.Writer(1)
    for keep in range(1, 120):
        files = requests_of.MemoryFiles()
        journal = requests_of.LocalJournal(ROOT, files)
        for request in (
            Format(requests_of.NAMESPACE, incarnation=requests_of.LIFE),
            writer.new_epoch(),
        ):
            journal.ask(request)
        writer = requests_of.Writer(1)
        journal.ask(writer.start(1))
        journal.ask(writer.batch(1, 1, 3))
        path = CURRENT / "edits_inprogress_0000000000000000001"
        acknowledged = files.size(path)
        batch = writer.batch(1, 4, 6)
        assert isinstance(batch, Journal)
        journal.ask(batch)
        files.truncate(path, min(acknowledged + keep, files.size(path)))
        found = requests_of.LocalJournal(ROOT, files).state
        last = found.segments[TxId(1)].last
        assert last >= 3
        assert found.segments[TxId(1)].digest == requests_of.digest(1, last)
        writer = requests_of.Writer(1)
