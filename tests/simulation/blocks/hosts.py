"""The operator of a world: has DataNodes leave, and takes machines away that may go."""

from typing import TYPE_CHECKING, Final

from namenode_sim.datanodes.membership.admin import Asked, Kind
from namenode_sim.datanodes.membership.host_lists import ALL_HOSTS, HostEntry, HostLists
from namenode_sim.datanodes.model import AdminState
from namenode_sim.term.role import Role
from tests.simulation.blocks.datanode import Datanode
from tests.simulation.blocks.namenode import BIRTH
from tests.simulation.blocks.nemesis import Event

if TYPE_CHECKING:
    from tests.simulation.blocks.world import World

MAINTAINED_FACTOR = 2.0
LATER_SECONDS = 6.0
FOR_EVER: Final = 1e9
AT_ONCE: Final = 0.4
TAKEOVER: Final = 0.7


class HostsOperator:
    """Writes the hosts files, which both NameNodes read; ``lists`` are what they say now."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._asked: dict[str, Asked] = {}
        self._away_seconds: dict[str, float] = {}
        self._going: dict[str, Asked] = {}
        """Those that will be taken away, an active has said that they may go."""
        self._gone: dict[str, Asked] = {}
        """Those that were taken away, and stand in the files until another one is in their place.

        More may be asked of them all the same: the files need not say what is there.
        """
        self.lists = ALL_HOSTS

    def decommission(self, event: Event) -> None:
        self._ask(event, Asked(Kind.DECOMMISSION), self._victim(event))

    def maintain(self, event: Event) -> None:
        until = BIRTH + self._world.loop.now + MAINTAINED_FACTOR * event.lasts
        asked = Asked(Kind.MAINTENANCE, int(until * 1000))
        self._ask(event, asked, self._victim(event))

    def decommission_rack(self, event: Event) -> None:
        rack = self._victim(event).rack
        owners = [one for one in self._world.datanodes.values() if one.rack == rack]
        self._ask(event, Asked(Kind.DECOMMISSION), *owners)

    def _victim(self, event: Event) -> Datanode:
        owners = list(self._world.datanodes.values())
        return owners[event.victim % len(owners)]

    def _ask(self, event: Event, asked: Asked, *owners: Datanode) -> None:
        """Write the files; one NameNode may be asked to read them later than the other.

        Operators that are late forget the standby at times.
        """
        for owner in owners:
            self._asked[owner.name] = asked
            self._away_seconds[owner.name] = event.lasts
        self._write()
        if self._world.swarm.late_seconds and event.other % 2:
            active = [n for n, life in self._world.lives.items() if life.role is Role.ACTIVE]
            for name in active:
                self._refresh(name)
            return
        names = ["nn1", "nn2"][:: -1 if event.other % 2 else 1]
        later = 0.0 if event.other % 3 else LATER_SECONDS
        for name, wait in zip(names, (0.0, later), strict=True):
            self._world.loop.call_later(wait, self._refresh, name)

    def _write(self) -> None:
        entries = (
            HostEntry(self._world.datanodes[name].id.host, 0, asked)
            for name, asked in (self._gone | self._asked).items()
        )
        self.lists = HostLists(None, tuple(entries))

    def _refresh(self, name: str) -> None:
        life = self._world.lives.get(name)
        if life is not None:
            life.process.spawn(life.keeper.hosts.refresh())

    def _refresh_all(self) -> None:
        self._write()
        for name in ("nn1", "nn2"):
            self._refresh(name)

    def look(self) -> None:
        """Take machines away of which the active says that they may go."""
        for life in list(self._world.lives.values()):
            if life.process.frozen or not life.keeper.standing().active:
                continue
            for node in list(life.cluster.nodes.values()):
                owner = self._world.datanodes[node.id.host]
                asked = self._asked.get(owner.name)
                if asked is None or not node.alive:
                    continue
                match node.admin, asked.kind:
                    case AdminState.DECOMMISSIONED, Kind.DECOMMISSION:
                        self._may_go(owner, asked)
                    case AdminState.IN_MAINTENANCE, Kind.MAINTENANCE if owner.machine.runs:
                        self._world.trace.add("ops", f"switches {owner.name} off")
                        owner.kill()
                        self._later(owner, asked, 0.0)

    def _may_go(self, owner: Datanode, asked: Asked) -> None:
        """Take a machine away, or do so later, whatever happens to the active until then."""
        world, now = self._world, self._world.loop.now
        drawn = world.faults.random("ops", owner.name, now)
        if self._going.get(owner.name) is asked:
            return
        if not world.swarm.late_seconds or drawn.random() < AT_ONCE:
            self._take_away(owner, now)
            return
        self._going[owner.name] = asked
        world.trace.add("ops", f"will take {owner.name} away")
        if drawn.random() < TAKEOVER and not world.faults.over:
            world.switch()
        wait = drawn.uniform(1.0, world.swarm.late_seconds)
        world.loop.call_later(wait, self._go, owner, asked, now)

    def _go(self, owner: Datanode, asked: Asked, said: float) -> None:
        if self._going.pop(owner.name, None) is asked is self._asked.get(owner.name):
            self._take_away(owner, said)

    def _take_away(self, owner: Datanode, said: float) -> None:
        self._world.trace.add("ops", f"takes {owner.name} away")
        owner.kill()
        for storage in list(owner.disks.volumes):
            lost = owner.disks.volumes.pop(storage)
            owner.formatted += 1
            owner.disks.volumes[owner.storage(10 + owner.formatted)] = {}
            for stored in lost.values():
                self._world.oracle.taken(owner.name, stored, said)
        self._gone[owner.name] = asked = self._asked.pop(owner.name)
        late = self._world.swarm.late_seconds
        drawn = self._world.faults.random("ops", owner.name, self._world.loop.now)
        self._later(owner, asked, drawn.uniform(0.0, late) if late else 0.0)

    def _later(self, owner: Datanode, asked: Asked, start: float) -> None:
        """Have a DataNode serve again after a while, a new one at that place perhaps.

        It starts some seconds after the NameNodes were asked to let it serve.
        """
        away = self._away_seconds[owner.name]
        self._world.loop.call_later(away, self._back, owner, asked, start)

    def _back(self, owner: Datanode, asked: Asked, start: float) -> None:
        self._gone.pop(owner.name, None)
        if self._asked.get(owner.name, asked) is not asked:
            return  # it leaves again by now
        self._asked.pop(owner.name, None)
        self._refresh_all()
        if start and not self._world.faults.over:
            self._world.loop.call_later(start, owner.start)
        else:
            owner.start()

    def end(self) -> None:
        """Ask nothing of any DataNode any more."""
        self._asked.clear()
        self._gone.clear()
        self._refresh_all()

    # ---- at the end ----

    def ask_one(self, owner: Datanode, kind: Kind) -> None:
        """Have a DataNode leave: for as long as is wanted, or for good, with a new one soon."""
        self._asked[owner.name] = Asked(kind)
        self._away_seconds[owner.name] = FOR_EVER if kind is Kind.MAINTENANCE else 1.0
        self._refresh_all()

    def is_asked(self, owner: Datanode) -> bool:
        return owner.name in self._asked

    def serve_again(self, owner: Datanode) -> None:
        """End what is asked of a DataNode, wherever it is."""
        self._asked.pop(owner.name, None)
        self._gone.pop(owner.name, None)
        self._refresh_all()
