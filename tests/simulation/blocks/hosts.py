"""The operator of a world: has DataNodes leave, and takes machines away that may go."""

from typing import TYPE_CHECKING

from namenode_sim.datanodes.membership.admin import Asked, Kind
from namenode_sim.datanodes.membership.host_lists import ALL_HOSTS, HostEntry, HostLists
from namenode_sim.datanodes.model import AdminState
from tests.simulation.blocks.datanode import Datanode
from tests.simulation.blocks.namenode import BIRTH
from tests.simulation.blocks.nemesis import Event

if TYPE_CHECKING:
    from tests.simulation.blocks.world import World

MAINTAINED_FACTOR = 2.0
LATER_SECONDS = 6.0


class HostsOperator:
    """Writes the hosts files, which both NameNodes read; ``lists`` are what they say now."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._asked: dict[str, Asked] = {}
        self._away_seconds: dict[str, float] = {}
        self.lists = ALL_HOSTS

    def decommission(self, event: Event) -> None:
        self._ask(event, Asked(Kind.DECOMMISSION))

    def maintain(self, event: Event) -> None:
        until = BIRTH + self._world.loop.now + MAINTAINED_FACTOR * event.lasts
        self._ask(event, Asked(Kind.MAINTENANCE, int(until * 1000)))

    def _ask(self, event: Event, asked: Asked) -> None:
        """Write the files; one NameNode may be asked to read them later than the other."""
        owners = list(self._world.datanodes.values())
        owner = owners[event.victim % len(owners)]
        self._asked[owner.name] = asked
        self._away_seconds[owner.name] = event.lasts
        self._write()
        names = ["nn1", "nn2"][:: -1 if event.other % 2 else 1]
        later = 0.0 if event.other % 3 else LATER_SECONDS
        for name, wait in zip(names, (0.0, later), strict=True):
            self._world.loop.call_later(wait, self._refresh, name)

    def _write(self) -> None:
        entries = (
            HostEntry(self._world.datanodes[name].id.host, 0, asked)
            for name, asked in self._asked.items()
        )
        self.lists = HostLists(None, tuple(entries))

    def _refresh(self, name: str) -> None:
        life = self._world.lives.get(name)
        if life is not None:
            life.process.spawn(life.keeper.hosts.refresh())

    def look(self) -> None:
        """Take machines away of which the active says that they may go."""
        for life in self._world.lives.values():
            if life.process.frozen or not life.keeper.standing().active:
                continue
            for node in list(life.cluster.nodes.values()):
                owner = self._world.datanodes[node.id.host]
                asked = self._asked.get(owner.name)
                if asked is None or not node.alive:
                    continue
                match node.admin, asked.kind:
                    case AdminState.DECOMMISSIONED, Kind.DECOMMISSION:
                        self._take_away(owner)
                    case AdminState.IN_MAINTENANCE, Kind.MAINTENANCE if owner.machine.runs:
                        self._world.trace.add("ops", f"switches {owner.name} off")
                        owner.kill()
                        self._later(owner)

    def _take_away(self, owner: Datanode) -> None:
        self._world.trace.add("ops", f"takes {owner.name} away")
        owner.kill()
        for storage in list(owner.disks.volumes):
            lost = owner.disks.volumes.pop(storage)
            owner.formatted += 1
            owner.disks.volumes[owner.storage(10 + owner.formatted)] = {}
            for stored in lost.values():
                self._world.oracle.taken(owner.name, stored)
        self._asked.pop(owner.name)
        self._later(owner)

    def _later(self, owner: Datanode) -> None:
        """Have a DataNode serve again after a while, a new one at that place perhaps."""
        self._world.loop.call_later(self._away_seconds[owner.name], self._back, owner)

    def _back(self, owner: Datanode) -> None:
        self._asked.pop(owner.name, None)
        self._write()
        for name in ("nn1", "nn2"):
            self._refresh(name)
        owner.start()

    def end(self) -> None:
        """Ask nothing of any DataNode any more."""
        self._asked.clear()
        self._write()
        for name in ("nn1", "nn2"):
            self._refresh(name)
