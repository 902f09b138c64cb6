"""One run of a simulated world, and what became of it."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator, Set
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from tests.simulation.engine.clock import VirtualLoop
from tests.simulation.engine.faults import Faults
from tests.simulation.engine.trace import Trace
from tests.simulation.engine.verdict import Stuck, Violated


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one seed: the faults ``fired``, and ``acknowledged``, the service rendered."""

    seed: int
    violation: Violated | None
    fired: tuple[str, ...]
    lines: tuple[str, ...]
    digest: str
    steps: int
    checks: int
    acknowledged: int
    seconds: float


class Run(Protocol):
    """Plays one seed; a function of a module, so that other processes find it."""

    def __call__(
        self, seed: int, *, only: Set[str] | None = None, keep_trace: bool = False
    ) -> Outcome:
        """Play a seed; ``only`` names the faults that may happen, None allows all."""


class Judge(Protocol):
    """Sees what happens, and remembers the first invariant that broke."""

    violation: Violated | None


class World(Protocol):
    """Everything of one run."""

    seed: int
    loop: VirtualLoop
    faults: Faults
    trace: Trace

    @property
    def oracle(self) -> Judge:
        """The judge of this world."""

    def in_place(self) -> AbstractContextManager[None]:
        """Put the simulated world in place of the real one."""

    def counts(self) -> tuple[int, int]:
        """Return how many states were checked, and how much service was rendered."""

    def end(self) -> None:
        """Unwind every process, so that nothing is left for the collector to complain about."""


def to_the_end(world: World, play: Coroutine[Any, Any, None]) -> Outcome:
    with world.in_place(), _no_collection():
        try:
            world.loop.run_until_complete(play)
        except (Violated, Stuck) as failure:
            note(world, failure)
        finally:
            world.end()
    checks, acknowledged = world.counts()
    return Outcome(
        world.seed,
        world.oracle.violation,
        tuple(world.faults.fired),
        tuple(world.trace.lines),
        world.trace.digest(),
        world.loop.steps,
        checks,
        acknowledged,
        world.loop.now,
    )


def note(world: World, failure: Violated | Stuck) -> None:
    """End the run with this, unless something was broken before."""
    violation = failure if isinstance(failure, Violated) else Violated("L1", str(failure))
    if world.oracle.violation is None:
        world.oracle.violation = violation
        world.trace.add("ORAC", f"VIOLATED {violation}")


def unwind(loop: VirtualLoop) -> None:
    """Cancel all that still runs, and close the loop."""
    for _ in range(50):
        rest = [task for task in asyncio.all_tasks(loop) if not task.done()]
        if not rest:
            break
        for task in rest:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def unhandled(
    world: World, invariant: str, closing: Callable[[], bool]
) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """Return what notes an unhandled error: a bug, unless it is an answer that was not waited for.

    While the world is ``closing`` only violations count.
    """

    def handle(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        failure, future = context.get("exception"), context.get("future")
        unheard = future is not None and not isinstance(future, asyncio.Task)
        if failure is None or not isinstance(failure, Exception) or unheard:
            return
        if isinstance(failure, Violated):
            note(world, failure)
        elif not closing():
            note(world, Violated(invariant, f"nobody handled {failure!r}: {context['message']}"))

    return handle


@contextmanager
def _no_collection() -> Iterator[None]:
    """Stop the collector, which ends forgotten generators, and so runs code, whenever it likes."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
