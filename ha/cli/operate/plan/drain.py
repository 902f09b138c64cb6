"""Whether draining a NameNode is possible now.  Pure."""

import dataclasses
from functools import partial

from ha.cli.operate.plan import handover
from ha.cli.operate.plan.notice_results import not_automatic
from ha.cluster.candidates import candidates_of, ranked, until
from ha.cluster.view import ClusterView
from ha.console.result import Code, Ending


def refusal(view: ClusterView, node: str, *, ends: bool, anyway: bool) -> Ending | None:
    """Return why the node cannot be drained now, or its drain not ended; None if it can."""
    if not view.automatic_failover:
        return not_automatic("drain")
    if (unknown := handover.unknown_cluster(view, "drain", node)) is not None:
        return unknown
    if ends or anyway or not may_have_to_hand_over(view, node):
        return None
    refuse = partial(handover.refusal, view, "drain", target=node)
    if view.pause is not None:
        return refuse(
            Code.PAUSED,
            f"{_active_or_holder(view, node)}, and would not hand over: automatic failover is "
            f"paused {until(view.pause)}",
            hint=f"nnha switchover and then nnha drain {node}, or nnha resume first",
        )
    if handover.lacks_journal(view):
        ending = refuse(
            Code.NO_CANDIDATE,
            f"{_active_or_holder(view, node)}, and nobody could take over from it: the journal has "
            "no quorum",
            hint=f"nnha journal status, or nnha drain {node} --anyway to have it hand over later",
        )
        return dataclasses.replace(ending, reasons=handover.judge(view, ""))
    if handover.doubts_journal(view):
        return handover.no_answer(view, "drain", node, handover.JOURNAL_UNKNOWN)
    if not ranked(view) and any(one.unknown for one in candidates_of(view) if one.namenode != node):
        told = f"whether a NameNode can take over from {node} is not known"
        return handover.no_answer(view, "drain", node, told)
    if not ranked(view):
        return refuse(
            Code.NO_CANDIDATE,
            f"{_active_or_holder(view, node)}, and no NameNode can take over from it now",
            hint=f"solve what prevents it, or nnha drain {node} --anyway to have it hand over "
            "later",
        )
    return None


def may_have_to_hand_over(view: ClusterView, node: str) -> bool:
    """Return whether the node is active, or may be: it is silent and holds the lock."""
    if view.active is not None:
        return view.active.namenode == node
    return view.silent_lock_holder is not None and view.silent_lock_holder.namenode == node


def _active_or_holder(view: ClusterView, node: str) -> str:
    if view.active is not None:
        return f"{node} is active"
    return f"{node} holds the lock and does not say whether it is active"
