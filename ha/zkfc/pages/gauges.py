"""Gauges that are read from a controller at each scrape: could it fail over, and if not why.

``node`` is ``<nameservice>.<namenode>``.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Protocol, cast

from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import CollectorRegistry

from ha.elector.model import Link, Role
from ha.elector.state import ElectorState
from ha.health.core import Health
from ha.notices.seen import Notices
from ha.zkfc.candidacy.state import Candidacy

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

REASONS: Final = (
    "health", "zookeeper", "namesake", "paused", "drained", "nofailover", "not_ready",
    "stood_back", "waits",
)  # fmt: skip
"""What can keep a controller from taking over; /status has it in words."""
WANTED: Final = ("active", "standby", "none")


class Watched(Protocol):
    """What is read of a controller."""

    @property
    def candidacy(self) -> Candidacy:
        """After the last decision."""

    @property
    def election(self) -> ElectorState:
        """The elector's state."""

    @property
    def health(self) -> Health:
        """The monitor's judgement."""

    @property
    def zookeeper_contact(self) -> float | None:
        """When the newest answered request was sent, on the loop's clock."""

    @property
    def session_timeout_seconds(self) -> float | None:
        """As negotiated; None without a session."""


class Readings:
    """One controller's gauges; worked out when scraped, so that none can be out of date."""

    def __init__(self, node: str, controller: Watched) -> None:
        self._node = node
        self._controller = controller

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering costs nothing."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges as of now."""
        controller = self._controller
        candidacy, election = controller.candidacy, controller.election
        blocked = blocking(candidacy, election, controller.health)
        stands = candidacy.joined and election.role is Role.STANDBY
        ready = stands and not any(blocked.values())
        yield self._one("nnha_failover_ready", "1 if this one could take over now", ready)
        yield self._each(
            "nnha_failover_blocked", "1 for what keeps this one from taking over", "reason", blocked
        )
        eligible = candidacy.joined or candidacy.waits
        yield self._one(
            "nnha_candidate_eligible", "1 while in the election, or waiting for a better", eligible
        )
        standing = candidacy.standing
        yield self._one("nnha_candidate_priority", "The higher goes first", standing.rank.priority)
        yield from self._notices(standing.notices or Notices())
        wanted = _wanted_state(election.role)
        states = {state: state == wanted for state in WANTED}
        yield self._each(
            "nnha_node_wanted_state", "1 for what the NameNode should be", "state", states
        )
        yield from self._contact()

    def _notices(self, notices: Notices) -> Iterator[Metric]:
        pause = notices.pause
        until = pause.until.timestamp() if pause is not None and pause.until is not None else 0.0
        yield self._one("nnha_paused", "1 while an operator's pause is in force", pause is not None)
        yield self._one(
            "nnha_pause_expires_timestamp_seconds", "When the pause ends; 0: never, or none", until
        )
        drain = notices.drain
        ends = drain.until.timestamp() if drain is not None and drain.until is not None else 0.0
        yield self._one("nnha_drained", "1 while this NameNode is drained", drain is not None)
        yield self._one(
            "nnha_drain_expires_timestamp_seconds", "When the drain ends; 0: never, or none", ends
        )
        yield self._one(
            "nnha_zkfc_untrusted_znodes",
            "Znodes that others could have written, by their ACLs; /status names them",
            len(notices.untrusted),
        )

    def _contact(self) -> Iterator[Metric]:
        controller, now = self._controller, asyncio.get_running_loop().time()
        contact, timeout = controller.zookeeper_contact, controller.session_timeout_seconds
        at = 0.0 if contact is None else time.time() - (now - contact)
        left = 0.0
        if contact is not None and timeout is not None:
            left = max(0.0, contact + timeout - now)
        yield self._one(
            "nnha_zk_session_timeout_seconds", "As negotiated; 0 without a session", timeout or 0.0
        )
        yield self._one(
            "nnha_zk_last_contact_timestamp_seconds",
            "When the newest request that was answered had been sent; 0 if none was",
            at,
        )
        yield self._one(
            "nnha_zk_lease_remaining_seconds",
            "For how long the session surely lives on, counted from that request",
            left,
        )

    def _one(self, name: str, text: str, value: float) -> Metric:
        gauge = GaugeMetricFamily(name, text, labels=["node"])
        gauge.add_metric([self._node], float(value))
        return gauge

    def _each(self, name: str, text: str, label: str, values: Mapping[str, bool]) -> Metric:
        gauge = GaugeMetricFamily(name, text, labels=["node", label])
        for key, value in values.items():
            gauge.add_metric([self._node, key], float(value))
        return gauge


def publish_readings(
    node: str, controller: Watched, *, registry: CollectorRegistry = REGISTRY
) -> None:
    """Show them from now on; called once by the daemon."""
    registry.register(cast("Collector", Readings(node, controller)))


def blocking(candidacy: Candidacy, election: ElectorState, health: Health) -> Mapping[str, bool]:
    """Return for each of ``REASONS`` whether it keeps this controller from taking over."""
    standing = candidacy.standing
    notices = standing.notices or Notices()
    found = {
        "health": health is not Health.HEALTHY,
        "zookeeper": election.link in (Link.CONNECTING, Link.SUSPENDED),
        "namesake": bool(notices.namesake),
        "paused": notices.pause is not None,
        "drained": notices.drain is not None,
        "nofailover": standing.rank.nofailover,
        "not_ready": not standing.ready,
        "stood_back": candidacy.stood_back is not None,
        "waits": candidacy.waits,
    }
    return {reason: found[reason] for reason in REASONS}


def _wanted_state(role: Role) -> str:
    match role:
        case Role.ACTIVE | Role.TAKING_OVER:
            return "active"
        case Role.STANDBY:
            return "standby"
        case _:
            return "none"
