"""gRPC links to the nodes that are connected before a writer is to be made of them.

A takeover would otherwise begin with a connection to each node, and with certificates with a
handshake on each: more than the rest of the journal's recovery takes.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from journal.links.grpc_link import GrpcLink
from journal.links.link import Link

_REFRESH_SECONDS: Final = 1.0
"""What a standby is late by where a node has just come back, and twice where it has just become
one."""


class KeptLinks:
    """One unused link for each node; a ``LinkFactory`` that hands them out.

    A link is handed out once: the writer that has it closes it.  One that is not connected at that
    moment, or whose certificate is not the newest, is not used: a new one tries at once, whatever
    the kept one has just seen.
    """

    def __init__(self, nodes: Sequence[tuple[str, int]]) -> None:
        self._nodes = tuple(nodes)
        self._kept: dict[tuple[str, int], GrpcLink] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._keeping: asyncio.Task[None] | None = None

    def __call__(self, host: str, port: int) -> Link:
        """Return the kept link to that node if it is fit for use, else a new one."""
        kept = self._kept.pop((host, port), None)
        if kept is not None and kept.connected:
            return kept
        self._drop(kept)
        return GrpcLink(host, port)

    def start(self, wanted: Callable[[], bool]) -> None:
        """Have a link to each node connected from now on, whenever ``wanted`` says so."""
        self._keeping = asyncio.create_task(self._keep(wanted), name="keep links connected")

    @property
    def connected(self) -> frozenset[GrpcLink]:
        """Those that would be handed out now."""
        return frozenset(link for link in self._kept.values() if link.connected)

    def refresh(self) -> None:
        """Have one link to each node connect where it is not connected; returns at once."""
        for node in self._nodes:
            if (kept := self._kept.get(node)) is not None and kept.outdated:
                self._drop(self._kept.pop(node))
            if node not in self._kept:
                self._kept[node] = GrpcLink(*node)
            self._kept[node].connect()

    async def close(self) -> None:
        """Make no more links, and drop those that were not taken."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        while self._kept:
            self._drop(self._kept.popitem()[1])
        await asyncio.gather(*self._closing)

    async def _keep(self, wanted: Callable[[], bool]) -> None:
        before = True
        while True:
            now = wanted()
            if now and before:  # else a handshake with each node would slow whoever takes over
                self.refresh()
            before = now
            await asyncio.sleep(_REFRESH_SECONDS)

    def _drop(self, link: GrpcLink | None) -> None:
        if link is None:
            return
        task = asyncio.create_task(link.close(), name="close a kept link")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
