"""Measures how long no ZooKeeper has answered, and makes the active step down after a limit.

NameNodes keep their states while ZooKeeper is away.  An operator that prefers no active to one that
may be superseded sets ``nnha.zkfc.zookeeper-loss.step-down-after``.

See docs/reference/zkfc.md#zookeeper-away-for-long.
"""

import asyncio
from collections.abc import Callable

from ha.elector.events import Event
from ha.elector.model import Link
from ha.elector.state import ElectorState

_AWAY = (Link.CONNECTING, Link.SUSPENDED)


class Absence:
    """Observes each step of the election, and calls ``step_down`` at most once in an absence."""

    def __init__(self, after_seconds: float, step_down: Callable[[], None]) -> None:
        self._after_seconds = after_seconds
        self._step_down = step_down
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def observe_step(self, _event: Event, _before: ElectorState, after: ElectorState) -> None:
        """Start or end an absence after a step of the election."""
        away = after.wanted and after.link in _AWAY
        if away is (self._since is not None):
            return
        if away:
            # An expired session and the attempts to open a new one belong to one absence.
            loop = asyncio.get_running_loop()
            self._since = loop.time()
            if self._after_seconds > 0:
                self._timer = loop.call_later(self._after_seconds, self._step_down)
        else:
            self.stop()

    def stop(self) -> None:
        """End the absence, and cancel the step down."""
        self._since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def describe(self) -> str:
        """Return why there is no automatic failover; empty while ZooKeeper answers."""
        if self._since is None:
            return ""
        seconds = asyncio.get_running_loop().time() - self._since
        policy = "for as long as it takes"
        if self._after_seconds > 0:
            policy = f"for {self._after_seconds:g} s, after which an active is made standby"
        return (
            f"no ZooKeeper has answered for {seconds:.0f} s: failover is off until one does, and "
            f"the NameNode is left as it is, {policy}"
        )
