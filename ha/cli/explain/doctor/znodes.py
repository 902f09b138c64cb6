"""Checks of ``nnha doctor`` on the nameservice's znodes: rights, and the granted session."""

from collections.abc import Iterator, Sequence
from functools import partial

from ha.cli.zookeeper_session import visit
from ha.cluster.check_result import Finding, fail, ok, unknown, warn
from ha.conf.topology import NameNodeAddress, namenodes
from ha.console.cluster_options import ClusterCommand
from ha.console.result import Code, Ended
from ha.elector.zookeeper.acl_review import Fault, review, takeover_obstacle
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import AclEntry, open_to_all
from ha.elector.zookeeper.rights import ZnodeAcl, shown_acl
from ha.elector.zookeeper.session_close import acls_below, probe
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import content_of
from ha.notices.store import members_path
from ha.zkfc.takeover.planned_fence import LEFT_ALONE, left_alone

_CLOSE = "see who has written there (nnha status), then: nnha zkfc --format-zk --keep"
MOST_SHOWN = 12
TOLERANCE_SECONDS = 0.001


async def check_znodes(place: ClusterCommand, *, seconds: float) -> list[Finding]:
    """Look at every znode of the nameservice."""
    try:
        nodes = namenodes(place.configuration, place.nameservice)
        return await visit(place, "doctor", partial(_look, nodes), seconds=seconds)
    except Ended as end:
        away = end.ending.code is Code.ZOOKEEPER_UNREACHABLE
        if away:
            return [unknown("znodes", end.ending.message, "nnha status shows which servers answer")]
        return [fail("znodes", end.ending.message, end.ending.hint or "nnha status")]


async def _look(
    nodes: Sequence[NameNodeAddress], session: Session, settings: ZooKeeperSettings
) -> list[Finding]:
    found = await acls_below(session, settings.scope)
    lock, crumb = (
        await content_of(session, settings.lock),
        await content_of(session, settings.breadcrumb),
    )
    # Under an open ACL every user has the same rights; only a creator's must be tried out.
    ours = None if open_to_all(settings.acl) else (await probe(session, settings)).acl
    return [
        *_rights(settings, found, ours),
        *_check_sharing(settings, found, ours),
        *_check_breadcrumb(lock, crumb),
        *_foreign(crumb, nodes),
        _check_session_timeout(session, settings),
    ]


def _check_breadcrumb(lock: bytes | None, crumb: bytes | None) -> Iterator[Finding]:
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


def _foreign(crumb: bytes | None, nodes: Sequence[NameNodeAddress]) -> Iterator[Finding]:
    if crumb is not None and (foreign := left_alone(crumb, nodes)):
        yield warn(
            "breadcrumb",
            f"{foreign}: {LEFT_ALONE}",
            "if no NameNode's address was changed, a stranger wrote it: close the znodes "
            "(ha.zookeeper.auth), then have it written again: nnha switchover",
        )


def _rights(
    settings: ZooKeeperSettings, found: Sequence[ZnodeAcl], ours: frozenset[AclEntry] | None
) -> Iterator[Finding]:
    """Check the ACLs: a client that may write the lock can make a second active."""
    if open_to_all(settings.acl):
        open_ones = [one for one in found if one.acl and open_to_all(tuple(one.acl))]
        if open_ones:
            yield warn(
                "znode rights",
                f"every client may change {len(open_ones)} of {len(found)} znodes below "
                f"{settings.scope}, as ha.zookeeper.acl says",
                "give all ZKFCs ha.zookeeper.auth=@FILE or a client certificate, restart them, "
                "then: nnha zkfc --format-zk --keep",
            )
            return
    doubtful = review(found, settings.acl, ours)
    for one in doubtful[:MOST_SHOWN]:
        bad = one.fault is not Fault.OTHERWISE
        yield (fail if bad else warn)("znode rights", f"{one.path}: {one.text}", _CLOSE)
    if len(doubtful) > MOST_SHOWN:
        more = f"and {len(doubtful) - MOST_SHOWN} more have other rights than configured"
        yield fail("znode rights", more, _CLOSE)
    if not doubtful:
        told = shown_acl({entry for one in found for entry in one.acl or ()})
        yield ok("znode rights", f"{len(found)} znodes, open to {told} alone")


def _check_sharing(
    settings: ZooKeeperSettings, found: Sequence[ZnodeAcl], ours: frozenset[AclEntry] | None
) -> Iterator[Finding]:
    """Check that all ZKFCs can write the one breadcrumb."""
    if text := takeover_obstacle(found, settings.acl, ours, members_path(settings)):
        yield warn("ZooKeeper identities", text, "nnha zkfc --check-zk, on the host of each ZKFC")


def _check_session_timeout(session: Session, settings: ZooKeeperSettings) -> Finding:
    asked, granted = settings.session_timeout_seconds, session.timeout_seconds
    if granted is None or abs(granted - asked) < TOLERANCE_SECONDS:
        return ok("session timeout", f"{asked:g} s, as asked for")
    return warn(
        "session timeout",
        f"asked for {asked:g} s, granted {granted:g} s",
        "set ha.zookeeper.session-timeout.ms within ZooKeeper's minSessionTimeout and "
        "maxSessionTimeout (2 and 20 ticks by default)",
    )
