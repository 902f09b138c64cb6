"""Three JournalNodes with an empty journal; and the end of journals without a node."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.journal.core.requests_of import close_disks
from tests.journal.writer.journal_cluster import Nodes, formatted_nodes


@pytest.fixture(autouse=True)
def _closed_disks() -> Iterator[None]:
    yield
    close_disks()


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with formatted_nodes(tmp_path) as running:
        yield running
