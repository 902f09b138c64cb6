"""The groups of users, as the operating system knows them; asked outside the event loop.

A name is whatever a caller says, and behind the question may be a directory service that takes
seconds: it must not stand between the NameNode and its other callers.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Final, Protocol

import structlog

from ha.security.lists.access_list import system_groups

log = structlog.get_logger()

MAX_REMEMBERED: Final = 10_000
LIFETIME_SECONDS: Final = 300.0
"""hadoop.security.groups.cache.secs."""
LOOKUPS_AT_ONCE: Final = 2
SLOW_SECONDS: Final = 5.0
"""hadoop.security.groups.cache.warn.after.ms."""
NOBODY: Final[frozenset[str]] = frozenset()


class Groups(Protocol):
    """The groups of users."""

    async def learn(self, user: str) -> None:
        """Find out about a user, if need be."""

    def has_learnt(self, user: str) -> bool:
        """Return whether ``learn`` has nothing to do for this user."""

    def known(self, user: str) -> frozenset[str]:
        """Return what was learnt; no group for a user about whom ``learn`` was not called."""

    def forget(self) -> None:
        """Ask anew about every user."""


class SystemGroups:
    """Remembers each answer for a while, the newest ``max_remembered`` of them.

    A call does not wait for a user whose known answer is old: it is asked for again in the
    background.  ``overrides`` has the groups of users about whom the system is not asked.
    """

    def __init__(
        self,
        overrides: Mapping[str, frozenset[str]] = MappingProxyType({}),
        *,
        ask: Callable[[str], frozenset[str]] | None = None,
        lifetime_seconds: float = LIFETIME_SECONDS,
        max_remembered: int = MAX_REMEMBERED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._overrides = overrides
        self._ask = ask or system_groups
        self._lifetime_seconds = lifetime_seconds
        self._max_remembered = max_remembered
        self._clock = clock
        self._found: OrderedDict[str, tuple[float, frozenset[str]]] = OrderedDict()
        self._former: OrderedDict[str, tuple[float, frozenset[str]]] = OrderedDict()
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._threads = ThreadPoolExecutor(LOOKUPS_AT_ONCE, "groups-of-users")

    def has_learnt(self, user: str) -> bool:
        """Return whether the answer about a user is there, and not old."""
        if user in self._overrides:
            return True
        found = self._found.get(user)
        return found is not None and self._clock() - found[0] < self._lifetime_seconds

    async def learn(self, user: str) -> None:
        """Wait for the first answer about a user; refresh an old one without waiting."""
        if self.has_learnt(user):
            return
        asking = self._asking.get(user)
        if asking is None:
            asking = asyncio.create_task(self._find(user), name="groups of a user")
            self._asking[user] = asking
        if user not in self._found:
            await asyncio.shield(asking)

    def known(self, user: str) -> frozenset[str]:
        """Return the groups of a user; none if the machine does not know the user."""
        if user in self._overrides:
            return self._overrides[user]
        found = self._found.get(user) or self._former.get(user)
        return NOBODY if found is None else found[1]

    def forget(self) -> None:
        """Ask anew about every user, and wait for it; calls that are let in go on with the old."""
        self._former, self._found = self._found, OrderedDict()

    async def _find(self, user: str) -> None:
        began = self._clock()
        loop = asyncio.get_running_loop()
        try:
            while True:
                before = self._found
                groups = await loop.run_in_executor(self._threads, self._ask, user)
                if before is self._found:  # or the answer may be older than a refresh
                    break
        except OSError as failure:
            log.warning("groups.not_found", user=user, because=str(failure))
            groups = self.known(user)
        finally:
            del self._asking[user]
        took = self._clock() - began
        if took > SLOW_SECONDS:
            log.warning("groups.slow", user=user, seconds=round(took, 3))
        self._found[user] = (self._clock(), groups)
        self._found.move_to_end(user)
        while len(self._found) > self._max_remembered:
            self._found.popitem(last=False)
