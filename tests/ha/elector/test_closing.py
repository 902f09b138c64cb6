"""The ACLs of a scope are set where they differ and may be set, without locking ourselves out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import pytest

from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import AclEntry, parse_acl
from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.outcome import Done, Doubt, Outcome, Refusal, Refused, Unknown
from ha.elector.zookeeper.rights import ZnodeAcl
from ha.elector.zookeeper.session_close import Came, acls_below, close_all, give_acl
from ha.elector.zookeeper.settings import ZooKeeperSettings

Acl = frozenset[AclEntry]

OURS, OPEN, READABLE = (
    frozenset(parse_acl(text))
    for text in ("sasl:nn:rwcda", "world:anyone:rwcda", "sasl:old:rwcda,world:anyone:r")
)
SETTINGS = ZooKeeperSettings(
    hosts="zk:1", session_timeout_seconds=6.0, scope="/ns", acl=parse_acl("sasl:nn:rwcda")
)
SCOPE, LOCK, TERM, DEEP = SETTINGS.scope, SETTINGS.lock, SETTINGS.term, f"{SETTINGS.lock}/deep"


def _refused(why: Refusal) -> Refused:
    return Refused(why, why.name)


GONE, DENIED, CHANGED = map(_refused, (Refusal.NO_NODE, Refusal.NO_RIGHTS, Refusal.BAD_VERSION))


@dataclass
class Scope:
    """Znodes in memory, each with its ACL, and what of them ZooKeeper refuses."""

    acls: dict[str, Acl]
    unseen: Mapping[str, Outcome[tuple[Acl, int]]] = field(default_factory=dict)
    """What asking for an ACL ends in."""
    unset: dict[str, list[Outcome[None]]] = field(default_factory=dict)
    """What setting an ACL ends in, one time after another."""
    unlisted: Mapping[str, Refused] = field(default_factory=dict)
    writes: Outcome[int] = field(default_factory=lambda: Done(1))
    session_id: int = 9
    configured_acl: Acl = OURS

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False
    ) -> Outcome[None]:
        self.acls[path] = OURS
        return Done(None)

    async def acl(self, path: str) -> Outcome[tuple[Acl, int]]:
        if path in self.unseen:
            return self.unseen[path]
        return Done((self.acls[path], 0)) if path in self.acls else GONE

    async def set_acl(self, path: str, *, acl_version: int) -> Outcome[None]:
        if self.unset.get(path):
            return self.unset[path].pop(0)
        self.acls[path] = OURS
        return Done(None)

    async def write(self, path: str, data: bytes, *, version: int) -> Outcome[int]:
        return self.writes

    async def delete(self, path: str, *, version: int = -1) -> Outcome[None]:
        del self.acls[path]
        return Done(None)

    async def children(self, path: str) -> Outcome[tuple[str, ...]]:
        if path in self.unlisted:
            return self.unlisted[path]
        below = (one.rpartition("/") for one in self.acls)
        return Done(tuple(name for parent, _, name in below if parent == path))


@pytest.mark.parametrize(
    ("before", "kept"),
    [(OPEN, False), (OURS, True), (READABLE, True)],
    ids=["open", "closed", "another's alone"],
)
async def test_all_znodes_get_the_acl_and_a_record_that_anybody_could_write_goes(
    before: Acl, kept: bool
) -> None:
    scope = Scope({SCOPE: OPEN, LOCK: OPEN, DEEP: READABLE, TERM: before})
    closed = await close_all(cast(Session, scope), SETTINGS, force=False)
    assert scope.acls == {SCOPE: OURS, LOCK: OURS, DEEP: OURS} | ({TERM: OURS} if kept else {})
    others = (ZnodeAcl(SCOPE, OPEN), ZnodeAcl(LOCK, OPEN), ZnodeAcl(DEEP, READABLE))
    assert {one for one in closed.changed if one.path != TERM} == set(others)
    assert (closed.looked_at, closed.refused, closed.acl) == (4, (), OURS)


async def test_what_may_not_be_set_is_named_and_what_goes_meanwhile_is_not_counted() -> None:
    scope = Scope(
        {SCOPE: OPEN, LOCK: OPEN, DEEP: OPEN, TERM: OPEN},
        unset={LOCK: [DENIED], TERM: [GONE]},
        unlisted={DEEP: DENIED},
    )
    closed = await close_all(cast(Session, scope), SETTINGS, force=False)
    assert closed.refused == (LOCK,)
    assert [one.path for one in closed.changed] == [SCOPE, DEEP]
    assert closed.looked_at == 3


PROBE = f"{SCOPE}/NnhaProbe-9"


@pytest.mark.parametrize(
    "scope",
    [
        Scope({SCOPE: OPEN}, writes=DENIED),
        Scope({SCOPE: OPEN}, writes=Unknown(Doubt.LATE)),
        Scope({SCOPE: OPEN}, unseen={PROBE: DENIED}),
    ],
    ids=["no right to write", "unknown", "no right to read"],
)
async def test_an_acl_that_would_lock_us_out_is_set_by_force_alone(scope: Scope) -> None:
    with pytest.raises(ZooKeeperRefused, match="was left as it is"):
        await close_all(cast(Session, scope), SETTINGS, force=False)
    assert scope.acls == {SCOPE: OPEN}
    await close_all(cast(Session, scope), SETTINGS, force=True)
    assert scope.acls == {SCOPE: OURS}


@pytest.mark.parametrize(
    ("scope", "came"),
    [
        (Scope({LOCK: OPEN}), Came.SET),
        (Scope({LOCK: OPEN}, unset={LOCK: [CHANGED, CHANGED]}), Came.SET),
        (Scope({LOCK: OPEN}, unset={LOCK: [CHANGED] * 3}), ZooKeeperRefused),
        (Scope({LOCK: OURS}, unset={LOCK: [DENIED]}), Came.WAS_SO),
        (Scope({}), Came.GONE),
        (Scope({LOCK: OPEN}, unset={LOCK: [GONE]}), Came.GONE),
        (Scope({LOCK: OPEN}, unset={LOCK: [DENIED]}), Came.REFUSED),
        (Scope({LOCK: OPEN}, unseen={LOCK: DENIED}), Came.REFUSED),
        (Scope({LOCK: OPEN}, unset={LOCK: [Unknown(Doubt.LATE)]}), ZooKeeperUnavailable),
        (Scope({LOCK: OPEN}, unseen={LOCK: Unknown(Doubt.LATE)}), ZooKeeperUnavailable),
    ],
)
async def test_what_comes_of_giving_a_znode_an_acl(
    scope: Scope, came: Came | type[Exception]
) -> None:
    giving = give_acl(cast(Session, scope), LOCK, OURS)
    if isinstance(came, Came):
        assert (await giving).came is came
    else:
        with pytest.raises(came):
            await giving


async def test_acls_are_shown_of_all_that_is_there_and_of_what_we_may_not_see_that_it_is() -> None:
    acls = {SCOPE: OURS, LOCK: OPEN, DEEP: OPEN, TERM: OURS}
    scope = Scope(acls, unseen={LOCK: DENIED, TERM: GONE}, unlisted={DEEP: GONE})
    shown = await acls_below(cast(Session, scope), SCOPE)
    assert shown == (ZnodeAcl(SCOPE, OURS), ZnodeAcl(LOCK, None), ZnodeAcl(DEEP, OPEN))
