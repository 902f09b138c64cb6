"""One short ZooKeeper session for a command; its failures end the command with a message."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

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
                raise Ended(_not_formatted(command, settings))
            begun = changes
            return await errand(session, settings)
    except (ZooKeeperUnavailable, TimeoutError) as failure:
        reason = str(failure) or f"ZooKeeper at {settings.hosts} took longer than {seconds:g} s"
        ending = _unknown(command, reason) if begun else _unavailable(command, reason)
        raise Ended(ending) from failure
    except ZooKeeperRefused as failure:
        raise Ended(_refused(command, str(failure))) from failure
    except BadNotice as failure:
        raise Ended(_bad_notice(command, str(failure))) from failure


def _not_formatted(command: str, settings: ZooKeeperSettings) -> Ending:
    return Ending(
        command,
        CommandOutcome.REFUSED,
        Code.NOT_FORMATTED,
        f"{settings.scope} does not exist in ZooKeeper at {settings.hosts}",
        hint="nnha zkfc --format-zk, once for each nameservice",
    )


def _unknown(command: str, reason: str) -> Ending:
    return Ending(
        command,
        CommandOutcome.UNKNOWN,
        Code.OUTCOME_UNKNOWN,
        f"ZooKeeper stopped answering: {reason}",
        hint="see the present state with: nnha status",
    )


def _unavailable(command: str, reason: str) -> Ending:
    return Ending(
        command,
        CommandOutcome.UNREACHABLE,
        Code.ZOOKEEPER_UNREACHABLE,
        reason,
        hint="nnha status shows which servers answer; nnha doctor checks the connections to them",
    )


def _refused(command: str, reason: str) -> Ending:
    forbidden = Refusal.NO_RIGHTS.value in reason or "ha.zookeeper.auth" in reason
    return Ending(
        command,
        CommandOutcome.UNAUTHORISED if forbidden else CommandOutcome.REFUSED,
        Code.ACCESS_DENIED if forbidden else Code.ZOOKEEPER_REFUSED,
        reason,
        hint="give ha.zookeeper.auth the credentials of the ZKFCs" if forbidden else "",
    )


def _bad_notice(command: str, reason: str) -> Ending:
    return Ending(
        command,
        CommandOutcome.REFUSED,
        Code.BAD_NOTICE,
        reason,
        hint="another program wrote there: read that znode, and delete it if it is of no use",
    )
