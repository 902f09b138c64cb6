"""ZooKeeper's servers in the order in which a session tries them, each resolved on its turn."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ha.names import NAMES, Names, Unresolved

Server = tuple[str, str, int]
"""A server's name, one of its addresses, its port."""
MOST_SECONDS: Final = 5.0
"""For names that the resolver does not answer, where no server is left that has an address."""
_STEP_SECONDS: Final = 0.01
"""For one name, before the next one is looked at."""


class Servers:
    """One round of attempts, in place of kazoo's list of resolved servers.

    kazoo resolves all names before it tries one: with one name that the resolver does not answer
    no session came about within its own timeout.  Here all lookups run at once, servers with an
    address come first, and the others when they have one.
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
        """Return how many names there are; kazoo makes no attempt without any."""
        return len(self._hosts)

    def __iter__(self) -> Iterator[Server]:
        """Yield addresses of servers in random order, and give a reason for each that has none."""
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
