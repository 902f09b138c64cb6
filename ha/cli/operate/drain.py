"""``nnha drain``: one NameNode is no candidate for a time; if it is active, it hands over first."""

from functools import partial

import click

from ha.cli.operate import notice_options
from ha.cli.operate.look import LOOK_SECONDS, look_and_plan
from ha.cli.operate.plan.drain import may_have_to_hand_over, refusal
from ha.cli.operate.plan.handover import judge
from ha.cluster.view import ClusterView
from ha.conf import topology
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.completion import namenode_ids
from ha.console.result import Code, CommandOutcome, Ended, Ending, Reason
from ha.notices.model import Member


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
    if ends and (for_seconds is not None or until_ended or anyway):
        raise click.UsageError("--end cannot be combined with --for, --until-ended or --anyway.")
    try:
        notice = None if ends else notice_options.notice_of(
            for_seconds=for_seconds, until_ended=until_ended, reason=reason
        )  # fmt: skip
    except click.UsageError:
        # A NameNode that there is not is the greater mistake, and known without asking.
        if node in topology.namenode_ids(place.configuration, place.nameservice):
            raise
        notice = None
    view = look_and_plan(
        place,
        lambda view: refusal(view, node, ends=ends, anyway=anyway) or view,
    )
    if isinstance(view, Ending):
        raise Ended(view)

    def describe(former: str) -> str:
        if notice is None:
            return f"{node} is a candidate again; the drain was {former}"
        return f"{node} is drained {notice_options.terms_text(notice)}"

    hands_over = not ends and may_have_to_hand_over(view, node)
    notice_options.NoticeChange(
        place=place, command="drain", what=f"{'the end of ' if ends else ''}the drain of {node}",
        describe=describe, notice=notice, node=node,
        foreseen="; it is active and would hand over first" if hands_over else "",
        obeyed_in_part=None if ends else partial(_still_active, view),
        wait_seconds=wait_seconds, dry_run=dry_run,
    ).run()  # fmt: skip


def _still_active(view: ClusterView, own: Member, message: str) -> Ending:
    """Return the ending where the drained NameNode has not handed over in time."""
    node, failure = own.namenode, own.hand_over_failure
    when = "it hands over as soon as another NameNode can take over"
    hint = f"nnha status -w, or take it back: nnha drain {node} --end"
    if failure:
        when = f"its last try to hand over failed, and it tries again: {failure}"
        hint = f"solve that (nnha doctor), or take it back: nnha drain {node} --end"
    others = tuple(one for one in judge(view, "switchover") if one.node != node)
    return Ending(
        "drain",
        CommandOutcome.FAILED,
        Code.NOT_SEEN_BY_ALL,
        f"{message}; its ZKFC has seen it, but is still in the election: {when}",
        hint=hint,
        target=node,
        active_before=node,
        active_now=node,
        reasons=others or (Reason(node, "there is no other NameNode"),),
    )
