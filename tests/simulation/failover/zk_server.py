"""One ZooKeeper server: connections in order, a tree that may lag, and watches that fire once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Protocol

from ha.elector.zookeeper.credentials import AclEntry
from ha.elector.zookeeper.transaction import Part
from tests.simulation.engine.clock import Process, VirtualLoop
from tests.simulation.failover.hosts import WorldNetwork
from tests.simulation.failover.zk_tree import Change, News, RefusedError, Tree


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks for; fields that do not apply are left as they are."""

    kind: str
    path: str = "/"
    data: bytes = b""
    version: int = -1
    ephemeral: bool = False
    sequence: bool = False
    acl: tuple[AclEntry, ...] = ()
    watch: bool = False
    parts: tuple[Part, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.path.rsplit('/', 1)[-1]}"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: a value or an error, and how much of the history the server had seen."""

    value: Any
    error: RefusedError | None
    seen: int


Respond = Callable[[Reply], None]


@dataclass(slots=True, eq=False)
class ServerSession:
    """A session as the leader keeps it."""

    number: int
    timeout: float
    heard_at: float
    who: str
    alive: bool = True
    connection: "Link | None" = None


class Client(Protocol):
    """A client's session, as those see it who listen to the wire."""

    process: Process

    @property
    def session_id(self) -> int | None:
        """The ensemble's number of this session, once it was connected."""


class Listener(Protocol):
    """Hears what clients and servers send to each other, at the clients' end."""

    def opened(self, client: Client) -> None:
        """Note that a client begins to connect."""

    def asked(self, client: Client, request: Request) -> None:
        """Note that a request is sent."""

    def unsent(self, client: Client, request: Request) -> None:
        """Note that a client has no connection over which to send a request."""

    def answered(self, client: Client, request: Request, reply: Reply) -> None:
        """Note that an answer has come, in time."""

    def failed(self, client: Client, request: Request) -> None:
        """Note that a request got no answer in time, or none that its client could hear."""

    def closing(self, client: Client) -> None:
        """Note that a client ends its session."""


class SilentHolder:
    """A listener that ignores everything."""

    def opened(self, client: Client) -> None:
        """See Listener."""

    def asked(self, client: Client, request: Request) -> None:
        """See Listener."""

    def unsent(self, client: Client, request: Request) -> None:
        """See Listener."""

    def answered(self, client: Client, request: Request, reply: Reply) -> None:
        """See Listener."""

    def failed(self, client: Client, request: Request) -> None:
        """See Listener."""

    def closing(self, client: Client) -> None:
        """See Listener."""


class Servers(Protocol):
    """The ensemble as a connection needs it."""

    loop: VirtualLoop
    network: WorldNetwork
    rng: Random

    def serve(self, link: "Link", request: "Request", respond: "Respond") -> None:
        """Carry out a request."""


class Link:
    """One connection of a client to a replica, each direction in order."""

    def __init__(
        self, ensemble: Servers, replica: "Replica", machine: str, hear: Callable[..., None]
    ) -> None:
        self.ensemble = ensemble
        self.replica = replica
        self.machine = machine
        self.alive = True
        self.session: ServerSession | None = None
        self._hear = hear
        self._up_due = self._down_due = 0.0
        self._queue: list[tuple[Request, Respond]] = []

    def connect(self, arrive: Callable[[], None]) -> None:
        self._up_due = self.ensemble.network.post(
            (self.machine, self.replica.name), "connect", arrive, lost=self.lose
        )

    def send(self, request: Request, respond: Respond) -> None:
        if not self.alive:
            return
        self._up_due = self.ensemble.network.post(
            (self.machine, self.replica.name),
            str(request),
            partial(self._arrived, request, respond),
            lost=self.lose,
            not_before=self._up_due,
        )

    def tell(self, what: str, act: Callable[[], None] | News | None) -> None:
        """Send from server to client: ``act`` happens there, after all that was sent before."""
        if not self.alive:
            return
        self._down_due = self.ensemble.network.post(
            (self.replica.name, self.machine),
            what,
            partial(self._hear, self, act),
            lost=self.lose,
            answer=True,
            not_before=self._down_due,
        )

    def hold(self, seconds: float) -> None:
        """Let nothing more arrive at the client for this time; afterwards all does, in order."""
        self._down_due = max(self._down_due, self.ensemble.loop.now + seconds)

    def lose(self) -> None:
        """Lose a message for good, and so the connection; the client may hear of it late."""
        if self.alive:
            silent = self.ensemble.rng.random() < self.ensemble.network.silence
            self.cut(tell=not silent)

    def cut(self, *, tell: bool = True) -> None:
        """End it, from the server's side or by the network."""
        if not self.alive:
            return
        if tell:
            self.tell("close", None)
        self.forget()

    def forget(self) -> None:
        """End the connection: the client or the server has hung up."""
        self.alive = False
        self.replica.unwatch(self)
        if self.session is not None and self.session.connection is self:
            self.session.connection = None

    def _arrived(self, request: Request, respond: Respond) -> None:
        if not self.alive or not self.replica.up or self.session is None:
            return
        self.session.heard_at = self.ensemble.loop.now
        if request.kind == "ping":
            self.tell("pong", lambda: respond(Reply(None, None, self.replica.applied)))
            return
        self._queue.append((request, respond))
        if len(self._queue) == 1:
            self._next()

    def _next(self) -> None:
        request, respond = self._queue[0]
        self.ensemble.serve(self, request, partial(self._answer, request, respond))

    def _answer(self, request: Request, respond: Respond, reply: Reply) -> None:
        self.tell(f"answer to {request}", partial(respond, reply))
        self._queue.pop(0)
        if self._queue:
            self.ensemble.loop.call_soon(self._next_if_alive)

    def _next_if_alive(self) -> None:
        if self.alive and self._queue:
            self._next()


@dataclass(eq=False)
class Replica:
    """One server: the tree as far as it has applied the history, and its watches."""

    name: str
    tree: Tree = field(default_factory=Tree)
    applied: int = 0
    up: bool = True
    lags_until: float = 0.0
    next_apply: float = 0.0
    watches: dict[str, dict[Link, None]] = field(default_factory=dict)
    child_watches: dict[str, dict[Link, None]] = field(default_factory=dict)
    waiting: list[tuple[int, Callable[[], None]]] = field(default_factory=list)

    def catch_up(self, history: Sequence[Change], number: int) -> None:
        while self.applied < number:
            self._apply(history[self.applied])

    def _apply(self, change: Change) -> None:
        self.applied += 1
        for news in self.tree.apply(change, self.applied):
            self._fire(news)
        due = [act for number, act in self.waiting if number <= self.applied]
        self.waiting = [one for one in self.waiting if one[0] > self.applied]
        for act in due:
            act()

    def when(self, number: int, act: Callable[[], None]) -> None:
        """Do something once the history is applied here up to ``number``."""
        if self.applied >= number:
            act()
        else:
            self.waiting.append((number, act))

    def unwatch(self, link: Link) -> None:
        for watches in (self.watches, self.child_watches):
            for links in watches.values():
                links.pop(link, None)

    def _fire(self, news: News) -> None:
        if news.kind == "children":
            fired = self.child_watches.pop(news.path, {})
        else:
            fired = self.watches.pop(news.path, {})
            if news.kind == "deleted":
                fired = {**fired, **self.child_watches.pop(news.path, {})}
        for link in fired:
            link.tell(f"{news.path} {news.kind}", news)
