"""Whether a switchover or a failover is possible now, and to which NameNode.  Pure.

What is refused here is refused with a reason for each node; what passes may still be refused by
the ZKFC that carries it out, which knows more.
"""

from dataclasses import dataclass

from ha.cli.cluster.successors import Prospect, prospects, ranked, until
from ha.cli.cluster.view import ClusterView, NameNodeRow
from ha.console.result import Code, CommandOutcome, Ending, Reason


@dataclass(frozen=True, slots=True)
class HandoverPlan:
    """A hand-over that can be tried."""

    target: str
    active: str | None
    """The NameNode that must cede; None if none is active."""
    others: tuple[str, ...] = ()
    """Further candidates, which must stay out of the election for it."""
    unheard: bool = False
    """The active does not answer: its ZKFC releases the lock, and the target's fences it."""


def plan_switchover(view: ClusterView, target: str | None) -> HandoverPlan | Ending:
    """A planned hand-over from the active to ``target``, or to the best candidate."""
    unusable = _unusable(view, "switchover", target)
    if unusable is not None:
        return unusable
    actives = [one.namenode for one in prospects(view) if one.active]
    unheard = _unheard_holder(view)
    if not actives and unheard is not None:
        return _planned(view, target, unheard.namenode, unheard=True)
    if not actives:
        return _refusal(
            view,
            "switchover",
            Code.NO_ACTIVE,
            "no NameNode is active, so none can hand over",
            target=target,
            hint="nnha explain, and nnha failover TARGET",
        )
    if target == actives[0]:
        return Ending(
            command="switchover",
            outcome=CommandOutcome.DONE,
            code=Code.ALREADY_SO,
            message=f"{target} is active already; nothing was changed",
            target=target,
            active_before=target,
            active_now=target,
        )
    return _planned(view, target, actives[0])


def _planned(
    view: ClusterView, target: str | None, active: str, *, unheard: bool = False
) -> HandoverPlan | Ending:
    """From ``active`` to ``target`` or to the best candidate, if it may become active."""
    candidates = ranked(view)
    if target is None and candidates:
        target = candidates[0].namenode
    if target is None:
        return _refusal(
            view,
            "switchover",
            Code.NO_CANDIDATE,
            f"no NameNode can take over from {active} now",
            hint="solve what prevents one of them, then: nnha switchover",
        )
    if target not in [one.namenode for one in prospects(view) if one.switchable]:
        return _unfit(view, "switchover", target)
    return HandoverPlan(target, active, unheard=unheard)


def _unheard_holder(view: ClusterView) -> NameNodeRow | None:
    """The holder of the lock if it gives no answer, but its ZKFC, which can release it, does."""
    row = view.unheard_holder
    zkfc = None if row is None else view.zkfc(row.namenode)
    return None if row is None or zkfc is None or zkfc.error is not None else row


def plan_failover(view: ClusterView, target: str) -> HandoverPlan | Ending:
    """Make ``target`` active if no NameNode is."""
    unusable = _unusable(view, "failover", target)
    if unusable is not None:
        return unusable
    if view.active is not None:
        return _refusal(
            view,
            "failover",
            Code.ACTIVE_PRESENT,
            f"{view.active.namenode} is active and answers; failover is only for when no "
            "NameNode is active",
            target=target,
            hint=f"nnha switchover {target}",
        )
    unheard = _unheard_holder(view)
    if unheard is not None and unheard.silent and unheard.namenode != target:
        return _refusal(
            view,
            "failover",
            Code.ACTIVE_PRESENT,
            f"{unheard.namenode} holds the lock, gives no answer and may be active; failover is "
            "for when nobody is",
            target=target,
            hint=f"nnha switchover {target}",
        )
    if view.pause is not None:
        return _refusal(
            view,
            "failover",
            Code.PAUSED,
            f"automatic failover is paused {until(view.pause)}",
            target=target,
            hint="nnha resume" if unheard is None else f"nnha switchover {target}, or nnha resume",
        )
    callable_ones = [one.namenode for one in prospects(view) if one.callable]
    if target not in callable_ones:
        return _unfit(view, "failover", target)
    return HandoverPlan(target, None, tuple(name for name in callable_ones if name != target))


def judged(view: ClusterView, command: str) -> tuple[Reason, ...]:
    """Every NameNode with its obstacles or merits, and the command that helps or would do it."""
    return tuple(_reason(one, command) for one in prospects(view))


def _reason(one: Prospect, command: str) -> Reason:
    if one.active:
        return Reason(one.namenode, "active", fit=one.fit)
    if one.fit:
        return Reason(one.namenode, one.in_words(), f"nnha {command} {one.namenode}", fit=True)
    return Reason(one.namenode, one.why_not(), one.what_helps())


def _unusable(view: ClusterView, command: str, target: str | None) -> Ending | None:
    if target is not None and view.namenode(target) is None:
        names = ", ".join(row.namenode for row in view.namenodes)
        return _refusal(
            view,
            command,
            Code.NO_SUCH_NODE,
            f"there is no NameNode {target} in {view.nameservice}: it has {names}",
            target=target,
            hint=f"nnha {command} with one of {names}",
        )
    if not view.automatic_failover:
        names = " ".join(row.namenode for row in view.namenodes[:2])
        return _refusal(
            view,
            command,
            Code.NOT_AUTOMATIC,
            "dfs.ha.automatic-failover.enabled is not set, so there are no ZKFCs to do it",
            target=target,
            hint=f"nnha haadmin -failover {names}",
        )
    actives = [row.namenode for row in view.namenodes if row.state == "active"]
    if len(actives) > 1:
        return _refusal(
            view,
            command,
            Code.TWO_ACTIVE,
            f"{' and '.join(actives)} both say that they are active",
            target=target,
            hint="look again in some seconds: nnha status; the one that does not hold the lock "
            "is being fenced, or its edits are refused by the journal",
        )
    return None


def _unfit(view: ClusterView, command: str, target: str) -> Ending:
    return _refusal(
        view,
        command,
        Code.CANDIDATE_UNFIT,
        f"{target} cannot take over now",
        target=target,
        hint="",
    )


def _refusal(
    view: ClusterView,
    command: str,
    code: Code,
    message: str,
    *,
    hint: str,
    target: str | None = None,
) -> Ending:
    active = None if view.active is None else view.active.namenode
    nobody = active is None and _unheard_holder(view) is None
    return Ending(
        command=command,
        outcome=CommandOutcome.REFUSED,
        code=code,
        message=message,
        hint=hint,
        target=target,
        active_before=active,
        active_now=active,
        reasons=judged(view, command if nobody else "switchover"),
    )
