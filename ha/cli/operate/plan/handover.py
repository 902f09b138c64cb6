"""Whether a switchover or a failover is possible now, and to which NameNode.  Pure.

What is refused here is refused with a reason for each node; what passes may still be refused by
the ZKFC that carries it out, which knows more.
"""

import dataclasses
from functools import partial
from typing import Final

from ha.cluster.candidates import Candidate, candidates_of, ranked, until
from ha.cluster.unreachable import is_unknown
from ha.cluster.view import ClusterView, NameNodeRow
from ha.console.result import Code, CommandOutcome, Ending, Reason
from ha.record import dataclass

_AWAY = ("connecting", "connection lost")
"""What a ZKFC's page says of ZooKeeper while none answers it."""
JOURNAL_UNKNOWN: Final = "whether the journal has a quorum is not known"
"""Without a quorum the active that is to hand over is fenced, and no NameNode can take over."""


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
    """Plan a hand-over from the active to ``target``, or to the best candidate."""
    if (unusable := _unusable(view, "switchover", target)) is not None:
        return unusable
    unheard = _silent_lock_holder(view)
    if unheard is not None:
        return _plan(view, target, unheard.namenode, unheard=True)
    actives = view.actives
    if not actives and _active_may_be_found_later(view):
        return no_answer(view, "switchover", target, "which NameNode is active is not known")
    if not actives:
        found = "no NameNode says that it is active, so none can be asked to hand over"
        hint = "nnha explain, and nnha failover TARGET"
        return refusal(view, "switchover", Code.NO_ACTIVE, found, target=target, hint=hint)
    if target == actives[0]:
        return Ending(
            "switchover",
            CommandOutcome.DONE,
            Code.ALREADY_SO,
            f"{target} is active already; nothing was changed",
            target=target,
            active_before=target,
            active_now=target,
        )
    return _plan(view, target, actives[0])


def _plan(
    view: ClusterView, target: str | None, active: str, *, unheard: bool = False
) -> HandoverPlan | Ending:
    """Plan from ``active`` to ``target`` or to the best candidate, if it may become active."""
    refuse = partial(refusal, view, "switchover", target=target)
    if lacks_journal(view):
        ending = refuse(
            Code.NO_CANDIDATE,
            f"the journal has no quorum: {active} could not step back and would be fenced, and "
            "nobody could take over",
            hint="nnha journal status; when the journal is back: nnha switchover",
        )
        return dataclasses.replace(ending, reasons=judge(view, ""))
    if doubts_journal(view):
        return no_answer(view, "switchover", target, JOURNAL_UNKNOWN)
    candidates = ranked(view)
    if target is None and candidates:
        target = candidates[0].namenode
    if target is None and any(one.unknown for one in candidates_of(view) if not one.active):
        told = f"whether a NameNode can take over from {active} is not known"
        return no_answer(view, "switchover", target, told)
    if target is None:
        return refuse(
            Code.NO_CANDIDATE,
            f"no NameNode can take over from {active} now",
            hint="solve what prevents one of them, then: nnha switchover",
        )
    if target not in [one.namenode for one in candidates_of(view) if one.switchable]:
        return _unfit(view, "switchover", target)
    return HandoverPlan(target, active, unheard=unheard)


def lacks_journal(view: ClusterView) -> bool:
    """Return whether the journal has no quorum; one that renews the active's read lease has one."""
    active = view.active
    return view.journal_lost and (active is None or active.read_lease_valid is not True)


def doubts_journal(view: ClusterView) -> bool:
    """Return whether the journal answers neither us nor the active.

    JournalNodes may be unreachable from here, and Hadoop's NameNodes report nothing of theirs.
    """
    active = view.active
    return view.journal_unknown and active is not None and active.read_lease_valid is False


def _silent_lock_holder(view: ClusterView) -> NameNodeRow | None:
    """Return the lock's holder if it gives no answer, but its ZKFC does, which can release it."""
    row = view.silent_lock_holder
    zkfc = None if row is None else view.zkfc(row.namenode)
    return None if zkfc is None or zkfc.error is not None else row


def _active_may_be_found_later(view: ClusterView) -> bool:
    """Return whether asking again may show which NameNode is active.

    It may if a NameNode is silent, and if that one has the lock, its ZKFC is silent too.
    """
    holder = view.silent_lock_holder
    zkfc = None if holder is None else view.zkfc(holder.namenode)
    if zkfc is not None and not is_unknown(zkfc.error):
        return False
    return any(row.may_be_active for row in view.namenodes)


def plan_failover(view: ClusterView, target: str) -> HandoverPlan | Ending:
    """Make ``target`` active if no NameNode is."""
    if (unusable := _unusable(view, "failover", target)) is not None:
        return unusable
    refuse = partial(refusal, view, "failover", target=target)
    if view.active is not None:
        return refuse(
            Code.ACTIVE_PRESENT,
            f"{view.active.namenode} is active and answers; failover is only for when no "
            "NameNode is active",
            hint=f"nnha switchover {target}",
        )
    unheard = _silent_lock_holder(view)
    if unheard is not None and unheard.silent and unheard.namenode != target:
        return refuse(
            Code.ACTIVE_PRESENT,
            f"{unheard.namenode} holds the lock, gives no answer and may be active; failover is "
            "for when nobody is",
            hint=f"nnha switchover {target}",
        )
    if view.pause is not None:
        return refuse(
            Code.PAUSED,
            f"automatic failover is paused {until(view.pause)}",
            hint="nnha resume" if unheard is None else f"nnha switchover {target}, or nnha resume",
        )
    zkfc = view.zkfc(target)
    if view.lock.error is not None and zkfc is not None and zkfc.zookeeper in _AWAY:
        return _without_zookeeper(view, target)
    callable_ones = [one.namenode for one in candidates_of(view) if one.callable]
    if target not in callable_ones:
        return _unfit(view, "failover", target)
    return HandoverPlan(target, None, tuple(name for name in callable_ones if name != target))


def _without_zookeeper(view: ClusterView, target: str) -> Ending:
    """Refuse: neither we nor the target's ZKFC reach ZooKeeper, so no election can be won."""
    ending = refusal(
        view,
        "failover",
        Code.ZOOKEEPER_UNREACHABLE,
        f"neither this command nor the ZKFC of {target} reaches ZooKeeper ({view.lock.error}), and "
        "without it no ZKFC makes a NameNode active",
        target=target,
        hint="restore ZooKeeper, then one takes over by itself; the way by hand is in "
        "docs/operations.md, Without ZooKeeper",
    )
    return dataclasses.replace(ending, outcome=CommandOutcome.UNREACHABLE)


def judge(view: ClusterView, command: str) -> tuple[Reason, ...]:
    """Return every NameNode's obstacles or merits, and the command that helps or would do it."""
    obeyed = view.automatic_failover and len(view.actives) <= 1
    return tuple(_reason(one, command if obeyed else "") for one in candidates_of(view))


def _reason(one: Candidate, command: str) -> Reason:
    if one.active:
        return Reason(one.namenode, "active", fit=one.fit)
    if one.fit:
        would_do_it = f"nnha {command} {one.namenode}" if command else ""
        return Reason(one.namenode, one.in_words(), would_do_it, fit=True)
    return Reason(one.namenode, one.why_not(), one.what_helps())


def unknown_cluster(view: ClusterView, command: str, target: str | None) -> Ending | None:
    """Return the ending where no process has answered, or there is no such NameNode."""
    if view.is_silent:
        return no_answer(view, command, target, "nothing is known of the cluster")
    if target is not None and view.namenode(target) is None:
        names = ", ".join(row.namenode for row in view.namenodes)
        found = f"there is no NameNode {target} in {view.nameservice}: it has {names}"
        hint = f"nnha {command} with one of {names}"
        return refusal(view, command, Code.NO_SUCH_NODE, found, target=target, hint=hint)
    return None


def _unusable(view: ClusterView, command: str, target: str | None) -> Ending | None:
    if (unknown := unknown_cluster(view, command, target)) is not None:
        return unknown
    refuse = partial(refusal, view, command, target=target)
    if not view.automatic_failover:
        names = " ".join(row.namenode for row in view.namenodes[:2])
        return refuse(
            Code.NOT_AUTOMATIC,
            "dfs.ha.automatic-failover.enabled is not set, so there are no ZKFCs to do it",
            hint=f"nnha haadmin -failover {names}",
        )
    actives = view.actives
    if len(actives) > 1:
        return refuse(
            Code.TWO_ACTIVE,
            f"{' and '.join(actives)} both say that they are active",
            hint="look again in some seconds: nnha status; the one that does not hold the lock "
            "is being fenced, or its edits are refused by the journal",
        )
    return None


def _unfit(view: ClusterView, command: str, target: str) -> Ending:
    if target in [one.namenode for one in candidates_of(view) if one.unknown]:
        told = f"whether {target} can take over is not known"
        return no_answer(view, command, target, told)
    found = f"{target} cannot take over now"
    return refusal(view, command, Code.CANDIDATE_UNFIT, found, target=target, hint="")


def no_answer(view: ClusterView, command: str, target: str | None, told: str) -> Ending:
    """Return the ending after silence, which is no refusal: a silent process may only be slow."""
    return dataclasses.replace(
        refusal(
            view,
            command,
            Code.NO_ANSWER,
            f"{told}: {', '.join(view.silent) or 'a process'} gave no answer in "
            f"{view.limit_seconds:g} s",
            target=target,
            hint=f"ask again with more time: nnha {command} {target or ''} --timeout 30; nnha "
            "status shows who is silent".replace("  ", " "),
        ),
        outcome=CommandOutcome.UNREACHABLE,
    )


def refusal(
    view: ClusterView,
    command: str,
    code: Code,
    message: str,
    *,
    hint: str,
    target: str | None = None,
) -> Ending:
    """Return the ending of a command that is refused, with a reason for each NameNode."""
    active = None if view.active is None else view.active.namenode
    nobody = active is None and _silent_lock_holder(view) is None
    return Ending(
        command,
        CommandOutcome.REFUSED,
        code,
        message,
        hint=hint,
        target=target,
        active_before=active,
        active_now=active,
        reasons=judge(view, "failover" if nobody else "switchover"),
    )
