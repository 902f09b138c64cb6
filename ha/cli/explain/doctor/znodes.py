"""Checks of ``nnha doctor`` on the nameservice's znodes: rights, and the granted session."""

from collections.abc import Iterator

from ha.cli.cluster.finding import Finding, fail, ok, unknown, warn
from ha.cli.cluster.zookeeper_session import visit
from ha.console.cluster_options import ClusterCommand
from ha.console.result import Code, Ended
from ha.elector.zookeeper.answers import value_of
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import AclEntry, open_to_all, shown
from ha.elector.zookeeper.outcome import Refusal, Refused
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import content_of
from ha.notices.store import drains_path, history_path, members_path, pause_path

TOLERANCE_SECONDS = 0.001


async def check_znodes(place: ClusterCommand, *, seconds: float) -> list[Finding]:
    """Look at every znode that steers the election."""
    try:
        return await visit(place, "doctor", _look, seconds=seconds)
    except Ended as end:
        away = end.ending.code is Code.ZOOKEEPER_UNREACHABLE
        if away:
            return [unknown("znodes", end.ending.message, "nnha status shows which servers answer")]
        return [fail("znodes", end.ending.message, end.ending.hint or "nnha status")]


async def _look(session: Session, settings: ZooKeeperSettings) -> list[Finding]:
    paths = (
        settings.scope,
        settings.lock,
        settings.breadcrumb,
        settings.term,
        pause_path(settings),
        drains_path(settings),
        members_path(settings),
        history_path(settings),
    )
    found: dict[str, frozenset[AclEntry]] = {}
    for path in paths:
        outcome = await session.acl(path)
        if isinstance(outcome, Refused) and outcome.why is Refusal.NO_NODE:
            continue
        acl, _ = value_of(outcome, f"read the ACL of {path}")
        found[path] = acl
    lock, crumb = (
        await content_of(session, settings.lock),
        await content_of(session, settings.breadcrumb),
    )
    return [*_rights(settings, found), *_traced(lock, crumb), _granted(session, settings)]


def _traced(lock: bytes | None, crumb: bytes | None) -> Iterator[Finding]:
    """Check the breadcrumb: without it the next owner of the lock fences no NameNode."""
    if lock is None:
        return
    if crumb == lock:
        yield ok("breadcrumb", "it names the holder of the lock")
        return
    what = "there is none" if crumb is None else "it does not name the holder of the lock"
    yield warn(
        "breadcrumb",
        f"{what}: the next takeover would not know whom to fence",
        "if no takeover is under way, the znode was changed by hand; have it written again: "
        "nnha switchover",
    )


def _rights(
    settings: ZooKeeperSettings, found: dict[str, frozenset[AclEntry]]
) -> Iterator[Finding]:
    """Check the ACLs: a client that may write the lock can make a second active."""
    open_ones = [path for path, acl in found.items() if open_to_all(tuple(acl))]
    if open_ones:
        yield warn(
            "znode rights",
            f"every client may change {len(open_ones)} of {len(found)} znodes below "
            f"{settings.scope}",
            "set ha.zookeeper.acl and ha.zookeeper.auth, then: nnha zkfc --format-zk, with all "
            "ZKFCs stopped",
        )
    else:
        told = ", ".join(sorted({shown(one) for acl in found.values() for one in acl}))
        yield ok("znode rights", f"{len(found)} znodes, open to {told} alone")


def _granted(session: Session, settings: ZooKeeperSettings) -> Finding:
    asked, granted = settings.session_timeout_seconds, session.timeout_seconds
    if granted is None or abs(granted - asked) < TOLERANCE_SECONDS:
        return ok("session timeout", f"{asked:g} s, as asked for")
    return warn(
        "session timeout",
        f"asked for {asked:g} s, granted {granted:g} s",
        "set ha.zookeeper.session-timeout.ms within ZooKeeper's minSessionTimeout and "
        "maxSessionTimeout (2 and 20 ticks by default)",
    )
