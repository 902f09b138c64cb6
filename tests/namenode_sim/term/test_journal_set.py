"""Local copies of the quorum's edits: next to it, never in its way."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from journal.errors import QuorumLost
from journal.links.kept_links import KeptLinks
from journal.model import TxId
from journal.writer.window import awaitable
from namenode_sim.edits.codec import encode
from namenode_sim.edits.ops import EndLogSegment, Op, StartLogSegment
from namenode_sim.startup.recovery_items import best_copies
from namenode_sim.storage.local_copies import Append, LocalCopies, copies_from
from namenode_sim.storage.local_edits import last_local_edit, list_segments
from namenode_sim.term.journal_access import JournalSet
from tests.log_lines import captured
from tests.namenode_sim.term.memory_journal import MemoryJournal, MemoryWriter

MARKS: tuple[Op, Op] = (StartLogSegment(), EndLogSegment())


@asynccontextmanager
async def journal_set(
    *directories: Path, required: tuple[Path, ...] = ()
) -> AsyncIterator[tuple[JournalSet, LocalCopies]]:
    copies = LocalCopies(directories, required=required)
    writer = JournalSet(MemoryWriter(MemoryJournal()), copies)
    await writer.become_writer()
    try:
        yield writer, copies
    finally:
        copies.close()


async def segment(writer: JournalSet, first: int, *, closed: bool = True) -> None:
    await writer.start_segment(TxId(first))
    for txid, op in enumerate(MARKS, first):
        await write(writer, txid, encode(op, TxId(txid)))
    if closed:
        await writer.finalize_segment(TxId(first + 1))


async def write(writer: JournalSet, txid: int, records: bytes) -> None:
    done, ended = awaitable()
    writer.begin(TxId(txid), 1, records, ended)
    await done


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "current").glob("edits_*"))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


FIRST = "edits_0000000000000000001-0000000000000000002"
SECOND = "edits_0000000000000000003-0000000000000000004"


async def test_every_directory_gets_hadoop_s_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    async with journal_set(one, two) as (writer, copies):
        await segment(writer, 1)
        await segment(writer, 3)
        await until(lambda: names(one) == names(two) == [FIRST, SECOND])
        assert copies.failed() == {}
    assert [(s.first, s.last) for s in list_segments([one])] == [(1, 2), (3, 4)]


async def test_a_failing_directory_is_dropped_and_taken_back_with_the_next_segment(
    tmp_path: Path,
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    bad.write_text("in the way")
    async with journal_set(good, bad) as (writer, copies):
        await segment(writer, 1)
        await until(lambda: names(good) == [FIRST] and str(bad) in copies.failed())
        bad.unlink()
        await segment(writer, 3)
        await until(lambda: names(good) == [FIRST, SECOND] and names(bad) == [SECOND])
        assert copies.failed() == {}


async def test_a_disk_that_hangs_delays_no_commit(tmp_path: Path) -> None:
    hanging = tmp_path / "hanging"
    note = hanging / "current" / "nnha_copies_from"
    note.parent.mkdir(parents=True)
    os.mkfifo(note)  # to open it hangs
    async with journal_set(hanging) as (writer, copies):
        async with asyncio.timeout(30):
            await writer.start_segment(TxId(1))
            frame = encode(MARKS[0], TxId(1))
            for txid in range(1, 40):
                await write(writer, txid, frame * (512 * 1024 // len(frame)))
        assert "behind the quorum" in copies.failed()[str(hanging)]
        # Bad schedule: a second writer finds the first reader, and the next one hangs for ever.
        with note.open("w") as pipe:
            note.unlink()
            note.write_text("1")
            pipe.write("1")


async def test_a_file_of_somebody_else_is_left_alone_and_stops_no_copy(tmp_path: Path) -> None:
    """Begin its name as a segment's, and go on with no number."""
    strange = tmp_path / "current" / "edits_inprogress_of_last_week"
    strange.parent.mkdir()
    strange.touch()
    async with journal_set(tmp_path) as (writer, copies):
        await segment(writer, 1)
        await until(lambda: names(tmp_path) == [FIRST, strange.name])
        assert copies.failed() == {}


async def test_a_bug_in_a_copy_is_logged_and_ends_no_copy_for_good(tmp_path: Path) -> None:
    async with journal_set(tmp_path) as (writer, copies):
        with captured("local_edits.broken") as lines:
            await segment(writer, 1, closed=False)
            copies.hand(Append(cast("bytes", "no bytes")))
            await until(lambda: bool(copies.failed()))
        assert [(line["directory"], line["log_level"]) for line in lines] == [
            (str(tmp_path), "error")
        ]
        assert "TypeError" in copies.failed()[str(tmp_path)]
        await writer.finalize_segment(TxId(2))
        await segment(writer, 3)
        await until(lambda: SECOND in names(tmp_path))
        assert copies.failed() == {}


async def test_a_required_directory_that_fails_is_told(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_text("in the way")
    told: list[str] = []
    async with journal_set(bad, required=(bad,)) as (writer, copies):
        copies.on_required_lost(told.append)
        await segment(writer, 1)
        await until(lambda: bool(told))
    assert str(bad) in told[0]


async def test_what_a_term_left_open_is_set_aside_and_believed_by_nobody(tmp_path: Path) -> None:
    async with journal_set(tmp_path) as (writer, _):
        await segment(writer, 5)
        await segment(writer, 7, closed=False)
    assert copies_from(tmp_path) == 5
    assert last_local_edit([tmp_path], TxId(0)) == 0
    assert best_copies([tmp_path], TxId(0)) == []
    async with journal_set(tmp_path) as (writer, _):
        await segment(writer, 7)
    open_before = "edits_inprogress_0000000000000000007.stale"
    assert open_before in names(tmp_path)
    assert names(tmp_path)[-1] == open_before
    assert "edits_0000000000000000007-0000000000000000008" in names(tmp_path)


async def test_what_the_quorum_may_forget_goes_from_the_directories_as_well(tmp_path: Path) -> None:
    """Delete also from a failed one, for its disk may be full; not what is being written."""
    last = "edits_inprogress_0000000000000000005"
    async with journal_set(tmp_path) as (writer, copies):
        await segment(writer, 1)
        await segment(writer, 3)
        await segment(writer, 5, closed=False)
        await until(lambda: names(tmp_path) == [FIRST, SECOND, last])
        writer.purge_logs(TxId(3))
        await until(lambda: names(tmp_path) == [SECOND, last])
        writer.purge_logs(TxId(99))
        await until(lambda: names(tmp_path) == [last])
        assert copies.failed() == {}
        (tmp_path / "current" / "edits_0000000000000000005-0000000000000000006").mkdir()
        await writer.finalize_segment(TxId(6))
        await until(lambda: str(tmp_path) in copies.failed())
        (tmp_path / "current" / FIRST).touch()
        writer.purge_logs(TxId(3))
        await until(lambda: FIRST not in names(tmp_path))


async def test_no_directory_is_told_of_a_segment_before_the_quorum_has_agreed(
    tmp_path: Path,
) -> None:
    """Wait, as a finder of the files takes the first and the last edit for true."""
    lost = QuorumLost("2 of 3 are down", failures={})
    journal = MemoryJournal(refuses={"start_segment": lost})
    copies = LocalCopies([tmp_path])
    writer = JournalSet(MemoryWriter(journal), copies)
    await writer.become_writer(predecessor_gone_until=1.0)
    with pytest.raises(QuorumLost):
        await segment(writer, 1)
    journal.refuses = {"finalize_segment": lost}
    with pytest.raises(QuorumLost):
        await segment(writer, 3)
    journal.refuses.clear()
    copies.close()  # when all that was handed over is done
    assert names(tmp_path) == ["edits_inprogress_0000000000000000003"]
    await writer.finalize_segment(TxId(4))
    await writer.close()
    assert journal.last_txid == 4
    assert (journal.told_gone, journal.closed) == ([True], ["writer 1"])


async def test_what_is_connected_for_the_next_writer_ends_with_the_access() -> None:
    """Leave nothing for tests.balance to find."""
    kept = KeptLinks([("127.0.0.1", 1)])
    access = replace(MemoryJournal().access(), kept=kept)
    access.start(lambda: True)
    await asyncio.sleep(0)  # a turn, in which it makes its links
    await access.close()
