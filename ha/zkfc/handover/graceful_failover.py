"""Makes our NameNode active in a planned hand-over (ZKFCProtocol's gracefulFailover).

Our controller asks those of the other standbys, then that of the active, to cede; it wins the lock
and takes over.  However the hand-over ends, it then releases each controller that it asked.

Unlike Hadoop's (docs/reference/zkfc.md#planned-hand-over), it compares takeovers by number and not
by clock, needs no answer from the standbys' controllers, and succeeds though a release fails.
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
from ha.zkfc.record.takeover_record import AttemptRecord, HandOverRequest
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.surroundings.surroundings import REAL_WORLD, Surroundings

log = structlog.get_logger()

CONNECT_SECONDS = 2.0
PEER_PATIENCE_SECONDS = 2.0
"""How long a hand-over waits for the answers of the other standbys' controllers."""
RELEASE_SECONDS = 3.0
"""The limit for the release of the other controllers, in addition to that of the hand-over."""
CLOSING_SECONDS = 2.0
"""How much longer a stop waits for it: at its limit it still has its connections to close."""
CONFIRM_SECONDS = 2.0
"""The limit for a connection to our NameNode, and again for its answer, in ``_confirm_active``."""

ReadActive = Callable[[], Awaitable[ActiveNodeInfo | None]]


@dataclass(frozen=True, slots=True)
class Situation:
    """The present state of our controller and its NameNode."""

    obstacle: str | None
    """The reason why our NameNode cannot become active; None if it can."""
    serving: bool
    """Our NameNode was promoted under the lock that we hold."""
    in_transition: bool = False
    """Our NameNode was asked to change its role and has not answered yet."""
    lock_holder: str = ""
    """The NameNode whose controller holds the lock by the notices; empty if none is known."""


class HandOver:
    """Carries out gracefulFailover in the controller of the NameNode that is to become active."""

    def __init__(
        self,
        settings: ZkfcSettings,
        attempts: Attempts,
        *,
        read_active: ReadActive,
        situation: Callable[[], Situation],
        end_cede: Callable[[], None],
        record_failure: Callable[[AttemptRecord], None] = lambda _record: None,
        around: Surroundings = REAL_WORLD,
    ) -> None:
        """Call ``end_cede`` to make our controller, if it has ceded, a candidate again.

        ``record_failure`` gets each hand-over that failed before a takeover was tried.
        """
        self._settings = settings
        self._attempts = attempts
        self._read_active = read_active
        self._situation = situation
        self._end_cede = end_cede
        self._record_failure = record_failure
        self._around = around
        self._one_at_a_time = asyncio.Lock()
        self._request: HandOverRequest | None = None
        self._ceding_namenode = ""
        self._yielded = False
        self._task: asyncio.Task[None] | None = None
        self._releases: set[asyncio.Task[None]] = set()
        self._stopping = False

    @property
    def request(self) -> HandOverRequest | None:
        """The request of the hand-over that is under way; None if there is none."""
        return self._request

    @property
    def ceding_namenode(self) -> str:
        """The active NameNode that hands over to ours; empty if none does."""
        return self._ceding_namenode

    @property
    def limit_seconds(self) -> float:
        """The longest time from the request to the outcome, without RELEASE_SECONDS."""
        return self._cede_seconds + self._settings.new_active_timeout_seconds

    async def make_active(self, request: HandOverRequest) -> None:
        """Make our NameNode active.  Raises ServiceFailed with the reason if that fails."""
        seconds = self.limit_seconds
        try:
            async with asyncio.timeout(seconds), self._one_at_a_time:
                await self._run_and_record(request)
        except TimeoutError as failure:
            raise ServiceFailed(
                f"no opportunity to become active within {seconds:g} s: the lock did not come to "
                f"us; see who holds it with: nnha status"
            ) from failure

    def yield_to_cede_request(self, *, has_lock: bool) -> None:
        """Make our hand-over fail, if we hold the lock already and are asked to cede it.

        As a rule another hand-over asks: then that one succeeds, and ours need not time out.

        Raises:
            ServiceFailed: our hand-over waits for the lock.  If the targets of two hand-overs
                ceded to each other, neither would take the lock.
        """
        if self._request is None:
            return
        if not has_lock:
            raise ServiceFailed(
                f"a hand-over to {self._settings.own.namenode} is under way, asked for by "
                f"{self._request.user} from {self._request.host}; ask again when it is over, "
                f"and see how it stands with: nnha status"
            )
        self._yielded = True
        self._attempts.wake()

    async def stop(self) -> None:
        """Cancel the hand-over that is under way, and wait until its controllers are released.

        Those that wait for their turn are refused: the active would cede to an ended controller.
        """
        self._stopping = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=RELEASE_SECONDS + CLOSING_SECONDS)
        if self._releases:
            await asyncio.wait(set(self._releases), timeout=RELEASE_SECONDS + CLOSING_SECONDS)

    async def _run_and_record(self, request: HandOverRequest) -> None:
        """Run the hand-over; record it here if it fails before a takeover was tried."""
        before = self._attempts.number
        begun = asyncio.get_running_loop().time()
        self._request, self._yielded = request, False
        self._task = asyncio.current_task()
        reason = ""
        try:
            await self._take_over()
        except ServiceFailed as failure:
            reason = str(failure)
            raise
        except asyncio.CancelledError:
            reason = "given up: the time was over, or this controller is stopping"
            raise
        finally:
            if reason and self._attempts.number == before:
                self._record_failed(reason, begun)
            self._request, self._ceding_namenode, self._task = None, "", None

    def likely_lock_holder(self) -> HostPort | None:
        """Return the controller that a hand-over would ask to cede, by the notices; None: none."""
        likely = self._settings.address_of(self._situation().lock_holder)
        return None if likely in (None, self._settings.own) else likely.zkfc

    async def _take_over(self) -> None:
        self._check_target()
        before = self._attempts.number
        active = await self._find_active()
        if active.namenode != self._settings.own.namenode:
            self._ceding_namenode = active.namenode
            await self._take_over_from(active)
        elif not self._situation().serving:
            # We hold the lock, and the takeover that is under way may still fail.
            _raise_if_failed(await self._wait_for_attempt(before))
        elif self._situation().in_transition:
            # Another controller has asked ours to cede, and our NameNode may be standby already:
            # success would be reported though the lock, still ours, is about to be released.
            raise ServiceFailed(
                "our NameNode is just being made standby, because this controller was asked to "
                "cede; see who becomes active with: nnha status"
            )
        else:
            await self._confirm_active()

    async def _confirm_active(self) -> None:
        # A late transitionToStandby may have made our NameNode standby while we hold the lock.
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

    def _record_failed(self, reason: str, begun: float) -> None:
        seconds = round(asyncio.get_running_loop().time() - begun, 6)
        self._record_failure(
            AttemptRecord(
                number=self._attempts.number,
                succeeded=False,
                text=reason,
                fenced="",
                duration_seconds=seconds,
                finished_at=self._around.now().isoformat(timespec="milliseconds"),
                asked=self._request,
                previous=self._ceding_namenode,
                phases=(PhaseDuration("asking", seconds),),
            )
        )

    def _check_target(self) -> None:
        reason = "its zkfc is being stopped" if self._stopping else self._situation().obstacle
        if reason is not None:
            own = self._settings.own
            raise ServiceFailed(
                f"NameNode {own.nameservice}.{own.namenode} at {own.service} is not currently "
                f"healthy. Cannot be failover target: {reason}"
            )

    async def _find_active(self) -> ActiveNodeInfo:
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

    async def _take_over_from(self, active: ActiveNodeInfo) -> None:
        before = self._attempts.number
        self._end_cede()
        holder = HostPort(active.hostname, active.zkfc_port)
        peers = [one.zkfc for one in self._settings.others if one.namenode != active.namenode]
        log.info("handover.begun", active=active.namenode, active_zkfc=str(holder))
        try:
            await self._request_peers_to_cede(peers)
            try:
                await self._request_cede(holder, self._cede_seconds)
            except ServiceError as failure:
                raise ServiceFailed(
                    f"the zkfc of the active NameNode {active.namenode} at {holder} did not cede: "
                    f"{failure}"
                ) from failure
            record = await self._wait_for_attempt(before)
        finally:
            release = asyncio.create_task(self._release([*peers, holder]))
            self._releases.add(release)
            release.add_done_callback(self._releases.discard)
            await asyncio.shield(release)
        log.info("handover.ended", succeeded=record.succeeded, reason=record.text)
        _raise_if_failed(record)

    @property
    def _cede_seconds(self) -> float:
        return 2 * self._settings.graceful_fence_timeout_seconds

    async def _request_peers_to_cede(self, peers: Sequence[HostPort]) -> None:
        """Ask the other standbys' controllers to cede, so that none of them wins the lock."""
        if not peers:
            return
        tasks = [asyncio.create_task(self._request_cede(one, self._cede_seconds)) for one in peers]
        try:
            await asyncio.wait(tasks, timeout=PEER_PATIENCE_SECONDS)
        finally:
            # A peer that got this request after its release would stay out of the election.
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for peer, outcome in zip(peers, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                log.warning("handover.peer.silent", peer=str(peer), reason=repr(outcome))

    async def _release(self, controllers: Sequence[HostPort]) -> None:
        async def release(address: HostPort) -> None:
            try:
                async with asyncio.timeout(RELEASE_SECONDS):
                    await self._request_cede(address, 0.0)
            except (ServiceError, TimeoutError) as failure:
                # That controller joins the election again when the time that it ceded for is over.
                log.warning("handover.release.failed", peer=str(address), reason=repr(failure))

        await asyncio.gather(*(release(address) for address in controllers))

    async def _request_cede(self, address: HostPort, seconds: float) -> None:
        """Ask the controller at ``address`` to cede for ``seconds``; 0 releases it."""
        ready = self._around.take_ready(address)
        try:
            await self._send_cede(address, seconds, over=ready)
        except ServiceUnreachable as failure:
            if ready is None or not isinstance(failure.__cause__, ConnectionLost):
                raise
            # The spare connection was broken; a second request does no harm if the first arrived.
            await self._send_cede(address, seconds)

    async def _send_cede(
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
            winner = await self._find_third_lock_holder()
            last = self._attempts.last
            if last is not None and last.number > before:
                return last
            reason = self._situation().obstacle
            if reason is not None:
                raise ServiceFailed(f"our NameNode became unhealthy meanwhile: {reason}")
            if self._yielded or winner:
                what = (
                    f"{winner} took the lock meanwhile"
                    if winner
                    else "this controller was asked to cede meanwhile"
                )
                raise ServiceFailed(
                    f"{what}, as another hand-over asks for it; see who becomes active with: "
                    f"nnha status"
                )
            await self._attempts.wait_for_change()

    async def _find_third_lock_holder(self) -> str:
        """Return the lock's holder if it is neither ours nor the ceding NameNode; else empty."""
        expected = ("", self._settings.own.namenode, self._ceding_namenode)
        if self._situation().lock_holder in expected:
            return ""
        try:
            # The notices may be older than this hand-over: read the lock itself.
            active = await self._read_active()
        except (ZooKeeperUnavailable, ZooKeeperRefused, BadBreadcrumb):
            return ""
        return "" if active is None or active.namenode in expected else active.namenode


def _raise_if_failed(record: AttemptRecord) -> None:
    if not record.succeeded:
        raise ServiceFailed(record.text)
