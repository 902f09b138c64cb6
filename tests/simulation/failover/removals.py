"""Checks each removal of another's lock (docs/reference/invariants.md#control-plane)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ha.service.model import ServiceState
from tests.simulation.failover.cluster import (
    FLAPPING,
    SERVICE_PORT,
    SILENCE_SECONDS,
    ZKFC_PORT,
    Cluster,
)
from tests.simulation.failover.hosts import Life
from tests.simulation.failover.journal_nodes import MAJORITY, QuorumJournal
from tests.simulation.failover.zk_tree import Znode

TOLD_WITHIN_SECONDS: Final = 0.7
"""How old the last testimony may be when the removal is sent: 0.3 s for it, 0.3 s for ZooKeeper."""
ASKED_WITHIN_SECONDS: Final = 0.95
"""The same of the last time that the owner was asked."""
_HEARD_SHARE: Final = 0.9
"""Of the silence that is asked for: clocks differ."""

Check = Callable[[bool, str, str], None]


@dataclass(eq=False)
class Removals:
    """Called for each that is sent, and each that is done."""

    cluster: Cluster
    check: Check
    journal: QuorumJournal | None = None
    reliable: bool = False
    """No message is lost or late in this world, and no port is closed, but by cuts."""
    java: bool = False
    count: int = 0
    _unrewarded: set[str] = field(default_factory=set)
    """Controllers that have removed a lock; no NameNode has become active under a lock since."""
    _made: tuple[int, str] = (0, "")
    """The transaction that has made the lock that stands, and whose it is."""
    _meant: set[tuple[str, int]] = field(default_factory=set)
    """Which controllers have asked for the removal of which locks, by the locks' transactions."""
    _takeovers: dict[str, list[float]] = field(default_factory=dict)
    """When each controller has taken over without an operator's wish."""
    _counted: int = 0
    """The lock under which the newest of them was."""
    _owners: dict[int, str] = field(default_factory=dict)
    """By the transactions that have ever made a lock: whose it was."""

    def watch(self, journal: QuorumJournal, *, reliable: bool, java: bool) -> None:
        self.journal, self.reliable, self.java = journal, reliable, java

    def sent(self, who: str, shown: Znode | None) -> None:
        """Check a controller's request to remove a lock that is another's, as it was shown it."""
        now, journal = self.cluster.loop.now, self.journal
        self.check(journal is not None and not self.java, "W1", f"{who} removes a lock in a world "
                   f"where nobody can bear witness")  # fmt: skip
        self.check(shown is not None, "W5", f"{who} removes a lock, and has seen none")
        assert journal is not None
        assert shown is not None
        # Not whose lock stands: a server that lags shows an older one (seed 44025017), and the
        # request for that one is refused.  That no other goes is looked at in deleted().
        meant = shown.created
        self._meant.add((who, meant))
        owner = self._owners.get(meant)
        self.check(owner is not None, "W5", f"{who} removes the lock of transaction {meant}, which "
                   f"has made none")  # fmt: skip
        heard = journal.heard_between(
            now - _HEARD_SHARE * SILENCE_SECONDS, now - TOLD_WITHIN_SECONDS
        )
        self.check(heard < MAJORITY, "W1", f"{who} removes the lock of {owner}, and {heard} "
                   f"JournalNodes have heard the newest writer not long ago")  # fmt: skip
        reached = None if owner is None else self._reached(who, owner)
        self.check(reached is None, "W2", f"{who} removes the lock of {owner}, whose {reached} "
                   f"would have answered")  # fmt: skip
        self.check(not self.cluster.known_bars(who), "W3", f"{who} removes the lock of {owner} in "
                   f"a pause or a drain that it knows of")  # fmt: skip
        since = now - _HEARD_SHARE * FLAPPING.window_seconds
        often = sum(moment > since for moment in self._takeovers.get(who, ()))
        self.check(often < FLAPPING.failovers, "W3", f"{who} removes the lock of {owner}, and has "
                   f"taken over {often} times of late")  # fmt: skip
        self.check(who not in self._unrewarded, "W4", f"{who} removes a second lock, and nobody "
                   f"has become active since the first")  # fmt: skip

    @property
    def owner(self) -> str:
        """The creator of the newest lock."""
        return self._made[1]

    def made(self, number: int, who: str) -> None:
        self._made = number, who
        self._owners[number] = who

    def deleted(self, who: str) -> None:
        made, owner = self._made
        if who not in self.cluster.hosts or who == owner:
            return  # an operator, or its own
        # Not what it means now: a request may be carried out when its process has ended and another
        # one has begun (seed 44003819).
        meant = [lock for one, lock in self._meant if one == who]
        self.count += 1
        self._unrewarded.add(who)
        self.check(made in meant, "W5", f"{who} deletes the lock of {owner}, made by transaction "
                   f"{made}, and meant {meant}")  # fmt: skip

    def promoted(self, who: str, *, wished: bool) -> None:
        """Note a NameNode that is active under its controller's lock; a takeover, unless wished."""
        made, owner = self._made
        if owner != who or wished or self._counted == made:
            return
        self._counted = made
        self._takeovers.setdefault(who, []).append(self.cluster.loop.now)

    def look(self) -> None:
        """Let an active that has the lock end all waiting for a success."""
        owner = self.cluster.lock_owner()
        node = None if owner is None else self.cluster.namenode(owner)
        if node is not None and node.state is ServiceState.ACTIVE:
            self._unrewarded.clear()

    def ended(self, who: str) -> None:
        """Forget a controller whose process has ended; the next one remembers nothing."""
        self._unrewarded.discard(who)
        self._takeovers.pop(who, None)

    def _reached(self, who: str, owner: str) -> str | None:
        """Return which process of the owner must have answered when it was asked last."""
        host, until = self.cluster.hosts[owner], self.cluster.loop.now - ASKED_WITHIN_SECONDS
        whole = self.cluster.network.whole_since(who, owner) < until
        if not self.reliable or not host.on or not whole:
            return None
        for what, port in (("namenode", SERVICE_PORT), ("zkfc", ZKFC_PORT)):
            life, listener = host.life(what), host.ports.get(port)
            there = listener is not None and listener.life is life
            if life is not None and there and life.runs and _runs_since(life) < until:
                return what
        return None


def _runs_since(life: Life) -> float:
    return max(life.began_at, life.thawed_at)
