"""A node without a file descriptor left sees no damage in that, and its journals go on."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from journal.errors import StorageFailed
from journal.node.owner.owner import JournalOwner
from journal.node.repair.scrub import report_missing, scrub
from tests.journal.writer.journal_cluster import JOURNAL, formatted_nodes, write_segment


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Prevent any opening, even when something else is closed in between: 0 to 2 are in use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def goes_on(owner: JournalOwner) -> bool:
    return owner.failed_because is None and not owner.state.damaged


async def test_looking_at_segments_without_descriptors_changes_nothing(tmp_path: Path) -> None:
    """Taken for damage, every finalized segment would leave the vote for as long as that lasts."""
    async with formatted_nodes(tmp_path, 1) as nodes:
        writer = nodes.writer()
        await writer.become_writer()
        await write_segment(writer, 1, 3)
        await writer.close()
        daemon = nodes.daemons[0]
        assert daemon is not None
        owner = daemon.node.find(JOURNAL)
        assert owner is not None
        assert await scrub(owner, 0) == 0  # its threads are there now
        with no_descriptor_left():
            with pytest.raises(StorageFailed, match="Too many open files"):
                await scrub(owner, 0)
            with pytest.raises(StorageFailed, match="Too many open files"):
                await report_missing(owner)
        assert goes_on(owner)
        assert await scrub(owner, 0) == 0
        await report_missing(owner)
        assert goes_on(owner)
