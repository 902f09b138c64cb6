"""Accesses a nameservice's znodes for commands: exists, format, inspect, read the active."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, decode
from ha.elector.zookeeper.client import Session, SessionFactory
from ha.elector.zookeeper.credentials import AclEntry
from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.outcome import (
    Outcome,
    Refusal,
    Refused,
    SessionState,
    ZnodeFacts,
    value_of,
)
from ha.elector.zookeeper.rights import ZnodeAcl
from ha.elector.zookeeper.session_close import Came, Probe, acls_below, give_acl, probe
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.record import dataclass

CLOSE_DEADLINE_SECONDS = 1.0


@asynccontextmanager
async def connected(
    settings: ZooKeeperSettings,
    *,
    deadline_seconds: float | None,
    open_session: SessionFactory = Session,
) -> AsyncIterator[Session]:
    """Yield a new session, and close it in the end; with no deadline, wait without a limit.

    Raises:
        ZooKeeperUnavailable: no server accepted the session within the deadline.
        ZooKeeperRefused: the credentials were refused.
    """
    loop = asyncio.get_running_loop()
    first: asyncio.Future[tuple[SessionState, str]] = loop.create_future()

    def on_state(state: SessionState, reason: str) -> None:
        if not first.done() and state is not SessionState.SUSPENDED:
            first.set_result((state, reason))

    session = open_session(settings, on_state)
    session.open()
    try:
        try:
            async with asyncio.timeout(deadline_seconds):
                state, reason = await first
        except TimeoutError as failure:
            last = f" ({session.trouble})" if session.trouble else ""
            raise ZooKeeperUnavailable(
                f"no ZooKeeper of {settings.hosts} answered within {deadline_seconds:g} s{last}; "
                f"check ha.zookeeper.quorum and that the ensemble has a quorum"
            ) from failure
        if state is not SessionState.CONNECTED:
            raise ZooKeeperRefused(
                f"ZooKeeper at {settings.hosts} refused the session ({reason}); "
                f"check ha.zookeeper.auth"
            )
        yield session
    finally:
        await session.close(deadline_seconds=CLOSE_DEADLINE_SECONDS)


async def parent_exists(session: Session, settings: ZooKeeperSettings) -> bool:
    """Return whether this nameservice has been formatted."""
    outcome = await session.look(settings.scope)
    return value_of(outcome, f"look at {settings.scope}") is not None


async def lock_exists(session: Session, settings: ZooKeeperSettings) -> bool:
    """Return whether a controller holds the lock."""
    return value_of(await session.look(settings.lock), f"look at {settings.lock}") is not None


async def ensure_parent(session: Session, settings: ZooKeeperSettings) -> None:
    """Create the nameservice's znode and its missing parents, with the configured ACL.

    An existing nameservice's znode gets the configured ACL.  Its existing parents, unlike in
    Hadoop, keep theirs, as they are also those of other nameservices.
    """
    parts = settings.scope.strip("/").split("/")
    for depth in range(1, len(parts) + 1):
        path = "/" + "/".join(parts[:depth])
        outcome = await session.create(path)
        match outcome:
            case Refused(why=Refusal.NODE_EXISTS):
                if depth == len(parts):
                    given = await give_acl(session, path, session.configured_acl)
                    if given.came is Came.REFUSED:
                        raise ZooKeeperRefused(
                            f"ZooKeeper refused to set the ACL of {path}: {Refusal.NO_RIGHTS}"
                        )
            case Refused(why=Refusal.NO_RIGHTS) if depth < len(parts):
                # ZooKeeper checks the rights on the parent before it finds that the znode exists.
                if value_of(await session.look(path), f"look at {path}") is None:
                    value_of(outcome, f"create {path}")
            case _:
                value_of(outcome, f"create {path}")


async def clear_parent(session: Session, settings: ZooKeeperSettings) -> None:
    """Delete the nameservice's znode and all below it."""
    await _delete_tree(session, settings.scope)


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """The znodes of a nameservice in ZooKeeper, and this session's rights on them."""

    formatted: bool
    names: tuple[str, ...] = ()
    """The names of the znodes in the scope."""
    acls: tuple[ZnodeAcl, ...] = ()
    """The ACLs of the scope and of all znodes below it."""
    probe: Probe = Probe()
    lock: bytes | None = None
    """The lock's bytes; None if no controller holds it."""
    breadcrumb: bytes | None = None

    @property
    def acl(self) -> frozenset[AclEntry]:
        """The ACL of the scope; empty if it is not known."""
        return self.acls[0].acl or frozenset() if self.acls else frozenset()

    @property
    def may_write(self) -> bool:
        """Whether a znode could be created and deleted in the scope."""
        return not self.probe.refused and self.probe.deleted


async def inspect_scope(session: Session, settings: ZooKeeperSettings) -> ScopeFacts:
    """Read all that an election needs from ZooKeeper, and probe the rights; changes nothing."""
    if not await parent_exists(session, settings):
        return ScopeFacts(formatted=False)
    names = value_of(await session.children(settings.scope), f"list {settings.scope}")
    tried = await probe(session, settings)
    return ScopeFacts(
        formatted=True,
        names=tuple(sorted(names)),
        acls=await acls_below(session, settings.scope),
        probe=tried,
        lock=await content_of(session, settings.lock),
        breadcrumb=await content_of(session, settings.breadcrumb),
    )


async def content_of(session: Session, path: str) -> bytes | None:
    """Return the bytes of a znode, or None if it does not exist; raises as ``value_of``."""
    outcome = await session.read(path)
    if isinstance(outcome, Refused) and outcome.why is Refusal.NO_NODE:
        return None
    content, _ = value_of(outcome, f"read {path}")
    return content


async def read_active(
    settings: ZooKeeperSettings, *, deadline_seconds: float, open_session: SessionFactory = Session
) -> ActiveNodeInfo | None:
    """Read the holder of the lock in a new session, and return it; None if there is none.

    Raises ZooKeeperUnavailable, ZooKeeperRefused, or BadBreadcrumb for bytes that name no node.
    """
    try:
        async with (
            asyncio.timeout(deadline_seconds + CLOSE_DEADLINE_SECONDS),
            connected(
                settings, deadline_seconds=deadline_seconds, open_session=open_session
            ) as session,
        ):
            outcome = await session.read(settings.lock)
    except TimeoutError as failure:
        raise ZooKeeperUnavailable(
            f"ZooKeeper at {settings.hosts} took longer than {deadline_seconds:g} s"
        ) from failure
    return active_from(outcome, settings)


def active_from(
    outcome: Outcome[tuple[bytes, ZnodeFacts]], settings: ZooKeeperSettings
) -> ActiveNodeInfo | None:
    """Decode an answer to reading the lock; raise as ``read_active`` does."""
    if isinstance(outcome, Refused) and outcome.why is Refusal.NO_NODE:
        return None
    content, _ = value_of(outcome, f"read {settings.lock}")
    return decode(content)


async def _delete_tree(session: Session, path: str) -> None:
    outcome = await session.children(path)
    if isinstance(outcome, Refused) and outcome.why is Refusal.NO_NODE:
        return
    for name in sorted(value_of(outcome, f"list {path}")):
        await _delete_tree(session, f"{path}/{name}")
    deleted = await session.delete(path)
    if not (isinstance(deleted, Refused) and deleted.why is Refusal.NO_NODE):
        value_of(deleted, f"delete {path}")
