"""Reports when a node that could not be reached can be."""

import asyncio
from collections.abc import Callable

from journal.links.remote_node import RemoteNode


class Reconnection:
    """Watches one node's connection while that is wanted."""

    def __init__(self, remote: RemoteNode, reconnected: Callable[[], None]) -> None:
        self._remote = remote
        self._reconnected = reconnected
        self._watching: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Report once when a connection that is broken now is made again."""
        if self._watching is None:
            self._watching = asyncio.create_task(self._remote.wait_until_reconnected())
            self._watching.add_done_callback(self._changed)

    def forget(self) -> None:
        """Stop watching."""
        if self._watching is not None:
            self._watching.cancel()

    def _changed(self, watch: asyncio.Task[None]) -> None:
        self._watching = None
        if not watch.cancelled() and watch.exception() is None:
            self._reconnected()
