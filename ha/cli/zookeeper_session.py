"""One short ZooKeeper session for a command; its failures end the command with a message."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from ha.console.cluster_options import ClusterCommand
from ha.console.result import Code, CommandOutcome, Ended, Ending
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.outcome import Refusal
from ha.elector.zookeeper.settings import ZooKeeperSettings, zookeeper_settings
from ha.elector.zookeeper.znodes import connected, parent_exists
from ha.notices.model import BadNotice

T = TypeVar("T")

CONNECT_SECONDS = 5.0
HANG_UP_SECONDS = 1.0


async def visit(
    place: ClusterCommand,
    command: str,
    errand: Callable[[Session, ZooKeeperSettings], Awaitable[T]],
    *,
    seconds: float,
    changes: bool = False,
) -> T:
    """Run the errand in a session and return its result.

    ``changes``: an interrupted errand may have changed something.  Raises ConfigurationError, and
    Ended for everything else that goes wrong.
    """
    settings = zookeeper_settings(place.configuration, nameservice=place.nameservice)
    to_connect = min(seconds, max(CONNECT_SECONDS, place.timeout_seconds))
    begun = False
    try:
        async with (
            asyncio.timeout(seconds + HANG_UP_SECONDS),
            connected(settings, deadline_seconds=to_connect) as session,
        ):
            if not await parent_exists(session, settings):
                found = f"{settings.scope} does not exist in ZooKeeper at {settings.hosts}"
                raise _ending(command, Code.NOT_FORMATTED, found)
            begun = changes
            return await errand(session, settings)
    except (ZooKeeperUnavailable, TimeoutError) as failure:
        reason = str(failure) or f"ZooKeeper at {settings.hosts} took longer than {seconds:g} s"
        if begun:
            reason = f"ZooKeeper stopped answering: {reason}"
        code = Code.OUTCOME_UNKNOWN if begun else Code.ZOOKEEPER_UNREACHABLE
        raise _ending(command, code, reason) from failure
    except ZooKeeperRefused as failure:
        reason = str(failure)
        forbidden = Refusal.NO_RIGHTS.value in reason or "ha.zookeeper.auth" in reason
        code = Code.ACCESS_DENIED if forbidden else Code.ZOOKEEPER_REFUSED
        raise _ending(command, code, reason) from failure
    except BadNotice as failure:
        raise _ending(command, Code.BAD_NOTICE, str(failure)) from failure


_HINTS: Final = {
    Code.NOT_FORMATTED: "nnha zkfc --format-zk, once for each nameservice",
    Code.OUTCOME_UNKNOWN: "see the present state with: nnha status",
    Code.ZOOKEEPER_UNREACHABLE: (
        "nnha status shows which servers answer; nnha doctor checks the connections to them"
    ),
    Code.ACCESS_DENIED: "give ha.zookeeper.auth the credentials of the ZKFCs",
    Code.ZOOKEEPER_REFUSED: "",
    Code.BAD_NOTICE: (
        "another program wrote there: read that znode, and delete it if it is of no use"
    ),
}
_OUTCOMES: Final = {
    Code.OUTCOME_UNKNOWN: CommandOutcome.UNKNOWN,
    Code.ZOOKEEPER_UNREACHABLE: CommandOutcome.UNREACHABLE,
    Code.ACCESS_DENIED: CommandOutcome.UNAUTHORISED,
}


def _ending(command: str, code: Code, found: str) -> Ended:
    outcome = _OUTCOMES.get(code, CommandOutcome.REFUSED)
    return Ended(Ending(command, outcome, code, found, hint=_HINTS[code]))
