"""Purging: what is removed, what is never removed, and which calls it must not affect."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from journal.core import effects
from journal.core.effects import PurgeFiles
from journal.core.machine import step
from journal.core.replies import Done, Fetch, Prepared
from journal.core.requests import AcceptRecovery, AdoptRecovery, PrepareRecovery, PurgeLogs
from journal.core.state import Decision, JournalState
from journal.errors import BadRequest, Fenced, StorageFailed
from journal.model import Epoch, Segment, TxId
from journal.storage import layout
from tests.journal.core import requests_of
from tests.journal.core.requests_of import segment
from tests.journal.node.process import JID, node_and_client, segment_url, until
from tests.journal.writer.journal_cluster import Nodes, write_segment


def purge(writer: requests_of.Writer, minimum: int) -> PurgeLogs:
    return PurgeLogs(writer.stamp(), TxId(minimum))


def written(
    journal: requests_of.LocalJournal, writer: requests_of.Writer, *ranges: tuple[int, int]
) -> None:
    for first, last in ranges:
        journal.ask(writer.start(first))
        journal.ask(writer.batch(first, first, last))
        journal.ask(writer.finalize(first, last))


def new_writer(
    journal: requests_of.LocalJournal, epoch: int, committed: int | None = None
) -> requests_of.Writer:
    writer = requests_of.Writer(epoch, committed=committed)
    journal.ask(writer.new_epoch())
    return writer


def names(root: Path) -> set[str]:
    return {path.name for path in (root / "current").glob("edits_*")}


@pytest.mark.row("8.4 testPurgeLogs")
async def test_purge_logs(nodes: Nodes) -> None:
    """testPurgeLogs: five segments of one edit, and what recoveries have left."""
    writer = nodes.writer()
    await writer.become_writer()
    for txid in range(1, 6):
        await write_segment(writer, txid, txid)
    for i in range(3):
        (nodes.current(i) / "edits_inprogress_0000000000000000001.epoch=140").write_bytes(b"x")
        (nodes.current(i) / "edits_inprogress_0000000000000000002.empty").write_bytes(b"x")
        (nodes.current(i) / "edits_inprogress_0000000000000000004.stale").write_bytes(b"x")
    writer.purge_logs(TxId(3))

    def left(i: int) -> set[str]:
        return {path.name for path in nodes.current(i).glob("edits_*")}

    wanted = {f"edits_{txid:019d}-{txid:019d}" for txid in (3, 4, 5)}
    wanted.add("edits_inprogress_0000000000000000004.stale")
    await until(lambda: all(left(i) == wanted for i in range(3)), "only 3, 4 and 5 are left")
    await writer.close()
    assert await nodes.recover() == (2, 5)


@pytest.mark.row("8.4 testPurgeLogs")
def test_purge_logs_takes_decisions_with_them(tmp_path: Path) -> None:
    journal = requests_of.formatted(tmp_path)
    written(journal, new_writer(journal, 1), (1, 2), (3, 4))
    writer = new_writer(journal, 2, committed=4)
    journal.ask(AcceptRecovery(writer.stamp(), segment(1, 2, 1, finalized=True)))
    journal.ask(AcceptRecovery(writer.stamp(), segment(3, 4, 1, finalized=True)))
    journal.ask(purge(writer, 3))
    for folder in (layout.PAXOS, layout.SEGMENTS):
        assert {path.name for path in (tmp_path / "current" / folder).iterdir()} == {"3"}
    journal.close()
    again = requests_of.LocalJournal(tmp_path)
    assert set(again.state.segments) == {3}
    assert set(again.state.decisions) == {3}


def test_a_segment_that_reaches_the_minimum_stays(tmp_path: Path) -> None:
    journal = requests_of.formatted(tmp_path)
    writer = new_writer(journal, 1, committed=0)
    written(journal, writer, (1, 3), (4, 6), (7, 9))
    writer.committed = 9
    journal.ask(purge(writer, 6))
    assert names(tmp_path) == {segment(f, f + 2, finalized=True).name() for f in (4, 7)}
    with pytest.raises(StorageFailed, match="cannot read"):
        journal.disk.extent(segment(1, 3, finalized=True))  # where it ended is forgotten, too


def test_the_open_and_the_newest_segment_stay(tmp_path: Path) -> None:
    """Without the newest the next writer would number its edits from 1 again."""
    journal = requests_of.formatted(tmp_path)
    writer = new_writer(journal, 1)
    written(journal, writer, (1, 3), (4, 6))
    journal.ask(writer.start(7))
    writer.committed = 6
    journal.ask(purge(writer, 1000))
    assert set(journal.state.segments) == {4}
    assert journal.state.open is not None
    assert segment(7, 7).name() in names(tmp_path)
    journal.ask(writer.batch(7, 7, 8))
    journal.ask(purge(writer, 1000))
    assert segment(7, 8).name() in names(tmp_path)


def test_what_is_not_known_to_be_committed_stays(tmp_path: Path) -> None:
    journal = requests_of.formatted(tmp_path)
    writer = new_writer(journal, 1)
    written(journal, writer, (1, 3), (4, 6), (7, 9))
    writer.committed = 5
    journal.ask(purge(writer, 7))
    assert set(journal.state.segments) == {4, 7}


def test_an_abandoned_segment_goes_with_its_decision_and_not_before(tmp_path: Path) -> None:
    journal = requests_of.formatted(tmp_path)
    old = new_writer(journal, 1)
    journal.ask(old.start(1))
    journal.ask(old.batch(1, 1, 3))
    writer = new_writer(journal, 2, committed=6)
    written(journal, writer, (4, 6))
    journal.ask(purge(writer, 3))
    assert set(journal.state.segments) == {1, 4}
    journal.ask(purge(writer, 4))
    assert names(tmp_path) == {segment(4, 6, finalized=True).name()}


def test_a_decision_stays_while_its_damaged_segment_stays() -> None:
    """Keep the decision, as it says by which bytes the damage is to be replaced."""
    old, newest = segment(1, 3, finalized=True), segment(4, 6)
    state = JournalState(namespace=requests_of.NAMESPACE, promised=Epoch(1), committed=TxId(6))
    for one in (old, newest):
        state = state.with_segment(one).with_decision(Decision(one, Epoch(1)))
        state = state.with_damage(one.first, "a test said so")
    done = step(state, purge(requests_of.Writer(1), 10))
    assert done.effects == (PurgeFiles(TxId(10), (old,), (old.first,)),)
    assert set(done.state.damaged) == set(done.state.decisions) == {newest.first}


def test_a_fenced_writer_purges_nothing_and_nonsense_is_refused(tmp_path: Path) -> None:
    journal = requests_of.formatted(tmp_path)
    old = new_writer(journal, 1, committed=0)
    written(journal, old, (1, 3), (4, 6))
    old.committed = 6
    new_writer(journal, 2)
    with pytest.raises(Fenced):
        journal.ask(purge(old, 4))
    with pytest.raises(BadRequest):
        journal.ask(purge(requests_of.Writer(2), 0))
    assert set(journal.state.segments) == {1, 4}


@pytest.mark.row("X21")
def test_x21_a_purge_during_a_recovery_leaves_the_recovery_whole(tmp_path: Path) -> None:
    """Purge while the decided bytes of an old segment are being fetched."""
    journal = requests_of.formatted(tmp_path)
    old = new_writer(journal, 1)
    journal.ask(old.start(1))
    journal.ask(old.batch(1, 1, 2))
    writer = new_writer(journal, 2)
    decided = segment(1, 3, 1)
    reply = journal.ask(AcceptRecovery(writer.stamp(), decided))
    assert isinstance(reply, Fetch)
    download = journal.disk.begin_download(TxId(1), reply.epoch)
    writer.committed = 3
    journal.ask(purge(writer, 100))
    download.append(requests_of.segment_bytes(1, 3))
    download.finish()
    journal.ask(AdoptRecovery(reply.epoch, decided))
    journal.ask(writer.finalize(1, 3, 1))
    held = journal.state.find(TxId(1))
    assert held is not None
    assert held.finalized
    assert held.last == 3
    journal.close()
    assert requests_of.LocalJournal(tmp_path).state.find(TxId(1)) is not None


@pytest.mark.parametrize("ends", ["adopted", "dropped", "discarded"])
def test_what_is_left_of_a_download_is_purged_once_it_has_ended(tmp_path: Path, ends: str) -> None:
    journal, epoch = requests_of.formatted(tmp_path), Epoch(1)
    disk, path = journal.disk, tmp_path / "current" / layout.download_name(TxId(1), epoch)
    download = disk.begin_download(TxId(1), epoch)
    download.append(requests_of.segment_bytes(1, 3))
    clean = effects.PurgeFiles(TxId(9), (), ())
    disk.run((clean,))
    assert path.exists(), "it is under way"
    if ends == "discarded":
        download.discard()
    else:
        download.finish()
        dropped = effects.DropDownload(TxId(1), epoch)
        adopted = effects.AdoptDownload(segment(1, 3), epoch)
        disk.run((dropped if ends == "dropped" else adopted,))
    assert not path.exists()
    path.touch()
    disk.run((clean,))
    assert not path.exists()


def test_a_purged_segment_is_nothing_to_a_recovery() -> None:
    """Answer, in the other order, that what was let go of is absent, not damaged."""
    held = {TxId(f): Segment(TxId(f), TxId(f + 2), True, b"d" * 32) for f in (1, 4)}
    writer = requests_of.Writer(1, committed=6)
    state = JournalState(namespace=requests_of.NAMESPACE, promised=Epoch(1), segments=held)
    purged = step(state, purge(writer, 4))
    assert purged.reply == Done()
    answer = step(purged.state, PrepareRecovery(writer.stamp(), TxId(1))).reply
    assert isinstance(answer, Prepared)
    assert answer.segment is None


@pytest.mark.row("X21")
async def test_x21_a_download_that_is_open_survives_a_purge(tmp_path: Path) -> None:
    """Serve a reader that has begun; one that begins later finds nothing."""
    async with node_and_client(tmp_path) as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        writer = requests_of.Writer(1)
        await client.written(writer, 1, 4000)
        await client.finalize(writer, 1, 4000)
        await client.written(writer, 4001, 4001)
        await client.finalize(writer, 4001, 4001)
        writer.committed = 4001
        owner = daemon.node.find(JID)
        assert owner is not None
        async with aiohttp.ClientSession() as session:
            async with session.get(segment_url(daemon, 1)) as response:
                begun = await response.content.readexactly(100)
                await owner.ask(purge(writer, 4001))
                body = begun + await response.read()
            assert body[8:] == requests_of.records(1, 4000)
            answers = await asyncio.gather(
                *(_status(session, segment_url(daemon, first)) for first in (1, 4001))
            )
        assert answers == [404, 200]


async def test_a_purge_between_look_and_opening_is_not_an_error(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        writer = requests_of.Writer(1)
        for first in range(1, 60, 2):
            await client.written(writer, first, first + 1)
            await client.finalize(writer, first, first + 1)
        writer.committed = 60
        owner = daemon.node.find(JID)
        assert owner is not None
        async with aiohttp.ClientSession() as session:
            reads = [
                asyncio.create_task(_status(session, segment_url(daemon, first)))
                for first in range(1, 60, 2)
            ]
            for minimum in range(1, 60, 4):
                await owner.ask(purge(writer, minimum))
            assert set(await asyncio.gather(*reads)) <= {200, 404}


async def _status(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(url) as response:
        await response.read()
        return response.status
