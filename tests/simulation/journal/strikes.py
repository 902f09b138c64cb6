"""What strikes at a place of the protocol, whoever waits for it there."""

from collections.abc import Callable
from contextvars import Context
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.engine.clock import Process
from tests.simulation.journal.nemesis import Event
from tests.simulation.journal.wear import fragile, wear

if TYPE_CHECKING:
    from tests.simulation.journal.world import World


class Strikes:
    """Faults of one world, each at once."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def end(self, how: str, event: Event, node: str) -> None:
        """End a node's process, or cut its power; after a while it is back."""
        machine = self._world.machines[node]
        end = machine.cut_power if how == "power" else machine.kill
        end("at a place", event.name)
        if how == "rot":
            self.wear("rot", event, node)
        self.later(event.lasts, self._world.restart, machine)

    def wear(self, kind: str, event: Event, node: str) -> None:
        victim = fragile(self._world).index(node)
        wear(replace(event, kind=kind, victim=victim), self._world)

    def freeze(self, process: Process | None, event: Event) -> None:
        if process is None:
            return
        process.freeze()
        self.later(event.lasts, process.thaw)

    def cut(self, name: str, others: list[str]) -> None:
        for other in others:
            self._world.network.cut((name, other))
            self._world.network.cut((other, name))

    def cut_for(self, seconds: float, name: str, others: list[str]) -> None:
        self.cut(name, others)
        for other in others:
            for link in ((name, other), (other, name)):
                self.later(seconds, self._world.network.heal, link)

    def later(self, seconds: float, act: Callable[..., None], *arguments: object) -> None:
        """Act outside the context of the process whose message that was: it may be dead by then."""
        Context().run(self._world.loop.call_later, seconds, act, *arguments)
