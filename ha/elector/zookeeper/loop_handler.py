"""Opens kazoo's connections with a limit for each server, and with nnha's TLS."""

import ssl

from kazoo.handlers import threading as kazoo_threading

from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.tls import connect


class Handler(kazoo_threading.SequentialThreadingHandler):  # type: ignore[misc] # untyped
    """kazoo's threading handler with a limit for each connection attempt, and ``tls.connect``."""

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
        """Report a TLS socket as readable, too, if it has decrypted bytes.

        The bad schedule: two answers come in one TLS record.  kazoo reads the first and waits for
        the socket; it reads the second at the next ping, up to a quarter of the session later.
        """
        unpacked = [one for one in rlist if isinstance(one, ssl.SSLSocket) and one.pending()]
        if not unpacked:
            return tuple(super().select(rlist, wlist, xlist, timeout))
        rest = [one for one in rlist if one not in unpacked]
        readable, writable, failed = super().select(rest, wlist, xlist, 0)
        return [*unpacked, *readable], writable, failed
