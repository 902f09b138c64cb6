"""A ZooKeeper ensemble: one order of writes, replicas that may lag, sessions that expire."""

from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Any, Final

from ha.elector.zookeeper.outcome import Refusal
from tests.simulation.engine.clock import VirtualLoop
from tests.simulation.engine.faults import Faults
from tests.simulation.engine.trace import Trace
from tests.simulation.failover.hosts import WorldNetwork
from tests.simulation.failover.zk_server import (
    Link,
    Listener,
    Replica,
    Reply,
    Request,
    Respond,
    ServerSession,
    SilentHolder,
)
from tests.simulation.failover.zk_tree import (
    BeginSession,
    Change,
    EndSession,
    RefusedError,
    Together,
    Tree,
    Znode,
    refuse,
)

_COMMIT_SECONDS: Final = 0.002
_READS: Final = frozenset({"exists", "get", "children", "acl", "ping"})


class Ensemble:
    """The servers together."""

    def __init__(
        self,
        loop: VirtualLoop,
        network: WorldNetwork,
        faults: Faults,
        trace: Trace,
        servers: int = 3,
    ) -> None:
        self.loop = loop
        self.network = network
        self.faults = faults
        self.trace = trace
        self.rng: Random = faults.random("ensemble")
        self.head = Tree()
        self.history: list[Change] = []
        self.replicas = {f"zk{n}": Replica(f"zk{n}") for n in range(1, servers + 1)}
        self.sessions: dict[int, ServerSession] = {}
        self._leaderless = False
        self.on_commit: Callable[[Change, int, str], None] = lambda _change, _number, _who: None
        self.listener: Listener = SilentHolder()
        self._next_session = 0x1000

    @property
    def away(self) -> bool:
        """Whether it has no majority."""
        up = sum(replica.up for replica in self.replicas.values())
        return self._leaderless or 2 * up <= len(self.replicas)

    # ---- connections -----------------------------------------------------------------------

    def accept(
        self, link: Link, session: int, seen: int, timeout: float, answer: Callable[[int], None]
    ) -> None:
        """Connect a client; ``answer`` gets its session, 0 if that is over, -1 for a refusal."""
        replica = link.replica
        if self.away or not replica.up or replica.applied < seen:
            link.tell("refused", lambda: answer(-1))
            return
        if session == 0:
            self._next_session += 1
            made = ServerSession(self._next_session, timeout, self.loop.now, link.machine)
            self.sessions[made.number] = made
            number = self.commit(BeginSession(made.number), made.who)
            self.loop.at(self.loop.now + timeout, self._expire_if_silent, made)
            replica.when(number, partial(self._bind, link, made, answer))
            return
        known = self.sessions.get(session)
        if known is None or not known.alive:
            link.tell("expired", lambda: answer(0))
            return
        if known.connection is not None:
            known.connection.cut()  # the session has moved
        self._bind(link, known, answer)

    def _bind(self, link: Link, session: ServerSession, answer: Callable[[int], None]) -> None:
        if not link.alive or not session.alive or not link.replica.up:
            return
        session.heard_at = self.loop.now
        session.connection, link.session = link, session
        link.tell("connected", lambda: answer(session.number))

    # ---- requests --------------------------------------------------------------------------

    def serve(self, link: Link, request: Request, respond: Respond) -> None:
        place = f"{link.machine}:{request.kind}"
        assert link.session is not None
        if name := self.faults.strikes("zk-drop-before", place):
            self.trace.add(link.replica.name, f"drops {link.machine} before {request}", name)
            link.cut()
            return
        if name := self.faults.strikes("zk-expire-before", place):
            self.trace.add(link.replica.name, f"ends {link.machine}'s session at {request}", name)
            self.expire(link.session)
        if name := self.faults.strikes("zk-slow", place):
            seconds = self.faults.random(name).choice((0.3, 1.0, 2.5, 5.0))
            self.trace.add(link.replica.name, f"takes {seconds} s for {request}", name)
            self.loop.at(self.loop.now + seconds, self._serve, link, request, respond, place)
            return
        self._serve(link, request, respond, place)

    def _serve(self, link: Link, request: Request, respond: Respond, place: str) -> None:
        if request.kind in _READS:
            if link.alive:
                respond(self._read(link, request))
            return
        delay = _COMMIT_SECONDS * (0.5 + self.rng.random())
        self.loop.at(self.loop.now + delay, self._write, link, request, respond, place)

    def _read(self, link: Link, request: Request) -> Reply:
        replica = link.replica
        value: Any = None
        error: RefusedError | None = None
        try:
            match request.kind:
                case "exists":
                    value = replica.tree.znodes.get(request.path)
                case "get" | "acl":
                    value = replica.tree.get(request.path)
                case _:
                    value = replica.tree.children(request.path)
        except RefusedError as refusal:
            error = refusal
        if request.watch and (error is None or request.kind == "exists"):
            watches = replica.child_watches if request.kind == "children" else replica.watches
            watches.setdefault(request.path, {})[link] = None
        return Reply(value, error, replica.applied)

    def _write(self, link: Link, request: Request, respond: Respond, place: str) -> None:
        session = link.session
        assert session is not None
        if self.away:
            return  # the leader went with it
        number, value, error = len(self.history), None, None
        try:
            if not session.alive:
                raise refuse(Refusal.EXPIRED)
            change, value = self._planned(session, request)
            number = self.commit(change, session.who)
        except RefusedError as refusal:
            error = refusal
        if request.kind == "close":
            session.alive = False
        if name := self.faults.strikes("zk-drop-after", place):
            self.trace.add(link.replica.name, f"drops {link.machine} after {request}", name)
            link.cut()
        if session.alive and (name := self.faults.strikes("zk-expire-after", place)):
            self.trace.add(
                link.replica.name, f"ends {link.machine}'s session after {request}", name
            )
            self.expire(session)
        link.replica.when(number, partial(self._done, link, respond, value, error, number))

    def _done(
        self,
        link: Link,
        respond: Respond,
        value: Any,  # noqa: ANN401
        error: RefusedError | None,
        number: int,
    ) -> None:
        if link.alive:
            respond(Reply(value, error, max(number, link.replica.applied)))

    def _planned(self, session: ServerSession, request: Request) -> tuple[Change, Any]:
        tree, path = self.head, request.path
        match request.kind:
            case "create":
                owner = session.number if request.ephemeral else 0
                made = tree.plan_create(
                    path, request.data, owner, request.acl, sequence=request.sequence
                )
                return made, (made.path,)
            case "set":
                version = tree.get(path).version + 1
                return tree.plan_set(path, request.data, request.version), version
            case "delete":
                return tree.plan_delete(path, request.version), None
            case "set-acl":
                return tree.plan_set_acl(path, request.acl, request.version), None
            case "multi":
                return tree.plan_together(request.parts, session.number, request.acl), None
            case "close":
                return EndSession(session.number), None
            case _:
                raise AssertionError(request.kind)

    def commit(self, change: Change, who: str) -> int:
        """Put a change at the end of the history, and send it to the replicas."""
        self.history.append(change)
        number = len(self.history)
        self.head.apply(change, number)
        for replica in self.replicas.values():
            delay = 0.001 * self.rng.random()
            due = max(self.loop.now + delay, replica.next_apply, replica.lags_until)
            replica.next_apply = due
            self.loop.at(due, replica.catch_up, self.history, number)
        for part in change.parts if isinstance(change, Together) else (change,):
            self.on_commit(part, number, who)
        return number

    # ---- sessions --------------------------------------------------------------------------

    def expire(self, session: ServerSession) -> None:
        if not session.alive:
            return
        session.alive = False
        number = self.commit(EndSession(session.number), session.who)
        link = session.connection
        if link is not None:
            link.replica.when(number, link.cut)

    def _expire_if_silent(self, session: ServerSession) -> None:
        if not session.alive:
            return
        due = session.heard_at + session.timeout
        if self.loop.now < due:
            self.loop.at(due, self._expire_if_silent, session)
        elif self.away:
            self.loop.at(self.loop.now + 0.5, self._expire_if_silent, session)
        else:
            self.trace.add("zk", f"{session.who}'s session is silent for too long")
            self.expire(session)

    # ---- what befalls the servers ----------------------------------------------------------

    def go_away(self) -> None:
        """Lose the majority: connections end, nothing is written, no session expires."""
        self._leaderless = True
        self._drop_all(self.replicas.values())

    def come_back(self) -> None:
        """Let every server work, as far as it is up."""
        was_away, self._leaderless = self.away, False
        self._lead_again(was_away)

    def restart(self, name: str, seconds: float) -> None:
        """Stop one server for a while; the majority ends if another is down (seed 206857)."""
        replica = self.replicas[name]
        replica.up = False
        self._drop_all(self.replicas.values() if self.away else (replica,))
        self.loop.at(self.loop.now + seconds, self._up, replica)

    def heal(self) -> None:
        """Let all of them work, and none lag (seeds 49027923, 49032475)."""
        was_away, self._leaderless = self.away, False
        for replica in self.replicas.values():
            replica.up = True
            replica.lags_until = replica.next_apply = 0.0
            replica.catch_up(self.history, len(self.history))
        self._lead_again(was_away)

    def owner_of(self, path: str) -> ServerSession | None:
        """Return the session that owns this ephemeral znode, at the leader."""
        znode = self.head.znodes.get(path)
        return None if znode is None else self.sessions.get(znode.owner)

    def shows_as_own(self, session: int, path: str) -> bool:
        """Return whether the server that a session is connected to shows it this as its own."""
        known = self.sessions.get(session)
        if known is None or known.connection is None:
            return False
        znode = known.connection.replica.tree.znodes.get(path)
        return znode is not None and znode.owner == session

    def znode(self, path: str) -> Znode | None:
        return self.head.znodes.get(path)

    def _up(self, replica: Replica) -> None:
        was_away, replica.up = self.away, True
        self._lead_again(was_away)

    def _lead_again(self, was_away: bool) -> None:
        """Give every session its full time if a majority, and so a leader, is there again."""
        if was_away and not self.away:
            for session in self.sessions.values():
                session.heard_at = max(session.heard_at, self.loop.now)

    def _drop_all(self, replicas: Iterable[Replica]) -> None:
        gone = [*replicas]
        for session in self.sessions.values():
            link = session.connection
            if link is not None and link.replica in gone:
                link.cut()
