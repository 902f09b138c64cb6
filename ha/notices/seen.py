"""What one controller sees of the notices in ZooKeeper; expired ones are left out.  Pure."""

from ha.notices.model import Drain, Member, Pause
from ha.record import dataclass

FREE = ""
"""The holder of a lock that is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notices:
    """The notices in force, as they were last read."""

    pause: Pause | None = None
    drain: Drain | None = None
    """Our own NameNode's."""
    members: tuple[Member, ...] = ()
    """The other running controllers, by NameNode id."""
    lock_holder: str | None = None
    """The NameNode whose controller holds the lock, FREE, or None where that is not known."""
    lock_made: int = 0
    """The ZooKeeper transaction that made that lock; 0 where there is none, or it is not known."""
    namesake: str = ""
    """Another living controller of our own NameNode, in words; empty: there is none."""
    untrusted: tuple[str, ...] = ()
    """Znodes that others than our controllers could have written, each with why, in words."""
