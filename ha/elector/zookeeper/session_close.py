"""Reads the ACLs of all znodes of a nameservice, and sets them to the configured one.

If a cluster gets a stricter ``ha.zookeeper.acl``, its existing znodes keep their old ACL otherwise:
ZooKeeper sets an ACL only when a znode is created.
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
    """The results of setting a znode's ACL."""

    SET = auto()
    WAS_SO = auto()
    REFUSED = auto()
    GONE = auto()


@dataclass(frozen=True, slots=True)
class Given:
    """The result of setting a znode's ACL, and the ACL before, empty if it was not visible."""

    came: Came
    before: frozenset[AclEntry] = frozenset()


@dataclass(frozen=True, slots=True)
class Closed:
    """The result of setting the configured ACL on all znodes."""

    acl: frozenset[AclEntry]
    """The configured ACL as ZooKeeper reports it for this session."""
    looked_at: int
    changed: tuple[ZnodeAcl, ...]
    """The znodes that were changed, each with the ACL that it had before."""
    refused: tuple[str, ...]
    """The znodes whose ACL this session has no right to change."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The rights of this session in the scope, by a test: ZooKeeper accepts wrong passwords, and
    refuses only requests that need rights (docs/reference/kazoo.md#authentication)."""

    refused: str = ""
    """Why no znode could be created in the scope; empty if one could."""
    acl: frozenset[AclEntry] | None = None
    """The configured ACL as ZooKeeper reports it for this session; None if it may not read it."""
    may_write: bool = False
    """Whether this session may write a znode with the configured ACL."""
    deleted: bool = False


async def acls_below(session: Session, path: str) -> tuple[ZnodeAcl, ...]:
    """Return the ACLs of the znode and of all below it, each parent before its children."""
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
    """Create, write and delete an ephemeral znode in the scope, to find out the rights."""
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
    """Set the configured ACL on the scope and all znodes below it; their bytes stay.

    Only the term is deleted if anybody could write it: a false one could say that a NameNode has
    ended.  Without it the next takeover waits for the read lease.

    Raises:
        ZooKeeperRefused: this session could not write znodes with the configured ACL (not checked
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
        # List the children after the change: no other client can create one any more.
        paths += [f"{path}/{name}" for name in await _names(session, path)]
    if any(one.path == settings.term and open_to_all(tuple(one.acl or ())) for one in changed):
        await session.delete(settings.term)
    return Closed(wanted, looked_at, tuple(changed), tuple(refused))


async def give_acl(session: Session, path: str, wanted: frozenset[AclEntry]) -> Given:
    """Set the configured ACL, which ZooKeeper reports as ``wanted``, on one znode.

    Raises ZooKeeperRefused or ZooKeeperUnavailable; missing rights are a result, ``Came.REFUSED``.
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
