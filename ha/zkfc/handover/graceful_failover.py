"""A planned hand-over to our NameNode: the active cedes, we win, everybody comes back.

Hadoop's gracefulFailover without its faults (docs/reference/zkfc.md#planned-hand-over): attempts
are compared by number and never by clock; only the active must cede, other controllers may be down;
and whoever was asked to stand back is let go in every outcome, which never turns a success into a
failure.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from ha.conf.topology import HostPort
from ha.elector.model import AttemptNumber
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo
from ha.elector.zookeeper.errors import BadBreadcrumb, ZooKeeperRefused, ZooKeeperUnavailable
from ha.notices.model import PhaseDuration
from ha.record import dataclass
from ha.rpc.client import Connection
from ha.rpc.errors import ConnectionLost
from ha.service.client import ServiceClient
from ha.service.errors import CANNOT_TELL_ACTIVE, ServiceError, ServiceFailed, ServiceUnreachable
from ha.service.model import ServiceState
from ha.service.zkfc_client import ZkfcClient
from ha.zkfc.record.attempts import Attempts
from ha.zkfc.record.takeover_record import Asked, AttemptRecord
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.surroundings.surroundings import REAL_WORLD, Surroundings

log = structlog.get_logger()

CONNECT_SECONDS = 2.0
PEER_PATIENCE_SECONDS = 2.0
"""How long other standbys' controllers may keep a hand-over waiting before it goes on."""
RELEASE_SECONDS = 3.0
"""For letting all go, which may come on top of the limit of the whole."""
CLOSING_SECONDS = 2.0
"""How much longer a stop waits for it: at its limit it still has its connections to close."""
CONFIRM_SECONDS = 2.0
"""For connecting to our NameNode, and for its answer, before it is called active already."""

ReadActive = Callable[[], Awaitable[ActiveNodeInfo | None]]


@dataclass(frozen=True, slots=True)
class Situation:
    """How things stand with our controller now."""

    unfit: str | None
    """Why our NameNode cannot be the target."""
    serving: bool
    """It has been promoted under the lock that we hold."""
    changing: bool = False
    """It has been asked to change its role, and has not answered yet."""
    lock_holder: str = ""
    """Whose controller has the lock, as the notices say, or the empty text."""


class HandOver:
    """Carries out gracefulFailover in the controller of the NameNode that is to become active."""

    def __init__(
        self,
        settings: ZkfcSettings,
        attempts: Attempts,
        *,
        read_active: ReadActive,
        situation: Callable[[], Situation],
        come_back: Callable[[], None],
        fell_through: Callable[[AttemptRecord], None] = lambda _record: None,
        around: Surroundings = REAL_WORLD,
    ) -> None:
        """Keep the doors; ``come_back`` ends our own pause.

        ``fell_through`` is called with a hand-over that failed before any takeover was tried.
        """
        self._settings = settings
        self._attempts = attempts
        self._read_active = read_active
        self._situation = situation
        self._come_back = come_back
        self._fell_through = fell_through
        self._around = around
        self._turn = asyncio.Lock()
        self._asked: Asked | None = None
        self._active = ""
        self._overruled = False
        self._current: asyncio.Task[None] | None = None
        self._letting_go: set[asyncio.Task[None]] = set()
        self._stopping = False

    @property
    def asked(self) -> Asked | None:
        """The request for the hand-over that is under way here; None when none is."""
        return self._asked

    @property
    def active(self) -> str:
        """The NameNode that hands over to us; empty when none does."""
        return self._active

    @property
    def longest_seconds(self) -> float:
        """The limit of the whole, from being asked; RELEASE_SECONDS may come on top."""
        return self._cede_seconds + self._settings.new_active_timeout_seconds

    async def to_us(self, asked: Asked) -> None:
        """Make our NameNode active.  Raises ServiceFailed with the reason."""
        seconds = self.longest_seconds
        try:
            async with asyncio.timeout(seconds), self._turn:
                await self._noted(asked)
        except TimeoutError as failure:
            raise ServiceFailed(
                f"no opportunity to become active within {seconds:g} s: the lock did not come to "
                f"us; see who holds it with: nnha status"
            ) from failure

    def give_way(self, *, has_lock: bool) -> None:
        """Give way to a request to stand back, for another hand-over as a rule.

        Of two at once one should succeed, and the other not wait for what cannot come any more.

        Raises:
            ServiceFailed: ours waits for the lock.  If each target stood back for the other's
                sake, neither would take it.
        """
        if self._asked is None:
            return
        if not has_lock:
            raise ServiceFailed(
                f"a hand-over to {self._settings.own.namenode} is under way, asked for by "
                f"{self._asked.user} from {self._asked.host}; ask again when it is over, "
                f"and see how it stands with: nnha status"
            )
        self._overruled = True
        self._attempts.wake()

    async def stop(self) -> None:
        """Give up what is under way, and let go whom it has asked to stand back.

        What waits for its turn is refused: the active would cede to a controller that is gone.
        """
        self._stopping = True
        if self._current is not None:
            self._current.cancel()
            await asyncio.wait({self._current}, timeout=RELEASE_SECONDS + CLOSING_SECONDS)
        if self._letting_go:
            await asyncio.wait(set(self._letting_go), timeout=RELEASE_SECONDS + CLOSING_SECONDS)

    async def _noted(self, asked: Asked) -> None:
        """Hand over, and record it also if it fails before any takeover was tried."""
        before = self._attempts.number
        begun = asyncio.get_running_loop().time()
        self._asked, self._overruled = asked, False
        self._current = asyncio.current_task()
        reason = ""
        try:
            await self._to_us()
        except ServiceFailed as failure:
            reason = str(failure)
            raise
        except asyncio.CancelledError:
            reason = "given up: the time was over, or this controller is stopping"
            raise
        finally:
            if reason and self._attempts.number == before:
                self._note_failure(reason, begun)
            self._asked, self._active, self._current = None, "", None

    async def _to_us(self) -> None:
        self._check_fit()
        before = self._attempts.number
        await self._in_place_of(await self._who_is_active(), before)

    def likely_holder(self) -> HostPort | None:
        """Return the controller that a hand-over to us would ask to cede, by the notices."""
        likely = self._settings.address_of(self._situation().lock_holder)
        return None if likely in (None, self._settings.own) else likely.zkfc

    async def _in_place_of(self, active: ActiveNodeInfo, before: AttemptNumber) -> None:
        if active.namenode != self._settings.own.namenode:
            self._active = active.namenode
            await self._replace(active)
        elif not self._situation().serving:
            # To hold the lock is not to be active: the takeover under way may still fail.
            _judge(await self._wait_for_attempt(before))
        elif self._situation().changing:
            # Somebody has asked us to cede, and our NameNode may be standby already: to call it
            # active would be a false success, though the lock is still ours.
            raise ServiceFailed(
                "our NameNode is just being made standby, because this controller was asked to "
                "cede; see who becomes active with: nnha status"
            )
        else:
            await self._confirm()

    async def _confirm(self) -> None:
        """Ask our NameNode: an old demotion that it obeys late leaves it standby under our lock."""
        own = self._settings.own
        try:
            async with ServiceClient.connected(
                own.service, deadline_seconds=CONFIRM_SECONDS, connect=self._around.connect
            ) as client:
                status = await client.status(deadline_seconds=CONFIRM_SECONDS)
        except ServiceError as failure:
            raise ServiceFailed(
                f"we hold the lock, and cannot tell whether our NameNode is still active: {failure}"
            ) from failure
        if status.state is not ServiceState.ACTIVE:
            raise ServiceFailed(
                f"we hold the lock, and our NameNode was made active and says now that it is "
                f"{status.state}; its zkfc will notice: see who becomes active with: nnha status"
            )

    def _note_failure(self, reason: str, begun: float) -> None:
        seconds = round(asyncio.get_running_loop().time() - begun, 6)
        self._fell_through(
            AttemptRecord(
                number=self._attempts.number,
                succeeded=False,
                text=reason,
                fenced="",
                duration_seconds=seconds,
                finished_at=self._around.now().isoformat(timespec="milliseconds"),
                asked=self._asked,
                previous=self._active,
                phases=(PhaseDuration("asking", seconds),),
            )
        )

    def _check_fit(self) -> None:
        reason = "its zkfc is being stopped" if self._stopping else self._situation().unfit
        if reason is not None:
            own = self._settings.own
            raise ServiceFailed(
                f"NameNode {own.nameservice}.{own.namenode} at {own.service} is not currently "
                f"healthy. Cannot be failover target: {reason}"
            )

    async def _who_is_active(self) -> ActiveNodeInfo:
        try:
            active = await self._read_active()
        except (ZooKeeperUnavailable, ZooKeeperRefused, BadBreadcrumb) as failure:
            raise ServiceFailed(f"{CANNOT_TELL_ACTIVE}{failure}") from failure
        if active is None:
            raise ServiceFailed(
                "No other node is currently active: nobody holds the lock, and the election is "
                "open; see the status of each zkfc for why none takes it"
            )
        return active

    async def _replace(self, active: ActiveNodeInfo) -> None:
        before = self._attempts.number
        self._come_back()
        holder = HostPort(active.hostname, active.zkfc_port)
        peers = [one.zkfc for one in self._settings.others if one.namenode != active.namenode]
        log.info("handover.begun", active=active.namenode, active_zkfc=str(holder))
        try:
            await self._ask_peers(peers)
            try:
                await self._cede(holder, self._cede_seconds)
            except ServiceError as failure:
                raise ServiceFailed(
                    f"the zkfc of the active NameNode {active.namenode} at {holder} did not cede: "
                    f"{failure}"
                ) from failure
            record = await self._wait_for_attempt(before)
        finally:
            letting_go = asyncio.create_task(self._release([*peers, holder]))
            self._letting_go.add(letting_go)
            letting_go.add_done_callback(self._letting_go.discard)
            await asyncio.shield(letting_go)
        log.info("handover.ended", succeeded=record.succeeded, reason=record.text)
        _judge(record)

    @property
    def _cede_seconds(self) -> float:
        return 2 * self._settings.graceful_fence_timeout_seconds

    async def _ask_peers(self, peers: Sequence[HostPort]) -> None:
        """Have the other reachable standbys stand back, so that the lock comes to us."""
        if not peers:
            return
        tasks = [asyncio.create_task(self._cede(peer, self._cede_seconds)) for peer in peers]
        try:
            await asyncio.wait(tasks, timeout=PEER_PATIENCE_SECONDS)
        finally:
            # Also where we are given up: a peer must not hear this after it was let go.
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for peer, outcome in zip(peers, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                log.warning("handover.peer.silent", peer=str(peer), reason=repr(outcome))

    async def _release(self, asked: Sequence[HostPort]) -> None:
        async def one(address: HostPort) -> None:
            try:
                async with asyncio.timeout(RELEASE_SECONDS):
                    await self._cede(address, 0.0)
            except (ServiceError, TimeoutError) as failure:
                # It comes back by itself when its pause ends; the outcome stands.
                log.warning("handover.release.failed", peer=str(address), reason=repr(failure))

        await asyncio.gather(*(one(address) for address in asked))

    async def _cede(self, address: HostPort, seconds: float) -> None:
        ready = self._around.take_ready(address)
        try:
            await self._ask_to_cede(address, seconds, over=ready)
        except ServiceUnreachable as failure:
            if ready is None or not isinstance(failure.__cause__, ConnectionLost):
                raise
            # What was ready may have been lost without a sign; to cede may be asked twice.
            await self._ask_to_cede(address, seconds)

    async def _ask_to_cede(
        self, address: HostPort, seconds: float, *, over: Connection | None = None
    ) -> None:
        deadline = self._cede_seconds if seconds > 0 else PEER_PATIENCE_SECONDS
        async with ZkfcClient.connected(
            address,
            deadline_seconds=min(deadline, CONNECT_SECONDS),
            connect=self._around.connect,
            over=over,
        ) as client:
            await client.cede_active(round(seconds * 1000), deadline_seconds=deadline)

    async def _wait_for_attempt(self, before: AttemptNumber) -> AttemptRecord:
        while True:
            winner = await self._third_with_lock()
            last = self._attempts.last
            if last is not None and last.number > before:
                return last
            reason = self._situation().unfit
            if reason is not None:
                raise ServiceFailed(f"our NameNode became unhealthy meanwhile: {reason}")
            if self._overruled or winner:
                what = (
                    f"{winner} took the lock meanwhile"
                    if winner
                    else "this controller was asked to cede meanwhile"
                )
                raise ServiceFailed(
                    f"{what}, as another hand-over asks for it; see who becomes active with: "
                    f"nnha status"
                )
            await self._attempts.changed()

    async def _third_with_lock(self) -> str:
        """Return the lock's holder, by ZooKeeper itself, if it is neither ours nor the ceding."""
        bystanders = ("", self._settings.own.namenode, self._active)
        if self._situation().lock_holder in bystanders:
            return ""
        try:
            # What the notices say may be older than this hand-over.
            active = await self._read_active()
        except (ZooKeeperUnavailable, ZooKeeperRefused, BadBreadcrumb):
            return ""
        return "" if active is None or active.namenode in bystanders else active.namenode


def _judge(record: AttemptRecord) -> None:
    if not record.succeeded:
        raise ServiceFailed(record.text)
