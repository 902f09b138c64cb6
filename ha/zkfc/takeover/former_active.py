"""Decides whether the former active is known to have ended, so that we need not wait for its lease.

Pure.
"""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final, Protocol

from ha.elector.model import Term
from ha.elector.zookeeper.errors import TakeoverImpossible

_SURE_SHARE: Final = 0.9
"""The share of the session's timeout that is used: ZooKeeper's clock may differ from ours."""
_CLAIM_SECONDS: Final = 0.5
"""The longest time that such knowledge is used; winning an epoch takes a tenth of it."""


class Proof(Enum):
    """The proof that no active NameNode runs at one address."""

    STANDS_BY = auto()
    """It answered that it is standby, so its edit log is closed."""
    KILLED = auto()
    """A fencing method ended the process or cut it off, and is known to prove that."""
    PORT_CLOSED = auto()
    """It refuses connections; proof only if its controller saw the process end."""
    NOTHING = auto()


def predecessor_gone(term: Term, proofs: Sequence[Proof]) -> bool:
    """Return whether no earlier active can serve reads any more.

    The end of the NameNode in the breadcrumb is not enough if that one never became active.  The
    bad schedule: nn1 is stopped, and nn2 is killed while it takes over and waits for nn1's lease.
    nn3 finds nn2 in the breadcrumb and nn2 ended; nn1's lease may still run.
    """
    if not proofs or term in (Term.UNKNOWN, Term.DOUBTED):
        return False
    return all(
        proof in (Proof.STANDS_BY, Proof.KILLED)
        or (proof is Proof.PORT_CLOSED and term is Term.ENDED)
        for proof in proofs
    )


class Contact(Protocol):
    """Our session with ZooKeeper."""

    @property
    def session_timeout_seconds(self) -> float | None:
        """The negotiated timeout; None without a session."""

    @property
    def last_contact(self) -> float | None:
        """When the last answered request was sent, on the loop's clock."""


def require_recent_contact(contact: Contact, *, now: float) -> None:
    """Raise TakeoverImpossible if ZooKeeper has not answered for longer than the session's timeout.

    The bad schedule: our process is stopped for that time in the middle of a takeover.  When it
    goes on, it has not yet been notified that its session, and so its lock, has expired.
    """
    sent, timeout = contact.last_contact, contact.session_timeout_seconds
    if sent is not None and timeout is not None and now - sent > timeout:
        raise TakeoverImpossible(
            f"no ZooKeeper has answered us for {now - sent:.1f} s, longer than our session lives: "
            f"the lock may be another's by now. Nothing was asked of our NameNode"
        )


def former_gone_until(contact: Contact, *, now: float) -> float:
    """Return until when no other NameNode can be active, on the loop's clock; 0 if unknown.

    While our lock stands, no other NameNode becomes active.  The time is limited for this schedule:
    our NameNode hangs in the promotion, we release the lock, and a successor becomes active.  Our
    NameNode goes on seconds later, and must then wait for the successor's lease.
    """
    sent, timeout = contact.last_contact, contact.session_timeout_seconds
    if sent is None or timeout is None:
        return 0.0
    return min(sent + _SURE_SHARE * timeout, now + _CLAIM_SECONDS)
