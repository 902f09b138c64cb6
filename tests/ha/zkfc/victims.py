"""Whom a takeover may have to make harmless, and fencing methods that only remember it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from fencing import model
from fencing.ssh_settings import SshSettings
from ha.conf.topology import HostPort, NameNodeAddress
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.health.core import HealthSettings
from ha.service.model import ServiceState
from ha.zkfc.settings.settings import FencingPlan, ZkfcSettings
from tests.ha.zkfc.toy_namenode import HOST, SharedResource, ToyNameNode

TRY_SECONDS: Final = 1.2345678
"""How long each of the methods took."""
UNKNOWN_ONES_PLAN: Final = FencingPlan(methods=(model.JournalEpochMethod(),))
NN2S_PLAN: Final = FencingPlan(
    methods=(model.KillMethod(),),
    environment={"dfs_ha_namenode_id": "nn2"},
    method_timeout_seconds=3.0,
    total_timeout_seconds=7.0,
    ssh=SshSettings(use_agent=True),
)


class Methods:
    """In the place of the fencing methods: they remember whom they were given, and by what plan."""

    def __init__(self, *outcomes: model.FencingOutcome, proves_gone: bool = False) -> None:
        self.outcomes = outcomes or (model.FencingOutcome.SUCCEEDED,)
        self.proves_gone = proves_gone
        self.given: list[model.Target] = []
        self.plans: list[FencingPlan] = []

    async def __call__(
        self,
        methods: tuple[model.MethodSpec, ...],
        target: model.Target,
        **how: Any,  # noqa: ANN401 - the other fields of a plan
    ) -> model.FencingReport:
        self.given.append(target)
        self.plans.append(FencingPlan(methods=methods, **how))
        tries = tuple(
            model.Attempt(
                f"m{number}", outcome, f"it says {number}", TRY_SECONDS,
                proves_gone=self.proves_gone,
            )
            for number, outcome in enumerate(self.outcomes)
        )  # fmt: skip
        return model.FencingReport(target, tries, 3.0)


def node(name: str, port: int) -> NameNodeAddress:
    """Return its addresses, which all differ; only one of them listens."""
    rpc, service, lifeline = (HostPort(host, port) for host in ("127.0.0.2", HOST, "127.0.0.3"))
    http, zkfc, zkfc_http = (HostPort(host, 0) for host in ("127.0.0.2", HOST, "127.0.0.3"))
    return NameNodeAddress("ns1", name, rpc, service, http, zkfc, zkfc_http, lifeline)


def settings(own_port: int, **others: int) -> ZkfcSettings:
    return ZkfcSettings(
        own=node("nn1", own_port),
        others=tuple(node(name, port) for name, port in others.items()),
        zookeeper=ZooKeeperSettings(hosts="x", session_timeout_seconds=1, scope="/x"),
        health=HealthSettings(),
        fencing={"": UNKNOWN_ONES_PLAN, "nn2": NN2S_PLAN},
        bind_host=HOST,
    )


def crumb(name: str, port: int, nameservice: str = "ns1") -> bytes:
    return encode(ActiveNodeInfo(nameservice, name, HOST, port, 0))


@asynccontextmanager
async def toy(name: str) -> AsyncIterator[ToyNameNode]:
    one = ToyNameNode(name, SharedResource())
    await one.start()
    one.state = ServiceState.ACTIVE
    try:
        yield one
    finally:
        await one.cut_off()
