"""The controller's metrics; ``node`` is ``<nameservice>.<namenode>``."""

from collections.abc import Iterable
from enum import StrEnum

from prometheus_client import Counter, Gauge, Histogram

from fencing.model import FencingOutcome
from ha.elector.model import Role
from ha.notices.model import FailoverKind, FailoverResult

_FAST = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

HEALTH = Gauge("nnha_health_state", "1 for the state that the NameNode is in", ["node", "state"])
HEALTH_DURATION = Histogram(
    "nnha_health_check_duration_seconds", "How long a probe took", ["node"], buckets=_FAST
)
HEALTH_FAILURES = Counter(
    "nnha_health_check_failures", "Probes that did not answer well", ["node", "reason"]
)
ELECTOR = Gauge("nnha_elector_state", "1 for the elector's role", ["node", "state"])
ROLE_CHANGES = Counter("nnha_elector_role_changes", "Role changes of the elector", ["node", "to"])
ACTIVE_SINCE = Gauge(
    "nnha_active_since_timestamp_seconds", "When the lock was last turned into an active", ["node"]
)
FAILOVERS = Counter("nnha_failovers", "Takeovers by their result", ["node", "kind", "result"])
FAILOVER_DURATION = Histogram(
    "nnha_failover_duration_seconds", "How long a takeover's phase took", ["node", "phase"],
    buckets=_FAST,
)  # fmt: skip
LAST_FAILOVER = Gauge(
    "nnha_last_failover_timestamp_seconds", "When a takeover last succeeded here", ["node"]
)
FENCE_ATTEMPTS = Counter(
    "nnha_fence_attempts", "Fencing tries by method and result", ["node", "method", "result"]
)
FENCE_DURATION = Histogram(
    "nnha_fence_duration_seconds", "How long fencing took", ["node"], buckets=_FAST
)
FENCE_CONFIGURED = Gauge("nnha_fence_configured", "Number of fencing methods", ["node"])
ZK_STATE = Gauge("nnha_zk_session_state", "1 for the session's state", ["node", "state"])
ZK_EXPIRATIONS = Counter("nnha_zk_session_expirations", "Sessions lost for good", ["node"])
ZK_RECONNECTS = Counter("nnha_zk_reconnects", "Sessions connected again", ["node"])
ZK_UNKNOWN = Counter(
    "nnha_zk_unknown_outcomes", "Requests whose outcome was never learnt", ["node"]
)
LIMITS_MET = Counter(
    "nnha_zkfc_limits_met", "Requests of administrators that a limit refused", ["limit"]
)


def begin_at_zero(node: str, methods: Iterable[str]) -> None:
    """Have each counter show 0 before the first event: an increase from nothing is none.

    The bad schedule: Prometheus first sees a counter after the only failover, at 1, and
    ``increase()`` is 0 for ever.
    """
    for kind in FailoverKind:
        for result in FailoverResult:
            FAILOVERS.labels(node, kind, result)
    for method in ("rpc", *methods):
        for outcome in FencingOutcome:
            FENCE_ATTEMPTS.labels(node, method, outcome)
    for role in Role:
        ROLE_CHANGES.labels(node, role.value)
    for reason in ("unwell", "faulted", "broken", "refused", "unanswered", "ended"):
        HEALTH_FAILURES.labels(node, reason)
    for counter in (ZK_EXPIRATIONS, ZK_RECONNECTS, ZK_UNKNOWN):
        counter.labels(node)


def set_state(gauge: Gauge, node: str, present: StrEnum) -> None:
    """Set one gauge per state, 1 for the present one: never a magic number."""
    for state in type(present):
        gauge.labels(node, state.value).set(1.0 if state is present else 0.0)
