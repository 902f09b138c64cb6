"""The lasting znodes of a nameservice with their ACLs, as JSON, and back into an ensemble."""

import base64
import json
from typing import Final

from ha.elector.zookeeper.outcome import Refusal, Refused, value_of
from ha.elector.zookeeper.session_close import acls_below
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, ensure_parent, lock_exists, parent_exists
from ha.notices import store
from spark.backup.model import BackupError

CONNECT_SECONDS: Final = 10.0


async def read_znodes(settings: ZooKeeperSettings) -> bytes:
    """Return the znodes that outlive sessions: breadcrumb, term, pause, drains, members, history.

    Raise ZooKeeperUnavailable or ZooKeeperRefused, and BackupError where there are none.
    """
    async with connected(settings, deadline_seconds=CONNECT_SECONDS) as session:
        if not await parent_exists(session, settings):
            raise BackupError(f"{settings.scope} does not exist in ZooKeeper at {settings.hosts}")
        found: dict[str, object] = {}
        for one in await acls_below(session, settings.scope):
            outcome = await session.read(one.path)
            if isinstance(outcome, Refused) and outcome.why is Refusal.NO_NODE:
                continue  # it ended after it was listed
            content, facts = value_of(outcome, f"read {one.path}")
            if facts.owner:
                continue  # the lock belongs to a session, and ends with it
            acl = sorted((a.scheme, a.identity, a.permissions) for a in one.acl or ())
            data = base64.b64encode(content).decode()
            found[one.path.removeprefix(settings.scope)] = {"data": data, "acl": acl}
    return (json.dumps(found, indent=1, sort_keys=True) + "\n").encode()


async def restore_znodes(settings: ZooKeeperSettings, data: bytes) -> tuple[list[str], list[str]]:
    """Create what is missing, each with the configured ACL; return what was made, and what not.

    Left as it is: what exists.  Left out: the term's record, a proof about one write of the
    breadcrumb that no other write has, and the members, which their ZKFCs write at each start.
    Raise BackupError, with nothing changed, if a controller holds the lock or the bytes are
    damaged; ZooKeeperUnavailable and ZooKeeperRefused, when some may have been made.
    """
    try:
        wanted = {
            path: base64.b64decode(one["data"], validate=True)
            for path, one in json.loads(data).items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise BackupError(f"the znodes of the backup are damaged: {problem}") from problem
    scope = settings.scope
    left_out = (settings.term, store.members_path(settings), store.second_zkfcs_path(settings))
    made: list[str] = []
    left: list[str] = []
    async with connected(settings, deadline_seconds=CONNECT_SECONDS) as session:
        if await lock_exists(session, settings):
            raise BackupError(
                f"{settings.lock} is held, so a controller works on these znodes; nothing was "
                "changed. Stop all ZKFCs first"
            )
        await ensure_parent(session, settings)
        for path, content in sorted(wanted.items()):
            if not path or f"{scope}{path}".startswith(left_out):
                continue
            done = await session.create(f"{scope}{path}", content)
            if isinstance(done, Refused) and done.why is Refusal.NODE_EXISTS:
                left.append(path)
                continue
            value_of(done, f"create {scope}{path}")
            made.append(path)
    return made, left
