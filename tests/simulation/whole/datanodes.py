"""The DataNodes of a world with everything, and what befalls them."""

from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final

from datanode.namenodes.claim import ClaimEffect as Heard
from datanode.namenodes.claim import Said
from namenode_sim.datanode_protocol.keeper import Answer, Keeper
from namenode_sim.process.client_service import ClientService
from tests.simulation.blocks.actor import Actor
from tests.simulation.blocks.client import Client
from tests.simulation.blocks.datanode import Datanode, Life
from tests.simulation.blocks.disks import Stored
from tests.simulation.blocks.executor import Executor
from tests.simulation.blocks.told import told
from tests.simulation.blocks.wires import Wires
from tests.simulation.engine.clock import Process
from tests.simulation.whole.files import Books, Writer
from tests.simulation.whole.namenode import CLIENT
from tests.simulation.whole.nemesis import DATANODES, WRITERS, Event

if TYPE_CHECKING:
    from tests.simulation.whole.world import World

DELETION_SECONDS: Final = 1.0
REPORT_SECONDS: Final = 60.0


class Unwatched:
    """Ignores what DataNodes do; what clients read afterwards counts."""

    def heard(self, datanode: str, who: str, said: Said, txid: int, verdict: Heard) -> None:
        """See ``Watcher``."""

    def answers(self, who: str, datanode: str, answer: Answer) -> None:
        """See ``Watcher``."""

    def executes(self, datanode: str, who: str, command: object) -> None:
        """See ``Watcher``."""

    def drops(self, datanode: str, who: str, command: object) -> None:
        """See ``Watcher``."""

    def starts(self, datanode: str) -> None:
        """See ``Watcher``."""

    def gone(self, datanode: str, stored: Stored, why: str) -> None:
        """See ``Watcher``."""

    def whole(self, datanode: str, stored: Stored) -> None:
        """See ``Watcher``."""


class Datanodes:
    """All of them in one world, and the clients that write to them; none in some worlds."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.wires = Wires(world.loop, world.inner)
        self.all = {
            name: Datanode(
                name, number, world.loop, self.wires, self._tasks, Unwatched(),
                world.faults.random("datanode", name),
                namenodes=world.swarm.hosts, volumes=1, java=False,
                deletion_seconds=DELETION_SECONDS, report_seconds=REPORT_SECONDS,
                command_seconds=0.0,
            )
            for number, name in enumerate(DATANODES if world.swarm.datanodes else (), 1)
        }  # fmt: skip
        self.writers: list[Writer] = []
        self._processes: list[Process] = []

    @property
    def machines(self) -> tuple[str, ...]:
        """Where they and their clients run."""
        return (*DATANODES, *WRITERS) if self.all else ()

    def start(self) -> None:
        for owner in self.all.values():
            owner.start()

    def write(self) -> None:
        """Have clients write from now on."""
        if not self.all:
            return
        for name in WRITERS:
            writer, process = self._writer(name)
            told(process.spawn(writer.wander()), self._world.loop)
            self.writers.append(writer)

    def serves(self, name: str, process: Process) -> None:
        self.wires.machine(name).process = process

    def ended(self, name: str) -> None:
        self.wires.ended(self.wires.machine(name))

    def happen(self, event: Event) -> None:
        owner = self.all[DATANODES[event.victim % len(DATANODES)]]
        loop, process = self._world.loop, owner.machine.process
        if event.kind == "kill-datanode":
            owner.kill()
            loop.call_later(event.lasts, owner.start)
        elif process is not None and process.alive:
            process.freeze()
            loop.call_later(event.lasts, process.thaw)

    def heal(self) -> None:
        for owner in self.all.values():
            if owner.machine.process is not None:
                owner.machine.process.thaw()
        self.start()

    async def audit(self) -> None:
        """Check that every file that a writer heard of can be read, and is what it heard."""
        for process in self._processes:
            process.kill()
        for name, writer in zip(WRITERS, self.writers, strict=False):
            reader, _ = self._writer(f"{name}-audit")
            reader.files = writer.files
            await reader.audit()

    def end(self) -> None:
        for process in self._processes:
            process.kill()
        for owner in self.all.values():
            owner.kill()

    def _writer(self, name: str) -> tuple[Writer, Process]:
        world, books = self._world, Books()
        process = Process(name, world.loop)
        self.wires.machine(name).process = process
        self._processes.append(process)
        client = Client(
            name, world.loop, self.wires, self.all, world.namenodes, books,
            world.faults.random("writer", name), namenodes=world.swarm.hosts, user=CLIENT,
        )  # fmt: skip
        return Writer(client, books, world.faults.random("deeds", name), world.trace), process

    def _tasks(self, life: Life) -> Iterable[Coroutine[Any, Any, None]]:
        nodes = self._world.namenodes

        def keeper(name: str) -> Keeper | None:
            return nodes[name].keeper if name in nodes else None

        def face(name: str) -> ClientService | None:
            return nodes[name].face if name in nodes else None

        for name in self._world.swarm.hosts:
            yield Actor(life, name, keeper).run()
        yield Executor(life, self.all, face).run()
