"""What a writer does while a repair waits for a disk, a peer or its turn: no repair undoes it."""

import asyncio
from pathlib import Path

import pytest

from journal.core.requests import Format, PurgeLogs
from journal.model import JournalId, TxId
from journal.node.owner.owner import JournalOwner
from journal.node.peers import Own
from journal.node.repair import segment_fetch
from journal.node.repair.scrub import report_missing, scrub
from journal.node.repair.sync import JournalSync
from journal.storage.disk import Disk
from journal.storage.layout import FETCHED
from tests.journal.core.requests_of import LIFE, NAMESPACE, Writer
from tests.journal.writer.journal_cluster import JOURNAL, formatted_nodes, write_segment
from tests.log_lines import captured
from tests.namenode_sim.term.test_tailer import on_virtual_time


@pytest.mark.parametrize("look", ["at its contents", "at its name"])
def test_what_is_purged_while_it_is_looked_at_is_no_damage(tmp_path: Path, look: str) -> None:
    async def play() -> None:
        disk, writer = Disk(tmp_path), Writer(1)
        owner = JournalOwner(JournalId("purged"), disk, disk.load())
        for request in (Format(NAMESPACE, incarnation=LIFE), writer.new_epoch()):
            await owner.ask(request)
        for first in (1, 31, 61):
            await owner.ask(writer.start(first))
            await owner.ask(writer.batch(first, first, first + 29))
            await owner.ask(writer.finalize(first, first + 29))
        writer.committed = 90
        purging = PurgeLogs(writer.stamp(), TxId(61))
        with captured("segment.damaged") as lines:
            if look == "at its contents":
                # The first segment is read, and its bytes have to wait for their time.
                asyncio.get_running_loop().call_later(0.1, owner.submit, purging)
                assert await scrub(owner, 1000) == 0
            else:
                owner.submit(purging)
                while not owner.turn.taken:
                    await asyncio.sleep(0)
                assert owner.state.find(TxId(31)) is not None
                await report_missing(owner)
        assert list(owner.state.segments) == [61]
        assert lines == []
        await owner.stop()

    on_virtual_time(play())


async def test_a_segment_that_came_too_late_does_not_lie_there_until_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with formatted_nodes(tmp_path, 2) as nodes:
        alone = nodes.writer(addresses=nodes.addresses[:1])
        await alone.become_writer()
        await write_segment(alone, 1, 3)
        await alone.close()
        daemon, quicker = nodes.daemons[1], Writer(1)
        assert daemon is not None
        owner = daemon.node.owner_of(JOURNAL)
        await owner.ask(quicker.new_epoch())
        fetch = segment_fetch.fetch_finalized

        async def fetch_slowly(*asked: object) -> None:
            await fetch(*asked)  # type: ignore[arg-type]
            await owner.ask(quicker.start(1))

        monkeypatch.setattr(segment_fetch, "fetch_finalized", fetch_slowly)
        own = Own("127.0.0.1", daemon.rpc_port)
        syncing = JournalSync(owner, nodes.addresses, own, daemon.node.settings)
        with captured("sync.segment_failed") as lines:
            assert await syncing.round() == 0
        assert len(lines) == 1
        assert list((nodes.current(1).parent / FETCHED).iterdir()) == []
