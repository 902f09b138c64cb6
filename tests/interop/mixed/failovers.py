"""Failovers of a mixed cluster under a writing client: a kill, a hand-over, and what they took."""

import datetime
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from deploy.local.cluster.cluster import zkfc_of
from deploy.local.cluster.ports import HOST
from deploy.local.workload.phases import read_logs
from deploy.local.workload.trial import CLIENT_SECONDS, WRITES_AFTER, other
from deploy.local.workload.workload import Workload
from ha.conf.topology import HostPort
from ha.service.zkfc_client import ZkfcClient
from tests.interop.mixed.cluster import MixedCluster
from tests.interop.mixed.programs import Kind

ASK_SECONDS = 120.0
_ASKS: Final = re.compile(rb"^(\S+) INFO .*Trying to make NameNode at .* active", re.MULTILINE)
"""What Hadoop's ZKFC logs just before it asks its NameNode to become active."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the active; seconds from its cause on."""

    old: str
    new: str
    active_seconds: float
    """Until the other NameNode said that it is active."""
    longest_call_seconds: float
    """Of the client's calls that were under way or began during it."""
    asked_seconds: float | None
    """Until the new active's ZKFC asked its NameNode to become active."""


def kill(cluster: MixedCluster, workload: Workload) -> Change:
    """SIGKILL the active; when the client writes again, start it again and wait until it is a
    ready standby.
    """
    change = _observe(cluster, workload, lambda old, _: cluster.kill(old))
    cluster.start_namenode(change.old)
    return change


def hand_over(cluster: MixedCluster, workload: Workload) -> Change:
    """Ask the new active's ZKFC for a graceful failover, as ``haadmin -failover`` does."""
    change = _observe(cluster, workload, lambda _, new: cluster.loop.run(_ask(cluster, new)))
    cluster.wait_for_ready_standby(change.old)
    return change


async def _ask(cluster: MixedCluster, namenode: str) -> None:
    port = cluster.layout.namenodes[namenode].zkfc_rpc
    async with ZkfcClient.connected(HostPort(HOST, port), deadline_seconds=ASK_SECONDS) as zkfc:
        await zkfc.graceful_failover(deadline_seconds=ASK_SECONDS)


def _observe(
    cluster: MixedCluster, workload: Workload, cause: Callable[[str, str], None]
) -> Change:
    old = cluster.active()
    new = other(old)
    logged = cluster.log_size(zkfc_of(new))
    began, wall = time.monotonic(), time.time()
    cause(old, new)
    cluster.wait_for_active(new)
    took = time.monotonic() - began
    workload.wait_for_more(WRITES_AFTER, deadline_seconds=CLIENT_SECONDS)
    asked = _asked_at(cluster, new, logged, wall)
    longest = workload.longest_call_seconds(began)
    return Change(old, new, took, longest, None if asked is None else asked - wall)


def _asked_at(cluster: MixedCluster, namenode: str, behind: int, since: float) -> float | None:
    """Return when the ZKFC last logged a request to become active, in seconds since 1970."""
    name = zkfc_of(namenode)
    log = cluster.supervisor.processes[name].log
    if cluster.kinds[name] is Kind.OURS:
        told = read_logs({name: log})
        times = [each.at for each in told if each.phase == "promoting" and each.at >= since]
    else:
        found = _ASKS.findall(log.read_bytes()[behind:])
        texts = [each.decode().replace(",", ".") for each in found]
        times = [datetime.datetime.fromisoformat(text).astimezone().timestamp() for text in texts]
    return times[-1] if times else None
