"""Fences one NameNode as its own configuration plans it."""

from collections.abc import Awaitable, Callable, Sequence

from fencing.fencer import fence
from fencing.model import FencingReport, MethodSpec, Target
from ha.conf.topology import NameNodeAddress
from ha.zkfc.settings.settings import FencingPlan


def target_at(node: NameNodeAddress) -> Target:
    """Return the fencing methods' target: a NameNode's ids and its (service) RPC address."""
    return Target(node.nameservice, node.namenode, node.service.host, node.service.port)


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
