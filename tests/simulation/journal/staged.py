"""Scripted cases on real nodes: writers act one after the other, each with the nodes it may reach.

For the tables of the design text of HDFS-3077 and the crash matrix, where every step is fixed and
nothing is drawn.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from journal.errors import JournalError, QuorumLost
from journal.model import TxId
from journal.writer.writer import QuorumWriter
from tests.simulation.engine.clock import Process
from tests.simulation.engine.network import Action, Link
from tests.simulation.engine.runs import Outcome, to_the_end
from tests.simulation.engine.verdict import Violated
from tests.simulation.journal.contender import Contender, Habits, Life
from tests.simulation.journal.liveness import go_on, heal
from tests.simulation.journal.platter import Blow
from tests.simulation.journal.scripted import calm
from tests.simulation.journal.tags import Run
from tests.simulation.journal.world import World

Scene = Callable[["Stage"], Awaitable[None]]


def perform(*scenes: Scene, nodes: int = 3, lanes: bool = False, beside: bool = False) -> Outcome:
    """Play these scenes, heal the world, and let a clean writer and reader conclude.

    With ``lanes`` the nodes take write lanes; the last option opens them next to a stream.

    Raises:
        Violated: an invariant broke.
    """
    world = World(0, None, True, replace(calm(nodes), lanes=lanes, beside=beside))
    stage = Stage(world)
    world.network.silence = 0.0
    world.network.script = stage.judge
    outcome = to_the_end(world, stage.play(scenes))
    if stage.failure is not None:
        raise stage.failure
    if outcome.violation is not None:
        told = "\n".join(outcome.lines[-40:])
        raise AssertionError(f"{told}\n{outcome.violation}")
    return outcome


@dataclass(slots=True)
class Stage:
    """The nodes, the writers so far, and what is lost between them."""

    world: World
    lost: set[tuple[str, str, str]] = field(default_factory=set)
    """(writer, node, method) of requests that never arrive; an empty method means all."""
    arrivals: dict[tuple[str, str], Action] = field(default_factory=dict)
    """What happens just before a (node, method) request arrives, once."""
    holding: set[Link] = field(default_factory=set)
    """Where the next batch or heartbeat is held up on its way."""
    held: list[Action] = field(default_factory=list)
    failure: BaseException | None = None
    writers: int = 0

    async def play(self, scenes: Sequence[Scene]) -> None:
        for machine in self.world.machines.values():
            machine.booted = self.world.compare(machine)
            machine.boot()
        try:
            for scene in scenes:
                await scene(self)
                self.world.look()
        except Violated:
            raise
        except (AssertionError, JournalError) as failure:
            self.failure = failure
            return
        self.lost.clear()
        await heal(self.world)
        await go_on(self.world)

    def writer(self, *, without: Sequence[str] = (), hadoop_like: bool = False) -> "Actor":
        """Return a new writer that cannot reach some nodes."""
        self.writers += 1
        name = f"w{self.writers}"
        world = self.world
        process = world.writers[name] = Process(name, world.loop)
        habits = replace(Habits.none(), hadoop_like=hadoop_like)
        contender = Contender(
            Life(name, 0.0, (), 0.0), world.machines, world.loop, world.oracle, world.trace, habits
        )
        actor = Actor(self, contender, process, process.context.run(contender.new_writer))
        actor.lose(*without)
        return actor

    def judge(
        self, link: Link, what: str, arrive: Action, lost: Action
    ) -> tuple[Action, Action] | None:
        """Lose what shall be lost."""
        if {(*link, ""), (*link, what)} & self.lost:
            return None

        if link in self.holding and what == "Write":
            self.holding.discard(link)
            self.held.append(arrive)
            return (lambda: None), lost

        def after_the_event() -> None:
            self.arrivals.pop((link[1], what), lambda: None)()
            arrive()

        return after_the_event, lost

    def let_go(self) -> None:
        """Deliver now what was held up."""
        for arrive in self.held:
            arrive()
        self.held.clear()

    def finalized(self, node: str) -> dict[int, Run]:
        return self.world.oracle._views[node].finalized

    def live(self, node: str) -> dict[int, Run]:
        return self.world.oracle._views[node].live

    def ends(self, first: int) -> tuple[str, ...]:
        """Return how each node holds a segment, as in those tables: 150, 150f or -."""
        told = []
        for node in self.world.machines:
            if first in self.finalized(node):
                told.append(f"{self.finalized(node)[first].last}f")
            elif first in self.live(node):
                told.append(str(self.live(node)[first].last))
            else:
                told.append("-")
        return tuple(told)

    def strike(self, node: str, after: int, *, power: bool) -> None:
        """Kill a node just before its n-th disk operation from now on, or its whole machine."""
        machine = self.world.machines[node]

        def then() -> None:
            machine.kill("at a disk operation")
            if power:
                machine.platter.lose_unsynced()

        blow = Blow(machine.platter.operations + after, "power", then)
        machine.platter.blows.append(blow)

    def restart(self) -> None:
        """Start the nodes that are down."""
        for machine in self.world.machines.values():
            machine.platter.blows.clear()
            if not machine.up:
                machine.boot()


@dataclass(slots=True)
class Actor:
    """A writer that does as it is asked, and returns whether a quorum agreed."""

    stage: Stage
    contender: Contender
    process: Process
    quorum: QuorumWriter

    @property
    def name(self) -> str:
        return self.contender.life.name

    def lose(self, *nodes: str, method: str = "") -> None:
        """Lose requests (of one method) to these nodes from here on."""
        self.stage.lost |= {(self.name, node, method) for node in nodes}

    async def recover(self) -> int | None:
        """Win an epoch and recover; the last txid, None without a quorum."""

        async def work() -> int:
            recovered = await self.quorum.become_writer()
            oracle = self.stage.world.oracle
            oracle.won(self.name, recovered.epoch)
            oracle.adopted(self.name, recovered.epoch, recovered.last_txid)
            return int(recovered.last_txid)

        last: int | None = await self._try(work())
        return last

    async def start(self, first: int) -> bool:
        return await self._did(self.quorum.start_segment(TxId(first)))

    async def write(self, first: int, last: int) -> bool:
        return await self._did(self.contender.write_some(self.quorum, first, last - first + 1))

    async def finalize(self, last: int) -> bool:
        return await self._did(self.quorum.finalize_segment(TxId(last)))

    async def segment(self, first: int, last: int) -> None:
        """Write a whole segment, which every node must get."""
        await self.segment_at(first, last)
        await self.settle()

    async def segment_at(self, first: int, last: int) -> None:
        assert await self.start(first)
        assert await self.write(first, last)
        assert await self.finalize(last)

    async def settle(self) -> None:
        """Let the slower nodes answer too."""
        await self._did(self.quorum.settle(timeout_seconds=5.0))

    async def die(self) -> None:
        """Kill the writer once the answers on their way to nodes have arrived."""
        await self.settle()
        self.process.kill()

    async def _did(self, work: Coroutine[Any, Any, None]) -> bool:
        async def done() -> bool:
            await work
            return True

        return bool(await self._try(done()))

    async def _try(self, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401
        try:
            return await self.process.spawn(work)
        except QuorumLost as lost:
            self.contender.judge_end(lost)
            return None
