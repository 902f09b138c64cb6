"""The connections that certificates have opened: they end with them, not with their handshake."""

import threading
from collections.abc import Callable

import structlog
from prometheus_client import Counter

from ha.record import dataclass
from ha.security.certificates import Leaf

log = structlog.get_logger()

CLOSED = Counter(
    "nnha_tls_connections_closed",
    "Connections that were closed because their certificate had ended or was revoked",
)


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """One connection: whose it is, and how to end it, from any thread.

    ``gone``: it has ended by itself; ``busy``: something is under way on it.
    """

    leaf: Leaf
    close: Callable[[str], None]
    gone: Callable[[], bool]
    busy: Callable[[], bool]


class OpenConnections:
    """All connections of a process that somebody with a certificate has opened."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[Opened] = set()

    def add(
        self,
        leaf: Leaf,
        close: Callable[[str], None],
        gone: Callable[[], bool] = lambda: False,
        busy: Callable[[], bool] = lambda: False,
    ) -> Opened:
        """Have one ended when its certificate counts no more; ``close`` is called with why."""
        opened = Opened(leaf, close, gone, busy)
        with self._lock:
            self._open.add(opened)
        return opened

    def remove(self, opened: Opened) -> None:
        """Forget a connection that has ended by itself."""
        with self._lock:
            self._open.discard(opened)

    def __len__(self) -> int:
        with self._lock:
            return len(self._open)

    def sweep(self, why_refused: Callable[[Leaf], str], may_finish: Callable[[Leaf], bool]) -> int:
        """End those whose certificate counts no more; how many these were.

        One on which something is under way stays until the next look where it ``may_finish``.
        """
        with self._lock:
            self._open = {opened for opened in self._open if not opened.gone()}
            present = tuple(self._open)
        ended = 0
        for opened in present:
            reason = why_refused(opened.leaf)
            if reason and not (may_finish(opened.leaf) and opened.busy()):
                self.remove(opened)
                log.warning("security.connection_closed", of=opened.leaf.uri, because=reason)
                CLOSED.inc()
                opened.close(reason)
                ended += 1
        return ended
