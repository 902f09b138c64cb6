"""Takes over: asks the old active to become standby, else fences it; then promotes our NameNode."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

import structlog

from fencing.model import FencingOutcome, FencingReport, Target
from ha.conf.topology import HostPort
from ha.elector.events import Event, LockSeen
from ha.elector.keeper import Keeper, LockReader
from ha.elector.model import Role, Term
from ha.elector.state import ElectorState
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, decode
from ha.elector.zookeeper.credentials import open_to_all
from ha.elector.zookeeper.errors import (
    BadBreadcrumb,
    TakeoverImpossible,
    ZooKeeperRefused,
    ZooKeeperUnavailable,
)
from ha.elector.zookeeper.outcome import Unknown
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import active_from, read_active
from ha.notices.model import FencingAttempt
from ha.record import dataclass
from ha.rpc.client import Connection
from ha.rpc.errors import ConnectionLost
from ha.service.client import ServiceClient
from ha.service.errors import ServiceError, ServiceUnreachable
from ha.service.model import RequestSource, ServiceState
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.surroundings.surroundings import REAL_WORLD, Surroundings
from ha.zkfc.takeover.former_active import Proof, predecessor_gone
from ha.zkfc.takeover.planned_fence import fence_as_planned, target_at

log = structlog.get_logger()

Measure = Callable[[FencingAttempt], None]
"""Called with each attempt to fence the former active."""


DEMOTION_PAUSES_SECONDS = (0.0, 0.2, 0.5)
"""The pause before each request to a NameNode that lost the lock to become standby."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a NameNode did not confirm that it is standby."""

    text: str
    nobody_listens: bool = False
    connection_lost: bool = False


@dataclass(frozen=True, slots=True)
class Fenced:
    """The former active cannot write edits any more; if ``gone``, it cannot serve reads either."""

    how: str
    gone: bool


class Takeover:
    """Fences, promotes and demotes NameNodes for one controller."""

    def __init__(
        self,
        settings: ZkfcSettings,
        *,
        measure: Measure = lambda _tried: None,
        monitor_client: Callable[[], ServiceClient | None] = lambda: None,
        around: Surroundings = REAL_WORLD,
    ) -> None:
        """Use ``monitor_client``, the health monitor's open connection to our NameNode."""
        self._settings = settings
        self._monitor_client = monitor_client
        self._around = around
        self._measure = measure
        self._turn = 0

    async def fence(self, content: bytes, term: Term) -> Fenced:
        """Fence the NameNode in the breadcrumb ``content``; return how.

        The NameNode is matched by its ids.  If its address in the breadcrumb is not the configured
        one, both addresses are fenced: the old process may still run at the old one.  If others
        could have written the breadcrumb, only configured addresses are touched, and every other
        NameNode is asked to become standby, too, unless the configured ACL lets anybody write it.
        Raises TakeoverImpossible.
        """
        doubted = term is Term.DOUBTED
        named = self._parse_breadcrumb(content, doubted=doubted)
        victims = self._keep_configured(named) if doubted or self._open_to_all else named
        fenced = [await self._fence_target(target) for target in victims]
        # The former active may still run at an address that was not touched.
        known = term if set(named) <= set(victims) else Term.UNKNOWN
        gone = predecessor_gone(known, [proof for _, proof in fenced])
        asked = await self._demote_others(victims) if doubted else []
        return Fenced("; ".join([*(how for how, _ in fenced), *asked]), gone)

    def _parse_breadcrumb(self, content: bytes, *, doubted: bool) -> list[Target]:
        """Return the NameNodes that the breadcrumb names.

        A doubted breadcrumb may be forged so that the real active is not fenced.  Then our own
        name in it does not count, and unreadable content means all other NameNodes.
        """
        own = self._settings.own
        try:
            info = decode(content)
        except BadBreadcrumb as failure:
            if doubted:
                return [target_at(other) for other in self._settings.others]
            raise TakeoverImpossible(
                f"cannot tell whom to fence: {failure}; make sure that no NameNode is active, "
                f"then run zkfc --format-zk"
            ) from failure
        if doubted and (info.nameservice, info.namenode) == (own.nameservice, own.namenode):
            return []
        return self._find_targets(info)

    @property
    def _open_to_all(self) -> bool:
        """Whether the configured ACL lets any client of ZooKeeper write the breadcrumb."""
        return open_to_all(self._settings.zookeeper.acl)

    def _keep_configured(self, named: list[Target]) -> list[Target]:
        """Return those of ``named`` that the configuration has; all others if none is left.

        The bad schedule: an attacker writes a DataNode's address into the breadcrumb, and sshfence
        kills the process that listens there.
        """
        own, others = self._settings.own, self._settings.others
        places = {target_at(one) for one in (own, *others)}
        victims = [one for one in named if one in places]
        for one in named:
            if one not in places:
                log.warning("takeover.victim.not_configured", left_alone=str(one))
        return victims if victims or not named else [target_at(one) for one in others]

    async def _demote_others(self, fenced: list[Target]) -> list[str]:
        """Ask every other NameNode to become standby; return the outcomes in words.

        None may be active while we hold the lock, so the request does no harm.  A failure does not
        stop the takeover: with a forged breadcrumb any dead host would.
        """
        others = [target_at(one) for one in self._settings.others]
        left = [one for one in others if one not in fenced]
        patience = self._settings.polite_answer_seconds
        asked = [
            self._request_standby(HostPort(one.host, one.port), answers_within_seconds=patience)
            for one in left
        ]
        outcomes = []
        for target, refusal in zip(left, await asyncio.gather(*asked), strict=True):
            said = "went standby" if refusal is None else f"was asked in vain: {refusal.text}"
            outcomes.append(f"{target}, as the breadcrumb is in doubt, {said}")
        return outcomes

    def observe_step(self, event: Event, before: ElectorState, after: ElectorState) -> None:
        """Keep the creating transaction of the newest lock, ours or a peer's.

        Requests carry it as ``turn``: a NameNode refuses a late one from an earlier lock's owner.
        """
        if isinstance(event, LockSeen) and event.session == after.session:
            self._turn = event.made
        elif after.role is Role.TAKING_OVER and before.role is not Role.TAKING_OVER:
            self._turn = 0  # our new lock, whose transaction is not known yet

    async def promote(self, *, predecessor_gone_until: float) -> None:
        """Make our NameNode active.  Raises TakeoverImpossible."""
        deadline = self._settings.new_active_timeout_seconds
        own = self._settings.own
        try:
            async with self._open_client() or self._connect(own.service, deadline) as namenode:
                await namenode.transition_to_active(
                    RequestSource.ZKFC,
                    deadline_seconds=deadline,
                    predecessor_gone_until=predecessor_gone_until,
                    turn=self._turn,
                )
        except ServiceError as failure:
            raise TakeoverImpossible(
                f"Couldn't make NameNode {own.nameservice}.{own.namenode} at {own.service} "
                f"active: {failure}"
            ) from failure

    async def demote(self) -> bool:
        """Ask our NameNode to become standby; return whether it confirmed."""
        return await self._demote() is None

    async def demote_with_retries(self, wanted: Callable[[], bool]) -> str | None:
        """Demote our NameNode, with retries while ``wanted``; return why it did not confirm."""
        refusal: _Refusal | None = None
        for pause in DEMOTION_PAUSES_SECONDS:
            await asyncio.sleep(pause)
            if not wanted():
                break
            refusal = await self._demote()
            if refusal is None:
                return None
        return "nobody asked it" if refusal is None else refusal.text

    async def _demote(self) -> _Refusal | None:
        # Not over the monitor's connection, which stays open after a timeout: the NameNode could
        # execute this request late, after the next promotion.
        own = self._settings.own.service
        ready = self._around.take_ready(own)
        refusal = await self._request_standby(own, over=ready)
        if ready is not None and refusal is not None and refusal.connection_lost:
            # The spare connection was broken.
            refusal = await self._request_standby(own)
        if refusal is not None:
            log.warning("takeover.demotion.unconfirmed", reason=refusal.text)
        return refusal

    def _find_targets(self, info: ActiveNodeInfo) -> list[Target]:
        named = Target(info.nameservice, info.namenode, info.hostname, info.port)
        configured = None
        if info.nameservice == self._settings.own.nameservice:
            configured = self._settings.address_of(info.namenode)
        if configured is None:
            log.warning("takeover.victim.unknown", victim=str(named))
            return [named]
        elsewhere = target_at(configured)
        if elsewhere == named:
            return [named]
        log.warning(
            "takeover.victim.moved", breadcrumb=f"{named.host}:{named.port}",
            configured=str(configured.service), namenode=info.namenode,
        )  # fmt: skip
        return [named, elsewhere]

    async def _fence_target(self, target: Target) -> tuple[str, Proof]:
        own = self._settings.own
        before = asyncio.get_running_loop().time()
        refusal = await self._request_standby(
            HostPort(target.host, target.port),
            answers_within_seconds=self._settings.polite_answer_seconds,
        )
        self._measure(
            FencingAttempt(
                method="rpc",
                target=str(target),
                result="succeeded" if refusal is None else "failed",
                seconds=round(asyncio.get_running_loop().time() - before, 6),
                detail="it answered that it is standby" if refusal is None else refusal.text,
            )
        )
        if refusal is None:
            return f"{target} went standby", Proof.STANDS_BY
        log.info("takeover.polite_fence.failed", target=str(target), reason=refusal.text)
        if (target.nameservice, target.namenode) == (own.nameservice, own.namenode):
            return self._check_own_breadcrumb(target, refusal), Proof.NOTHING
        report = await self._run_methods(target)
        for attempt in report.attempts:
            self._measure(
                FencingAttempt(
                    method=attempt.method,
                    target=str(target),
                    result=attempt.outcome.value,
                    seconds=round(attempt.duration_seconds, 6),
                    detail=attempt.detail,
                )
            )
        if not report.fenced:
            raise TakeoverImpossible(f"Unable to fence {target}: {report} ({refusal.text})")
        by = next(one for one in report.attempts if one.outcome is FencingOutcome.SUCCEEDED)
        proof = Proof.PORT_CLOSED if refusal.nobody_listens else Proof.NOTHING
        return f"{target} was fenced by {by.method}", Proof.KILLED if report.proven_gone else proof

    def _check_own_breadcrumb(self, target: Target, refusal: _Refusal) -> str:
        """Return why a breadcrumb with our own ids is harmless, or raise TakeoverImpossible."""
        # No method is run: it would end our own NameNode.
        own = self._settings.own.service
        moved = (own.host, own.port) != (target.host, target.port)
        if moved and refusal.nobody_listens:
            return f"nobody listens at our former address {target.host}:{target.port}"
        raise TakeoverImpossible(
            f"the breadcrumb names our own NameNode as {target}, and it did not confirm that it "
            f"is standby: {refusal.text}"
        )

    async def _run_methods(self, target: Target) -> FencingReport:
        # The plans are for our nameservice; another one may have a NameNode of the same name.
        ours = target.nameservice == self._settings.own.nameservice
        plan = self._settings.plan_for(target.namenode if ours else "")
        return await fence_as_planned(plan, target, by=self._around.fence)

    def _open_client(self) -> AbstractAsyncContextManager[ServiceClient] | None:
        """Return the monitor's connection, if it goes to our NameNode's service port."""
        own = self._settings.own
        client = self._monitor_client() if own.lifeline == own.service else None
        return None if client is None else nullcontext(client)

    def _connect(
        self, address: HostPort, seconds: float, *, over: Connection | None = None
    ) -> AbstractAsyncContextManager[ServiceClient]:
        return ServiceClient.connected(
            address, deadline_seconds=seconds, connect=self._around.connect, over=over
        )

    async def _request_standby(
        self,
        address: HostPort,
        *,
        over: Connection | None = None,
        answers_within_seconds: float | None = None,
    ) -> _Refusal | None:
        patience = self._settings.graceful_fence_timeout_seconds
        connected = self._connect(address, answers_within_seconds or patience, over=over)
        try:
            async with connected as client:
                if answers_within_seconds is not None:
                    # A stopped process never answers, though its kernel accepts connections: find
                    # that out before the long wait for a NameNode that closes its segment.
                    await client.status(deadline_seconds=answers_within_seconds)
                await client.transition_to_standby(
                    RequestSource.ZKFC, deadline_seconds=patience, turn=self._turn
                )
        except ServiceUnreachable as failure:
            rpc_failure = failure.__cause__
            refused = rpc_failure is not None and isinstance(
                rpc_failure.__cause__, ConnectionRefusedError
            )
            lost = isinstance(rpc_failure, ConnectionLost)
            return _Refusal(str(failure), nobody_listens=refused, connection_lost=lost)
        except ServiceError as failure:
            return _Refusal(str(failure))
        return None


DEADLINE_SECONDS: Final = 5.0


async def read_lock_holder(
    keeper: Keeper, zookeeper: ZooKeeperSettings, around: Surroundings
) -> ActiveNodeInfo | None:
    """Read the lock's holder, in the election's session if possible; raise as ``read_active``."""
    asked = keeper.read_lock() if isinstance(keeper, LockReader) else None
    if asked is not None and not isinstance(outcome := await asked, Unknown):
        return active_from(outcome, zookeeper)
    # A session for one read would delay a hand-over by 20 ms, so it is the second choice.
    return await read_active(
        zookeeper, deadline_seconds=DEADLINE_SECONDS, open_session=around.session
    )


class OwnStaleLock:
    """Decides whether to skip a demotion: our controller's earlier process may hold the lock."""

    def __init__(
        self, own: str, read_active: Callable[[], Awaitable[ActiveNodeInfo | None]]
    ) -> None:
        self._own = own
        self._read_active = read_active
        self.skipped_demotion = False
        """The last demotion was skipped, so the lock's holder must be read again."""

    async def should_skip_demotion(self, reported: ServiceState | None) -> bool:
        """Return whether our NameNode, which reports this state, must not be demoted now."""
        before, self.skipped_demotion = self.skipped_demotion, False
        if reported is not ServiceState.ACTIVE:
            return False
        try:
            active = await self._read_active()
        except (ZooKeeperRefused, ZooKeeperUnavailable, BadBreadcrumb) as failure:
            log.info("zkfc.lock.unread", namenode=self._own, reason=str(failure))
            return False
        self.skipped_demotion = active is not None and active.namenode == self._own
        if self.skipped_demotion and not before:
            log.warning(
                "zkfc.lock.of_own_earlier_session",
                namenode=self._own,
                why="our NameNode stays active until the session of the earlier process is over",
            )
        return self.skipped_demotion
