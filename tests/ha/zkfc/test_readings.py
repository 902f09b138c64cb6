"""What the gauges of a controller say while it stands, is barred, or has lost ZooKeeper."""

import asyncio
import importlib
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from prometheus_client import REGISTRY, CollectorRegistry

from ha.elector.model import Link, Role
from ha.elector.state import ElectorState
from ha.health.core import Health
from ha.notices.model import Drain, Pause
from ha.notices.seen import Notices
from ha.zkfc.candidacy.eligibility import Rank, Standing
from ha.zkfc.candidacy.state import Candidacy, Out, StandingBy, StoodBack, Waiting
from ha.zkfc.pages.gauges import REASONS, publish_readings

NODE = "ns1.nn1"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNTIL = datetime(2026, 1, 2, tzinfo=UTC)
STANDING_BY = ElectorState(role=Role.STANDBY, link=Link.CONNECTED)


@dataclass
class Controller:
    candidacy: Candidacy = field(default_factory=lambda: Candidacy(place=StandingBy()))
    election: ElectorState = STANDING_BY
    health: Health = Health.HEALTHY
    zookeeper_contact: float | None = None
    session_timeout_seconds: float | None = None


class Scraped:
    def __init__(self, controller: Controller) -> None:
        self._registry = CollectorRegistry()
        publish_readings(NODE, controller, registry=self._registry)

    def __call__(self, name: str, **labels: str) -> float | None:
        return self._registry.get_sample_value(name, {"node": NODE, **labels})

    def blocked_by(self) -> set[str]:
        return {one for one in REASONS if self("nnha_failover_blocked", reason=one) == 1}


async def test_one_that_stands_by_could_take_over() -> None:
    scraped = Scraped(Controller())
    assert scraped("nnha_failover_ready") == 1
    assert scraped("nnha_candidate_eligible") == 1
    assert scraped.blocked_by() == set()
    assert scraped("nnha_node_wanted_state", state="standby") == 1
    assert scraped("nnha_node_wanted_state", state="active") == 0
    assert (scraped("nnha_paused"), scraped("nnha_drained")) == (0, 0)


async def test_the_active_is_not_counted_as_one_that_could_take_over() -> None:
    scraped = Scraped(Controller(election=replace(STANDING_BY, role=Role.ACTIVE)))
    assert scraped("nnha_failover_ready") == 0
    assert scraped.blocked_by() == set()
    assert scraped("nnha_node_wanted_state", state="active") == 1


async def test_each_bar_is_named() -> None:
    pause = Pause(owner="me@here", reason="disks", since=NOW, until=UNTIL)
    drain = Drain(owner="me@here", reason="disks", since=NOW, until=None)
    out = Candidacy()
    back = Out("the last takeover failed", StoodBack(9.0, "the last takeover failed"))
    cases: dict[str, Controller] = {
        "health": Controller(health=Health.UNHEALTHY),
        "zookeeper": Controller(election=replace(STANDING_BY, link=Link.SUSPENDED)),
        "paused": Controller(replace(out, standing=Standing(notices=Notices(pause=pause)))),
        "namesake": Controller(replace(out, standing=Standing(notices=Notices(namesake="x")))),
        "drained": Controller(replace(out, standing=Standing(notices=Notices(drain=drain)))),
        "nofailover": Controller(replace(out, standing=Standing(rank=Rank(nofailover=True)))),
        "not_ready": Controller(replace(out, standing=Standing(ready=False))),
        "stood_back": Controller(replace(out, place=back)),
        "waits": Controller(replace(out, place=Waiting("nn2 has the higher rank"))),
    }
    assert cases.keys() == set(REASONS)
    for reason, controller in cases.items():
        scraped = Scraped(controller)
        assert scraped.blocked_by() == {reason}
        assert scraped("nnha_failover_ready") == 0
    assert Scraped(cases["paused"])("nnha_pause_expires_timestamp_seconds") == UNTIL.timestamp()
    assert Scraped(cases["drained"])("nnha_drained") == 1
    assert Scraped(cases["drained"])("nnha_drain_expires_timestamp_seconds") == 0
    assert Scraped(cases["waits"])("nnha_candidate_eligible") == 1


async def test_rank_end_of_a_drain_and_foreign_znodes_are_shown() -> None:
    drain = Drain(owner="me@here", reason="disks", since=NOW, until=UNTIL)
    notices = Notices(drain=drain, untrusted=("/a", "/b"))
    standing = Standing(rank=Rank(priority=7), notices=notices)
    scraped = Scraped(Controller(Candidacy(standing=standing)))
    assert scraped("nnha_candidate_priority") == 7
    assert scraped("nnha_drain_expires_timestamp_seconds") == UNTIL.timestamp()
    assert scraped("nnha_zkfc_untrusted_znodes") == 2


async def test_no_gauge_is_shown_a_second_time_by_the_controller_itself() -> None:
    """Two series of one name: Prometheus takes either, and they need not be equal."""
    importlib.import_module(
        "ha.zkfc.process.controller"
    )  # what it counts by itself is registered then
    registry = CollectorRegistry()
    publish_readings(NODE, Controller(), registry=registry)
    read = {family.name for family in registry.collect()}
    assert "nnha_paused" in read
    assert read.isdisjoint(family.name for family in REGISTRY.collect())


async def test_the_session_s_lease_counts_from_the_question() -> None:
    now = asyncio.get_running_loop().time()
    lively = Scraped(Controller(zookeeper_contact=now - 1, session_timeout_seconds=10.0))
    left = lively("nnha_zk_lease_remaining_seconds")
    assert left is not None
    assert 8.0 < left <= 9.0
    gone = Scraped(Controller(zookeeper_contact=now - 60, session_timeout_seconds=10.0))
    assert gone("nnha_zk_lease_remaining_seconds") == 0
    never = Scraped(Controller())
    assert never("nnha_zk_last_contact_timestamp_seconds") == 0
    assert never("nnha_zk_session_timeout_seconds") == 0
