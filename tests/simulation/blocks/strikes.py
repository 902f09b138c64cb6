"""Carries out planned faults."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from datanode.model import BeingWritten, StorageId
from namenode_sim.blocks.safemode import enter, force_exit
from namenode_sim.term.role import Role
from tests.simulation.blocks.balancer import balance
from tests.simulation.blocks.datanode import Datanode
from tests.simulation.blocks.model_journal import JOURNAL
from tests.simulation.blocks.nemesis import Event
from tests.simulation.engine.clock import Process

if TYPE_CHECKING:
    from tests.simulation.blocks.world import World

NAMENODES: Final = ("nn1", "nn2")
LONG_FREEZE_SECONDS: Final = 42.0
"""Longer than a DataNode may be silent."""
GHOST_SECONDS: Final = 12.0
LEAVING_SECONDS: Final = 20.0
NAP_SECONDS: Final = 2.6
"""Longer than the read lease, and too short for a takeover."""


class Strikes:
    """Does to a world what was planned."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._frozen_until: dict[Process, float] = {}
        self._handlers: dict[str, Callable[[Event], None]] = {
            "kill-namenode": self._kill_namenode,
            "freeze-namenode": self._freeze_namenode,
            "switch": lambda _: world.switch(),
            "cut-journal": self._cut_journal,
            "safe-mode": self._safe_mode,
            "kill-datanode": self._kill_datanode,
            "freeze-datanode": self._freeze_datanode,
            "cut-datanode": self._cut_datanode,
            "wipe-volume": self._wipe_volume,
            "restart-all": self._restart_all,
            "shrink": self._shrink,
            "cut-power": self._cut_power,
            "kill-client": self._kill_client,
            "there-and-back": self._there_and_back,
            "long-freeze": self._long_freeze,
            "ghost": self._ghost,
            "nap": self._nap,
            "decommission": world.hosts.decommission,
            "maintain": world.hosts.maintain,
            "leave-by-edit": self._leave_by_edit,
            "leave-amid": self._leave_amid,
            "leave-rack": world.hosts.decommission_rack,
            "leave-dead": self._leave_dead,
            "leave-writer": self._leave_writer,
            "balance": lambda event: balance(world, event),
        }

    def happen(self, event: Event) -> None:
        if self._world.faults.allowed(event.name):
            self._world.trace.add("-", f"{event.kind} for {event.lasts:.1f} s", event.name)
            self._handlers[event.kind](event)

    # ---- NameNodes ----

    def _active(self, event: Event) -> str:
        """Return the active; by chance the other one."""
        active = [name for name, life in self._world.lives.items() if life.role is Role.ACTIVE]
        return active[0] if active and event.other % 4 else NAMENODES[event.victim % 2]

    def _kill_namenode(self, event: Event) -> None:
        name = self._active(event)
        self._world.kill(name)
        self._world.loop.call_later(event.lasts, self._world.boot, name)

    def _freeze_namenode(self, event: Event) -> None:
        process = self._world.wires.machine(self._active(event)).process
        if process is not None:
            self._freeze(process, event.lasts)

    def _freeze(self, process: Process, seconds: float) -> None:
        now = self._world.loop.now
        self._frozen_until[process] = max(now + seconds, self._frozen_until.get(process, now))
        process.freeze()
        self._world.loop.call_later(seconds, self._thaw, process)

    def _thaw(self, process: Process) -> None:
        """Let a process run again, unless another freeze of it lasts longer."""
        if self._world.loop.now >= self._frozen_until[process]:
            process.thaw()

    def _cut(self, one: str, other: str, seconds: float) -> None:
        network, loop = self._world.network, self._world.loop
        for link in ((one, other), (other, one)):
            network.cut(link)
            loop.call_later(seconds, network.heal, link)

    def _cut_journal(self, event: Event) -> None:
        self._cut(self._active(event), JOURNAL, event.lasts)

    def _safe_mode(self, event: Event) -> None:
        name = self._active(event)
        life = self._world.lives.get(name)
        if life is None:
            return
        life.cluster.set_safe_mode(enter(life.cluster.safe_mode))

        def end() -> None:
            life.cluster.set_safe_mode(force_exit())

        self._world.loop.call_later(event.lasts, end)

    # ---- DataNodes ----

    def _datanode(self, event: Event) -> Datanode:
        owners = list(self._world.datanodes.values())
        return owners[event.victim % len(owners)]

    def _kill_datanode(self, event: Event) -> None:
        owner = self._datanode(event)
        owner.kill()
        self._world.loop.call_later(event.lasts, owner.start)

    def _freeze_datanode(self, event: Event) -> None:
        process = self._datanode(event).machine.process
        if process is not None and process.alive:
            self._freeze(process, event.lasts)

    def _cut_datanode(self, event: Event) -> None:
        others = [*NAMENODES, *self._world.datanodes, "c1"]
        self._cut(self._datanode(event).name, others[event.other % len(others)], event.lasts)

    def _wipe_volume(self, event: Event) -> None:
        """Replace a disk of a DataNode while its process is down."""
        owner = self._datanode(event)
        owner.kill()
        storages = list(owner.disks.volumes)
        self._lose(owner, storages[event.other % len(storages)])
        self._world.loop.call_later(event.lasts, owner.start)

    def _lose(self, owner: Datanode, storage: StorageId) -> None:
        lost = owner.disks.volumes.pop(storage)
        owner.formatted += 1
        owner.disks.volumes[owner.storage(10 + owner.formatted)] = {}
        for stored in lost.values():
            self._world.oracle.gone(owner.name, stored, "lost with its disk")

    def _cut_power(self, event: Event) -> None:
        """Cut a DataNode's power, and often end a writer; only what was synced stays."""
        if event.other % 3:
            self._kill_client(event)
        owner = self._datanode(event)
        owner.kill()
        drawn = self._world.faults.random(event.name)
        for stored in owner.disks.all():
            if isinstance(stored.replica, BeingWritten):
                kept = drawn.randrange(stored.replica.length + 1)
                self._world.oracle.shortened(owner.name, stored, kept)
        self._world.loop.call_later(event.lasts, owner.start)

    # ---- all ----

    def _kill_client(self, event: Event) -> None:
        self._world.replace_client(event.victim)

    def _there_and_back(self, event: Event) -> None:
        """Orders are drawn up, some cannot leave, and the active changes, twice."""
        process = self._datanode(event).machine.process
        if process is not None and process.alive:
            self._freeze(process, 5.0)
        self._world.shrink()
        wait = 2.0 + event.other % 30 / 10
        self._world.loop.call_later(wait, self._world.switch)
        self._world.loop.call_later(wait + 10.0 + event.lasts, self._world.switch)

    def _ghost(self, event: Event) -> None:
        """Cut the active off the journal, and its successor off a DataNode that starts."""
        world, at = self._world, self._world.loop.call_later
        old = next((n for n, life in world.lives.items() if life.role is Role.ACTIVE), None)
        if old is None:
            return
        new, owner = NAMENODES[old == NAMENODES[0]], self._datanode(event)
        self._cut(owner.name, old, GHOST_SECONDS / 2)  # orders wait for it
        world.shrink()
        at(1.0, self._cut, old, JOURNAL, GHOST_SECONDS)
        at(1.5 + event.other % 5 / 10, world.promote, new)
        at(5.5, owner.kill)
        at(5.6, self._cut, owner.name, new, GHOST_SECONDS / 2)
        at(6.2, owner.start)

    def _nap(self, event: Event) -> None:
        """Take the read lease from the active for a moment: the last fault of a world."""
        wait = max(0.0, self._world.ends - NAP_SECONDS - self._world.loop.now)
        self._world.loop.call_later(
            wait, self._freeze_namenode, replace(event, lasts=NAP_SECONDS, other=1)
        )

    # ---- leaving ----

    def _leave_by_edit(self, event: Event) -> None:
        """Have files want less while the active cannot write, and a DataNode waits to go."""
        self._world.hosts.decommission(event)

        def cut() -> None:
            self._cut(self._active(event), JOURNAL, 1.5 + event.other % 15 / 10)
            self._world.shrink(at_once=True)

        self._world.loop.call_later(3.0 + event.other % 20 / 10, cut)

    def _leave_amid(self, event: Event) -> None:
        """Have replicas deleted, and the active change before all DataNodes can report that."""
        world, at = self._world, self._world.loop.call_later
        world.shrink()
        silent = self._datanode(replace(event, victim=event.victim + 1))
        new = next((n for n, life in world.lives.items() if life.role is Role.STANDBY), None)
        if new is not None:
            self._cut(silent.name, new, LEAVING_SECONDS)
        wait = 2.5 + event.other % 20 / 10
        at(wait, world.switch)
        at(wait - 1.0 + event.victim % 20 / 10, world.hosts.decommission, event)

    def _leave_dead(self, event: Event) -> None:
        """Have a DataNode leave that is dead, and then comes back."""
        owner, at = self._datanode(event), self._world.loop.call_later
        owner.kill()
        at(LONG_FREEZE_SECONDS, self._world.hosts.decommission, event)
        at(LONG_FREEZE_SECONDS + 1 + event.lasts / 2, owner.start)

    def _leave_writer(self, event: Event) -> None:
        """End a writer, and have a DataNode leave that has what it wrote."""
        self._kill_client(event)
        owners = list(self._world.datanodes.values())
        open_ones = [
            number
            for number, owner in enumerate(owners)
            if any(isinstance(one.replica, BeingWritten) for one in owner.replicas().values())
        ]
        victim = open_ones[event.victim % len(open_ones)] if open_ones else event.victim
        self._world.hosts.decommission(replace(event, victim=victim))

    def _long_freeze(self, event: Event) -> None:
        standbys = [one for one in self._world.lives.values() if one.role is Role.STANDBY]
        for life in standbys[:1]:
            seconds = LONG_FREEZE_SECONDS + event.lasts / 4
            self._world.wires.machine(life.name).asleep_until = self._world.loop.now + seconds
            self._freeze(life.process, seconds)

    def _restart_all(self, event: Event) -> None:
        for name in NAMENODES:
            self._world.kill(name)
            self._world.loop.call_later(1 + event.lasts / 4, self._world.boot, name)
        for owner in self._world.datanodes.values():
            owner.kill()
            self._world.loop.call_later(1 + event.lasts / 8, owner.start)

    def _shrink(self, event: Event) -> None:
        self._world.shrink()
        strike = self._kill_namenode if event.victim % 2 else self._freeze_namenode
        self._world.loop.call_later(event.other % 80 / 10, strike, event)
