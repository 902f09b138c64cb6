"""The parts of a ZooKeeper transaction, of which all are carried out, or none."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from ha.record import dataclass

_UNDONE: Final = ("RolledBackError", "RuntimeInconsistency")
"""kazoo's errors for the parts that did not fail themselves."""


@dataclass(frozen=True, slots=True)
class CreateEphemeral:
    """Create an ephemeral znode of this session, with the configured ACL."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class SetData:
    """Set a znode's bytes, at any version."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class CheckVersion:
    """Check that a znode exists and has this version."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a znode if it has this version."""

    path: str
    version: int


Part = CreateEphemeral | SetData | CheckVersion | Delete


class Builder(Protocol):
    """The methods of kazoo's TransactionRequest that are used here."""

    def create(self, path: str, value: bytes, acl: Any, *, ephemeral: bool) -> None: ...  # noqa: ANN401

    def set_data(self, path: str, value: bytes) -> None: ...

    def check(self, path: str, version: int) -> None: ...

    def delete(self, path: str, version: int) -> None: ...


def build(transaction: Builder, parts: Sequence[Part], acl: Any) -> None:  # noqa: ANN401
    """Add the parts to kazoo's transaction."""
    for part in parts:
        match part:
            case CreateEphemeral():
                transaction.create(part.path, part.data, acl, ephemeral=True)
            case SetData():
                transaction.set_data(part.path, part.data)
            case CheckVersion():
                transaction.check(part.path, part.version)
            case Delete():
                transaction.delete(part.path, part.version)


def failure_in(results: object) -> Exception | None:
    """Return the error of the part that failed in a transaction's results.

    None if no part failed, or if ``results`` are not those of a transaction.
    """
    if not isinstance(results, list):
        return None
    failures = [one for one in results if isinstance(one, Exception)]
    own = (one for one in failures if type(one).__name__ not in _UNDONE)
    return next(own, failures[0] if failures else None)
