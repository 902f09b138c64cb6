"""One failover of a running cluster under a writing client, timed on every side."""

import time
from collections.abc import Callable

from deploy.local.cluster.cluster import Cluster, zkfc_of
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.layout import NAMENODES
from deploy.local.cluster.processes import wait_until
from deploy.local.workload.phases import GRACEFUL_PHASES, PHASES, read_end, read_logs, time_phases
from deploy.local.workload.workload import Workload
from ha.record import dataclass

FAILOVER_SECONDS = 60.0
CLIENT_SECONDS = 150.0
"""The client's default retries end after about 2.5 minutes.

See docs/reference/rpc.md#retries-of-a-client.
"""

WRITES_AFTER = 40
"""A failover is over for the client when each writer and this number of calls got through."""


@dataclass(frozen=True, slots=True)
class Failover:
    """What one failover took, in seconds.

    ``failover_seconds`` runs from the fault (the instant before SIGKILL is sent) or the request
    (the instant before haadmin's function is called) to the new active's own log line that it is
    active; ``observed_seconds`` to the moment when it said so to a client of its status page.
    """

    old: str
    new: str
    failover_seconds: float
    observed_seconds: float
    phases: dict[str, float | None]
    client_longest_call_seconds: float
    epoch_before: int
    epoch_after: int


def the_active(cluster: Cluster) -> tuple[str, int]:
    """Return the one active NameNode and its epoch.

    Raises:
        LocalClusterError: where it is not one.
    """
    active = cluster.active_namenodes()
    if len(active) != 1:
        raise LocalClusterError(
            f"Asked both NameNodes for their state; active are: {', '.join(active) or 'none'}. "
            f"There must be exactly one. The logs are in {cluster.layout.directory / 'logs'}"
        )
    status = cluster.namenode_status(active[0])
    epoch = status.epoch if status else None
    return active[0], epoch or 0


def other(namenode: str) -> str:
    (peer,) = (name for name in NAMENODES if name != namenode)
    return peer


@dataclass(frozen=True, slots=True)
class Begun:
    """A failover that was set going: from whom to whom, when, and what to look for."""

    old: str
    new: str
    epoch: int
    phases: tuple[str, ...]
    began: float
    """Monotonic seconds."""
    fault: float
    """The same instant on the clock of the logs."""
    log_bytes: int
    """How long the other one's log was then."""


def begin(cluster: Cluster, cause: Callable[[str], object], phases: tuple[str, ...]) -> Begun:
    """Do something to the active NameNode that must end in a failover; ``cause`` gets its name."""
    old, epoch = the_active(cluster)
    new = other(old)
    log_bytes = cluster.process(new).log.stat().st_size
    begun = Begun(old, new, epoch, phases, time.monotonic(), time.time(), log_bytes)
    cause(old)
    return begun


def kill_active(cluster: Cluster, workload: Workload) -> Failover:
    """SIGKILL the active NameNode and wait until the other one serves the client's writes."""
    return observe(cluster, workload, begin(cluster, cluster.kill, PHASES))


def hand_over(
    cluster: Cluster, workload: Workload, request: Callable[[str, str], None]
) -> Failover:
    """Ask for a graceful failover to the other NameNode; ``request(old, new)`` does the asking."""
    begun = begin(cluster, lambda old: request(old, other(old)), GRACEFUL_PHASES)
    return observe(cluster, workload, begun)


def settle(cluster: Cluster, namenode: str) -> None:
    """Wait until a NameNode is a standby that could take over, and its ZKFC agrees."""
    cluster.wait_for_ready_standby(namenode)
    cluster.wait_for_candidate(namenode)


def observe(
    cluster: Cluster,
    workload: Workload,
    begun: Begun,
    *,
    then: Callable[[], object] = lambda: None,
) -> Failover:
    """Wait until the other one is active; ``then`` do something; wait for the client's writes."""
    old, new = begun.old, begun.new

    def is_active() -> bool:
        # Its log is asked first: fifty times a second a handshake would cost it what it needs.
        told = read_end(new, cluster.process(new).log, begun.log_bytes)
        if not any(one.phase == PHASES[-1] for one in told):
            return False
        status = cluster.namenode_status(new, deadline_seconds=0.5)
        return status is not None and status.state == "active"

    wait_until(
        is_active,
        what=f"{new} to take over from {old}",
        deadline_seconds=FAILOVER_SECONDS,
        abandon=cluster.process(new).ended_early,
    )
    observed = time.monotonic() - begun.began
    cluster.progress[new] = "active"
    then()
    workload.wait_for_more(WRITES_AFTER, deadline_seconds=CLIENT_SECONDS)
    _, epoch_after = the_active(cluster)
    sources = (old, new, zkfc_of(old), zkfc_of(new))
    logs = {name: log for name, log in cluster.logs().items() if name in sources}
    phases = time_phases(read_logs(logs), old=old, new=new, since=begun.fault, wanted=begun.phases)
    return Failover(
        old=old,
        new=new,
        failover_seconds=phases["active"] or observed,
        observed_seconds=observed,
        phases=phases,
        client_longest_call_seconds=workload.longest_call_seconds(begun.began),
        epoch_before=begun.epoch,
        epoch_after=epoch_after,
    )
