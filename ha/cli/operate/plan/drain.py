"""Whether draining a NameNode is possible now.  Pure."""

from ha.cli.cluster.successors import ranked, until
from ha.cli.cluster.view import ClusterView
from ha.cli.operate.plan.handover import judged
from ha.cli.operate.plan.notice_results import not_automatic
from ha.console.result import Code, CommandOutcome, Ending


def refusal(view: ClusterView, node: str, *, ends: bool, anyway: bool) -> Ending | None:
    """Why not; None: it does."""
    if not view.automatic_failover:
        return not_automatic("drain")
    if view.namenode(node) is None:
        names = ", ".join(row.namenode for row in view.namenodes)
        return _refused(
            view,
            node,
            Code.NO_SUCH_NODE,
            f"there is no NameNode {node} in {view.nameservice}: it has {names}",
            "",
        )
    active = view.active is not None and view.active.namenode == node
    if ends or anyway or not active:
        return None
    if view.pause is not None:
        return _refused(
            view,
            node,
            Code.PAUSED,
            f"{node} is active, and would not hand over: automatic failover is paused "
            f"{until(view.pause)}",
            f"nnha switchover and then nnha drain {node}, or nnha resume first",
        )
    if not ranked(view):
        return _refused(
            view,
            node,
            Code.NO_CANDIDATE,
            f"{node} is active, and no NameNode can take over from it now",
            f"solve what prevents it, or nnha drain {node} --anyway to have it hand over later",
        )
    return None


def _refused(view: ClusterView, node: str, code: Code, message: str, hint: str) -> Ending:
    active = None if view.active is None else view.active.namenode
    return Ending(
        command="drain",
        outcome=CommandOutcome.REFUSED,
        code=code,
        message=message,
        hint=hint,
        target=node,
        active_before=active,
        active_now=active,
        reasons=judged(view, "switchover"),
    )
