"""Which client calls are let in, held back for a moment, or sent to another NameNode.

Hadoop's standby refuses every call at once, and its clients then sleep 2-4 seconds after an instant
switch.  Ours holds a call back while a takeover is plausible, that is while no peer says that it is
active, and answers it when it becomes active itself (docs/reference/namenode.md#parked-calls).  A
NameNode that was just demoted refuses at once, until it has seen its successor: its client has a
better place to go, where the call is held.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import STANDBY_EXCEPTION
from namenode_sim.metrics import PARKED_CALLS
from namenode_sim.term.role import TAKING_OVER, Role

PEER_POLL_SECONDS: Final = 0.05
JUST_DEMOTED_SECONDS: Final = 5.0
"""How long a successor may take before calls are held here too."""

UNGUARDED: Final = frozenset({"getHAServiceState"})
"""Calls that a standby answers too."""


class Gate:
    """Admits calls by the role; fed by the role's owner, asked by every client call."""

    def __init__(
        self,
        *,
        any_peer_active: Callable[[], Awaitable[bool]],
        park_timeout_seconds: float,
    ) -> None:
        self._any_peer_active = any_peer_active
        self._park_timeout_seconds = park_timeout_seconds
        self._role = Role.STANDBY
        self._changed = asyncio.Event()
        self._demoted_at: float | None = None
        self._successor_watch: asyncio.Task[None] | None = None

    def role_changed(self, role: Role) -> None:
        """Take note of the new role and wake the calls that wait for one."""
        if self._role is Role.ACTIVE and role is not Role.ACTIVE:
            self._demoted_at = time.monotonic()
            self._successor_watch = asyncio.create_task(self._watch_for_successor())
        self._role = role
        self._changed.set()
        self._changed = asyncio.Event()

    async def close(self) -> None:
        """Stop looking for a successor."""
        if self._successor_watch is not None:
            self._successor_watch.cancel()
            await asyncio.gather(self._successor_watch, return_exceptions=True)

    def is_open(self) -> bool:
        """Return whether ``admit`` would let every call in at once."""
        return self._role is Role.ACTIVE

    async def admit(self, method: str, *, writes: bool) -> None:
        """Return when the call may be served now.

        Raises:
            RemoteFault: StandbyException, when another NameNode should be asked.
        """
        if self.is_open() or method in UNGUARDED:
            return
        if not self._just_demoted() and await self._park():
            return
        category = "WRITE" if writes else "READ"
        raise RemoteFault(
            STANDBY_EXCEPTION,
            f"{method} ({category}) is not served in state {self._role.value}; "
            "ask the active NameNode",
        )

    def _just_demoted(self) -> bool:
        return (
            self._demoted_at is not None
            and self._role not in TAKING_OVER
            and time.monotonic() - self._demoted_at < JUST_DEMOTED_SECONDS
        )

    async def _park(self) -> bool:
        """Hold a call back; return whether this NameNode has become active in the meantime."""
        deadline = time.monotonic() + self._park_timeout_seconds
        while (left := deadline - time.monotonic()) > 0:
            another = await self._a_peer_is_active()
            if self._role is Role.ACTIVE:  # whatever a peer says that does not know it yet
                PARKED_CALLS.labels("served").inc()
                return True
            if another:
                PARKED_CALLS.labels("another is active").inc()
                return False
            if self._role is Role.STOPPED or self._just_demoted():
                return False
            await self._wait_for_change(min(left, PEER_POLL_SECONDS))
        PARKED_CALLS.labels("timed out").inc()
        return self._role is Role.ACTIVE

    async def _a_peer_is_active(self) -> bool:
        """Ask the peers; do not wait for a silent one when our own role changes."""
        if self._role in TAKING_OVER:
            return False
        asking = asyncio.ensure_future(self._any_peer_active())
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({asking, changed}, return_when=asyncio.FIRST_COMPLETED)
            return asking.done() and asking.result()
        finally:
            asking.cancel()
            changed.cancel()

    async def _watch_for_successor(self) -> None:
        # Without this a second switch within seconds would find its target still refusing calls
        # as the one that was demoted last, and clients would back off between the two.
        while self._just_demoted():
            await asyncio.sleep(PEER_POLL_SECONDS)
            if await self._any_peer_active():
                self._demoted_at = None

    async def _wait_for_change(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
