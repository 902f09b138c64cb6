"""kazoo's handler with limits of ours, and with TLS connections of ours."""

import ssl

from kazoo.handlers import threading as kazoo_threading

from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.tls import connect


class Handler(kazoo_threading.SequentialThreadingHandler):  # type: ignore[misc] # untyped
    """kazoo's handler, with a limit for each unreachable server and our own TLS connections."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        super().__init__()
        self._cap = settings.connect_cap_seconds
        self._tls = settings.tls

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, **named: object
    ) -> object:
        if self._tls is not None:
            name = hostname or address[0]
            return connect(self._tls, address, name=name, within_seconds=self._cap)
        return super().create_connection(address, hostname, **(named | {"timeout": self._cap}))

    def select(
        self,
        rlist: list[object],
        wlist: list[object],
        xlist: list[object],
        timeout: float | None = None,
    ) -> tuple[list[object], ...]:
        """Report sockets as readable, too, whose bytes TLS has unpacked already.

        The bad schedule: two answers in one TLS record.  kazoo reads the first, waits for the
        socket, and the second lies until the next ping, a third of a session later.
        """
        unpacked = [one for one in rlist if isinstance(one, ssl.SSLSocket) and one.pending()]
        if not unpacked:
            return tuple(super().select(rlist, wlist, xlist, timeout))
        rest = [one for one in rlist if one not in unpacked]
        readable, writable, failed = super().select(rest, wlist, xlist, 0)
        return [*unpacked, *readable], writable, failed
