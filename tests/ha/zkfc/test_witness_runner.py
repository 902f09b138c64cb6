"""Whom a standby's controller asks, and when it removes a lock; over real sockets."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import REGISTRY

from ha.conf.topology import HostPort, NameNodeAddress
from ha.elector.events import LockGone, LockSeen
from ha.elector.model import Link, Removal, Role, SessionNumber
from ha.elector.state import ElectorState
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.outcome import ZnodeFacts
from ha.rpc.client import RpcConnection
from ha.rpc.java_names import HA_SERVICE_PROTOCOL, ZKFC_PROTOCOL
from ha.rpc.server import RpcServer
from ha.service.ha_service import ha_service_protocol
from ha.service.journal_witness import journal_witness_protocol
from ha.service.model import ServiceState, ServiceStatus, WriterSilence
from ha.zkfc.surroundings.surroundings import Surroundings
from ha.zkfc.witness.core import SilenceVerdict, WitnessSettings
from ha.zkfc.witness.runner import Witness
from tests.ha.zkfc.toy_namenode import HOST, SharedResource, ToyNameNode
from tests.ha.zkfc.zkfc_world import free_port, until
from tests.log_lines import captured

MADE = 77
SILENT = WriterSilence(nodes=3, witnesses=3, epoch=5, silent_seconds=1.5, lease_seconds=1.0)
STANDBY = ElectorState(session=SessionNumber(1), role=Role.STANDBY, link=Link.CONNECTED)


@dataclass
class Scene:
    """Our NameNode's word, the owner's two servers, and what was asked of ZooKeeper."""

    owner: ToyNameNode
    controller: RpcServer
    told: WriterSilence = SILENT
    bar: str = ""
    asked: int = 0
    """How often our NameNode was asked."""
    stopped_seconds: float = 0.0
    """How long our process stands still after it has asked our NameNode."""
    removed: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    outcome: Removal = Removal.REMOVED
    zkfc_port: int = 0
    connects: list[int] = field(default_factory=list)
    """The ports that it has connected to, in turn."""
    opened: list[RpcConnection] = field(default_factory=list)
    """All are closed once it has ended, before anything that it asks is."""
    spoken: dict[int, str] = field(default_factory=dict)
    """The protocol at each port."""
    named_port: int = 0
    """What the lock names, where that is not the owner's."""
    named_made: int = MADE + 1
    reads: int = 0
    looks: int = 0
    """How often the owner's NameNode was asked."""

    def obstacle(self) -> str:
        return self.bar

    async def read_lock(self) -> tuple[bytes, ZnodeFacts] | None:
        self.reads += 1
        port = self.named_port or self.owner.port
        info = ActiveNodeInfo("ns", "nn1", HOST, port, self.zkfc_port)
        made = MADE if self.named_port == 0 else self.named_made
        return encode(info), ZnodeFacts(0, ours=False, written_by=made, owner=1)

    async def remove_lock(self, made: int) -> Removal:
        self.removed.append(made)
        return self.outcome

    def set_removal_reason(self, because: str) -> None:
        self.reasons.append(because)

    async def connect(self, host: str, port: int, **named: Any) -> RpcConnection:  # noqa: ANN401
        self.connects.append(port)
        self.spoken[port] = named["protocol"]
        opened = await RpcConnection.open(host, port, **named)
        self.opened.append(opened)
        return opened

    async def tell(self) -> WriterSilence:
        self.asked += 1
        time.sleep(self.stopped_seconds)  # the whole process stands still
        return self.told

    async def host_dies(self) -> None:
        """Stop listening at either address."""
        await self.owner.die()
        await self.controller.stop()


def _address(name: str, service: HostPort) -> NameNodeAddress:
    off = HostPort(HOST, 0)
    return NameNodeAddress("ns", name, service, service, off, off, off, service)


@asynccontextmanager
async def scene(
    *, enabled: bool = True, ours: bool = True, ports: tuple[int, int] | None = None
) -> AsyncIterator[tuple[Scene, Witness]]:
    """Run a controller that stands by; ``ours``: our own NameNode is not one of Hadoop's.

    ``ports``: where the owner's NameNode and controller are, if not at the scene's own.
    """
    owner = ToyNameNode("nn1", SharedResource(), state=ServiceState.ACTIVE)
    await owner.start()
    # As a controller does, it serves another protocol than the one that it is asked for.
    controller = RpcServer([])
    made = Scene(owner, controller, zkfc_port=await controller.start(HOST, 0))

    async def status() -> ServiceStatus:
        made.looks += 1
        return ServiceStatus(ServiceState.ACTIVE, ready_to_become_active=True)

    owner.status = status  # type: ignore[method-assign] # counted
    if ports is not None:
        made.named_port, made.zkfc_port = ports
        made.named_made = MADE
    own = ToyNameNode("nn2", SharedResource())
    served = [ha_service_protocol(own), journal_witness_protocol(made.tell)]
    server = RpcServer(served if ours else served[:1])
    at = HostPort(HOST, await server.start(HOST, 0))
    addresses = {
        "nn1": _address("nn1", HostPort(HOST, made.named_port or owner.port)),
        "nn2": _address("nn2", at),
    }
    witness = Witness(
        WitnessSettings(enabled=enabled),
        addresses["nn2"],
        made,
        address_of=addresses.get,
        around=Surroundings(connect=made.connect),
    )
    witness.observe_step(LockSeen(STANDBY.session, ours=False, made=MADE), STANDBY, STANDBY)
    running = asyncio.create_task(witness.run())
    try:
        yield made, witness
    finally:
        running.cancel()
        await asyncio.wait({running})
        left = sum(not one.closed for one in made.opened)
        await made.host_dies()
        await server.stop()
    assert left == 0, f"{left} of {len(made.opened)} connections are open"


def removals() -> float:
    labels = {"node": "ns.nn2", "result": "removed"}
    return REGISTRY.get_sample_value("nnha_zkfc_witnessed_removals_total", labels) or 0


async def test_the_lock_of_a_dead_host_is_removed_once_with_the_reason() -> None:
    before = removals()
    async with scene() as (made, witness):
        await made.host_dies()
        await until(lambda: made.removed == [MADE], "the removal")
        await until(lambda: witness.verdict is SilenceVerdict.SPENT, "the next look")
        assert made.removed == [MADE]
        assert made.reasons[-1].startswith("neither the NameNode nor the zkfc of nn1 answered")
        assert removals() - before == 1


async def test_a_bug_in_a_look_is_logged_and_the_next_look_comes() -> None:
    async with scene() as (made, _):
        read, bugs = made.read_lock, [KeyError("planted")]

        async def fail_once() -> tuple[bytes, ZnodeFacts] | None:
            if bugs:
                raise bugs.pop()
            return await read()

        made.read_lock = fail_once  # type: ignore[method-assign] # a bug
        with captured("zkfc.witness.crashed") as lines:
            await until(lambda: not bugs and made.looks >= 2, "the next look")
    assert [line["log_level"] for line in lines] == ["error"]


async def test_the_journal_is_not_asked_while_the_owner_answers() -> None:
    async with scene() as (made, witness):
        await until(lambda: made.looks >= 3, "three looks")
        assert (made.asked, made.removed, witness.verdict) == (0, [], SilenceVerdict.CALM)
        assert made.connects == [made.owner.port, made.zkfc_port], "one connection is kept"


async def test_each_is_asked_as_what_it_is() -> None:
    """Under certificates each protocol is spoken with one role alone."""
    async with scene() as (made, _):
        await until(lambda: made.looks >= 1 and made.zkfc_port in made.spoken, "a look at both")
        asked = made.spoken[made.owner.port], made.spoken[made.zkfc_port]
        assert asked == (HA_SERVICE_PROTOCOL, ZKFC_PROTOCOL)


async def test_a_controller_that_answers_is_enough_though_it_only_refuses() -> None:
    async with scene() as (made, witness):
        await made.owner.die()
        already = len(made.connects)
        await until(lambda: made.connects[already:].count(made.zkfc_port) >= 3, "three looks")
        assert (made.asked, made.removed, witness.verdict) == (0, [], SilenceVerdict.CALM)


async def test_what_our_namenode_told_before_we_were_stopped_is_old() -> None:
    async with scene() as (made, witness):
        made.stopped_seconds = 0.4
        await made.host_dies()
        await until(lambda: made.asked >= 4, "four answers")
        assert (made.removed, witness.verdict) == ([], SilenceVerdict.UNPROVEN)


async def test_a_namenode_of_hadoop_s_bears_no_witness() -> None:
    async with scene(ours=False) as (made, witness):
        await made.host_dies()
        await until(lambda: witness.verdict is SilenceVerdict.UNPROVEN, "the question")
        assert made.removed == []


async def test_the_key_turns_it_off() -> None:
    async with scene(enabled=False) as (made, witness):
        await asyncio.wait_for(witness.run(), 5.0)
        assert (made.connects, made.removed, witness.description) == ([], [], "")


async def test_a_lock_that_goes_is_no_more_asked_for() -> None:
    async with scene() as (made, witness):
        made.bar = "paused"
        await made.host_dies()
        await until(lambda: witness.verdict is SilenceVerdict.BARRED, "the suspicion")
        witness.observe_step(LockGone(STANDBY.session), STANDBY, STANDBY)
        await until(lambda: witness.verdict is SilenceVerdict.CALM, "the next look")
        assert made.removed == []


async def test_an_address_that_is_not_the_configured_one_is_not_asked() -> None:
    """Skip it, as nothing listens at the old address of a host that has moved."""
    async with scene() as (made, witness):
        made.named_port = free_port()
        witness.observe_step(LockSeen(STANDBY.session, ours=False, made=MADE + 1), STANDBY, STANDBY)
        await until(lambda: made.reads == 1, "a look at the lock")
        made.named_port = 0
        witness.observe_step(LockSeen(STANDBY.session, ours=False, made=MADE), STANDBY, STANDBY)
        await until(lambda: made.looks >= 1, "a look at the next one")
        assert made.connects == [made.owner.port, made.zkfc_port]
        assert (made.asked, made.removed, witness.verdict) == (0, [], SilenceVerdict.CALM)
