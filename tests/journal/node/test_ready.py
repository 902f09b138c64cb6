"""A node that holds edits is ready to serve them; one that holds none saves the memory."""

import asyncio
from pathlib import Path

import pytest

from journal.node.process import daemon as daemon_process
from tests.journal.core.requests_of import Writer
from tests.journal.node.process import node_and_client, until


async def test_the_first_to_fetch_edits_waits_for_no_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prepare: the first may be a NameNode that takes over, active 0.15 s later otherwise."""
    monkeypatch.setattr(daemon_process, "PREPARE_SECONDS", 0.001)
    async with node_and_client(tmp_path) as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        for _ in range(30):  # the node looks for edits in between
            await client.status()
        assert not daemon.prepared
        assert "load aiohttp" not in {task.get_name() for task in asyncio.all_tasks()}
        await client.written(Writer(1), 1, 3)
        await until(lambda: daemon.prepared, "ready to serve")


async def test_a_node_that_is_started_with_edits_is_ready_before_anyone_asks(
    tmp_path: Path,
) -> None:
    async with node_and_client(tmp_path) as (_, client):
        await client.format()
        await client.new_epoch(1)
        await client.written(Writer(1), 1, 3)
    async with node_and_client(tmp_path) as (daemon, _):
        await until(lambda: daemon.prepared, "ready to serve")
