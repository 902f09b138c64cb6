"""A controller's second session: it watches the notices, and registers the controller.

It is not the election's session, which ends whenever the election is left: a controller that is out
must hear of a resume, too, and be seen.  Every change that a watch reports has all notices read
anew; they are few.  While ZooKeeper is away, what was read last stands.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeVar

import structlog

from ha.elector.zookeeper.breadcrumb import decode
from ha.elector.zookeeper.client import Session, SessionFactory
from ha.elector.zookeeper.errors import BadBreadcrumb, ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.lock_check import untrusted_znodes
from ha.elector.zookeeper.outcome import (
    Outcome,
    Refusal,
    Refused,
    SessionState,
    ZnodeFacts,
    value_of,
)
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.notices.expiry import Expiry
from ha.notices.model import (
    BadNotice,
    Member,
    decode_drain,
    decode_member,
    decode_pause,
    encode_member,
    time_text,
)
from ha.notices.seen import FREE, Notices
from ha.notices.store import (
    Noted,
    clear_drain,
    clear_pause,
    drains_path,
    members_path,
    pause_path,
    second_zkfcs_path,
    steering_paths,
)

log = structlog.get_logger()

T = TypeVar("T")

POLL_SECONDS: Final = 10.0
"""A second way to the truth, should a watch get lost."""
RETRY_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 1.0
CREATE_ATTEMPTS: Final = 5


def utc_now() -> datetime:
    """Return the wall clock, by which notices expire: they are written on other machines."""
    return datetime.now(UTC)


class Board:
    """The notices of one nameservice, for the controller of one NameNode."""

    def __init__(
        self,
        settings: ZooKeeperSettings,
        namenode: str,
        tell: Callable[[Notices], None],
        *,
        clock: Callable[[], datetime] = utc_now,
        open_session: SessionFactory = Session,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """Call back on the loop with every change and at the first reading."""
        self._settings = settings
        self._namenode = namenode
        self._tell = tell
        self._clock = clock
        self._open_session = open_session
        self._poll_seconds = poll_seconds
        self._hurry = asyncio.Event()
        self._connected = False
        self._over = False
        self._own: Member | None = None
        self._shown = False
        """Whether a member znode of our session is there, as far as we know."""
        self._namesake = ""
        self._earlier_sessions: set[int] = set()
        self._complaints: dict[str, str] = {}
        self._expiry = Expiry(namenode)
        self.notices: Notices | None = None
        """As last read; None before the first time."""
        self.connected_session: Session | None = None
        """For others that must write in the same session; None while ZooKeeper is away."""

    def publish(self, member: Member) -> None:
        """Show this of our controller from now on."""
        if member != self._own:
            self._own = member
            self._hurry.set()

    async def run(self) -> None:
        """Work until cancelled; then our member is taken away at once."""
        while True:
            await self._one_session()
            await asyncio.sleep(RETRY_SECONDS)

    # -- one session -------------------------------------------------------------------------

    async def _one_session(self) -> None:
        self._over = self._connected = self._shown = False
        self._namesake = ""
        session = self._open_session(
            self._settings, self._state_changed, lambda _: self._hurry.set()
        )
        session.open()
        try:
            while not self._over:
                self._hurry.clear()
                wait_seconds = self._poll_seconds
                if self._connected:
                    self.connected_session = session
                    wait_seconds = await self._read_and_show(session)
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_seconds):
                        await self._hurry.wait()
        finally:
            self.connected_session = None
            if session.session_id is not None:
                self._earlier_sessions.add(session.session_id)
            await session.close(deadline_seconds=CLOSE_SECONDS)

    def _state_changed(self, state: SessionState, reason: str) -> None:
        self._connected = state is SessionState.CONNECTED
        self._over = state in (SessionState.EXPIRED, SessionState.REFUSED)
        if not self._connected:
            self.connected_session = None
            log.warning("board.session", state=state.value, reason=reason)
        self._hurry.set()

    async def _read_and_show(self, session: Session) -> float:
        """Return how many seconds to wait for the next time, if nothing happens."""
        # What we show first: a peer's rank may wait for it.
        shown = True
        try:
            await self._show(session)
            self._complaints.pop("member", None)
        except ZooKeeperUnavailable as failure:
            # Whether another controller is shown in our place is not known.  Nothing is reported
            # then: a controller that has received no notices yet does not stand.
            self._complain("member", str(failure))
            return RETRY_SECONDS
        except ZooKeeperRefused as failure:
            self._complain("member", str(failure))
            shown = False
        read = await self._try("notices", self._read(session))
        if read is None:
            return RETRY_SECONDS
        notices, wait_seconds = read
        if notices != self.notices:
            log.info(
                "board.changed",
                namenode=self._namenode,
                pause=None if notices.pause is None else notices.pause.reason,
                drain=None if notices.drain is None else notices.drain.reason,
                members={one.namenode: one.out_because or one.state for one in notices.members},
                lock_holder=notices.lock_holder,
                namesake=notices.namesake or None,
                untrusted=notices.untrusted,
            )
            self.notices = notices
            self._tell(notices)
        return wait_seconds if shown else RETRY_SECONDS

    async def _try(self, what: str, work: Awaitable[T]) -> T | None:
        try:
            done = await work
        except (ZooKeeperUnavailable, ZooKeeperRefused) as failure:
            self._complain(what, str(failure))
            return None
        self._complaints.pop(what, None)
        return done

    # -- our member --------------------------------------------------------------------------

    async def _show(self, session: Session) -> None:
        """Create our member znode, or find out which other controller has it.

        The member is made by a create and never by a write over another's: of two controllers
        that start at once, one has it.

        See docs/reference/zkfc.md#two-controllers-of-one-namenode.
        """
        own = self._own
        if own is None:
            return
        path = f"{members_path(self._settings)}/{self._namenode}"
        for _ in range(CREATE_ATTEMPTS):
            outcome = await session.read(path)
            if not _is(outcome, Refusal.NO_NODE):
                data, facts = value_of(outcome, f"read {path}")
                if facts.ours:
                    self._shown = True
                    # Not what we have written last: of a write that found no answer, the effect is
                    # unknown.
                    if (wanted := encode_member(own)) != data:
                        written = await session.write(path, wanted, version=facts.version)
                        value_of(written, f"write {path}")
                    await self._stand_forth(session)
                    return
                namesake = self._other_controller(own, data, facts)
                if namesake is not None:
                    await self._stand_back(session, own, namesake)
                    return
                deleted = await session.delete(path, version=facts.version)
                if not _is(deleted, Refusal.NO_NODE) and not _is(deleted, Refusal.BAD_VERSION):
                    value_of(deleted, f"delete {path}")
            if await self._created(session, path, encode_member(own)):
                self._shown = True
                await self._stand_forth(session)
                return
        raise ZooKeeperUnavailable(f"{path} keeps appearing and vanishing; who else writes there?")

    async def _created(self, session: Session, path: str, own: bytes) -> bool:
        """Create the znode; False if another session was faster."""
        above = path.rpartition("/")[0]
        created = await session.create(path, own, ephemeral=True)
        if _is(created, Refusal.NO_NODE):
            if not _is(made := await session.create(above), Refusal.NODE_EXISTS):
                value_of(made, f"create {above}")
            created = await session.create(path, own, ephemeral=True)
        if _is(created, Refusal.NODE_EXISTS):
            return False
        value_of(created, f"create {path}")
        return True

    def _other_controller(self, own: Member, data: bytes, facts: ZnodeFacts) -> Member | None:
        """Return the other controller that is shown in our place.

        None: it is our earlier session or process, whose end we need not wait for.
        """
        if facts.owner in self._earlier_sessions:
            return None
        try:
            other = decode_member(data)
        except BadNotice:
            return None
        if other.zkfc_rpc == own.zkfc_rpc and other.host in ("", own.host):
            return None  # its port is ours now, so that process is gone
        return other

    async def _stand_forth(self, session: Session) -> None:
        if self._namesake:
            log.info("board.namesake.gone", namenode=self._namenode, was=self._namesake)
            self._namesake = ""
            await session.delete(self._stood_back_path(session))

    async def _stand_back(self, session: Session, own: Member, namesake: Member) -> None:
        """Keep out of the election while that one's session lives, and be seen to."""
        self._shown = False
        text = (
            f"another zkfc of {self._namenode} runs: process {namesake.pid} on "
            f"{namesake.host or 'an unnamed host'}, at {namesake.zkfc_rpc}, since "
            f"{time_text(namesake.started)}; only one may, see dfs.ha.namenode.id on both hosts"
        )
        if text == self._namesake:
            return
        self._namesake = text
        log.warning(
            "board.namesake",
            namenode=self._namenode,
            pid=namesake.pid,
            host=namesake.host,
            zkfc_rpc=namesake.zkfc_rpc,
            since=time_text(namesake.started),
            # One that is dead holds its place no longer than this.
            session_timeout_seconds=session.timeout_seconds,
        )
        path = self._stood_back_path(session)
        try:
            await self._created(session, path, encode_member(own))
        except (ZooKeeperRefused, ZooKeeperUnavailable) as failure:
            self._complain(path, str(failure))  # it is for the eyes of operators alone

    def _stood_back_path(self, session: Session) -> str:
        number = (session.session_id or 0) & ((1 << 64) - 1)
        return f"{second_zkfcs_path(self._settings)}/{self._namenode}-{number:x}"

    # -- the notices -------------------------------------------------------------------------

    async def _read(self, session: Session) -> tuple[Notices, float]:
        settings = self._settings
        own_drain = f"{drains_path(settings)}/{self._namenode}"
        pause, drain, members, (holder, lock_made), doubted = await asyncio.gather(
            self._one(session, pause_path(settings), decode_pause),
            self._one(session, own_drain, decode_drain),
            self._members(session),
            self._holder(session),
            self._find_untrusted(session, own_drain),
        )
        # A stranger's must not stop failover; the lock and others' members are respected.
        pause = None if doubted.keys() & {settings.scope, pause_path(settings)} else pause
        if doubted.keys() & {settings.scope, drains_path(settings), own_drain}:
            drain = None
        member = f"{members_path(settings)}/{self._namenode}" if self._shown else ""
        judge = partial(self._expiry.in_force, session, self._clock(), member)
        paused, pause_wait = await judge(pause, partial(clear_pause, session, settings))
        clear_own = partial(clear_drain, session, settings, self._namenode)
        drained, drain_wait = await judge(drain, clear_own)
        notices = Notices(
            pause=paused,
            drain=drained,
            members=members,
            lock_holder=holder,
            lock_made=lock_made,
            namesake=self._namesake,
            untrusted=tuple(f"{path}: {why}" for path, why in sorted(doubted.items())),
        )
        return notices, min(self._poll_seconds, pause_wait, drain_wait)

    async def _find_untrusted(self, session: Session, own_drain: str) -> Mapping[str, str]:
        """Return why strangers could have written what steers the election, by path."""
        member = f"{members_path(self._settings)}/{self._namenode}" if self._shown else ""
        paths = (*steering_paths(self._settings), own_drain)
        return await untrusted_znodes(session, self._settings, *paths, own=member)

    async def _one(
        self, session: Session, path: str, decode: Callable[[bytes], T]
    ) -> Noted[T] | None:
        """Return a notice if it can be read; the look leaves a watch, there or not there."""
        looked, outcome = await asyncio.gather(session.look(path, watch=True), session.read(path))
        if _is(outcome, Refusal.NO_RIGHTS) or _is(looked, Refusal.NO_RIGHTS):
            # The election will say that, too; it must not wait for what we shall never be let see.
            self._complain(path, "ZooKeeper does not let us read it; see ha.zookeeper.auth")
            return None
        value_of(looked, f"look at {path}")
        if _is(outcome, Refusal.NO_NODE):
            self._complaints.pop(path, None)
            return None
        data, facts = value_of(outcome, f"read {path}")
        try:
            notice = decode(data)
        except BadNotice as failure:
            # Not obeyed: it is unknown for how long it would hold.
            self._complain(path, str(failure))
            return None
        self._complaints.pop(path, None)
        return Noted(notice, facts.version, facts.written_at)

    async def _members(self, session: Session) -> tuple[Member, ...]:
        path = members_path(self._settings)
        outcome = await session.children(path, watch=True)
        names: tuple[str, ...] = ()
        if not _is(outcome, Refusal.NO_NODE) and not _is(outcome, Refusal.NO_RIGHTS):
            names = value_of(outcome, f"list {path}")
        if self._shown and self._namenode not in names:
            self._shown = False  # somebody has deleted it
            self._hurry.set()
        others = sorted(set(names) - {self._namenode})
        found = await asyncio.gather(
            *(self._one(session, f"{path}/{name}", decode_member) for name in others)
        )
        return tuple(member.value for member in found if member is not None)

    async def _holder(self, session: Session) -> tuple[str | None, int]:
        """Return the holder of the lock, and the transaction that made it."""
        path = self._settings.lock
        looked, outcome = await asyncio.gather(session.look(path, watch=True), session.read(path))
        if _is(outcome, Refusal.NO_RIGHTS) or _is(looked, Refusal.NO_RIGHTS):
            return None, 0
        value_of(looked, f"look at {path}")
        if _is(outcome, Refusal.NO_NODE):
            return FREE, 0
        data, facts = value_of(outcome, f"read {path}")
        with suppress(BadBreadcrumb):
            return decode(data).namenode, facts.written_by
        return None, facts.written_by

    def _complain(self, about: str, text: str) -> None:
        if self._complaints.get(about) != text:
            self._complaints[about] = text
            log.warning("board.trouble", about=about, reason=text)


def _is(outcome: Outcome[object], why: Refusal) -> bool:
    return isinstance(outcome, Refused) and outcome.why is why
