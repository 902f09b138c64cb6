"""``nnha switchover`` and ``nnha failover``: make another NameNode active."""

import sys
from collections.abc import Callable, Coroutine

import click
from rich.text import Text

from ha.cli.operate.handover import HandOver, patience_seconds
from ha.cli.operate.look import LOOK_SECONDS, look_and_plan
from ha.cli.operate.notice_options import DRY_RUN, YES, warn_on_interrupt
from ha.cli.operate.plan.handover import HandoverPlan, judge, plan_failover, plan_switchover
from ha.cli.operate.progress import on_stderr, progress
from ha.cli.status.status_table import Screen
from ha.cluster.view import ClusterView
from ha.conf.topology import namenodes
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.completion import namenode_ids
from ha.console.options import Seconds
from ha.console.output import console, plain
from ha.console.result import Code, CommandOutcome, Ending
from ha.daemon import event_loop

_REASON = click.option("--reason", default="", help="The reason, recorded in the history.")
_WAIT = click.option(
    "--wait",
    "wait_seconds",
    type=Seconds(min=1.0),
    default=None,
    help="Seconds to wait for the outcome.  [default: longer than the ZKFC itself waits]",
)


@click.command()
@click.argument("target", required=False, shell_complete=namenode_ids)
@about_a_cluster("switchover", timeout_seconds=LOOK_SECONDS)
@DRY_RUN
@YES
@_WAIT
@_REASON
def switchover(
    *,
    place: ClusterCommand,
    target: str | None,
    dry_run: bool,
    yes: bool,
    wait_seconds: float | None,
    reason: str,
) -> None:
    """Have the active NameNode hand over to TARGET, or to the best candidate.

    The ZKFC of TARGET carries it out; afterwards the command asks the NameNodes for their state.
    Exits 0 done, 3 refused and nothing changed, 4 failed and the state is known, 5 outcome unknown,
    6 the ZKFC or ZooKeeper does not answer and nothing changed, 7 not allowed.
    """
    _run(
        place,
        "switchover",
        lambda view: plan_switchover(view, target),
        lambda hands: hands.switch(reason=reason),
        dry_run=dry_run,
        yes=yes,
        wait_seconds=wait_seconds,
    )


@click.command()
@click.argument("target", shell_complete=namenode_ids)
@about_a_cluster("failover", timeout_seconds=LOOK_SECONDS)
@DRY_RUN
@YES
@_WAIT
def failover(
    *, place: ClusterCommand, target: str, dry_run: bool, yes: bool, wait_seconds: float | None
) -> None:
    """Make TARGET active when no NameNode is.

    The ZKFCs of the other candidates leave the election for a time, and that of TARGET joins it at
    once.  No check is overridden: fencing and the journal protect the edits as usual.  While a
    NameNode is active this is refused; use switchover.  The exit codes are those of switchover.
    """
    _run(
        place,
        "failover",
        lambda view: plan_failover(view, target),
        lambda hands: hands.without_active(),
        dry_run=dry_run,
        yes=yes,
        wait_seconds=wait_seconds,
    )


def _run(
    place: ClusterCommand,
    command: str,
    planned: Callable[[ClusterView], HandoverPlan | Ending],
    act: Callable[[HandOver], Coroutine[None, None, Ending]],
    *,
    dry_run: bool,
    yes: bool,
    wait_seconds: float | None,
) -> None:

    def plan_of(view: ClusterView) -> tuple[HandoverPlan, ClusterView] | Ending:
        plan = planned(view)
        return plan if isinstance(plan, Ending) else (plan, view)

    found = look_and_plan(place, plan_of)
    if isinstance(found, Ending):
        place.end(found)
    plan, view = found
    if dry_run:
        place.end(_would_be_done(command, plan, view))
    if not yes and not _confirmed(place, command, plan, view):
        place.end(_refuse_unconfirmed(command, plan))
    wait = patience_seconds(place.configuration) if wait_seconds is None else wait_seconds

    async def carry_out() -> Ending:
        nodes = namenodes(place.configuration, place.nameservice)
        tell = on_stderr(wanted=place.output == "table")
        async with progress(nodes, plan.target, tell):
            return await act(HandOver(command, plan, nodes, wait_seconds=wait))

    told = f"the ZKFC of {plan.target} may go on with it"
    with warn_on_interrupt(place, command, told, target=plan.target):
        ending = event_loop.run(carry_out())
    place.end(ending)


def _would_be_done(command: str, plan: HandoverPlan, view: ClusterView) -> Ending:
    return Ending(
        command,
        CommandOutcome.PLANNED,
        Code.WOULD_BE_DONE,
        _change(plan),
        hint=f"nnha {command} {plan.target}",
        target=plan.target,
        active_before=plan.active,
        active_now=plan.active,
        reasons=judge(view, command),
    )


def _refuse_unconfirmed(command: str, plan: HandoverPlan) -> Ending:
    return Ending(
        command,
        CommandOutcome.REFUSED,
        Code.NOT_CONFIRMED,
        f"{_change(plan)}: that was not confirmed",
        hint=f"nnha {command} {plan.target} --yes",
        target=plan.target,
        active_before=plan.active,
        active_now=plan.active,
    )


def _confirmed(place: ClusterCommand, command: str, plan: HandoverPlan, view: ClusterView) -> bool:
    """Ask at the terminal; without one the answer is no."""
    if not sys.stdin.isatty() or place.output != "table":
        return False
    console().print(Screen(view))
    console().print(Text(f"\nnnha {command}: {plain(_change(plan))}"))
    return click.confirm("Are you sure?", default=False)


def _change(plan: HandoverPlan) -> str:
    if plan.active is None:
        return f"no NameNode is active; {plan.target} would become active"
    if plan.unheard:
        former = (
            f"{plan.active}, which gave no answer, would be asked to step back, and fenced if it "
            "does not"
        )
        return f"{plan.target} would become active; {former}"
    return f"{plan.target} would become active; {plan.active} would become standby"
