"""A node continues the open segment: no late request removes an acknowledged edit."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from journal.core.rejoin import _ensure_current
from journal.core.replies import Fetch, Resumed
from journal.core.requests import AdoptCatchUp, CatchUp, Request, ResumeSegment
from journal.errors import BadRequest, Fenced, JournalError, OutOfSync, StorageFailed
from journal.model import LAYOUT_VERSION, NO_EPOCH, Epoch, TxId
from tests.journal.core import requests_of as requests

ROOT = Path("/journals/ns1")


def resume(writer: requests.Writer, first: int) -> ResumeSegment:
    return ResumeSegment(writer.stamp(), TxId(first), LAYOUT_VERSION)


def catch_up(writer: requests.Writer, first: int, last: int) -> CatchUp:
    return CatchUp(writer.stamp(), requests.segment(first, last, writer.epoch), LAYOUT_VERSION)


def download(journal: requests.LocalJournal, fetch: Fetch) -> AdoptCatchUp:
    """Bring the bytes next to our copy, as the node does; what is left is their adoption."""
    wanted = fetch.segment
    file = journal.disk.begin_download(wanted.first, fetch.epoch)
    file.append(requests.segment_bytes(wanted.first, wanted.last, fetch.epoch))
    file.finish()
    return AdoptCatchUp(fetch.epoch, wanted, LAYOUT_VERSION, file.size_bytes)


def next_of(journal: requests.LocalJournal, request: ResumeSegment | CatchUp | AdoptCatchUp) -> int:
    reply = journal.ask(request)
    assert isinstance(reply, Resumed)
    return reply.next_txid


def fetched(journal: requests.LocalJournal, request: CatchUp) -> AdoptCatchUp:
    reply = journal.ask(request)
    assert isinstance(reply, Fetch)
    return download(journal, reply)


@pytest.fixture
def files() -> requests.MemoryFiles:
    return requests.MemoryFiles()


@pytest.fixture
def written(files: requests.MemoryFiles) -> tuple[requests.LocalJournal, requests.Writer]:
    """Epoch 2 writes 1-5, of which nothing is finalized."""
    journal, writer = requests.formatted(ROOT, files), requests.Writer(2)
    journal.ask(writer.new_epoch())
    journal.ask(writer.start(1))
    journal.ask(writer.batch(1, 1, 5))
    return journal, writer


def rotten(
    files: requests.MemoryFiles, written: tuple[requests.LocalJournal, requests.Writer], at: int
) -> tuple[requests.LocalJournal, requests.Writer]:
    """6 is written as well, 1-5 are committed, a bit of that byte rots, and the node restarts."""
    journal, writer = written
    writer.committed = 5
    journal.ask(writer.batch(1, 6, 6))
    path = ROOT / "current" / "edits_inprogress_0000000000000000001"
    files.names_cached[path].cached[at] ^= 1
    return requests.LocalJournal(ROOT, files), writer


def names(files: requests.MemoryFiles) -> set[str]:
    return {name for name in files.names(ROOT / "current") if name.startswith("edits")}


def holds(journal: requests.LocalJournal, last: int, writer: int = 2) -> bool:
    state = journal.state
    ours = state.find(TxId(1)) if state.open is None else state.open.as_segment()
    assert ours is not None
    return ours.last == last and journal.disk.digest(ours).digest == requests.digest(
        1, last, writer
    )


def test_an_open_segment_goes_on(written: tuple[requests.LocalJournal, requests.Writer]) -> None:
    journal, writer = written
    assert next_of(journal, resume(writer, 1)) == 6
    journal.ask(writer.batch(1, 6, 7))
    assert holds(journal, 7)


def test_a_restarted_node_goes_on_behind_its_last_sound_edit(
    files: requests.MemoryFiles, written: tuple[requests.LocalJournal, requests.Writer]
) -> None:
    _, writer = written
    files.names_cached[ROOT / "current" / "edits_inprogress_0000000000000000001"].cached += b"torn"
    journal = requests.LocalJournal(ROOT, files)
    with pytest.raises(OutOfSync, match="no segment open"):
        journal.ask(writer.batch(1, 6, 6))
    assert next_of(journal, resume(writer, 1)) == 6
    journal.ask(writer.batch(1, 6, 8))
    journal.ask(writer.finalize(1, 8))
    found = journal.state.find(TxId(1))
    assert found is not None
    assert journal.disk.digest(found).digest == requests.digest(1, 8, 2)
    path = ROOT / "current" / "edits_0000000000000000001-0000000000000000008"
    assert files.read(path) == requests.segment_bytes(1, 8, 2)


def test_a_segment_that_began_without_us_is_begun(files: requests.MemoryFiles) -> None:
    journal, writer = requests.formatted(ROOT, files), requests.Writer(2)
    assert next_of(journal, resume(writer, 7)) == 7
    journal.ask(writer.batch(7, 7, 9))
    journal.ask(writer.finalize(7, 9))
    assert requests.LocalJournal(ROOT, files).state.writer == 2


def test_an_older_writers_copy_is_moved_aside(
    files: requests.MemoryFiles, written: tuple[requests.LocalJournal, requests.Writer]
) -> None:
    journal, _ = written
    newer = requests.Writer(3)
    assert next_of(journal, resume(newer, 1)) == 1
    assert "edits_inprogress_0000000000000000001.stale" in names(files)
    journal.ask(newer.batch(1, 1, 2))
    again = requests.LocalJournal(ROOT, files)
    assert holds(again, 2, writer=3)
    assert again.state.segments[TxId(1)].writer == 3


def test_an_older_writers_copy_is_replaced_by_a_catch_up(
    files: requests.MemoryFiles, written: tuple[requests.LocalJournal, requests.Writer]
) -> None:
    """Replace it though it is longer than what the newer writer has committed."""
    journal, _ = written
    newer = requests.Writer(3)
    assert next_of(journal, fetched(journal, catch_up(newer, 1, 2))) == 3
    journal.ask(newer.batch(1, 3, 4))
    again = requests.LocalJournal(ROOT, files)
    assert holds(again, 4, writer=3)
    assert again.state.writer == 3


def test_a_catch_up_fills_what_was_missed(
    files: requests.MemoryFiles, written: tuple[requests.LocalJournal, requests.Writer]
) -> None:
    journal, writer = written
    assert next_of(journal, fetched(journal, catch_up(writer, 1, 40))) == 41
    journal.ask(writer.batch(1, 41, 42))
    assert holds(journal, 42)
    assert holds(requests.LocalJournal(ROOT, files), 42)
    assert not [name for name in names(files) if "epoch=" in name]


def test_what_is_finalized_or_unknown_is_left_alone(
    written: tuple[requests.LocalJournal, requests.Writer],
) -> None:
    journal, writer = written
    journal.ask(writer.finalize(1, 5))
    for request in (resume(writer, 1), catch_up(writer, 1, 9), resume(writer, 3)):
        with pytest.raises(OutOfSync, match="was left"):
            journal.ask(request)
    unknown = replace(requests.segment(6, 7), writer=NO_EPOCH)
    with pytest.raises(OutOfSync, match="nobody knows"):
        _ensure_current(journal.state.with_segment(unknown), TxId(6), Epoch(2))
    bad = replace(catch_up(writer, 6, 9), segment=replace(requests.segment(6, 9), digest=b"short"))
    with pytest.raises(BadRequest):
        journal.ask(bad)


def test_damage_is_repaired_by_a_catch_up_only(
    files: requests.MemoryFiles, written: tuple[requests.LocalJournal, requests.Writer]
) -> None:
    journal, writer = rotten(files, written, -60)
    assert journal.state.damaged
    with pytest.raises(StorageFailed, match="damaged"):
        journal.ask(resume(writer, 1))
    sound = journal.state.damaged[TxId(1)].segment.last
    with pytest.raises(StorageFailed, match="damaged"):
        journal.ask(catch_up(writer, 1, sound - 1))
    assert next_of(journal, fetched(journal, catch_up(writer, 1, 6))) == 7
    assert not journal.state.damaged
    assert holds(requests.LocalJournal(ROOT, files), 6)


# ---- late twins: serials do not survive a restart ----


def test_a_late_catch_up_takes_nothing_from_behind_a_damage(
    files: requests.MemoryFiles, written: tuple[requests.LocalJournal, requests.Writer]
) -> None:
    """Seed 1500102981: 6 was acknowledged here, and a CatchUp of the time before comes again."""
    journal, writer = rotten(files, written, len(requests.segment_bytes(1, 2, 2)) - 1)
    assert journal.state.damaged[TxId(1)].segment.last == 1
    with pytest.raises(StorageFailed, match="damaged"):
        journal.ask(fetched(journal, catch_up(writer, 1, 5)))
    assert journal.state.damaged, "what was fetched is dropped, and it still has no vote"
    assert next_of(journal, fetched(journal, catch_up(writer, 1, 6))) == 7
    assert not journal.state.damaged


def test_an_older_writers_damaged_copy_is_replaced_however_long_it_is(
    files: requests.MemoryFiles, written: tuple[requests.LocalJournal, requests.Writer]
) -> None:
    journal, _ = rotten(files, written, len(requests.segment_bytes(1, 2, 2)) - 1)
    writer = requests.Writer(3)
    journal.ask(writer.new_epoch())
    assert next_of(journal, fetched(journal, catch_up(writer, 1, 3))) == 4
    assert not journal.state.damaged


@pytest.mark.parametrize("kind", ["start", "resume", "catch up"])
def test_late_twins_take_no_acknowledged_edit_away(
    files: requests.MemoryFiles, written: tuple[requests.LocalJournal, requests.Writer], kind: str
) -> None:
    """Send the twin as the first request after the restart, so no serial refuses it."""
    journal, writer = written
    twins: dict[str, Request] = {
        "start": requests.Writer(2).start(1),
        "resume": resume(requests.Writer(2), 1),
        "catch up": catch_up(requests.Writer(2), 1, 3),
    }
    late = twins[kind]
    journal.ask(writer.batch(1, 6, 8))
    journal = requests.LocalJournal(ROOT, files)
    try:
        assert not isinstance(journal.ask(late), Fetch)
    except OutOfSync:
        assert kind == "start"
    assert holds(journal, 8)
    assert next_of(journal, resume(writer, 1)) == 9
    with pytest.raises(OutOfSync, match="came after"):
        journal.ask(late)


@pytest.mark.parametrize("request_of", [lambda w: resume(w, 1), lambda w: catch_up(w, 1, 9)])
def test_a_twin_does_not_reopen_what_the_writer_has_left(
    files: requests.MemoryFiles,
    written: tuple[requests.LocalJournal, requests.Writer],
    request_of: Callable[[requests.Writer], Request],
) -> None:
    """Let the node miss the end of 1-9; its writer is in segment 10."""
    journal, writer = written
    journal.ask(writer.start(10))
    journal.ask(writer.batch(10, 10, 12))
    journal = requests.LocalJournal(ROOT, files)
    with pytest.raises(OutOfSync, match="was left"):
        journal.ask(request_of(requests.Writer(2)))
    assert next_of(journal, resume(writer, 10)) == 13


# ---- what may happen while the bytes are downloaded ----


def test_a_download_that_is_overtaken_takes_nothing_away(
    files: requests.MemoryFiles, written: tuple[requests.LocalJournal, requests.Writer]
) -> None:
    """Let the writer give up waiting, resume, and have 6-20 acknowledged here."""
    journal, writer = written
    adoption = fetched(journal, catch_up(writer, 1, 10))
    assert next_of(journal, resume(writer, 1)) == 6
    journal.ask(writer.batch(1, 6, 20))
    assert next_of(journal, adoption) == 21
    assert holds(journal, 20)
    assert not [name for name in names(files) if "epoch=" in name]


def test_a_download_that_is_still_ahead_is_taken_while_the_segment_is_open(
    written: tuple[requests.LocalJournal, requests.Writer],
) -> None:
    journal, writer = written
    adoption = fetched(journal, catch_up(writer, 1, 10))
    assert next_of(journal, resume(writer, 1)) == 6
    journal.ask(writer.batch(1, 6, 7))
    assert next_of(journal, adoption) == 11
    with pytest.raises(OutOfSync, match="expecting nextTxId=11"):
        journal.ask(writer.batch(1, 8, 9))
    journal.ask(writer.batch(1, 11, 12))
    assert holds(journal, 12)


def test_a_promise_during_the_download_voids_it(
    files: requests.MemoryFiles, written: tuple[requests.LocalJournal, requests.Writer]
) -> None:
    journal, writer = written
    adoption = fetched(journal, catch_up(writer, 1, 10))
    journal.ask(requests.Writer(3).new_epoch())
    with pytest.raises(Fenced):
        journal.ask(adoption)
    assert holds(journal, 5)
    assert not [name for name in names(files) if "epoch=" in name]
    with pytest.raises(Fenced):
        journal.ask(resume(writer, 1))


def test_a_recovery_that_came_between_stands(
    files: requests.MemoryFiles, written: tuple[requests.LocalJournal, requests.Writer]
) -> None:
    """End the segment by a newer writer's decision, before and after a restart."""
    journal, writer = written
    adoption = fetched(journal, catch_up(writer, 1, 10))
    third = requests.Writer(3)
    journal.ask(third.new_epoch())
    journal.accept(third, requests.segment(1, 5, 2), b"")
    for node in (journal, requests.LocalJournal(ROOT, files)):
        for late in (adoption, resume(requests.Writer(2), 1), catch_up(requests.Writer(2), 1, 10)):
            with pytest.raises(Fenced):
                node.ask(late)
        with pytest.raises(OutOfSync, match="has decided"):
            node.ask(resume(requests.Writer(3, 100), 1))
        assert holds(node, 5)


def test_the_next_segment_voids_a_download(
    written: tuple[requests.LocalJournal, requests.Writer],
) -> None:
    journal, writer = written
    adoption = fetched(journal, catch_up(writer, 1, 10))
    journal.ask(writer.start(11))
    with pytest.raises(OutOfSync, match="was left"):
        journal.ask(adoption)
    journal.ask(writer.batch(11, 11, 12))


# ---- power loss ----


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("work", ["resume", "catch up"])
def test_power_loss_between_the_effects_loses_nothing(work: str, older: bool) -> None:
    """Cut after every operation, with every kind of luck: what was acknowledged is there, or, of
    a writer whose edits are void, what is there is not taken for the newer one's."""
    rng = random.Random(7)
    for cut in range(1, 60):
        for _ in range(4):
            files = requests.MemoryFiles()
            journal, first = requests.formatted(ROOT, files), requests.Writer(2)
            journal.ask(first.new_epoch())
            journal.ask(first.start(1))
            journal.ask(first.batch(1, 1, 5))
            writer = requests.Writer(3) if older else requests.Writer(2, 50)
            journal = requests.LocalJournal(ROOT, files)
            files.fail_at = files.operations + cut
            try:
                _rejoin_and_write(journal, work, writer)
                done = True
            except requests.PowerCut:
                done = False
            files.cut_power(lambda: rng.random() < 0.5)
            again = requests.LocalJournal(ROOT, files)
            _check_after_power_loss(again, writer, older=older, done=done)
            if done:
                return
    pytest.fail("it never came to an end")


def _rejoin_and_write(journal: requests.LocalJournal, work: str, writer: requests.Writer) -> None:
    if work == "resume":
        following = next_of(journal, resume(writer, 1))
    else:
        following = next_of(journal, fetched(journal, catch_up(writer, 1, 8)))
    journal.ask(writer.batch(1, following, following + 1))


def _check_after_power_loss(
    journal: requests.LocalJournal, writer: requests.Writer, *, older: bool, done: bool
) -> None:
    assert not journal.state.damaged
    ours = journal.state.find(TxId(1))
    if ours is None:
        assert older, "acknowledged edits are gone"
        assert not done
    elif ours.writer == writer.epoch:
        assert holds(journal, ours.last, writer.epoch), "edits under another writer's name"
        assert older or ours.last >= 5
    else:
        assert holds(journal, 5)
        assert not done
    writer.serial += 100
    try:
        following = next_of(journal, resume(writer, 1))
    except JournalError as failure:
        pytest.fail(f"it cannot go on: {failure}")
    journal.ask(writer.batch(1, following, following + 2))
