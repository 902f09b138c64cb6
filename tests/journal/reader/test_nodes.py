"""The tests' own nodes: no luck is needed with ports, and no file is believed to stay."""

import socket
from pathlib import Path

import pytest

from journal.node.process.daemon import PortTaken
from tests.journal.node.test_sync import contents
from tests.journal.writer.journal_cluster import Nodes


def listening(port: int) -> socket.socket:
    # Reusable: what the node before us has closed may linger there for a minute.
    return socket.create_server(("127.0.0.1", port))


async def test_a_first_start_tries_other_ports_and_a_later_one_keeps_them(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path)
    planned = nodes.addresses
    try:
        with listening(planned[1][1]):
            await nodes.start()
        began = nodes.addresses
        assert (began[0], began[2]) == (planned[0], planned[2])
        assert began[1] != planned[1]
        await nodes.format()
        await nodes.stop(1)
        with listening(began[1][1]), pytest.raises(PortTaken):
            await nodes.start(1)
        await nodes.start(1)
        assert nodes.addresses == began
    finally:
        await nodes.stop()


async def test_a_file_that_is_gone_when_it_is_read_makes_no_comparison(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, 1)
    nodes.current(0).mkdir(parents=True)
    assert contents(nodes, 0) == {}
    # A link to nothing: listed, and not there when it is opened.
    (nodes.current(0) / "edits_1-3").symlink_to("nowhere")
    assert contents(nodes, 0) is None
