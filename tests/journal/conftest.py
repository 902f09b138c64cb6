"""Three JournalNodes with an empty journal, for the tests that need no others."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.journal.writer.journal_cluster import Nodes, formatted_nodes


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with formatted_nodes(tmp_path) as running:
        yield running
