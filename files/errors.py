"""What a client of files may meet; every message says in which state things are.

FilesError
├── Refused           the NameNode refused, with a Java class; nothing has changed
│   ├── NotFound, AlreadyExists, Denied, QuotaExceeded, InSafeMode
│   └── LeaseLost     the file that was open for writing is no longer this writer's
├── NotProven         we have no tickets; nothing was carried out
├── Unreachable       no active NameNode was found in time; nothing was carried out
├── OutcomeUnknown    the call was sent, no answer came; it may have been carried out
├── Unreadable        no replica of a block gave its bytes
├── Unwritable        no DataNode took the bytes of a block, or the file could not be completed
└── Unsupported       the file is one that this client cannot read or write
"""

from collections.abc import Mapping
from typing import Final

from ha.rpc import java_names
from ha.rpc.errors import RemoteFault


class FilesError(Exception):
    """The message says what was tried, what was found and what to do."""


class Refused(FilesError):
    """The NameNode has refused a call.

    Attributes:
        java_class: the exception's name as Java knows it.
        reason: its first line.
    """

    def __init__(self, java_class: str, reason: str) -> None:
        super().__init__(java_class, reason)
        self.java_class, self.reason = java_class, reason

    def __str__(self) -> str:
        return self.reason


class NotFound(Refused):
    """There is no such file or directory."""


class AlreadyExists(Refused):
    """The path is taken, or another client writes the file."""


class Denied(Refused):
    """The user may not do this."""


class QuotaExceeded(Refused):
    """A quota of names, of space or of a storage type would be exceeded."""


class InSafeMode(Refused):
    """The NameNode changes nothing until an operator lets it leave safe mode."""


class LeaseLost(Refused):
    """The file is no longer open for this writer: it was deleted, or another has taken it over."""


class NotProven(FilesError):
    """We have nothing that proves to a NameNode who we are; the call was not carried out."""


class Unreachable(FilesError):
    """No active NameNode was found in time; the call was not carried out."""


class OutcomeUnknown(FilesError):
    """The call was sent, and no answer came in time; it may have been carried out."""


class Unreadable(FilesError):
    """No replica of a block gave the bytes that were asked for."""


class Unwritable(FilesError):
    """No DataNode takes the bytes of a block, or the file cannot be completed."""


class Unsupported(FilesError):
    """The file is erasure-coded or encrypted, which this client cannot read or write."""


_KINDS: Final[Mapping[str, type[Refused]]] = {
    java_names.FILE_NOT_FOUND: NotFound,
    java_names.FILE_ALREADY_EXISTS: AlreadyExists,
    java_names.ALREADY_BEING_CREATED: AlreadyExists,
    java_names.ACCESS_CONTROL: Denied,
    java_names.NAMESPACE_QUOTA_EXCEEDED: QuotaExceeded,
    java_names.SPACE_QUOTA_EXCEEDED: QuotaExceeded,
    java_names.TYPE_QUOTA_EXCEEDED: QuotaExceeded,
    java_names.SAFE_MODE_EXCEPTION: InSafeMode,
    java_names.LEASE_EXPIRED: LeaseLost,
}


def refusal(fault: RemoteFault) -> Refused:
    """Return the error for what a NameNode answered, of the class that its Java class has here."""
    kind = _KINDS.get(fault.java_class, Refused)
    return kind(fault.java_class, fault.reason.partition("\n")[0])
