"""A JournalNode is named as its address is configured, which for IPv6 has brackets."""

import pytest

from journal.links.remote_node import JournalAddress, RemoteNode
from journal.model import JournalId


@pytest.mark.parametrize(
    ("host", "name"), [("jn1", "jn1:8485"), ("10.0.0.1", "10.0.0.1:8485"), ("::1", "[::1]:8485")]
)
async def test_a_node_of(host: str, name: str) -> None:
    node = RemoteNode(host, 8485, JournalAddress(JournalId("ns1"), "ns1"))
    assert node.name == name
    await node.close()
