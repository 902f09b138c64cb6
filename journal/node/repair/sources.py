"""Checks that segments are downloaded only from the peers in the node's own configuration."""

import asyncio
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from journal.errors import BadRequest, JournalError
from journal.links.peer import Peers
from journal.model import JournalId
from journal.node.peers import addresses
from journal.node.settings import NodeSettings

ASK_SECONDS: Final = 2.0


async def require_peers(journal_id: JournalId, urls: Sequence[str], settings: NodeSettings) -> None:
    """Check that the host and port of each URL are those of a configured node of this journal.

    The URLs come with a request, and a caller could name any machine that this one can reach.
    Without configured nodes of the journal all URLs are allowed.

    Raises:
        BadRequest: a URL is not of a configured node; no connection was made to it.
    """
    nodes = settings.nodes.get(journal_id, ())
    if not nodes:
        return
    for url in urls:
        if not await _is_of_a_peer(journal_id, url, nodes, settings):
            raise BadRequest(
                f"{url[:200]!r} is no address of a JournalNode of {journal_id}: segments are "
                "fetched only from the nodes of dfs.namenode.shared.edits.dir"
            )


async def _is_of_a_peer(
    journal_id: JournalId, url: str, nodes: Sequence[tuple[str, int]], settings: NodeSettings
) -> bool:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or parts.path != "/getJournal" or not host:
        return False
    same = [node for node in nodes if node[0].lower() == host]
    if not same:
        theirs = await asyncio.to_thread(addresses, host)
        same = [node for node in nodes if theirs & await asyncio.to_thread(addresses, node[0])]
    if not same:
        return False
    if port == settings.http_port_of_peers:
        return True
    # JournalNodes on one machine have different ports, which only they themselves can report.
    peers = Peers(journal_id, settings.hadoop_port_of_peers)
    told = await asyncio.gather(*(_http_port(peers, node) for node in same))
    return port in told


async def _http_port(peers: Peers, node: tuple[str, int]) -> int | None:
    try:
        async with peers.reached(*node, ASK_SECONDS) as peer:
            return await peer.http_port(ASK_SECONDS)
    except JournalError:
        return None
