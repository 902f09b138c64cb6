"""What can go wrong with a journal: a refusal, a silence, or a broken invariant.

JournalError
├── Rejected            a node answered no, and nothing changed there
│   ├── NotFormatted
│   ├── WrongNamespace      another cluster's journal
│   ├── Fenced              a newer writer was promised
│   ├── OutOfSync           the request does not follow what the node has
│   ├── NotAdmitted         the node is a learner and has no vote
│   ├── CacheMiss           edits that the node does not keep in memory
│   ├── AheadOfNode         edits that the node does not have yet
│   └── BadRequest
├── Unavailable         no answer; the outcome is unknown
├── QuorumLost          too few nodes agreed; says what each of them said
├── GapFound            edits are missing in the middle of the journal
├── StorageFailed       a node's disk, or its files
└── InvariantBroken     going on could lose an acknowledged edit
"""

from collections.abc import Mapping

from journal.model import Epoch, NodeName, TxId


class JournalError(Exception):
    """Everything this package raises on purpose."""


class Rejected(JournalError):
    """A node refused a request; its state is as it was before.

    See docs/reference/journal-node.md#admission.
    """


class NotFormatted(Rejected):
    """The journal has no storage yet on that node."""


class WrongNamespace(Rejected):
    """The request belongs to another namespace or cluster than the journal on that node."""


class Fenced(Rejected):
    """The request's epoch is older than one that the node has promised."""

    def __init__(self, message: str, *, promised: Epoch) -> None:
        super().__init__(message)
        self.promised = promised


class OutOfSync(Rejected):
    """The request does not continue what the node has written."""

    def __init__(self, message: str, *, expected_txid: TxId | None = None) -> None:
        super().__init__(message)
        self.expected_txid = expected_txid


class NotAdmitted(Rejected):
    """The node lost, or never had, what it promised; it votes again once a writer admits it."""


class CacheMiss(Rejected):
    """The node has these edits at most on its disk (Hadoop's CacheMissException)."""


class AheadOfNode(Rejected):
    """The node lags behind the edits that were asked for (Hadoop's NewerTxnIdException)."""


class BadRequest(Rejected):
    """The request makes no sense in any state."""


class Unavailable(JournalError):
    """A node did not answer; whether it acted is unknown."""


class StorageFailed(JournalError):
    """A node's disk failed, or what lies on it cannot be read."""


class QuorumLost(JournalError):
    """Too few nodes succeeded.  ``failures`` has each failed node's reason."""

    def __init__(self, message: str, *, failures: Mapping[NodeName, Exception]) -> None:
        super().__init__(message)
        self.failures = dict(failures)

    @property
    def fenced_by(self) -> Epoch | None:
        """The newest epoch that refused us, or None if no node said we were fenced."""
        newer = [f.promised for f in self.failures.values() if isinstance(f, Fenced)]
        return max(newer, default=None)


class GapFound(JournalError):
    """Edits are missing, though later ones exist."""

    def __init__(self, message: str, *, missing_first: TxId, missing_last: TxId) -> None:
        super().__init__(message)
        self.missing_first = missing_first
        self.missing_last = missing_last


class InvariantBroken(JournalError):
    """Two facts that cannot both hold.  Stop, and let a person look."""


def ensure(condition: bool, what: str) -> None:  # noqa: FBT001 - reads as an assertion
    """Check an invariant that must hold in production too.

    Raises:
        InvariantBroken: if it does not hold.
    """
    if not condition:
        raise InvariantBroken(what)
