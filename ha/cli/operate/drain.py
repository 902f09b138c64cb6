"""``nnha drain``: one NameNode is no candidate for a time; if it is active, it hands over first."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import click

from ha.cli.operate import notice_options
from ha.cli.operate.look import LOOK_SECONDS, look_and_plan
from ha.cli.operate.plan.drain import may_have_to_hand_over, refusal
from ha.cli.operate.plan.handover import judged
from ha.cli.operate.plan.notice_results import Members, already, planned, seen
from ha.cli.zookeeper_session import CONNECT_SECONDS, visit
from ha.cluster.successors import until
from ha.cluster.view import ClusterView
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.completion import namenode_ids
from ha.console.library_logs import silence_libraries
from ha.console.result import Code, CommandOutcome, Ended, Ending, Reason
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.notices.model import BadNotice, Drain, Member
from ha.notices.store import clear_drain, read_drain, read_members, write_drain

Errand = Callable[[Session, ZooKeeperSettings], Awaitable[Ending]]


@click.command()
@click.argument("node", shell_complete=namenode_ids)
@about_a_cluster("drain", timeout_seconds=LOOK_SECONDS)
@notice_options.FOR
@notice_options.UNTIL_ENDED
@notice_options.REASON
@click.option("--end", "ends", is_flag=True, help="End the drain of NODE.")
@click.option("--anyway", is_flag=True, help="Even if no other NameNode can take over now.")
@notice_options.WAIT
@notice_options.DRY_RUN
def drain(  # noqa: PLR0913 - its options
    *,
    place: ClusterCommand,
    node: str,
    for_seconds: float | None,
    until_ended: bool,
    reason: str | None,
    ends: bool,
    anyway: bool,
    wait_seconds: float,
    dry_run: bool,
) -> None:
    """Take NODE out of the election, for a time and with a reason; --end brings it back.

    If NODE is active it hands over first.  Exits 0 when NODE is out of the election, 3 if no other
    NameNode could take over, 4 if it has not happened in time (the drain stays written).
    """
    silence_libraries()
    if ends and (for_seconds is not None or until_ended or anyway):
        raise click.UsageError("--end cannot be combined with --for, --until-ended or --anyway.")
    wanted = (
        None
        if ends
        else notice_options.terms(for_seconds=for_seconds, until_ended=until_ended, reason=reason)
    )
    found = look_and_plan(
        place,
        lambda view: refusal(view, node, ends=ends, anyway=anyway) or view,
    )
    if isinstance(found, Ending):
        raise Ended(found)
    view = found
    errand = (
        _ending_it(node, wait_seconds, dry_run=dry_run)
        if wanted is None
        else _beginning(view, node, wanted, wait_seconds, dry_run=dry_run)
    )
    seconds = max(CONNECT_SECONDS, place.timeout_seconds) + wait_seconds
    what = "the end of the drain" if ends else "the drain"
    told = f"{what} of {node} may be written, and stays then"
    with notice_options.told_when_interrupted(place, "drain", told, target=node):
        ending = asyncio.run(visit(place, "drain", errand, seconds=seconds, changes=True))
    place.end(ending)


def _beginning(
    view: ClusterView,
    node: str,
    wanted: notice_options.Terms,
    wait_seconds: float,
    *,
    dry_run: bool,
) -> Errand:
    notice = Drain(owner=wanted.owner, reason=wanted.reason, since=wanted.since, until=wanted.until)
    message = f"{node} is drained {wanted.in_words()}: {wanted.reason}"
    active = may_have_to_hand_over(view, node)

    async def errand(session: Session, settings: ZooKeeperSettings) -> Ending:
        if dry_run:
            first = "; it is active and would hand over first" if active else ""
            return planned("drain", f"{message}{first}", target=node)
        await write_drain(session, settings, node, notice)
        lacking = await _wait(session, settings, node, notice.since, wait_seconds)
        own = lacking.get(node)
        if isinstance(own, Member) and own.drain_seen == notice.since:
            return _still_active(view, node, message, own.hand_over_failure)
        return await _seen(session, settings, node, message, lacking, notice.since)

    return errand


def _ending_it(node: str, wait_seconds: float, *, dry_run: bool) -> Errand:
    async def errand(session: Session, settings: ZooKeeperSettings) -> Ending:
        try:
            noted = await read_drain(session, settings, node)
            former = None if noted is None else until(noted.value)
        except BadNotice as failure:
            former = f"unreadable ({failure})"
        if former is None:
            return already("drain", f"{node} is not drained", target=node)
        message = f"{node} is a candidate again; the drain was {former}"
        if dry_run:
            return planned("drain", message, target=node)
        await clear_drain(session, settings, node)
        lacking = await _wait(session, settings, node, None, wait_seconds)
        return await _seen(session, settings, node, message, lacking, None)

    return errand


async def _wait(
    session: Session,
    settings: ZooKeeperSettings,
    node: str,
    since: datetime | None,
    seconds: float,
) -> Members:
    """Wait until the node's own ZKFC has seen the drain or its end; no other ZKFC has to.

    If the node is drained, its ZKFC must also be out of the election.
    """

    def obeys(one: Member) -> bool:
        if one.namenode != node:
            return True
        return one.drain_seen == since and (since is None or not one.in_election)

    async def holds() -> bool:
        return await notice_options.still_holds(read_drain(session, settings, node), since)

    return await notice_options.members_that_lack(
        session, settings, obeys, holds=holds, seconds=seconds
    )


async def _seen(
    session: Session,
    settings: ZooKeeperSettings,
    node: str,
    message: str,
    lacking: Members,
    since: datetime | None,
) -> Ending:
    running = int(node in await read_members(session, settings))
    if running == 0:
        message = f"{message}; its ZKFC does not run now, and will obey when it starts"
        return Ending(
            command="drain",
            outcome=CommandOutcome.DONE,
            code=Code.DONE,
            message=message,
            target=node,
        )
    if not lacking:
        return Ending(
            command="drain",
            outcome=CommandOutcome.DONE,
            code=Code.DONE,
            message=f"{message} (its ZKFC has seen it)",
            target=node,
        )
    holds = await notice_options.still_holds(read_drain(session, settings, node), since)
    return seen("drain", message, running=running, lacking=lacking, target=node, holds=holds)


def _still_active(view: ClusterView, node: str, message: str, failure: str) -> Ending:
    when = "it hands over as soon as another NameNode can take over"
    hint = f"nnha status -w, or take it back: nnha drain {node} --end"
    if failure:
        when = f"its last try to hand over failed, and it tries again: {failure}"
        hint = f"solve that (nnha doctor), or take it back: nnha drain {node} --end"
    others = tuple(one for one in judged(view, "switchover") if one.node != node)
    return Ending(
        command="drain",
        outcome=CommandOutcome.FAILED,
        code=Code.NOT_SEEN_BY_ALL,
        message=f"{message}; its ZKFC has seen it, but is still in the election: {when}",
        hint=hint,
        target=node,
        active_before=node,
        active_now=node,
        reasons=others or (Reason(node, "there is no other NameNode"),),
    )
