"""Whether the former active is known to have ended, so that no wait for its lease is needed.

Pure.
"""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final, Protocol

from ha.elector.model import Term
from ha.elector.zookeeper.errors import TakeoverImpossible

_SURE_SHARE: Final = 0.9
"""Of a session's timeout: ZooKeeper's clock and ours differ."""
_CLAIM_SECONDS: Final = 0.5
"""The longest for which we vouch for it: an epoch is won in a tenth of that."""


class Proof(Enum):
    """What is known of one address at which the former active may be."""

    STANDS_BY = auto()
    """It answered that it is standby: its edit log is closed."""
    KILLED = auto()
    """A fencing method that proves it has ended the process or cut it off."""
    PORT_CLOSED = auto()
    """Connections are refused there; and its controller may have seen the process end."""
    NOTHING = auto()


def predecessor_gone(term: Term, proofs: Sequence[Proof]) -> bool:
    """Return whether no earlier active can serve anything any more.

    It takes more than the end of the one that the breadcrumb names.  Unless it was active, it may
    have died while it waited for *its* predecessor's lease, which may run still: nn1 is stopped,
    nn2 is killed as it takes over, nn3 must not believe that nn2's end says anything of nn1.
    """
    if not proofs or term in (Term.UNKNOWN, Term.DOUBTED):
        return False
    return all(
        proof in (Proof.STANDS_BY, Proof.KILLED)
        or (proof is Proof.PORT_CLOSED and term is Term.ENDED)
        for proof in proofs
    )


class Contact(Protocol):
    """What is known of our session with ZooKeeper."""

    @property
    def session_timeout_seconds(self) -> float | None:
        """As negotiated; None without a session."""

    @property
    def last_contact(self) -> float | None:
        """When the newest answered request was sent, on the loop's clock."""


def require_recent_contact(contact: Contact, *, now: float) -> None:
    """Raise TakeoverImpossible where ZooKeeper was silent for longer than our session can live.

    The bad schedule: our process is stopped in the middle of a takeover for that time, and goes on.
    Until the end of its session is heard of it still believes in its lock.
    """
    sent, timeout = contact.last_contact, contact.session_timeout_seconds
    if sent is not None and timeout is not None and now - sent > timeout:
        raise TakeoverImpossible(
            f"no ZooKeeper has answered us for {now - sent:.1f} s, longer than our session lives: "
            f"the lock may be another's by now. Nothing was asked of our NameNode"
        )


def former_gone_until(contact: Contact, *, now: float) -> float:
    """Return until when no other can be active, on the loop's clock; 0 if we cannot vouch for it.

    While the lock that we hold surely stands no other NameNode becomes active, and what was proven
    of our predecessors is true of all.  But we may give it up ourselves while our NameNode hangs:
    thawed seconds later, it would believe of our successor what was said of our predecessor, and
    not wait for its lease.
    """
    sent, timeout = contact.last_contact, contact.session_timeout_seconds
    if sent is None or timeout is None:
        return 0.0
    return min(sent + _SURE_SHARE * timeout, now + _CLAIM_SECONDS)
