"""Asks whether others than we could have written znodes, before what they say is obeyed.

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
    """Return why strangers could have written these znodes, by path, without those that are well.

    Where the configured ACL is open to anybody nothing is asked, and nothing is in doubt.  ``own``
    is a znode that this session has made: its ACL shows what the creator's entry (``auth::``)
    stands for.  Without it only what is open to everybody is noticed.

    Raises ZooKeeperUnavailable where it is not known.
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
