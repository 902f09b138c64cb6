"""ZooKeeper's data tree as a function of its transactions, and the errors that it refuses with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ha.elector.zookeeper import transaction
from ha.elector.zookeeper.credentials import ALL_PERMISSIONS, AclEntry
from ha.elector.zookeeper.outcome import Refusal
from ha.elector.zookeeper.transaction import Part

_WORLD: Final = (AclEntry("world", "anyone", ALL_PERMISSIONS),)


@dataclass(frozen=True, slots=True)
class Znode:
    """One znode; versions and transaction numbers as ZooKeeper counts them."""

    data: bytes
    created: int
    written: int
    version: int = 0
    acl: tuple[AclEntry, ...] = _WORLD
    acl_version: int = 0
    owner: int = 0
    """The session whose end deletes it; 0 for a persistent one."""
    children_made: int = 0
    """Children ever created here; numbers the sequential ones (deletions do not count)."""


@dataclass(frozen=True, slots=True)
class Create:
    """A new znode; ``path`` is final, a sequence number included."""

    path: str
    data: bytes
    owner: int
    acl: tuple[AclEntry, ...]


@dataclass(frozen=True, slots=True)
class SetData:
    """New bytes."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class SetAcl:
    """A new ACL."""

    path: str
    acl: tuple[AclEntry, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """A znode goes."""

    path: str


@dataclass(frozen=True, slots=True)
class EndSession:
    """A session closed or expired: its ephemerals go."""

    session: int


@dataclass(frozen=True, slots=True)
class BeginSession:
    """A session was made: it changes no znode."""

    session: int


@dataclass(frozen=True, slots=True)
class Together:
    """A transaction of several parts."""

    parts: tuple[Create | SetData | Delete, ...]


Change = Create | SetData | SetAcl | Delete | EndSession | BeginSession | Together


@dataclass(frozen=True, slots=True)
class News:
    """What watches hear of: a znode was created, changed or deleted."""

    path: str
    kind: str


class RefusedError(Exception):
    """The request has no effect."""

    def __init__(self, why: Refusal, text: str) -> None:
        super().__init__(text)
        self.why = why
        self.text = text


def refuse(why: Refusal) -> RefusedError:
    """Return the error as kazoo names it."""
    return RefusedError(why, _NAMES[why])


_NAMES: Final = {
    Refusal.NODE_EXISTS: "NodeExistsError",
    Refusal.NO_NODE: "NoNodeError",
    Refusal.BAD_VERSION: "BadVersionError",
    Refusal.NOT_EMPTY: "NotEmptyError",
    Refusal.EXPIRED: "SessionExpiredError",
    Refusal.OTHER: "NoChildrenForEphemeralsError",
}


@dataclass(slots=True)
class Tree:
    """The znodes after some number of transactions."""

    znodes: dict[str, Znode] = field(default_factory=lambda: {"/": Znode(b"", 0, 0)})

    def get(self, path: str) -> Znode:
        """Return the znode, or raise NO_NODE."""
        found = self.znodes.get(path)
        if found is None:
            raise refuse(Refusal.NO_NODE)
        return found

    def children(self, path: str) -> tuple[str, ...]:
        """Return the names below a znode, sorted; raise NO_NODE without it."""
        self.get(path)
        prefix = path.rstrip("/") + "/"
        below = (one[len(prefix) :] for one in self.znodes if one.startswith(prefix))
        return tuple(sorted(name for name in below if name and "/" not in name))

    def plan_create(
        self, path: str, data: bytes, owner: int, acl: tuple[AclEntry, ...], *, sequence: bool
    ) -> Create:
        """Return what a create would do, or raise why it is refused."""
        above = self.znodes.get(parent(path))
        if above is None:
            raise refuse(Refusal.NO_NODE)
        if above.owner:
            raise refuse(Refusal.OTHER)
        final = f"{path}{above.children_made:010d}" if sequence else path
        if final in self.znodes:
            raise refuse(Refusal.NODE_EXISTS)
        return Create(final, data, owner, acl)

    def plan_set(self, path: str, data: bytes, version: int) -> SetData:
        _check(self.get(path).version, version)
        return SetData(path, data)

    def plan_set_acl(self, path: str, acl: tuple[AclEntry, ...], version: int) -> SetAcl:
        _check(self.get(path).acl_version, version)
        return SetAcl(path, acl)

    def plan_delete(self, path: str, version: int) -> Delete:
        _check(self.get(path).version, version)
        if self.children(path):
            raise refuse(Refusal.NOT_EMPTY)
        return Delete(path)

    def plan_together(
        self, parts: Sequence[Part], session: int, acl: tuple[AclEntry, ...]
    ) -> Together:
        """Return what a transaction would do, or raise; no two parts are of one znode."""
        planned: list[Create | SetData | Delete] = []
        for part in parts:
            match part:
                case transaction.CreateEphemeral(path=path, data=data):
                    planned.append(self.plan_create(path, data, session, acl, sequence=False))
                case transaction.SetData(path=path, data=data):
                    planned.append(self.plan_set(path, data, -1))
                case transaction.CheckVersion(path=path, version=version):
                    _check(self.get(path).version, version)
                case transaction.Delete(path=path, version=version):
                    planned.append(self.plan_delete(path, version))
        return Together(tuple(planned))

    def apply(self, change: Change, number: int) -> tuple[News, ...]:
        """Make the change; it was planned on this very state."""
        match change:
            case Create(path=path):
                znode = Znode(change.data, number, number, acl=change.acl, owner=change.owner)
                self.znodes[path] = znode
                self._count_child(path)
                return (News(path, "created"), News(parent(path), "children"))
            case SetData(path=path, data=data):
                old = self.znodes[path]
                new = replace(old, data=data, version=old.version + 1, written=number)
                self.znodes[path] = new
                return (News(path, "changed"),)
            case SetAcl(path=path, acl=acl):
                old = self.znodes[path]
                self.znodes[path] = replace(old, acl=acl, acl_version=old.acl_version + 1)
                return ()
            case Delete(path=path):
                return self._delete(path)
            case EndSession(session=session):
                gone = [path for path, znode in self.znodes.items() if znode.owner == session]
                return tuple(news for path in gone for news in self._delete(path))
            case BeginSession():
                return ()
            case Together(parts=parts):
                return tuple(news for part in parts for news in self.apply(part, number))

    def paths(self) -> Iterator[str]:
        return iter(self.znodes)

    def _delete(self, path: str) -> tuple[News, ...]:
        del self.znodes[path]
        return (News(path, "deleted"), News(parent(path), "children"))

    def _count_child(self, path: str) -> None:
        above = self.znodes[parent(path)]
        changed = replace(above, children_made=above.children_made + 1)
        self.znodes[parent(path)] = changed


def parent(path: str) -> str:
    return path.rsplit("/", 1)[0] or "/"


def _check(version: int, expected: int) -> None:
    if expected not in (-1, version):
        raise refuse(Refusal.BAD_VERSION)
