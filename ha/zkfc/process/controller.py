"""Connects the health monitor, the elector and the takeover, and runs their tasks."""

import asyncio
from collections.abc import Callable

import structlog

from ha.conf.keys import cluster as keys
from ha.daemon.binding import binding
from ha.elector.events import BreadcrumbRead, LockSeen
from ha.elector.events import Event as ElectorEvent
from ha.elector.keeper import Keeper, Post
from ha.elector.model import AttemptNumber, Role, Term
from ha.elector.runner import Elector
from ha.elector.state import ElectorState
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.health.core import Health
from ha.invariant import InvariantBroken
from ha.notices.seen import Notices
from ha.service.errors import ServiceError
from ha.service.ha_service import zkfc_protocol
from ha.service.model import ServiceState, ServiceStatus
from ha.zkfc.candidacy import model
from ha.zkfc.candidacy.core import step
from ha.zkfc.candidacy.failover_obstacle import failover_obstacle, hand_over_obstacle
from ha.zkfc.candidacy.state import Candidacy
from ha.zkfc.guard.duties import Duties
from ha.zkfc.handover.cede import Ceding
from ha.zkfc.handover.graceful_failover import HandOver, Situation
from ha.zkfc.handover.membership import Membership, OpenBoard
from ha.zkfc.handover.on_stop import hand_over_first
from ha.zkfc.pages.observer import ControllerMonitor
from ha.zkfc.process.build import StepListener, initial_candidacy, new_monitor, new_witness
from ha.zkfc.process.server import ZkfcFace
from ha.zkfc.process.zookeeper_absence import Absence
from ha.zkfc.record.attempts import Attempts
from ha.zkfc.record.history import History
from ha.zkfc.record.takeover_record import HandOverRequest
from ha.zkfc.record.thread_dump import ThreadDump
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.surroundings.surroundings import REAL_WORLD, Surroundings
from ha.zkfc.takeover.former_active import former_gone_until, require_recent_contact
from ha.zkfc.takeover.namenode_process import NameNodeProcess
from ha.zkfc.takeover.superseded_process import SupersededProcess
from ha.zkfc.takeover.takeover import OwnStaleLock, Takeover, read_lock_holder

log = structlog.get_logger()


class ElectionImpossible(Exception):
    """The election cannot go on without an operator; the text says why."""


class Controller:
    """One failover controller; all its code runs on one event loop.

    ``keeper`` builds the elector's ZooKeeper client from two functions, called with events and at
    the lock's release.  ``board`` builds that of the notices; without it there is no pause, drain
    or rank.
    """

    def __init__(
        self,
        settings: ZkfcSettings,
        *,
        keeper: Callable[[Post, Callable[[], None]], Keeper],
        board: OpenBoard | None = None,
        version: str = "",
        around: Surroundings = REAL_WORLD,
    ) -> None:
        own = settings.own
        self._settings = settings
        self._around = around
        self.duties, self.attempts = Duties(), Attempts()
        self.observer = ControllerMonitor(settings, self.attempts, around=around)
        self.history = History(settings, count=self.observer.count_success, around=around)
        self.observer.record_attempt = self.history.add
        seen = None if board is None else board(self._handle_notices)
        self._membership = Membership(settings, seen, version, around)
        self._candidacy = initial_candidacy(settings, self._membership.initial_standing())
        beat, probed = self.duties.heartbeat_for, self.observer.record_probe
        self.monitor = new_monitor(
            settings, self, measure=probed, heartbeat=beat("probes"), around=around
        )
        tried, client = self.observer.record_fencing_attempt, lambda: self.monitor.client
        self._takeover = Takeover(settings, measure=tried, monitor_client=client, around=around)
        self.elector = Elector(
            name=own.namenode,
            application=self,
            keeper=lambda post: keeper(post, self.observer.record_lock_release),
            heartbeat=beat("election"),
        )
        self.history.active_by = self.elector.active_by
        set_reason = self.observer.set_removal_reason
        self.witness = new_witness(
            settings, self.elector, lambda: self._candidacy, set_reason, around
        )
        self._ceding = Ceding(settings, self._takeover, self.elector, self._decide)
        self.hand_over = self._new_hand_over()
        self.observer.hand_over_request = lambda: self.hand_over.request
        face = ZkfcFace(settings, cede=self.cede, hand_over=self._make_active)
        self._server = around.serve([zkfc_protocol(face)])
        self._superseded = SupersededProcess(
            settings,
            ours=lambda: self._has_lock,
            notices=lambda: self._candidacy.standing.notices,
            read_active=self._read_active,
            around=around,
        )
        self.local_process = NameNodeProcess(around, on_term_end=self._superseded.follow)
        self._own_stale_lock = OwnStaleLock(own.namenode, self._read_active)
        self.thread_dump = ThreadDump(own.namenode, own.http, settings.thread_dump)
        self.absence = Absence(settings.step_down_after_seconds, self._step_down_if_active)
        self._step_listeners: tuple[StepListener, ...] = (
            self.observer, self.absence, self._takeover, self.witness, self.local_process,
        )  # fmt: skip
        self._fail_back_task: asyncio.Task[None] | None = None
        self._predecessor_gone, self._own_data, self.port = False, b"", 0
        self._recheck: asyncio.TimerHandle | None = None
        self._fatal: asyncio.Future[str] | None = None

    def _new_hand_over(self) -> HandOver:
        return HandOver(
            self._settings,
            self.attempts,
            read_active=self._read_active,
            situation=self._situation,
            end_cede=self._ceding.end_cede,
            record_failure=self.history.add,
            around=self._around,
        )

    @property
    def candidacy(self) -> Candidacy:
        """The candidacy after the last decision."""
        return self._candidacy

    @property
    def election(self) -> ElectorState:
        """The elector's state."""
        return self.elector.state

    @property
    def health(self) -> Health:
        """The monitor's judgement."""
        return self.monitor.state.health

    @property
    def lock_of_earlier_process(self) -> bool:
        """Whether our active NameNode's lock is of an earlier process of this controller."""
        return self._own_stale_lock.skipped_demotion and self.elector.state.role is Role.STANDBY

    @property
    def zookeeper_contact(self) -> float | None:
        """When the last answered request to ZooKeeper was sent, on the loop's clock."""
        return self.elector.keeper.last_contact

    @property
    def session_timeout_seconds(self) -> float | None:
        """The timeout negotiated with ZooKeeper; None without a session."""
        return self.elector.keeper.session_timeout_seconds

    @property
    def _has_lock(self) -> bool:
        return self.elector.state.role in (Role.TAKING_OVER, Role.ACTIVE)

    @property
    def believed(self) -> ServiceState:
        """The state that this controller has given its NameNode."""
        return self._candidacy.believed

    async def run(self) -> None:
        """Run until cancelled; then leave the election and keep the breadcrumb.

        The NameNode keeps its state; a peer that takes over first asks it to become standby.
        Raises ElectionImpossible if an operator is needed, ExitWith if the port cannot be bound.

        See docs/reference/zkfc.md#stopping.
        """
        own, self._fatal = self._settings.own, asyncio.get_running_loop().create_future()
        host, port = self._settings.bind_host, own.zkfc.port
        with binding(keys.ZKFC_PORT.name, host, port):
            self.port = await self._server.start(host, port)
        at = own.service
        self._own_data = encode(
            ActiveNodeInfo(own.nameservice, own.namenode, at.host, at.port, self.port)
        )
        self._publish_member()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._membership.run())
                group.create_task(self.elector.run())
                group.create_task(self.monitor.run())
                group.create_task(self.history.run())
                group.create_task(self.witness.run())
                group.create_task(self._raise_fatal(self._fatal))
        except* InvariantBroken as broken:
            self.abort(str(broken.exceptions[0]))
        except* ElectionImpossible:
            pass  # it would leave here in an exception group; it is raised from the future below
        finally:
            for under_way in (self._recheck, self._fail_back_task):
                if under_way is not None:
                    under_way.cancel()
            parts = (self._ceding, self._membership, self.absence, self.thread_dump)
            for part in (*parts, self._superseded):
                part.stop()
            await self.hand_over.stop()
            await self._server.stop()
        if self._fatal.done():
            raise ElectionImpossible(self._fatal.result())

    async def hand_over_before_stop(self) -> None:
        """Hand over as ``on_stop`` describes, while the controller still runs."""
        await hand_over_first(self._settings, self._candidacy, self._membership.hand_over_to)

    async def cede(self, seconds: float, client_id: bytes = b"") -> None:
        """Cede (see ``Ceding``); raise ServiceFailed if our hand-over waits for the lock."""
        if seconds > 0:
            self.hand_over.yield_to_cede_request(has_lock=self._has_lock)
        await self._ceding.cede(seconds, client_id)

    def _handle_notices(self, notices: Notices) -> None:
        self._decide(model.NoticesSeen(notices))
        self.attempts.wake()

    def _situation(self) -> Situation:
        notices = self._candidacy.standing.notices
        return Situation(
            obstacle=hand_over_obstacle(self.monitor.state, self._candidacy),
            serving=self.elector.state.role is Role.ACTIVE,
            in_transition=self._candidacy.in_transition,
            lock_holder="" if notices is None else notices.lock_holder or "",
        )

    def _step_down_if_active(self) -> None:
        if self.believed is ServiceState.ACTIVE:
            self._ceding.step_down()

    def failover_obstacle(self) -> str | None:
        """Return why this controller could not fail over now; None if it could."""
        seen = self.monitor.state, self.elector.state, self._candidacy
        return failover_obstacle(*seen, self.absence.describe())

    # -- called by the health monitor --------------------------------------------------------

    def status_reported(self, status: ServiceStatus) -> None:
        """Handle a report of our NameNode."""
        if status.state is ServiceState.ACTIVE and self.believed is ServiceState.ACTIVE:
            self.local_process.watch(status.process)
        ready = status.ready_to_become_active
        self._decide(model.StatusReported(status.state, ready, status.not_ready_reason))

    def health_changed(self, health: Health, reason: str) -> None:
        """Handle a change of the monitor's judgement."""
        self.observer.record_health(health, reason, serving=self._has_lock)
        self._decide(model.HealthChanged(health, self.monitor.state.trouble, reason))
        self.attempts.wake()
        if health in (Health.UNHEALTHY, Health.NOT_RESPONDING):
            # After the election was left: the dump of a hanging NameNode must not delay a failover.
            self.thread_dump.begin(self.elector.wait_idle, because=reason)

    # -- driven by the election --------------------------------------------------------------

    async def fence_old_active(self, attempt: AttemptNumber, content: bytes, term: Term) -> None:
        """Fence the NameNode in the breadcrumb."""
        fenced = await self._takeover.fence(content, term)
        self._predecessor_gone = fenced.gone
        self.observer.record_fenced(attempt, fenced.how)

    async def serve_as_active(self, attempt: AttemptNumber) -> None:
        """Make our NameNode active."""
        now = asyncio.get_running_loop().time()
        require_recent_contact(self.elector.keeper, now=now)
        self._decide(model.TransitionBegun())
        self.observer.record_promotion(attempt)
        until = former_gone_until(self.elector.keeper, now=now) if self._predecessor_gone else 0.0
        await self._takeover.promote(predecessor_gone_until=until)

    async def serve_as_standby(self) -> None:
        """Demote our NameNode; if it does not confirm, it is no candidate for a time.

        See docs/reference/zkfc.md#a-demotion-that-is-not-confirmed.
        """
        if await self._own_stale_lock.should_skip_demotion(self._candidacy.reported):
            self._decide(model.DemotionSpared())
            return
        self._decide(model.TransitionBegun())
        reason = await self._takeover.demote_with_retries(lambda: not self._has_lock)
        if not self._has_lock:
            # Otherwise we have won the lock since, and our NameNode is promoted next.
            self._decide(model.DemotionTried(reason or ""))

    def observe_step(self, event: ElectorEvent, before: ElectorState, after: ElectorState) -> None:
        """Pass a step of the election to all parts, and decide on a change of the role."""
        for listener in self._step_listeners:
            listener.observe_step(event, before, after)
        if isinstance(event, BreadcrumbRead) and event.attempt == after.attempt:
            # In a hand-over a missing breadcrumb proves that the former active is standby: only
            # then its controller deletes the breadcrumb.
            planned = self.hand_over.request is not None
            self._predecessor_gone = planned and event.breadcrumb is None
            self.observer.record_predecessor(event.breadcrumb, self.hand_over.ceding_namenode)
        if isinstance(event, LockSeen) and self.lock_of_earlier_process:
            self.elector.repeat_standby()
        if isinstance(event, LockSeen) and event.ours:
            self._record_own_lock(event.made)
        if before.role is not after.role:
            planned = self.hand_over.request is not None
            self._decide(model.ElectionMoved(before, after, planned))
            if before.role is Role.TAKING_OVER:
                self.monitor.probe_now()

    def _record_own_lock(self, made: int) -> None:
        if made > self._candidacy.standing.own_lock:  # the elector looks at it each second
            self._decide(model.OwnLockSeen(made))

    def takeover_failed(self, attempt: AttemptNumber, reason: str) -> None:
        """Handle a failed takeover, after which the elector left the election."""
        self.observer.record_failed_takeover(attempt, reason)
        self._decide(model.TakeoverFailed())

    def abort(self, reason: str) -> None:
        """End the controller with ElectionImpossible for this reason."""
        if self._fatal is not None and not self._fatal.done():
            self._fatal.set_result(reason)

    # -- decisions ---------------------------------------------------------------------------

    def _decide(self, event: model.Event) -> None:
        loop = asyncio.get_running_loop()
        try:
            result = step(self._candidacy, event, now=loop.time())
        except InvariantBroken as broken:
            # End the controller even if a timer or an RPC called this function.
            self.abort(str(broken))
            raise
        self._candidacy = result.state
        if result.decisions:
            log.info(
                "zkfc.decided",
                namenode=self._settings.own.namenode,
                saw=model.describe(event),
                decisions=[repr(decision) for decision in result.decisions],
            )
        for decision in result.decisions:
            match decision:
                case model.Join():
                    self.elector.join(self._own_data)
                case model.Leave(needs_fencing=needs_fencing):
                    # describe_end() waits for a moment, so it is called only if it is needed.
                    ended = self.local_process.describe_end() if needs_fencing else ""
                    self.elector.quit(keep_breadcrumb=needs_fencing, ended=ended)
                case model.AskAgainAfter(seconds=seconds):
                    if self._recheck is not None:
                        self._recheck.cancel()
                    self._recheck = loop.call_later(seconds, self._decide, model.RecheckDue())
                case model.HandOverTo(zkfc=zkfc):
                    self._membership.start_drain(
                        zkfc, lambda failure: self._decide(model.DrainTried(failure))
                    )
                case model.TakeBack(because=because):
                    self._fail_back_task = loop.create_task(self._fail_back(because))
        self._publish_member()

    def _publish_member(self) -> None:
        health, earlier = self.monitor.state.health, self.lock_of_earlier_process
        self._membership.publish(
            self._candidacy, health, self.port, lock_of_earlier_process=earlier
        )

    async def _make_active(self, request: HandOverRequest) -> None:
        self._decide(model.HandOverBegun())
        try:
            await self.hand_over.make_active(request)
        finally:
            self._decide(model.HandOverEnded())

    async def _fail_back(self, because: str) -> None:
        host = self._settings.own.zkfc.host
        try:
            await self._make_active(
                HandOverRequest(self._settings.user, host, because, by_itself=True)
            )
        except ServiceError as failure:
            log.warning("zkfc.failback.failed", because=because, reason=str(failure))

    async def _read_active(self) -> ActiveNodeInfo | None:
        return await read_lock_holder(self.elector.keeper, self._settings.zookeeper, self._around)

    async def _raise_fatal(self, fatal: "asyncio.Future[str]") -> None:
        # Shielded: the future must stay usable when a failed task cancels this one.
        raise ElectionImpossible(await asyncio.shield(fatal))
