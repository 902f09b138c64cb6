"""Measures the requests to ZooKeeper of daemons; the metrics of commands are never read."""

from collections.abc import Callable

from prometheus_client import Histogram

from ha.elector.zookeeper.client import OnState, Session
from ha.elector.zookeeper.session_ticket import SessionTicket
from ha.elector.zookeeper.settings import ZooKeeperSettings

REQUEST_SECONDS = Histogram(
    "nnha_zk_request_duration_seconds",
    "From a request to ZooKeeper to its end, by what became of it",
    ["op", "result"],
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)


def measured_session(
    settings: ZooKeeperSettings,
    on_state: OnState,
    on_change: Callable[[bool], None] = lambda _: None,
    *,
    ticket: SessionTicket | None = None,
) -> Session:
    """Build a session that observes ``REQUEST_SECONDS``; see ``SessionFactory``."""
    return Session(settings, on_state, on_change, ticket=ticket, measure=_observe)


def _observe(op: str, result: str, seconds: float) -> None:
    REQUEST_SECONDS.labels(op, result).observe(seconds)
