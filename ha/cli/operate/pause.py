"""``nnha pause`` and ``nnha resume``: no automatic role change while people work."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import click

from ha.cli.operate import notice_options
from ha.cli.operate.plan.notice_results import already, not_automatic, planned, seen
from ha.cli.zookeeper_session import CONNECT_SECONDS, visit
from ha.cluster.successors import until
from ha.conf.keys import cluster as keys
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.library_logs import silence_libraries
from ha.console.result import Ended, Ending
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.notices.model import BadNotice, Pause
from ha.notices.store import clear_pause, read_members, read_pause, write_pause

Errand = Callable[[Session, ZooKeeperSettings], Awaitable[Ending]]


@click.command()
@about_a_cluster("pause", timeout_seconds=CONNECT_SECONDS)
@notice_options.FOR
@notice_options.UNTIL_ENDED
@notice_options.REASON
@notice_options.WAIT
@notice_options.DRY_RUN
def pause(
    *,
    place: ClusterCommand,
    for_seconds: float | None,
    until_ended: bool,
    reason: str | None,
    wait_seconds: float,
    dry_run: bool,
) -> None:
    """Stop automatic failover in the whole nameservice, for a time and with a reason.

    Roles do not change, even if a daemon fails; nnha switchover still works.  The pause ends at its
    time, or with nnha resume.  Exits 0 once all running ZKFCs have seen it, 4 if one has not.
    """
    wanted = notice_options.terms(for_seconds=for_seconds, until_ended=until_ended, reason=reason)

    async def errand(session: Session, settings: ZooKeeperSettings) -> Ending:
        former = await _present(session, settings)
        instead = f", in place of the one {former}" if former else ""
        message = f"automatic failover is paused {wanted.in_words()}: {wanted.reason}{instead}"
        if dry_run:
            return planned("pause", message)
        notice = Pause(
            owner=wanted.owner, reason=wanted.reason, since=wanted.since, until=wanted.until
        )
        await write_pause(session, settings, notice)
        return await _once_seen("pause", message, session, settings, wanted.since, wait_seconds)

    _run(place, "pause", errand, wait_seconds)


@click.command()
@about_a_cluster("resume", timeout_seconds=CONNECT_SECONDS)
@notice_options.WAIT
@notice_options.DRY_RUN
def resume(*, place: ClusterCommand, wait_seconds: float, dry_run: bool) -> None:
    """End a pause: ZKFCs decide again who is active.

    Exits 0 once all running ZKFCs have seen it, or if there was no pause; 4 if one has not.
    """

    async def errand(session: Session, settings: ZooKeeperSettings) -> Ending:
        former = await _present(session, settings)
        if not former:
            return already("resume", "there is no pause")
        message = f"automatic failover is on again; the pause was {former}"
        if dry_run:
            return planned("resume", message)
        await clear_pause(session, settings)
        return await _once_seen("resume", message, session, settings, None, wait_seconds)

    _run(place, "resume", errand, wait_seconds)


async def _present(session: Session, settings: ZooKeeperSettings) -> str:
    """Describe the pause, even if it is over or cannot be decoded; empty if there is none."""
    try:
        noted = await read_pause(session, settings)
    except BadNotice as failure:
        return f"unreadable ({failure})"
    return "" if noted is None else until(noted.value)


async def _once_seen(
    command: str,
    message: str,
    session: Session,
    settings: ZooKeeperSettings,
    since: datetime | None,
    seconds: float,
) -> Ending:
    async def holds() -> bool:
        return await notice_options.still_holds(read_pause(session, settings), since)

    lacking = await notice_options.members_that_lack(
        session, settings, lambda one: one.pause_seen == since, holds=holds, seconds=seconds
    )
    running = len(await read_members(session, settings))
    return seen(command, message, running=running, lacking=lacking, holds=await holds())


def _run(place: ClusterCommand, command: str, errand: Errand, wait_seconds: float) -> None:
    silence_libraries()
    if not place.configuration.get(keys.AUTO_FAILOVER, nameservice=place.nameservice):
        raise Ended(not_automatic(command))
    seconds = max(CONNECT_SECONDS, place.timeout_seconds) + wait_seconds
    what = "the pause" if command == "pause" else "the end of the pause"
    with notice_options.told_when_interrupted(
        place, command, f"{what} may be written, and stays then"
    ):
        ending = asyncio.run(visit(place, command, errand, seconds=seconds, changes=True))
    place.end(ending)
