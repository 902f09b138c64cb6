"""What each end of a request becomes for the election, and which session goes on with a ticket."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from ha.elector import actions
from ha.elector import events as elector_events
from ha.elector.keeper import KazooKeeper
from ha.elector.lock_keeper import LockKeeper
from ha.elector.model import AttemptNumber, Breadcrumb, Removal, SessionNumber, Term
from ha.elector.zookeeper import outcome
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.outcome import Outcome
from ha.elector.zookeeper.session_ticket import SessionTicket
from ha.elector.zookeeper.settings import ZooKeeperSettings
from tests.log_lines import captured
from tests.namenode_sim.term.test_tailer import on_virtual_time

S1, S2, A = SessionNumber(1), SessionNumber(2), AttemptNumber(1)
SETTINGS = ZooKeeperSettings(
    hosts="zk:1", session_timeout_seconds=6.0, scope="/hadoop-ha/ns1",
    acl=parse_acl("world:anyone:rwcda"),
)  # fmt: skip
TICKET = SessionTicket(99, b"word")
LATE, LOST = outcome.Unknown(outcome.Doubt.LATE), outcome.Unknown(outcome.Doubt.LOST)
GONE, TAKEN, EXPIRED, DENIED, CHANGED = (
    outcome.Refused(why, why.name)
    for why in (
        outcome.Refusal.NO_NODE,
        outcome.Refusal.NODE_EXISTS,
        outcome.Refusal.EXPIRED,
        outcome.Refusal.NO_RIGHTS,
        outcome.Refusal.BAD_VERSION,
    )
)
NEVER: Any = None
"""The end of a request that is not answered."""
OURS = outcome.Done(outcome.ZnodeFacts(version=0, ours=True, written_by=50))
THEIRS = outcome.Done(outcome.ZnodeFacts(version=0, ours=False, written_by=50))
COUNT = outcome.Done(outcome.ZnodeFacts(version=3, ours=False, written_by=50))
LATER_COUNT = outcome.Done(outcome.ZnodeFacts(version=4, ours=False, written_by=51))


@dataclass
class Server:
    """Sessions that are open at once, and whose requests end in turn as the test says."""

    answers: list[Outcome[Any]] = field(default_factory=list)
    confirms: bool = True
    states: Sequence[outcome.SessionState] = (outcome.SessionState.CONNECTED,)
    """What each session reports of itself as it opens."""
    asked: list[str] = field(default_factory=list)
    tickets: list[SessionTicket | None] = field(default_factory=list)
    lines: list["Line"] = field(default_factory=list)

    def open_session(
        self,
        settings: ZooKeeperSettings,
        on_state: Callable[[outcome.SessionState, str], None],
        on_change: Callable[[bool], None] = lambda _: None,
        *,
        ticket: SessionTicket | None = None,
    ) -> Session:
        self.tickets.append(ticket)
        own = ticket or SessionTicket(len(self.tickets), b"word")
        self.lines.append(Line(self, on_state, own))
        return cast(Session, self.lines[-1])


@dataclass
class Line:
    """One of its sessions."""

    server: Server
    on_state: Callable[[outcome.SessionState, str], None] = lambda _state, _why: None
    ticket: SessionTicket | None = None
    last_contact: float | None = None
    trouble: str = ""

    def open(self) -> None:
        for state in self.server.states:
            self.on_state(state, "a reason")

    async def close(self, *, deadline_seconds: float) -> bool:
        self.server.asked.append("close")
        return self.server.confirms

    def look(self, path: str, *, watch: bool = False) -> "asyncio.Future[Outcome[Any]]":
        return self._answered("look")

    def read(self, path: str) -> "asyncio.Future[Outcome[Any]]":
        return self._answered("read")

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False
    ) -> "asyncio.Future[Outcome[Any]]":
        return self._answered("create that goes with us" if ephemeral else "create")

    def write(self, path: str, data: bytes, *, version: int) -> "asyncio.Future[Outcome[Any]]":
        return self._answered(f"write {version}")

    def delete(self, path: str, *, version: int = -1) -> "asyncio.Future[Outcome[Any]]":
        return self._answered(f"delete {version}")

    def children(self, path: str) -> "asyncio.Future[Outcome[Any]]":
        return self._answered(f"list {path}")

    def transact(self, parts: Sequence[object]) -> "asyncio.Future[Outcome[Any]]":
        return self._answered("transact")

    def _answered(self, request: str) -> "asyncio.Future[Outcome[Any]]":
        self.server.asked.append(request)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Outcome[Any]] = loop.create_future()
        found: Any = self.server.answers.pop(0)
        if found is NEVER:
            return answer
        answered = answer.set_exception if isinstance(found, Exception) else answer.set_result
        loop.call_soon(answered, found)
        return answer


async def ended() -> None:
    """Let all that was begun end: nothing here waits for anything else."""
    for _ in range(20):
        await asyncio.sleep(0)


LOCK, WATCH, READ = (
    actions.CreateLock(S1, b"nn1"),
    actions.WatchLock(S1),
    actions.ReadBreadcrumb(S1, A),
)
NEW, OVER = actions.WriteBreadcrumb(S1, A, b"nn1", None), actions.WriteBreadcrumb(S1, A, b"nn1", 3)
CREATE, LOOK = "create the lock", "look at the lock"
CRUMB = (b"nn2", outcome.ZnodeFacts(version=3, ours=False, written_by=40))
AT = "at /hadoop-ha/ns1/ActiveStandbyElectorLock; "
NO_PARENT = (
    f"no node (NO_NODE) {AT}its parent was deleted: run zkfc --format-zk once, then start all zkfcs"
)
NO_RIGHTS = (
    f"no rights (NO_RIGHTS) {AT}see ha.zookeeper.auth, and ha.zookeeper.acl of who formatted"
)


@pytest.mark.parametrize(
    ("action", "answers", "event"),
    [
        (LOCK, [outcome.Done(None)], elector_events.LockCreated(S1)),
        (LOCK, [TAKEN], elector_events.LockTaken(S1)),
        (LOCK, [GONE, outcome.Done(None), outcome.Done(None)], elector_events.LockCreated(S1)),
        (LOCK, [GONE, TAKEN, outcome.Done(None)], elector_events.LockCreated(S1)),
        (LOCK, [GONE, DENIED, outcome.Done(None)], elector_events.LockCreated(S1)),
        (LOCK, [DENIED, TAKEN], elector_events.LockTaken(S1)),
        (LOCK, [GONE, GONE], elector_events.RequestRefused(S1, CREATE, NO_PARENT)),
        (LOCK, [DENIED, DENIED], elector_events.RequestRefused(S1, CREATE, NO_RIGHTS)),
        (LOCK, [EXPIRED], None),
        (LOCK, [GONE, EXPIRED], None),
        (LOCK, [GONE, LATE], elector_events.OutcomeUnknown(S1, CREATE)),
        (LOCK, [LATE], elector_events.OutcomeUnknown(S1, CREATE)),
        (LOCK, [LOST], None),
        (WATCH, [outcome.Done(None)], elector_events.LockGone(S1)),
        (WATCH, [DENIED], elector_events.RequestRefused(S1, LOOK, NO_RIGHTS)),
        (WATCH, [EXPIRED], None),
        (WATCH, [LATE], elector_events.LookUnanswered(S1)),
        (
            READ,
            [outcome.Done(CRUMB), GONE],
            elector_events.BreadcrumbRead(S1, A, Breadcrumb(b"nn2", 3, Term.UNKNOWN)),
        ),
        (READ, [GONE, GONE], elector_events.BreadcrumbRead(S1, A, None)),
        (
            READ,
            [DENIED, GONE],
            elector_events.TakeoverFailed(A, "cannot read the breadcrumb: no rights"),
        ),
        (READ, [EXPIRED, EXPIRED], None),
        (READ, [LATE, LATE], elector_events.OutcomeUnknown(S1, "read the breadcrumb")),
        (READ, [LOST, LOST], None),
        (NEW, [outcome.Done(None)], elector_events.BreadcrumbWritten(S1, A, 0)),
        (OVER, [outcome.Done(4)], elector_events.BreadcrumbWritten(S1, A, 4)),
        (
            NEW,
            [TAKEN],
            elector_events.TakeoverFailed(A, "cannot write the breadcrumb: node exists"),
        ),
        (
            OVER,
            [CHANGED],
            elector_events.TakeoverFailed(A, "cannot write the breadcrumb: version changed"),
        ),
        (OVER, [EXPIRED], None),
        (OVER, [LATE], elector_events.OutcomeUnknown(S1, "write the breadcrumb")),
        (OVER, [LOST], None),
    ],
)
async def test_an_answer_becomes_one_event_or_none_where_the_sessions_own_tells_it(
    action: actions.ZooKeeperAction, answers: list[Outcome[Any]], event: elector_events.Event | None
) -> None:
    server, events = Server([*answers]), list[elector_events.Event]()
    keeper = KazooKeeper(SETTINGS, events.append, open_session=server.open_session)
    keeper.perform(actions.OpenSession(S1))
    keeper.perform(action)
    await ended()
    assert server.answers == []
    assert events == [elector_events.SessionOpened(S1), *([] if event is None else [event])]


@pytest.mark.parametrize("action", [LOCK, READ])
async def test_a_bug_in_a_request_is_logged_and_the_election_goes_on(
    action: actions.ZooKeeperAction,
) -> None:
    server, events = Server([cast(Any, KeyError("planted"))] * 2), list[elector_events.Event]()
    keeper = KazooKeeper(SETTINGS, events.append, open_session=server.open_session)
    keeper.perform(actions.OpenSession(S1))
    with captured("elector.request.crashed") as lines:
        keeper.perform(action)
        await ended()
    assert [line["log_level"] for line in lines] == ["error"]
    assert isinstance(events[-1], elector_events.OutcomeUnknown)


async def test_a_lock_without_a_right_to_count_it_ends_with_its_session_too() -> None:
    server = Server([DENIED, outcome.Done(None)])
    keeper = KazooKeeper(SETTINGS, lambda _: None, open_session=server.open_session)
    keeper.perform(actions.OpenSession(S1))
    keeper.perform(LOCK)
    await ended()
    assert server.asked == ["transact", "create that goes with us"]


async def test_no_breadcrumb_is_deleted_but_the_one_that_we_wrote() -> None:
    server = Server([CHANGED])
    keeper = KazooKeeper(SETTINGS, lambda _: None, open_session=server.open_session)
    keeper.perform(actions.OpenSession(S1))
    keeper.perform(actions.DeleteBreadcrumb(S1, 3))
    await ended()
    assert server.asked == ["delete 3"]


async def test_the_last_contact_outlives_its_session() -> None:
    server = Server()
    keeper = KazooKeeper(SETTINGS, lambda _: None, open_session=server.open_session)
    keeper.perform(actions.OpenSession(S1))
    server.lines[0].last_contact = 5.0
    assert keeper.last_contact == 5.0
    keeper.perform(actions.CloseSession(S1))
    keeper.perform(actions.OpenSession(S2))
    assert keeper.last_contact == 5.0
    server.lines[1].last_contact = 6.0
    assert keeper.last_contact == 6.0
    await keeper.wait_idle()


@pytest.mark.parametrize(
    ("answers", "asked", "released"),
    [
        ([COUNT, OURS, outcome.Done(None)], "transact", True),
        ([COUNT, OURS, CHANGED], "transact", False),
        ([COUNT, OURS, LATE], "transact", False),
        ([LATER_COUNT, OURS, outcome.Done(None)], "delete -1", True),
        ([outcome.Done(None), OURS, outcome.Done(None)], "delete -1", True),
        ([LATE, OURS, outcome.Done(None)], "delete -1", True),
        ([COUNT, THEIRS], "", False),
        ([COUNT, outcome.Done(None)], "", False),
        ([COUNT, LATE], "", False),
    ],
)
async def test_a_lock_is_given_up_before_the_session_ends_and_told_where_that_is_known(
    answers: list[Outcome[Any]], asked: str, released: bool
) -> None:
    server, told = Server([*answers]), list[str]()
    keeper = KazooKeeper(
        SETTINGS, lambda _: None, on_release=lambda: told.append("released"),
        open_session=server.open_session,
    )  # fmt: skip
    for action in (actions.OpenSession(S1), actions.ReleaseLock(S1), actions.CloseSession(S1)):
        keeper.perform(action)
    await keeper.wait_idle()
    assert server.asked == ["look", "look", *([asked] if asked else []), "close"]
    assert told == (["released"] if released else [])


@pytest.mark.parametrize(
    ("answers", "removal"),
    [
        ([COUNT, THEIRS, outcome.Done(None)], Removal.REMOVED),
        ([COUNT, THEIRS, CHANGED], Removal.NOT_THAT_LOCK),
        ([COUNT, THEIRS, GONE], Removal.NOT_THAT_LOCK),
        ([COUNT, THEIRS, DENIED], Removal.FORBIDDEN),
        ([COUNT, THEIRS, EXPIRED], Removal.UNKNOWN),
        ([COUNT, THEIRS, LATE], Removal.UNKNOWN),
        ([COUNT, OURS], Removal.NOT_THAT_LOCK),
        ([COUNT, outcome.Done(None)], Removal.NOT_THAT_LOCK),
        ([LATER_COUNT, THEIRS], Removal.UNCOUNTED),
        ([outcome.Done(None), THEIRS], Removal.UNCOUNTED),
        ([LATE, THEIRS], Removal.TOO_LATE),
        ([COUNT, LATE], Removal.TOO_LATE),
    ],
)
async def test_anothers_lock_is_removed_only_where_all_is_known(
    answers: list[Outcome[Any]], removal: Removal
) -> None:
    server = Server([*answers])
    session = cast(Session, Line(server))
    assert await LockKeeper(SETTINGS).remove(session, 50) is removal
    assert server.answers == []


async def test_nothing_is_removed_after_a_look_that_took_long() -> None:
    """Distrust what spoke against the owner: it is old by then."""
    server, loop = Server([COUNT, THEIRS]), asyncio.get_running_loop()
    time = loop.time
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "time", lambda: time() + (0.0 if server.answers else 0.31))
        removal = await LockKeeper(SETTINGS).remove(cast(Session, Line(server)), 50)
    assert removal is Removal.TOO_LATE
    # So is a bar that was seen during the look, and not before it.
    server.answers = [COUNT, THEIRS]
    session, still = cast(Session, Line(server)), lambda: bool(server.answers)
    assert await LockKeeper(SETTINGS).remove(session, 50, still) is Removal.TOO_LATE


async def test_a_killed_controllers_session_is_gone_on_with_once() -> None:
    """Use the ticket once: again, and the session would end as an unwanted one, with our lock."""
    server = Server()
    keeper = KazooKeeper(SETTINGS, lambda _: None, ticket=TICKET, open_session=server.open_session)
    inherits = [keeper.inherits]
    keeper.perform(actions.OpenSession(S1))
    assert [*inherits, keeper.inherits] == [True, False]
    keeper.perform(actions.CloseSession(S1))
    keeper.perform(actions.OpenSession(S2))
    await keeper.wait_idle()
    await keeper.close_inherited()
    assert server.tickets == [TICKET, None]
    assert server.asked == ["close"]


async def test_a_killed_controllers_session_that_nobody_goes_on_with_is_ended_once() -> None:
    server = Server()
    keeper = KazooKeeper(SETTINGS, lambda _: None, ticket=TICKET, open_session=server.open_session)
    await keeper.close_inherited()
    await keeper.close_inherited()
    assert server.asked == ["close"]
    keeper.perform(actions.OpenSession(S1))
    assert server.tickets == [TICKET, None]


def test_a_killed_controllers_session_is_ended_though_no_server_has_taken_us() -> None:
    server = Server(states=())
    keeper = KazooKeeper(SETTINGS, lambda _: None, ticket=TICKET, open_session=server.open_session)
    on_virtual_time(keeper.close_inherited())
    assert server.asked == ["close"]


@pytest.mark.parametrize(
    ("confirms", "another", "forgotten"),
    [(True, False, True), (False, False, False), (True, True, False)],
    ids=["ended", "not confirmed", "another is open"],
)
async def test_a_ticket_is_forgotten_when_no_session_is_left(
    confirms: bool, another: bool, forgotten: bool
) -> None:
    server, kept = Server(confirms=confirms), list[SessionTicket | None]()
    keeper = KazooKeeper(
        SETTINGS, lambda _: None, ticket=TICKET, keep_ticket=kept.append,
        open_session=server.open_session,
    )  # fmt: skip
    keeper.perform(actions.OpenSession(S1))
    keeper.perform(actions.CloseSession(S1))
    if another:
        keeper.perform(actions.OpenSession(S2))
    await keeper.wait_idle()
    assert TICKET in kept
    assert (kept[-1] is None) is forgotten
