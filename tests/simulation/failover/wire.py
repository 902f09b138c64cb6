"""What controllers ask of ZooKeeper and are answered: by this the oracle goes, not by their
beliefs.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Final

from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.transaction import CreateEphemeral, Delete
from ha.notices.model import Pause, decode_drain, decode_pause
from ha.notices.store import drains_path, members_path, pause_path
from tests.simulation.failover.hosts import Host, Life
from tests.simulation.failover.seams import BIRTH, WALL_STEPS
from tests.simulation.failover.zk_server import Client, Reply, Request
from tests.simulation.failover.zk_tree import Znode

PAUSE: Final = "pause"
DRAIN: Final = "drain"
_READS: Final = frozenset({"exists", "get", "children", "acl"})
"""A round of looking at the notices is made of these."""


@dataclass(slots=True)
class Heard:
    """What was said in one life of a controller."""

    election: Client | None = None
    """The newest session that has asked for the lock, and was not closed."""
    stands: Client | None = None
    """The newest that wanted to, whether or not its request could be sent."""
    locks: dict[Client, Znode] = field(default_factory=dict)
    """The lock as each session was shown it last, if it ever was shown one."""
    notices: dict[str, Znode | None] = field(default_factory=dict)
    """The notices that it was last shown, by their paths, in a round in which all was answered."""
    round: dict[str, Znode | None] = field(default_factory=dict)
    """What the present round has shown of them."""
    reader: Client | None = None
    """The session that has asked for them."""
    waiting: Counter[Client] = field(default_factory=Counter)
    """How many requests of each session are unanswered."""
    asked: dict[Client, str] = field(default_factory=dict)
    """What each session has asked for last."""
    spoiled: set[Client] = field(default_factory=set)
    """Sessions of whose round one has failed: what the others have shown is passed on to no one."""
    whole_at: float = float("inf")
    """When the last answer of the round has come."""
    opened_at: float = -1.0
    """When it has last opened a session, whatever for."""

    def learn(self) -> None:
        self.notices |= self.round
        self.round, self.whole_at = {}, float("inf")


@dataclass(eq=False)
class Wire:
    """Listens for all controllers."""

    hosts: Mapping[str, Host]
    settings: ZooKeeperSettings

    def __post_init__(self) -> None:
        self._lives: dict[int, Heard] = {}
        self.on_wish: Callable[[str], None] = lambda _who: None
        """A controller asks for the lock."""
        self.on_removal: Callable[[str, Znode | None], None] = lambda _who, _shown: None
        """A controller asks for the removal of the lock that it was shown, which is another's."""
        self.on_leaving: Callable[[str], None] = lambda _who: None
        """A controller has closed the session of the election, and opened no other in its place."""

    # ---- calls of the sessions --------------------------------------------------------------

    def opened(self, client: Client) -> None:
        if (heard := self._of(client)) is not None:
            heard.opened_at = self._now(client)

    def asked(self, client: Client, request: Request) -> None:
        if (heard := self._of(client)) is None:
            return
        heard.waiting[client] += request.kind in _READS
        heard.asked[client] = request.path
        self._leads_on(heard, client, request)
        if self._makes_lock(request):
            heard.election = heard.stands = client
            self.on_wish(client.process.machine)
        elif self._deletes_lock(request):
            lock = heard.locks.get(client)
            if lock is None or lock.owner != client.session_id:
                self.on_removal(client.process.machine, lock)

    def unsent(self, client: Client, request: Request) -> None:
        heard = self._of(client)
        if heard is not None and self._makes_lock(request):
            # Its connection has just ended.  When it is back, it may see another's lock at once,
            # and asks for none any more (seed 49213744).
            heard.stands = client
        if heard is not None and client is heard.reader and request.kind in _READS:
            self._leads_on(heard, client, request)
            heard.round = {}  # it is never whole (seed 49013953)

    def answered(self, client: Client, request: Request, reply: Reply) -> None:
        if (heard := self._of(client)) is None:
            return
        machine = client.process.machine
        if request.kind == "exists" and request.path == self.settings.lock:
            # An answer that there is none may come in the same moment as that of the look before,
            # whose asker has not gone on yet.
            if reply.value is not None:
                heard.locks[client] = reply.value
        elif request.kind == "get" and request.path in self._paths(machine).values():
            heard.reader = client
            heard.round[request.path] = None if reply.error is not None else reply.value
        self._ends(heard, client, request)

    def failed(self, client: Client, request: Request) -> None:
        if (heard := self._of(client)) is not None:
            if request.kind in _READS:
                heard.spoiled.add(client)
            self._ends(heard, client, request)

    def closing(self, client: Client) -> None:
        heard = self._of(client)
        if heard is not None and client is heard.stands:
            heard.stands = None
        if heard is None or client is not heard.election:
            return
        heard.election = None
        if heard.opened_at < self._now(client):
            self.on_leaving(client.process.machine)

    # ---- asked by the oracle ---------------------------------------------------------------

    def session_of(self, name: str) -> int | None:
        heard = self._of_life(self.hosts[name].lives.get("zkfc"))
        return None if heard is None or heard.election is None else heard.election.session_id

    def standing(self, name: str) -> int | None:
        """Return the session in which it waits for the lock, or has it."""
        heard = self._of_life(self.hosts[name].lives.get("zkfc"))
        return None if heard is None or heard.stands is None else heard.stands.session_id

    def is_reading(self, name: str, path: str) -> bool:
        """Return whether what a controller asked for last is this, and is not answered yet."""
        heard = self._of_life(self.hosts[name].life("zkfc"))
        if heard is None or heard.reader is None:
            return False
        return heard.waiting[heard.reader] > 0 and heard.asked[heard.reader] == path

    def told_bars(self, name: str) -> frozenset[str]:
        """Return what a host's controller was shown last that is in force: a pause, its drain."""
        life = self.hosts[name].life("zkfc")
        heard = self._of_life(life)
        if life is None or heard is None:
            return frozenset()
        if heard.whole_at < life.host.loop.now:
            heard.learn()
        for kind, path in self._paths(name).items():
            if not in_force(kind, heard.notices.get(path), life):
                heard.notices.pop(path, None)  # though its wall clock be put back, it is over
        return frozenset(k for k, path in self._paths(name).items() if path in heard.notices)

    def bars_at(self, name: str, znodes: Mapping[str, Znode]) -> frozenset[str]:
        """Return which notices of this tree bar a NameNode's controller from the election."""
        life = self.hosts[name].life("zkfc")
        if life is None:
            return frozenset()
        there = {kind: znodes.get(path) for kind, path in self._paths(name).items()}
        return frozenset(kind for kind, one in there.items() if in_force(kind, one, life))

    # ---- small matters ---------------------------------------------------------------------

    def _paths(self, name: str) -> Mapping[str, str]:
        settings = self.settings
        return {PAUSE: pause_path(settings), DRAIN: f"{drains_path(settings)}/{name}"}

    def _makes_lock(self, request: Request) -> bool:
        lock = self.settings.lock
        made = (isinstance(one, CreateEphemeral) and one.path == lock for one in request.parts)
        return any(made) or (request.kind == "create" and request.path == lock)

    def _deletes_lock(self, request: Request) -> bool:
        lock = self.settings.lock
        gone = (isinstance(one, Delete) and one.path == lock for one in request.parts)
        return any(gone) or (request.kind == "delete" and request.path == lock)

    def _leads_on(self, heard: Heard, client: Client, request: Request) -> None:
        """Note that answers led to the next question, or that it begins the next round."""
        read = request.kind in _READS and client is heard.reader
        if read and heard.whole_at <= self._now(client):
            if request.path == f"{members_path(self.settings)}/{client.process.machine}":
                heard.learn()
            heard.whole_at = float("inf")

    def _ends(self, heard: Heard, client: Client, request: Request) -> None:
        """End a request; with the last one of the session that reads notices its round ends."""
        if request.kind not in _READS:
            return
        heard.waiting[client] -= 1
        if heard.waiting[client] > 0:
            return
        spoiled = client in heard.spoiled
        heard.spoiled.discard(client)
        if client is not heard.reader:
            return
        if spoiled:
            heard.round, heard.whole_at = {}, float("inf")
        elif heard.round:
            heard.whole_at = self._now(client)

    def _of(self, client: Client) -> Heard | None:
        host = self.hosts.get(client.process.machine)
        life = None if host is None else host.lives.get("zkfc")
        return self._of_life(life) if life is not None and life.process is client.process else None

    def _of_life(self, life: Life | None) -> Heard | None:
        if life is None:
            return None
        heard = self._lives.get(life.pid)
        if heard is None:
            heard = self._lives[life.pid] = Heard()
        return heard

    def _now(self, client: Client) -> float:
        return self.hosts[client.process.machine].loop.now


def in_force(kind: str, znode: Znode | None, life: Life) -> bool:
    """Return whether a notice is there and not over, by the wall clock of this process."""
    if znode is None:
        return False
    notice = _decoded(kind, znode.data)
    if notice.until is None:
        return True
    machine = life.host.name
    seconds = life.host.loop.now * life.process.rate + WALL_STEPS.get(machine, 0.0)
    return not notice.over(BIRTH + timedelta(seconds=seconds))


@cache
def _decoded(kind: str, data: bytes) -> Pause:
    return (decode_pause if kind == PAUSE else decode_drain)(data)
