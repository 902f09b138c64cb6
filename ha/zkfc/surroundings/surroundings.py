"""The functions by which a controller reaches daemons, ZooKeeper, fencing, clock and processes."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

from fencing.fencer import fence
from fencing.model import FencingReport
from ha.conf.topology import HostPort
from ha.elector.zookeeper.client import SessionFactory
from ha.elector.zookeeper.metrics import measured_session
from ha.notices.board import utc_now
from ha.record import dataclass
from ha.rpc.client import Connect, Connection, RpcConnection
from ha.rpc.protocol import RpcProtocol
from ha.rpc.server import RpcServer
from ha.service.model import ProcessIdentity
from ha.zkfc.surroundings.positions import Position, position_of
from ha.zkfc.surroundings.process_watch import Watched, watch_process


class Server(Protocol):
    """An RPC server."""

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port.  Raises OSError if the address cannot be bound."""

    async def stop(self) -> None:
        """Accept no more connections, and close all."""


class ReadPosition(Protocol):
    """Reads a NameNode's journal position; see ``position_of``."""

    def __call__(self, address: HostPort, *, deadline_seconds: float) -> Awaitable[Position]:
        """See the class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The functions to the outside; the defaults are the real ones, a simulation passes others."""

    connect: Connect = RpcConnection.open
    take_ready: Callable[[HostPort], Connection | None] = lambda _server: None
    """Returns a spare connection that is open already, or None; see SpareConnection."""
    serve: Callable[[Sequence[RpcProtocol]], Server] = RpcServer
    session: SessionFactory = measured_session
    fence: Callable[..., Awaitable[FencingReport]] = fence
    """As ``fencing.fencer.fence``."""
    watch: Callable[[ProcessIdentity], Watched | None] = watch_process
    position_of: ReadPosition = position_of
    now: Callable[[], datetime] = utc_now
    """The wall clock, for display and for comparison with times of other machines."""


REAL_WORLD = Surroundings()
