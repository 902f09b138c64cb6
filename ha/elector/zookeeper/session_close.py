"""The ACLs of all znodes of a nameservice: read them, and give them the configured one.

A cluster that was open, and is to be closed, keeps its old znodes open otherwise: ZooKeeper sets an
ACL when a znode is created, and never again by itself.
"""

import asyncio
from enum import Enum, auto
from typing import assert_never

from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import AclEntry, open_to_all
from ha.elector.zookeeper.errors import ZooKeeperRefused
from ha.elector.zookeeper.outcome import Done, Outcome, Refusal, Refused, value_of
from ha.elector.zookeeper.rights import ZnodeAcl
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.record import dataclass

ACL_ATTEMPTS = 3
PROBE_ZNODE = "NnhaProbe"


class Came(Enum):
    """What has come of giving a znode an ACL."""

    SET = auto()
    WAS_SO = auto()
    REFUSED = auto()
    GONE = auto()


@dataclass(frozen=True, slots=True)
class Given:
    """What has come of it, and the ACL that the znode had before, where we could see it."""

    came: Came
    before: frozenset[AclEntry] = frozenset()


@dataclass(frozen=True, slots=True)
class Closed:
    """What has come of giving all znodes the configured ACL."""

    acl: frozenset[AclEntry]
    """The configured one as ZooKeeper reports it for us."""
    looked_at: int
    changed: tuple[ZnodeAcl, ...]
    """Each with the ACL that it had before."""
    refused: tuple[str, ...]
    """Those whose ACL we have no right to change."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What ZooKeeper lets us do in the scope, tried out: it takes wrong passwords at the door, and
    refuses only what needs rights (docs/reference/kazoo.md#authentication)."""

    refused: str = ""
    """Why no znode could be created there; empty: one could."""
    acl: frozenset[AclEntry] | None = None
    """What ZooKeeper makes of the configured ACL for us; None where we may not see it."""
    may_write: bool = False
    """Whether the configured ACL lets us write what we have made."""
    deleted: bool = False


async def acls_below(session: Session, path: str) -> tuple[ZnodeAcl, ...]:
    """Return the ACL of the znode and of all below it, each znode before those in it."""
    found = await session.acl(path)
    if _is(found, Refusal.NO_NODE):
        return ()
    own = None
    if not _is(found, Refusal.NO_RIGHTS):
        own, _ = value_of(found, f"read the ACL of {path}")
    below = await asyncio.gather(
        *(acls_below(session, f"{path}/{name}") for name in await _names(session, path))
    )
    return (ZnodeAcl(path, own), *(one for part in below for one in part))


async def probe(session: Session, settings: ZooKeeperSettings) -> Probe:
    """Create, write and delete a znode of this session's in the scope; nothing is left behind."""
    path = f"{settings.scope}/{PROBE_ZNODE}-{session.session_id}"
    made = await session.create(path, ephemeral=True)
    if not isinstance(made, Done):
        return Probe(refused=_text(made))
    found = await session.acl(path)
    written = await session.write(path, b"", version=-1)
    deleted = await session.delete(path)
    return Probe(
        acl=found.value[0] if isinstance(found, Done) else None,
        may_write=isinstance(written, Done),
        deleted=isinstance(deleted, Done),
    )


async def close_all(session: Session, settings: ZooKeeperSettings, *, force: bool) -> Closed:
    """Give the scope and all znodes below it the configured ACL; what they say stays.

    Only the term is removed where it was open: it may say of a NameNode that it has ended, and
    without it the next takeover waits for the read lease.

    Raises:
        ZooKeeperRefused: by the configured ACL we could not write any more ourselves (not checked
            with ``force``); nothing was changed.
    """
    tried = await probe(session, settings)
    if not force and not (tried.may_write and tried.acl is not None):
        because = tried.refused or "what it would let us make we could not write or read"
        raise ZooKeeperRefused(
            f"the ACL of {settings.scope} was left as it is: ha.zookeeper.acl does not fit who we "
            f"are for ZooKeeper ({because}); compare it with ha.zookeeper.auth or our certificate"
        )
    wanted = session.configured_acl if tried.acl is None else tried.acl
    looked_at = 0
    changed: list[ZnodeAcl] = []
    refused: list[str] = []
    paths = [settings.scope]
    while paths:
        path = paths.pop(0)
        given = await give_acl(session, path, wanted)
        match given.came:
            case Came.GONE:
                continue
            case Came.SET:
                changed.append(ZnodeAcl(path, given.before))
            case Came.REFUSED:
                refused.append(path)
            case Came.WAS_SO:
                pass
            case _:
                assert_never(given.came)
        looked_at += 1
        # Listed only now: a client that could create something in it cannot any more.
        paths += [f"{path}/{name}" for name in await _names(session, path)]
    if any(one.path == settings.term and open_to_all(tuple(one.acl or ())) for one in changed):
        await session.delete(settings.term)
    return Closed(wanted, looked_at, tuple(changed), tuple(refused))


async def give_acl(session: Session, path: str, wanted: frozenset[AclEntry]) -> Given:
    """Give one znode the configured ACL, which ZooKeeper reports as ``wanted``.

    Raises ZooKeeperRefused and ZooKeeperUnavailable where that fails, but not for want of rights.
    """
    for _ in range(ACL_ATTEMPTS):
        found = await session.acl(path)
        if _is(found, Refusal.NO_NODE):
            return Given(Came.GONE)
        if _is(found, Refusal.NO_RIGHTS):
            return Given(Came.REFUSED)
        before, version = value_of(found, f"read the ACL of {path}")
        if before == wanted:
            return Given(Came.WAS_SO, before)
        outcome = await session.set_acl(path, acl_version=version)
        if _is(outcome, Refusal.NO_NODE):
            return Given(Came.GONE)
        if _is(outcome, Refusal.NO_RIGHTS):
            return Given(Came.REFUSED, before)
        if not _is(outcome, Refusal.BAD_VERSION):
            value_of(outcome, f"set the ACL of {path}")
            return Given(Came.SET, before)
    raise ZooKeeperRefused(f"the ACL of {path} keeps changing under us; is another format running?")


async def _names(session: Session, path: str) -> tuple[str, ...]:
    found = await session.children(path)
    if _is(found, Refusal.NO_NODE) or _is(found, Refusal.NO_RIGHTS):
        return ()
    return tuple(sorted(value_of(found, f"list {path}")))


def _text(outcome: Outcome[None]) -> str:
    if not isinstance(outcome, Refused):
        return "ZooKeeper has not answered"
    if outcome.text == "InvalidACLError":
        return "it knows no identity of ours that the ACL could be for: InvalidACLError"
    return f"{outcome.why}: {outcome.text}"


def _is(outcome: Outcome[object], why: Refusal) -> bool:
    return isinstance(outcome, Refused) and outcome.why is why
