"""Makes owners of the lock silent, in each way, and JournalNodes: stopped, started, cut off."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.failover.journal_nodes import JournalNode, QuorumJournal
from tests.simulation.failover.nemesis import Event

if TYPE_CHECKING:
    from tests.simulation.failover.strikes import Strikes
    from tests.simulation.failover.world import World


class Silences:
    """What befalls JournalNodes, and hosts as others see them."""

    def __init__(self, world: "World", strikes: "Strikes") -> None:
        self._world = world
        self._strikes = strikes

    def happen(self, event: Event, name: str) -> None:
        """Strike now; ``name`` is mostly the active."""
        journal = self._world.journal
        assert isinstance(journal, QuorumJournal)
        some = [one for number, one in enumerate(journal.names) if (event.other + 1) >> number & 1]
        some = some or list(journal.names)
        match event.kind:
            case "stop-journal" | "restart-journal":
                self._trouble(event, [journal.nodes[one] for one in some])
            case "cut-writer":
                self._strikes.cut_off(event, name, some)
            case "cut-asker":
                for asker in self._others(name):
                    self._strikes.cut_off(event, asker, some)
            case "short-stall":
                # A host that is slow, and lives: shorter than any silence that is asked for.
                stall = replace(event, kind="freeze-host", lasts=0.1 + event.other / 1000 * 1.6)
                self._strikes.trouble_host(stall, name)
            case "lose-host":
                self._strikes.trouble_host(replace(event, kind="power"), name)
            case "cut-both":
                # Those that could take over do not reach it, nor do as many JournalNodes.
                self._strikes.cut_off(event, name, [*self._others(name), *some])
            case _:
                raise AssertionError(event.kind)

    def _trouble(self, event: Event, nodes: list[JournalNode]) -> None:
        names, world = [node.name for node in nodes], self._world
        if event.kind == "restart-journal":
            world.trace.add("----", f"{names} started again", event.name)
            for node in nodes:
                node.restart()
            return
        world.trace.add("----", f"{names} stopped for {event.lasts:.2f} s", event.name)
        for node in nodes:
            node.stop()
            world.loop.call_later(event.lasts, node.go_on)

    def _others(self, name: str) -> list[str]:
        return [one for one in self._world.swarm.names if one != name]
