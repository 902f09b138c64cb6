"""Puts the simulated world in the place of sockets, ZooKeeper, processes and fencing commands."""

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, Protocol
from unittest.mock import patch

import structlog

from fencing import fencer, ssh
from ha.elector.zookeeper import client
from ha.rpc.client import RpcConnection
from ha.rpc.server import RpcServer
from ha.service.model import ProcessIdentity
from ha.zkfc.record import history
from ha.zkfc.record.positions import Position
from ha.zkfc.takeover import local_process, planned_fence
from tests.simulation.engine.clock import PROCESS, VirtualLoop
from tests.simulation.engine.trace import Trace
from tests.simulation.failover.cluster import Cluster
from tests.simulation.failover.fencing_seam import Fencers
from tests.simulation.failover.hosts import LIFE
from tests.simulation.failover.rpc_seam import SimServer, Switchboard
from tests.simulation.failover.zk_session import ModelSession

Positions = Callable[..., Awaitable[Position]]
_TELLS_THE_TIME: Final = frozenset({"ha.notices.board"})
WALL_STEPS: Final[dict[str, float]] = {}
"""By how many seconds each machine's wall clock is wrong, in the world that is in place."""
BIRTH: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The wall clock's reading at the beginning of each world."""


class Simulated(Protocol):
    """What of the world is put in place."""

    loop: VirtualLoop
    trace: Trace
    fencers: Fencers
    cluster: Cluster


@contextmanager
def in_place(board: Switchboard, world: Simulated, positions: Positions) -> Iterator[None]:
    """The product as it is, in this world; ``positions`` is what NameNodes' /status would say."""
    config = structlog.get_config()
    WALL_STEPS.clear()
    trace, fencers = world.trace, world.fencers
    level = 20 if trace.keep else 50
    structlog.configure(
        processors=[trace.from_log],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=False,
    )
    server = SimServer(board)
    session = partial(ModelSession, world.cluster.ensemble)
    try:
        with ExitStack() as stack:
            put = stack.enter_context
            put(patch.object(RpcConnection, "open", board.open))
            put(patch.object(RpcServer, "start", _method(server.start)))
            put(patch.object(RpcServer, "stop", _method(server.stop)))
            put(patch.object(planned_fence, "fence", partial(fencers.fence, fencer.fence)))
            put(patch.object(fencer, "run_command", fencers.run_command))
            put(patch.object(ssh, "fence_over_ssh", fencers.over_ssh))
            for module in _users_of("Session", client.Session):
                put(patch.object(module, "Session", session))
            for module in _users_of("datetime", datetime):
                if module.__name__ in _TELLS_THE_TIME or module.__name__.startswith("ha.zkfc."):
                    put(patch.object(module, "datetime", WallClock(world.loop)))
            put(patch.object(history, "position_of", positions))
            _processes(stack, board)
            yield
    finally:
        structlog.configure(**config)


def _method(function: Any) -> Any:  # noqa: ANN401
    """A plain function, so that a class binds it."""

    async def call(server: RpcServer, *arguments: Any) -> Any:  # noqa: ANN401
        return await function(server, *arguments)

    return call


def _users_of(name: str, thing: object) -> list[Any]:
    """The product's modules that know this thing by this name."""
    return [
        module
        for full_name, module in sorted(sys.modules.items())
        if full_name.startswith("ha.") and vars(module).get(name) is thing
    ]


def wall_step() -> float:
    """By how many seconds this machine's wall clock is wrong."""
    process = PROCESS.get()
    return 0.0 if process is None else WALL_STEPS.get(process.machine, 0.0)


class WallClock:
    """As much of ``datetime`` as controllers use, on the machine's virtual clock."""

    fromisoformat = staticmethod(datetime.fromisoformat)

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now(self, _zone: object = None) -> datetime:
        """What the machine's wall clock shows."""
        return BIRTH + timedelta(seconds=self._loop.time() + wall_step())


def _processes(stack: ExitStack, board: Switchboard) -> None:
    """A controller sees the NameNode on its own machine end, by its process id."""

    def opened(process: ProcessIdentity) -> int | None:
        return process.pid if process.machine == LIFE.get().host.name else None

    def ended(pid: int) -> bool:
        life = LIFE.get().host.lives["namenode"]
        return life.pid != pid or not life.alive

    class Poll:
        def register(self, pid: int, _events: int) -> None:
            self._pid = pid

        def poll(self, _millis: int) -> bool:
            return ended(self._pid)

    poll = SimpleNamespace(poll=Poll, POLLIN=1)
    stack.enter_context(patch.object(local_process, "_open", opened))
    stack.enter_context(patch.object(local_process, "select", poll))
    stack.enter_context(patch.object(local_process, "os", SimpleNamespace(close=lambda _: None)))
