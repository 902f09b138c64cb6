"""The simulated world as a controller meets it: its own surroundings, and nothing is patched."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, cast

from ha.service.model import ProcessIdentity
from ha.zkfc.surroundings.positions import Position
from ha.zkfc.surroundings.process_watch import Watched
from ha.zkfc.surroundings.surroundings import Surroundings
from tests.simulation.engine import trace as engine_trace
from tests.simulation.engine.clock import PROCESS, VirtualLoop
from tests.simulation.engine.trace import Trace
from tests.simulation.failover.fencing_seam import Fencers
from tests.simulation.failover.hosts import LIFE, Host
from tests.simulation.failover.rpc_seam import SimServer, Switchboard
from tests.simulation.failover.zk_ensemble import Ensemble
from tests.simulation.failover.zk_session import ModelSession

Positions = Callable[..., Awaitable[Position]]
WALL_STEPS: Final[dict[str, float]] = {}
"""By how many seconds each machine's wall clock is wrong, in the world that is played."""
BIRTH: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The wall clock's reading at the beginning of each world."""


def surroundings(
    board: Switchboard, ensemble: Ensemble, fencers: Fencers, positions: Positions
) -> Surroundings:
    """Return what each controller is given; ``positions`` is what /status would say."""
    return Surroundings(
        connect=board.open,
        serve=partial(SimServer, board),
        # A model has no kazoo client: test_seams holds its methods against the product's.
        session=cast(Any, partial(ModelSession, ensemble)),
        fence=fencers.fence,
        watch=_watch,
        position_of=positions,
        now=partial(_wall_clock, board.loop),
    )


@contextmanager
def traced(trace: Trace) -> Iterator[None]:
    """Send what the product logs to this trace, and set wall clocks right at first."""
    WALL_STEPS.clear()
    with engine_trace.traced(trace):
        yield


def wall_step() -> float:
    """Return by how many seconds this machine's wall clock is wrong."""
    process = PROCESS.get()
    return 0.0 if process is None else WALL_STEPS.get(process.machine, 0.0)


def _wall_clock(loop: VirtualLoop) -> datetime:
    return BIRTH + timedelta(seconds=loop.time() + wall_step())


def _watch(process: ProcessIdentity) -> Watched | None:
    """Watch the NameNode on a controller's own machine for its end, by its process id."""
    here = LIFE.get().host
    return _Watched(here, process.pid) if process.machine == here.name else None


class _Watched:
    def __init__(self, host: Host, pid: int) -> None:
        self._host = host
        self._pid = pid

    def ended(self, *, wait_millis: int = 0) -> bool:
        """Return whether the process has ended, or is another's now."""
        life = self._host.lives["namenode"]
        return life.pid != self._pid or not life.alive

    def kill(self) -> None:
        """End the process, as its controller does."""
        if not self.ended():
            self._host.struck(self._host.lives["namenode"])
            self._host.kill("namenode", "its controller has ended it")

    def close(self) -> None: ...
