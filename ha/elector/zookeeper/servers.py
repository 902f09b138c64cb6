"""Resolves ZooKeeper's servers, and yields their addresses in the order of the attempts."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ha.names import NAMES, Names, Unresolved

Server = tuple[str, str, int]
"""A server's name, one of its addresses, its port."""
MOST_SECONDS: Final = 5.0
"""The longest wait for names that the resolver does not answer, after all other servers."""
_STEP_SECONDS: Final = 0.01
"""The wait for one name before the next name is tried."""


class Servers:
    """The addresses for one round of connection attempts, in place of kazoo's own list.

    kazoo resolves all names before it connects: with one name that the resolver does not answer,
    the session timeout passes without a session.  Here all lookups run at once, and a server is
    tried as soon as it has an address.
    """

    def __init__(
        self,
        hosts: Sequence[tuple[str, int]],
        note: Callable[[str, str], None],
        stopped: Callable[[], bool],
        names: Names = NAMES,
    ) -> None:
        self._hosts = list(hosts)
        self._note = note
        self._stopped = stopped
        self._names = names

    def __len__(self) -> int:
        """Return the number of names; kazoo makes no attempt if it is 0."""
        return len(self._hosts)

    def __iter__(self) -> Iterator[Server]:
        """Yield the servers' addresses, in random order, and pass lookup errors to ``note``."""
        waiting = random.sample(self._hosts, len(self._hosts))
        for host, _ in waiting:
            self._names.look_again(host)
        until = time.monotonic() + MOST_SECONDS
        while waiting and not self._stopped() and time.monotonic() < until:
            late = []
            for host, port in waiting:
                try:
                    found = self._names.addresses(host, port, _STEP_SECONDS)
                except Unresolved as failure:
                    self._note(f"{host}:{port}", str(failure))
                    if failure.late:
                        late.append((host, port))
                    continue
                for address in dict.fromkeys(str(one[4][0]) for one in found):
                    yield host, address, port
            waiting = late
