"""Fences one NameNode by the methods that are configured for it."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from fencing.fencer import fence
from fencing.model import FencingReport, MethodSpec, Target
from ha.conf.topology import NameNodeAddress
from ha.elector.zookeeper.breadcrumb import decode
from ha.elector.zookeeper.errors import BadBreadcrumb
from ha.zkfc.settings.settings import FencingPlan

LEFT_ALONE: Final = (
    "where others could have written it, a takeover touches no such address, and makes the "
    "configured NameNodes harmless instead"
)


def target_at(node: NameNodeAddress) -> Target:
    """Return the fencing target of a NameNode: its ids and its (service) RPC address."""
    return Target(node.nameservice, node.namenode, node.service.host, node.service.port)


def left_alone(breadcrumb: bytes, nodes: Iterable[NameNodeAddress]) -> str:
    """Return why a takeover ignores the target of a doubtful breadcrumb; empty if it does not."""
    try:
        info = decode(breadcrumb)
    except BadBreadcrumb as bad:
        return f"it cannot be read ({bad})"
    named = Target(info.nameservice, info.namenode, info.hostname, info.port)
    if any(target_at(one) == named for one in nodes):
        return ""
    return f"it names {named}, where the configuration has no such NameNode"


async def fence_as_planned(
    plan: FencingPlan,
    target: Target,
    *,
    only: Sequence[MethodSpec] | None = None,
    by: Callable[..., Awaitable[FencingReport]] = fence,
) -> FencingReport:
    """Run the plan's methods, or ``only`` some of them; see ``fencing.fencer.fence``."""
    return await by(
        plan.methods if only is None else only,
        target,
        environment=plan.environment,
        method_timeout_seconds=plan.method_timeout_seconds,
        total_timeout_seconds=plan.total_timeout_seconds,
        ssh=plan.ssh,
    )
