"""Checks that only authorized clients could have written a znode, before its bytes are used.

See docs/reference/election.md#znodes-that-others-could-have-written.
"""

import asyncio
from collections.abc import Mapping

from ha.elector.zookeeper.acl_review import doubt_of
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import CREATOR_ALL, AclEntry, open_to_all
from ha.elector.zookeeper.outcome import Done, Refusal, Refused, value_of
from ha.elector.zookeeper.rights import ZnodeAcl
from ha.elector.zookeeper.settings import ZooKeeperSettings


async def untrusted_znodes(
    session: Session, settings: ZooKeeperSettings, *paths: str, own: str = ""
) -> Mapping[str, str]:
    """Return the znodes of ``paths`` that other clients could have written, each with the reason.

    If the configured ACL is open to all clients, nothing is checked.  ``own`` is a znode that this
    session has created: its ACL shows the identities of the creator's entry (``auth::``).  Without
    it only znodes that are open to all clients are found.

    Raises ZooKeeperUnavailable if an ACL cannot be read.
    """
    if open_to_all(settings.acl):
        return {}
    creators = any(one.scheme == CREATOR_ALL.scheme for one in settings.acl)
    wanted = [*paths, own] if own and creators else [*paths]
    outcomes = dict(
        zip(wanted, await asyncio.gather(*(session.acl(path) for path in wanted)), strict=True)
    )
    ours: frozenset[AclEntry] | None = None if creators else frozenset(settings.acl)
    if creators and isinstance(shown := outcomes.get(own), Done):
        ours = shown.value[0]
    found: dict[str, str] = {}
    for path in paths:
        outcome = outcomes[path]
        if isinstance(outcome, Refused) and outcome.why is Refusal.NO_NODE:
            continue
        unseen = isinstance(outcome, Refused) and outcome.why is Refusal.NO_RIGHTS
        acl = None if unseen else value_of(outcome, f"read the ACL of {path}")[0]
        if why := doubt_of(ZnodeAcl(path, acl), settings.acl, ours):
            found[path] = why
    return found
