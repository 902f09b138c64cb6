"""What a preparation finds on its way, and what it may do about it.  Pure."""

from collections.abc import Mapping

from ha.record import dataclass
from journal.model import NamespaceInfo


@dataclass(frozen=True, slots=True)
class Blank:
    """A name directory in which nothing would be lost."""


@dataclass(frozen=True, slots=True)
class Half:
    """A name directory with files but without VERSION."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A name directory with a file system."""

    namespace: NamespaceInfo


@dataclass(frozen=True, slots=True)
class Unformatted:
    """A JournalNode without this journal."""


@dataclass(frozen=True, slots=True)
class Formatted:
    """A JournalNode with this journal; ``used``: some NameNode was active with it."""

    namespace: NamespaceInfo
    used: bool


@dataclass(frozen=True, slots=True)
class Absent:
    """A NameNode that does not run: its address refuses connections or does not resolve."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A NameNode that answers."""

    namespace: NamespaceInfo


@dataclass(frozen=True, slots=True)
class Unclear:
    """A JournalNode or NameNode of which nothing is known, not even that it does not run."""

    reason: str


Directory = Blank | Half | Whole
JournalNode = Unformatted | Formatted | Unclear
Peer = Absent | Serving | Unclear


@dataclass(frozen=True, slots=True)
class Seen:
    """One look around.

    ``begun`` are the ids that an earlier preparation here has drawn, if it did not come to its end.
    """

    directories: Mapping[str, Directory]
    journal: Mapping[str, JournalNode]
    peers: Mapping[str, Peer]
    begun: NamespaceInfo | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """There is nothing to do."""


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Copy the namespace of another NameNode."""


@dataclass(frozen=True, slots=True)
class Found:
    """Found a file system; ``begun``: with these ids, which are on some JournalNodes already."""

    begun: NamespaceInfo | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again soon: what is in doubt may clear up."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """A person must decide."""

    reason: str


Deed = Ready | Bootstrap | Found | Wait | Refuse
