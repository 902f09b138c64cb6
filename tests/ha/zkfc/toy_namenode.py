"""A NameNode reduced to its role, with switches that make it fail, and a shared resource."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from ha.conf.topology import HostPort
from ha.rpc.protocol import Call
from ha.rpc.server import RpcServer
from ha.service.errors import HealthCheckFailed, ServiceFailed
from ha.service.ha_service import ha_service_protocol
from ha.service.model import ProcessIdentity, RequestSource, ServiceState, ServiceStatus

HOST = "127.0.0.1"


@dataclass
class SharedResource:
    """What only one active may hold; a second taker is a violation."""

    holder: str | None = None
    violations: int = 0
    fences: Callable[[str], int] = lambda _who: 0
    """How often this one has been fenced by a method: that takes the resource from it, too."""
    _fences_at_take: int = 0

    def take(self, who: str) -> None:
        if self.holder not in (None, who) and not self._taken_away():
            self.violations += 1
        if self.holder != who:
            self._fences_at_take = self.fences(who)
        self.holder = who

    def _taken_away(self) -> bool:
        return self.holder is not None and self.fences(self.holder) > self._fences_at_take

    def release(self, who: str) -> None:
        if self.holder == who:
            self.holder = None


@dataclass
class ToyNameNode:
    """Serves HAServiceProtocol on a real RPC server; counts before any failure is injected."""

    name: str
    resource: SharedResource
    state: ServiceState = ServiceState.STANDBY
    healthy: bool = True
    whims: random.Random | None = None
    """With it, every second check of its health fails, at random."""
    not_ready_reason: str = ""
    fail_to_become_active: bool = False
    fail_to_become_standby: bool = False
    active_transitions: int = 0
    promoted_at: float = 0.0
    hold_promotion: asyncio.Event | None = None
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One transition at a time, as in a NameNode: a demotion waits for a promotion to end."""
    told_gone: list[bool] = field(default_factory=list)
    process: ProcessIdentity | None = None
    seen: list[str] = field(default_factory=list)
    server: RpcServer | None = None
    port: int = 0

    async def start(self) -> None:
        self.server = RpcServer([ha_service_protocol(self)])
        self.port = await self.server.start(HOST, self.port)

    async def die(self) -> None:
        """Die as of kill -9: sockets gone, port refused, role forgotten."""
        self.resource.release(self.name)
        self.state = ServiceState.STANDBY
        await self.cut_off()

    async def cut_off(self) -> None:
        """Make it unreachable, but let it go on as what it is; ``start`` ends that."""
        if self.server is None:
            return
        server, self.server = self.server, None
        assert server._server is not None
        await server._server.stop()
        server.abort_connections()
        await server.stop()

    @property
    def address(self) -> HostPort:
        return HostPort(HOST, self.port)

    async def status(self) -> ServiceStatus:
        return ServiceStatus(
            self.state, not self.not_ready_reason, self.not_ready_reason, self.process
        )

    async def monitor_health(self) -> None:
        if self.whims is not None and self.whims.random() < 0.5:
            raise HealthCheckFailed("the toy is in the mood to fail")
        if not self.healthy:
            raise HealthCheckFailed("the toy is switched to unhealthy")

    async def transition_to_active(
        self, source: RequestSource, call: Call, *, predecessor_gone_until: float = 0.0
    ) -> None:
        self.seen.append(f"active by {source.name}")
        self.active_transitions += 1
        self.told_gone.append(predecessor_gone_until > asyncio.get_running_loop().time())
        fences = self.resource.fences(self.name)
        async with self.busy:
            if self.hold_promotion is not None:
                await self.hold_promotion.wait()
            if self.fail_to_become_active:
                raise ServiceFailed("injected failure")
            if self.resource.fences(self.name) == fences:
                self.resource.take(self.name)
            # Else it was fenced in between by something that does not kill: it believes that it is
            # active, and the journal takes none of its edits.
            self.state = ServiceState.ACTIVE
            self.promoted_at = asyncio.get_running_loop().time()

    async def transition_to_standby(self, source: RequestSource, call: Call) -> None:
        self.seen.append(f"standby by {source.name}")
        async with self.busy:
            if self.fail_to_become_standby:
                raise ServiceFailed("injected failure")
            self.resource.release(self.name)
            self.state = ServiceState.STANDBY
