"""Background sync between real nodes (Hadoop's TestJournalNodeSync)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, cast

import aiohttp
import pytest
from prometheus_client import REGISTRY

from journal.errors import QuorumLost, StorageFailed
from journal.model import TxId
from journal.node.process.daemon import JournalNodeDaemon
from journal.node.repair import scrub
from journal.node.repair.sync import JournalSync
from journal.writer.writer import QuorumWriter
from tests.journal.node.process import segment_url, until
from tests.journal.writer import journal_cluster
from tests.journal.writer.journal_cluster import JOURNAL, Nodes, edits
from tests.log_lines import captured

MOVED_ASIDE = (".empty", ".stale")


@asynccontextmanager
async def syncing_nodes(folder: Path, count: int = 3, **extra: Any) -> AsyncIterator[Nodes]:  # noqa: ANN401
    async with journal_cluster.formatted_nodes(folder, count) as nodes:
        await nodes.stop()
        nodes.extra = {
            "peers": {JOURNAL: nodes.addresses},
            "sync_interval_seconds": 0.1,
            "sync_quick_seconds": 0.05,
            **extra,
        }
        await nodes.start()
        yield nodes


@asynccontextmanager
async def writing(nodes: Nodes) -> AsyncIterator[QuorumWriter]:
    writer = nodes.writer()
    try:
        await writer.become_writer()
        await until_heard(nodes)
        yield writer
    finally:
        await writer.close()


async def until_heard(nodes: Nodes) -> None:
    """Wait until every node that runs has heard of a writer; sync brings nothing before."""

    def heard() -> bool:
        owners = [each.node.find(JOURNAL) for each in nodes.daemons if each is not None]
        return all(owner is not None and owner.state.promised > 0 for owner in owners)

    await until(heard, "a writer has made itself known to every node")


async def write_segments(writer: QuorumWriter, *firsts: int, length: int = 3) -> None:
    for first in firsts:
        await journal_cluster.write_segment(writer, first, first + length - 1)


def contents(nodes: Nodes, i: int) -> dict[str, bytes] | None:
    """Return a node's segments, or None if one was renamed between its listing and its reading.

    Not what was moved aside: sync may bring a segment while the writer's own is under way.
    """
    found = nodes.current(i).glob("edits_*")
    try:
        return {path.name: path.read_bytes() for path in found if path.suffix not in MOVED_ASIDE}
    except FileNotFoundError:
        return None


async def until_equal(nodes: Nodes, wanted: int) -> None:
    """Wait until every node holds the same finalized segments, byte for byte, and nothing else."""

    def equal() -> bool:
        first, *others = [contents(nodes, i) for i in range(len(nodes.daemons))]
        if first is None or len(first) != wanted:
            return False
        return all(other == first for other in others)

    await until(equal, "all nodes hold the same")


async def until_written(nodes: Nodes, i: int, records: bytes) -> None:
    """Wait until a node's files hold these records.

    A quorum may have acknowledged them without it.
    """

    def written() -> bool:
        return any(records in data for data in (contents(nodes, i) or {}).values())

    await until(written, "the node holds the records")


@pytest.mark.row("8.3 SyncAfterJNdowntime")
async def test_sync_after_jn_downtime(tmp_path: Path) -> None:
    """SyncAfterJNdowntime, without the roll that Hadoop needs: nothing is written any more."""
    async with syncing_nodes(tmp_path) as nodes, writing(nodes) as writer:
        await nodes.stop(0)
        await write_segments(writer, *range(1, 25, 3))
        await nodes.start(0)
        await until_equal(nodes, 8)


async def test_a_node_that_comes_back_to_an_idle_journal_is_made_whole(tmp_path: Path) -> None:
    """Restart it with a hole in front of what it has, and without a writer."""
    async with syncing_nodes(tmp_path) as nodes:
        async with writing(nodes) as writer:
            await write_segments(writer, 1)
            await until_equal(nodes, 1)
            await nodes.stop(2)
            await write_segments(writer, 4, 7)
        await nodes.stop(0, 1)
        await nodes.start()
        await until_equal(nodes, 3)


@pytest.mark.row("X9")
async def test_x9_a_finalized_segment_replaces_the_abandoned_one(tmp_path: Path) -> None:
    """Exactly one file for the segment remains, and reads of it work."""
    async with syncing_nodes(tmp_path) as nodes, writing(nodes) as writer:
        await writer.start_segment(TxId(1))
        await writer.write(TxId(1), 2, edits(1, 2))
        await until_written(nodes, 1, edits(1, 2))
        await nodes.stop(1)
        await writer.write(TxId(3), 2, edits(3, 4))
        await writer.finalize_segment(TxId(4))
        await nodes.start(1)
        final = "edits_0000000000000000001-0000000000000000004"

        await until(
            lambda: list(contents(nodes, 1) or ()) == [final],
            "the segment has come, the old one gone",
        )
        await nodes.stop()
        await nodes.start(1)
        reader = nodes.daemons[1]
        assert reader is not None
        async with (
            aiohttp.ClientSession() as session,
            session.get(
                segment_url(reader, 1, JOURNAL), params={"inProgressOk": "false"}
            ) as response,
        ):
            body = await response.read()
        assert response.status == 200
        assert body.endswith(edits(1, 4))


async def test_what_was_never_acknowledged_is_replaced(tmp_path: Path) -> None:
    """Abandon a copy as long as the finalized one, with other bytes."""
    async with syncing_nodes(tmp_path) as nodes:
        writer = nodes.writer(addresses=nodes.addresses)
        await writer.become_writer()
        await write_segments(writer, 1)
        await writer.start_segment(TxId(4))
        await nodes.stop(1, 2)
        with pytest.raises(QuorumLost, match="needs 2 of 3"):
            await writer.write(TxId(4), 3, edits(4, 6, "lost"))
        await until_written(nodes, 0, edits(4, 6, "lost"))
        await writer.close()
        await nodes.stop(0)
        await nodes.start(1, 2)
        async with writing(nodes) as successor:
            await journal_cluster.write_segment(successor, 4, 6, "kept")
        await nodes.start(0)
        await until(lambda: (4, 6) in nodes.finalized(0), "the segment has come")
        kept = nodes.current(0) / "edits_0000000000000000004-0000000000000000006"
        assert kept.read_bytes().endswith(edits(4, 6, "kept"))


@pytest.mark.row("8.3 testJournalNodeSync")
@pytest.mark.row(
    "8.3 MultipleMissingLogs",
    "8.3 DiscontinuousMissingLogs",
    "8.3 MultipleJournalsMissingLogs",
    "8.3 MultipleJournalsMultipleMissingLogs",
    because="deletes as each of these rows says, and then compares bytes",
)
async def test_journal_node_sync_returns_deleted_segments(tmp_path: Path) -> None:
    """testJournalNodeSync, MultipleMissingLogs, DiscontinuousMissingLogs, MultipleJournals..."""
    async with syncing_nodes(tmp_path) as nodes, writing(nodes) as writer:
        await write_segments(writer, *range(1, 31, 3))
        await until_equal(nodes, 10)
        deletions = {
            "one": [(0, 4)],
            "two adjacent": [(0, 7), (0, 10)],
            "two with a gap": [(0, 1), (0, 13)],
            "the same on two nodes": [(0, 16), (1, 16)],
            "several on several": [(0, 1), (1, 1), (1, 4), (2, 7)],
            "the newest": [(2, 28)],
        }
        for what, gone in deletions.items():
            for i, first in gone:
                (nodes.current(i) / f"edits_{first:019d}-{first + 2:019d}").unlink()
            await until_equal(nodes, 10)
            assert nodes.finalized(0) == nodes.finalized(1), what


@pytest.mark.row("8.3 RandomJournalMissingLogs")
async def test_random_journal_missing_logs(tmp_path: Path) -> None:
    """RandomJournalMissingLogs: 20 segments, 5 random deletions, never one of all nodes."""
    rng = Random(20)
    async with syncing_nodes(tmp_path) as nodes, writing(nodes) as writer:
        await write_segments(writer, *range(1, 21), length=1)
        await until_equal(nodes, 20)
        for first in rng.sample(range(1, 21), 5):
            i = rng.randrange(3)
            (nodes.current(i) / f"edits_{first:019d}-{first:019d}").unlink()
        await until_equal(nodes, 20)


@pytest.mark.row("8.3 SyncAfterJNformat")
async def test_sync_after_jn_format(tmp_path: Path) -> None:
    """SyncAfterJNformat: one node is wiped and formatted while the others go on writing."""
    async with syncing_nodes(tmp_path) as nodes, writing(nodes) as writer:
        await write_segments(writer, 1, 4, 7, 10)
        await until_equal(nodes, 4)
        alone = nodes.writer(addresses=nodes.addresses[:1])
        await alone.format(force=True)
        await alone.close()
        await write_segments(writer, 13, 16, 19, 22, 25, 28)
        await until_equal(nodes, 10)


async def test_a_flipped_bit_is_found_never_served_and_repaired(tmp_path: Path) -> None:
    """Repair without an operator: the damage is in the middle of an edit."""
    async with (
        syncing_nodes(tmp_path, scrub_interval_seconds=0.05) as nodes,
        writing(nodes) as writer,
    ):
        await write_segments(writer, 1, 4)
        await until_equal(nodes, 2)
        before = counted("nnha_jn_corrupt_records_total")
        flip(nodes.current(1) / "edits_0000000000000000001-0000000000000000003", 40)
        await until(
            lambda: counted("nnha_jn_corrupt_records_total") > before, "the scrubber has found it"
        )
        await until_equal(nodes, 2)
        node = nodes.daemons[1]
        assert node is not None
        await until(lambda: not status(node)["damaged_segments"], "the status is clean again")


async def test_damage_is_never_served(nodes: Nodes) -> None:
    """Read before the scrubber: the reader gets less than was promised, and nothing false."""
    async with writing(nodes) as writer:
        await write_segments(writer, 1, 4)
        await until_equal(nodes, 2)
        node = nodes.daemons[2]
        assert node is not None
        flip(nodes.current(2) / "edits_0000000000000000001-0000000000000000003", 40)
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientPayloadError):
                await fetched(session, segment_url(node, 1, JOURNAL))
            assert "1" in str(status(node)["damaged_segments"])
            assert await fetched(session, segment_url(node, 1, JOURNAL)) == (503, None)
            answer, body = await fetched(session, segment_url(node, 4, JOURNAL))
            assert answer == 200
            assert body is not None
            assert body.endswith(edits(4, 6))


async def fetched(session: aiohttp.ClientSession, url: str) -> tuple[int, bytes | None]:
    async with session.get(url) as response:
        body = await response.read()
        return response.status, body if response.status == 200 else None


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def status(node: JournalNodeDaemon) -> dict[str, Any]:
    return cast(Any, node.node.status())[JOURNAL]  # type: ignore[no-any-return]


def counted(name: str) -> float:
    return REGISTRY.get_sample_value(name, {"journal": JOURNAL}) or 0


async def test_a_forked_history_is_shown_and_nothing_is_replaced(tmp_path: Path) -> None:
    async with syncing_nodes(tmp_path) as nodes:
        with captured("sync.forked") as lines:
            for addresses, words in ((nodes.addresses[:1], "one"), (nodes.addresses[1:], "other")):
                writer = nodes.writer(addresses=addresses)
                await writer.become_writer()
                await journal_cluster.write_segment(writer, 1, 3, words)
                await writer.close()
            await until(lambda: len(lines) == 3, "each node has seen that another differs")
        line = {"event": "sync.forked", "log_level": "error", "journal": JOURNAL, "segment": 1}
        assert lines == [line] * 3
        assert counted("nnha_jn_forked_segments") == 1
        kept = [next(iter((contents(nodes, i) or {}).values())) for i in range(3)]
        assert kept[0].endswith(edits(1, 3, "one"))
        assert kept[1] == kept[2] != kept[0]


async def test_a_segment_that_no_peer_has_whole_is_said_and_not_taken(tmp_path: Path) -> None:
    async with syncing_nodes(tmp_path) as nodes, writing(nodes) as writer:
        await nodes.stop(0)
        await write_segments(writer, 1, 4)
        for i in (1, 2):
            flip(nodes.current(i) / "edits_0000000000000000001-0000000000000000003", 40)
        before = counted("nnha_jn_sync_failures_total")
        with captured("segment.source_failed", "sync.segment_failed") as lines:
            await nodes.start(0)
            await until(lambda: (4, 6) in nodes.finalized(0), "the sound one has come")
            await until(lambda: len(lines) >= 3, "both peers' copies were tried")
        assert {line["event"] for line in lines[:3]} == {
            "segment.source_failed", "sync.segment_failed"
        }  # fmt: skip
        assert counted("nnha_jn_sync_failures_total") > before
        assert (1, 3) not in nodes.finalized(0)


@pytest.mark.parametrize(
    ("of", "work", "failed", "broken"),
    [
        (JournalSync, "round", "sync.round_failed", "sync.unexpected"),
        (scrub, "scrub", "scrub.round_failed", "scrub.unexpected"),
    ],
)
@pytest.mark.parametrize("bug", [KeyError("planted"), StorageFailed("planted")])
async def test_a_round_that_fails_is_logged_and_the_next_one_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    of: Any, work: str, failed: str, broken: str, bug: Exception,  # noqa: ANN401
) -> None:  # fmt: skip
    sound, begun = getattr(of, work), list[object]()

    async def fail_once(*given: Any) -> object:  # noqa: ANN401
        begun.append(None)
        if len(begun) == 1:
            raise bug
        return await sound(*given)

    monkeypatch.setattr(of, work, fail_once)
    with captured("sync.", "scrub.") as lines:
        async with syncing_nodes(tmp_path, scrub_interval_seconds=0.05):
            await until(lambda: len(begun) > 3, "rounds go on")
    expected = (failed, "warning") if isinstance(bug, StorageFailed) else (broken, "error")
    shown = [(line["event"], line["log_level"]) for line in lines]
    assert [one for one in shown if one[0] in (failed, broken)] == [expected]


async def test_purged_segments_do_not_come_back(tmp_path: Path) -> None:
    async with syncing_nodes(tmp_path) as nodes, writing(nodes) as writer:
        await write_segments(writer, 1, 4, 7)
        await until_equal(nodes, 3)
        await nodes.stop(2)
        writer.purge_logs(TxId(7))
        await until(lambda: nodes.finalized(0) == nodes.finalized(1) == [(7, 9)], "purged")
        await nodes.start(2)
        await nodes.stop(0)
        await nodes.start(0)
        await write_segments(writer, 10)
        left = [(7, 9), (10, 12)]
        await until(lambda: (10, 12) in nodes.finalized(2), "the returned node takes part")
        await until(lambda: nodes.finalized(0) == nodes.finalized(1) == left, "and all others")
        assert nodes.finalized(2) == [(1, 3), (4, 6), *left], "nobody told it to purge"
        await nodes.stop()
        with captured("journal.purge_failed") as lines:
            writer.purge_logs(TxId(10))
            await until(lambda: [line["minimum"] for line in lines] == [10], "it is logged")
