"""How long ZooKeeper has been unreachable, in words, and when the active must step down.

Nothing moves while the lock's holder is unknown.  An operator that would rather have no active than
one that may be superseded sets ``nnha.zkfc.zookeeper-loss.step-down-after``.

See docs/reference/zkfc.md#zookeeper-away-for-long.
"""

import asyncio
from collections.abc import Callable

from ha.elector.events import Event
from ha.elector.model import Link
from ha.elector.state import ElectorState

_AWAY = (Link.CONNECTING, Link.SUSPENDED)


class Absence:
    """Follows each step of the election; ``step_down`` is called once in each absence."""

    def __init__(self, after_seconds: float, step_down: Callable[[], None]) -> None:
        self._after_seconds = after_seconds
        self._step_down = step_down
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def stepped(self, _event: Event, _before: ElectorState, after: ElectorState) -> None:
        """Take note of the election's new state."""
        away = after.wanted and after.link in _AWAY
        if away is (self._since is not None):
            return
        if away:
            # A session that ends and the attempts at a new one are one absence, not several.
            loop = asyncio.get_running_loop()
            self._since = loop.time()
            if self._after_seconds > 0:
                self._timer = loop.call_later(self._after_seconds, self._step_down)
        else:
            self.stop()

    def stop(self) -> None:
        """Forget the absence, and the step down that was due."""
        self._since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def told(self) -> str:
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
