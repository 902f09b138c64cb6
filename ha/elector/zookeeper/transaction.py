"""What one ZooKeeper transaction may consist of: all of it happens, or nothing."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from ha.record import dataclass

_UNDONE: Final = ("RolledBackError", "RuntimeInconsistency")
"""What kazoo shows for parts that did not fail themselves."""


@dataclass(frozen=True, slots=True)
class CreateEphemeral:
    """A new znode of this session, with the configured ACL."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class SetData:
    """New bytes, at any version."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class CheckVersion:
    """The znode is there, at this version."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """A znode goes that is at this version."""

    path: str
    version: int


Part = CreateEphemeral | SetData | CheckVersion | Delete


class Builder(Protocol):
    """kazoo's transaction before it is sent."""

    def create(self, path: str, value: bytes, acl: Any, *, ephemeral: bool) -> None: ...  # noqa: ANN401

    def set_data(self, path: str, value: bytes) -> None: ...

    def check(self, path: str, version: int) -> None: ...

    def delete(self, path: str, version: int) -> None: ...


def build(transaction: Builder, parts: Sequence[Part], acl: Any) -> None:  # noqa: ANN401
    """Put all parts into kazoo's transaction."""
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
    """Return why a transaction was refused; None where this is no refused transaction's answer.

    Every part has a result then.
    """
    if not isinstance(results, list):
        return None
    failures = [one for one in results if isinstance(one, Exception)]
    own = (one for one in failures if type(one).__name__ not in _UNDONE)
    return next(own, failures[0] if failures else None)
