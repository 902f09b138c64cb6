"""Records a controller's takeovers, phases and metrics for operators, and builds /status."""

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import datetime

import structlog

from ha.conf.secrets import redact
from ha.daemon.notify import SERVICE, clock_time
from ha.elector import events
from ha.elector.keeper import Keeper
from ha.elector.model import AttemptNumber, Breadcrumb, Link, Role, Term
from ha.elector.state import ElectorState
from ha.elector.zookeeper.breadcrumb import decode
from ha.elector.zookeeper.errors import BadBreadcrumb
from ha.health.core import Answered, Health, HealthState, ProbeOutcome
from ha.notices import model
from ha.notices.model import Pause, encode_member, encode_pause
from ha.zkfc.candidacy.failback import seconds_left
from ha.zkfc.candidacy.flapping import is_flapping
from ha.zkfc.candidacy.state import Candidacy
from ha.zkfc.pages import metrics
from ha.zkfc.record.attempts import Attempts
from ha.zkfc.record.cause import why_abandoned
from ha.zkfc.record.takeover_record import AttemptRecord, HandOverRequest
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.surroundings.surroundings import REAL_WORLD, Surroundings

log = structlog.get_logger()

NOTHING_TO_FENCE = "nothing to fence"
KEPT_CHANGES = 64
"""The number of changes of the NameNode's health that /status shows."""

RecordAttempt = Callable[[AttemptRecord], None]
"""Called with every finished attempt, including abandoned ones."""


class ControllerMonitor:
    """Measures the phases of takeovers, and writes logs, metrics and attempt records."""

    def __init__(
        self,
        settings: ZkfcSettings,
        attempts: Attempts,
        *,
        around: Surroundings = REAL_WORLD,
    ) -> None:
        own = settings.own
        self._settings = settings
        self._attempts = attempts
        self.record_attempt: RecordAttempt = lambda _record: None
        self._around = around
        self.hand_over_request: Callable[[], HandOverRequest | None] = lambda: None
        """Returns the request of the hand-over to us that is under way."""
        self._node = f"{own.nameservice}.{own.namenode}"
        self._detected_at: float | None = None
        self._held_as_active = False
        self._phase_began = 0.0
        self._attempt_began = 0.0
        self._fenced = NOTHING_TO_FENCE
        self._previous = ""
        self._unreadable = self._seen_ended = False
        self._removal_reason = self._witnessed = ""
        self._phases: list[model.PhaseDuration] = []
        self._tries: list[model.FencingAttempt] = []
        self._health_changes: deque[Mapping[str, object]] = deque(maxlen=KEPT_CHANGES)
        metrics.set_state(metrics.ELECTOR, self._node, Role.INIT)
        metrics.set_state(metrics.HEALTH, self._node, Health.INITIALIZING)
        metrics.set_state(metrics.ZK_STATE, self._node, Link.CLOSED)
        metrics.FENCE_CONFIGURED.labels(self._node).set(len(self._methods()))
        metrics.begin_at_zero(self._node, map(_kind_of, self._methods()))
        self._link = Link.CLOSED
        self._shown = (Role.INIT, Health.INITIALIZING)

    # -- health ------------------------------------------------------------------------------

    def record_probe(self, seconds: float, outcome: ProbeOutcome) -> None:
        """Count a health probe."""
        metrics.HEALTH_DURATION.labels(self._node).observe(seconds)
        if not isinstance(outcome, Answered):
            metrics.HEALTH_FAILURES.labels(self._node, type(outcome).__name__.lower()).inc()

    def record_health(self, health: Health, reason: str, *, serving: bool) -> None:
        """Record a change of health; with ``serving``, an unhealthy NameNode begins a failover."""
        metrics.set_state(metrics.HEALTH, self._node, health)
        at = model.time_text(self._around.now())
        self._health_changes.appendleft({"at": at, "health": health.value, "reason": reason})
        self._tell_systemd(self._shown[0], health)
        if serving and health is not Health.HEALTHY:
            self._detected_at = _now()
            self._phase("detected", None, 0.0, reason=reason)

    # -- the election ------------------------------------------------------------------------

    def observe_step(self, event: events.Event, before: ElectorState, after: ElectorState) -> None:
        """Record a step of the election."""
        self._count(event, before, after)
        if before.role is after.role:
            return
        metrics.set_state(metrics.ELECTOR, self._node, after.role)
        self._tell_systemd(after.role, self._shown[1])
        metrics.ROLE_CHANGES.labels(self._node, after.role.value).inc()
        if before.role is Role.ACTIVE:
            self._held_as_active = True
        if after.role is Role.TAKING_OVER:
            self._begin(after.attempt)
        elif before.role is not Role.TAKING_OVER:
            return
        elif after.role is Role.ACTIVE:
            self._end_phase("active", after.attempt)
            metrics.ACTIVE_SINCE.labels(self._node).set(time.time())
            metrics.LAST_FAILOVER.labels(self._node).set(time.time())
            self._attempts.add(self._record(after.attempt, ""))
        elif not isinstance(event, events.TakeoverFailed):
            # Abandoned, and not the last record: the next attempt may succeed in a new session.
            self._record(before.attempt, why_abandoned(event))

    def _tell_systemd(self, role: Role, health: Health) -> None:
        self._shown = (role, health)
        stands = "not in the election" if role is Role.INIT else role.value.replace("_", " ")
        how = health.value.replace("_", " ")
        SERVICE.status(f"{stands}, beside {self._node} ({how}), since {clock_time()}")

    def set_removal_reason(self, because: str) -> None:
        """Set why the witness removes the lock, for the next takeover; empty withdraws it."""
        self._removal_reason = because

    def _begin(self, attempt: AttemptNumber) -> None:
        self._fenced, self._previous = NOTHING_TO_FENCE, ""
        self._witnessed, self._removal_reason = self._removal_reason, ""
        self._unreadable = self._seen_ended = False
        self._phases, self._tries = [], []
        self._attempt_began = self._phase_began = _now()
        self._phase("lock", attempt, 0.0)

    def record_lock_release(self) -> None:
        """Record that ZooKeeper confirmed the release of our lock."""
        began = self._detected_at
        self._detected_at = None
        seconds = 0.0 if began is None else _now() - began
        self._phase("released", None, seconds, was_active=self._held_as_active)
        self._held_as_active = False

    def record_predecessor(self, breadcrumb: Breadcrumb | None, handed_over_by: str) -> None:
        """Record the former active; ``handed_over_by`` is empty except in a hand-over."""
        self._previous = handed_over_by
        if breadcrumb is not None:
            self._previous = decode_namenode(breadcrumb.content)
            self._unreadable = not self._previous
            self._seen_ended = breadcrumb.term is Term.ENDED

    def record_fencing_attempt(self, tried: model.FencingAttempt) -> None:
        """Record the outcome of one fencing method or of the request to become standby."""
        # A configured method may contain a password, and many users can see these texts.
        hidden = replace(tried, method=redact(tried.method), detail=redact(tried.detail))
        self._tries.append(hidden)
        metrics.FENCE_ATTEMPTS.labels(self._node, _kind_of(tried.method), tried.result).inc()

    def record_fenced(self, attempt: AttemptNumber, how: str) -> None:
        """Record that the old active was fenced."""
        self._fenced = how
        metrics.FENCE_DURATION.labels(self._node).observe(_now() - self._phase_began)
        self._end_phase("fenced", attempt, how=how)

    def record_promotion(self, attempt: AttemptNumber) -> None:
        """Record that the promotion of our NameNode begins."""
        self._end_phase("promoting", attempt)

    def count_success(self, kind: model.FailoverKind) -> None:
        """Count a successful takeover by its kind: a first election is no failover."""
        metrics.FAILOVERS.labels(self._node, kind, model.FailoverResult.SUCCEEDED).inc()

    def record_failed_takeover(self, attempt: AttemptNumber, reason: str) -> None:
        """Record that the attempt failed."""
        log.error("takeover.failed", namenode=self._node, attempt=attempt, reason=reason)
        self._attempts.add(self._record(attempt, reason))

    def _record(self, attempt: AttemptNumber, failure: str) -> AttemptRecord:
        if failure:
            self._phases.append(model.PhaseDuration("failed", round(_now() - self._phase_began, 6)))
        record = AttemptRecord(
            number=attempt,
            succeeded=not failure,
            text=redact(failure),
            fenced=self._fenced,
            duration_seconds=round(_now() - self._attempt_began, 6),
            finished_at=self._around.now().isoformat(timespec="milliseconds"),
            asked=self.hand_over_request(),
            previous=self._previous,
            unreadable=self._unreadable,
            seen_ended=self._seen_ended,
            witnessed=self._witnessed,
            phases=tuple(self._phases),
            fencing=tuple(self._tries),
        )
        if failure:
            metrics.FAILOVERS.labels(self._node, record.kind, model.FailoverResult.FAILED).inc()
        self.record_attempt(record)
        return record

    def _count(self, event: events.Event, before: ElectorState, after: ElectorState) -> None:
        match event:
            case events.SessionExpired() if event.session == before.session:
                metrics.ZK_EXPIRATIONS.labels(self._node).inc()
            case events.SessionOpened() if before.link is Link.SUSPENDED:
                metrics.ZK_RECONNECTS.labels(self._node).inc()
            case events.OutcomeUnknown():
                metrics.ZK_UNKNOWN.labels(self._node).inc()
            case _:
                pass
        if after.link is not self._link:
            self._link = after.link
            metrics.set_state(metrics.ZK_STATE, self._node, after.link)

    def _end_phase(self, phase: str, attempt: AttemptNumber, **facts: object) -> None:
        seconds = _now() - self._phase_began
        self._phase_began = _now()
        self._phase(phase, attempt, seconds, **facts)

    def _phase(
        self, phase: str, attempt: AttemptNumber | None, seconds: float, **facts: object
    ) -> None:
        metrics.FAILOVER_DURATION.labels(self._node, phase).observe(seconds)
        if attempt is not None:
            self._phases.append(model.PhaseDuration(phase, round(seconds, 6)))
        log.info(
            "failover.phase",
            phase=phase,
            namenode=self._settings.own.namenode,
            attempt=attempt,
            seconds=round(seconds, 6),
            **facts,
        )

    # -- /status -----------------------------------------------------------------------------

    def status(
        self,
        health: HealthState,
        elector: ElectorState,
        candidacy: Candidacy,
        keeper: Keeper,
        *,
        off_because: str = "",
        handing_over_from: str = "",
        witness: str = "",
    ) -> Mapping[str, object]:
        """Return the JSON object of /status; scripts read its first keys, which are fixed."""
        own = self._settings.own
        last = self._attempts.last
        return {
            "role": "zkfc",
            "nameservice": own.nameservice,
            "namenode": own.namenode,
            "health": health.health.value,
            "health_reason": health.reason,
            "elector": elector.role.value,
            "zookeeper": _zookeeper(elector),
            "session_timeout_seconds": keeper.session_timeout_seconds,
            "fencing_methods": self._methods(),
            "fences_edits_only": self._fences_edits_only(),
            "last_attempt": None if last is None else asdict(last),
            "handing_over_from": handing_over_from or None,
            "witnessed_takeover": witness or None,
            "takeover": self._under_way(elector),
            "pid": os.getpid(),
            "believed_state": candidacy.believed.value,
            "in_election": candidacy.joined,
            "failed_takeovers_in_a_row": candidacy.failures,
            "failover_off_because": off_because or None,
            "health_changes": list(self._health_changes),
            **standing_page(candidacy, now=_now(), wall=self._around.now()),
        }

    def _under_way(self, elector: ElectorState) -> Mapping[str, object] | None:
        """Return the takeover that is under way, with its completed phases; None if none is."""
        if elector.role is not Role.TAKING_OVER:
            return None
        return {
            "number": elector.attempt,
            "seconds": round(_now() - self._attempt_began, 3),
            "phases": [asdict(one) for one in self._phases],
        }

    def _methods(self) -> list[str]:
        names = [one.namenode for one in self._settings.others]
        methods = [method for name in names for method in self._settings.plan_for(name).methods]
        return list(dict.fromkeys(map(str, methods)))

    def _fences_edits_only(self) -> bool:
        """Return whether a peer has no method that ends its reads (journal-epoch, /bin/true)."""
        plans = [self._settings.plan_for(one.namenode) for one in self._settings.others]
        return any(not any(one.proves_gone for one in plan.methods) for plan in plans)


def _zookeeper(elector: ElectorState) -> str:
    match elector.link:
        case Link.CLOSED:
            return "not in the election"
        case Link.CONNECTING:
            return "connecting"
        case Link.SUSPENDED:
            return "connection lost"
        case Link.CONNECTED:
            return "connected"


def _kind_of(method: str) -> str:
    """Return a method without its arguments, as a label."""
    return method.partition("(")[0]


def decode_namenode(content: bytes) -> str:
    """Return the NameNode id in a breadcrumb; empty if it cannot be decoded."""
    try:
        return decode(content).namenode
    except BadBreadcrumb:
        return ""


def _now() -> float:
    return asyncio.get_running_loop().time()


def standing_page(candidacy: Candidacy, *, now: float, wall: datetime) -> Mapping[str, object]:
    """Return the part of /status that shows whether, and why not, our NameNode is a candidate.

    All keys are always present; ``notices_known`` is false until the notices were first read.
    """
    standing = candidacy.standing
    notices = standing.notices
    members = () if notices is None else notices.members
    return {
        "out_because": candidacy.out_because,
        "waits_for_higher_rank": candidacy.waits,
        "kept_because": candidacy.kept_because,
        "notices_known": notices is not None,
        "pause": None if notices is None else _notice(notices.pause, wall),
        "drain": None if notices is None else _notice(notices.drain, wall),
        "untrusted_znodes": [] if notices is None else list(notices.untrusted),
        "lock_holder": None if notices is None else notices.lock_holder,
        "ready": standing.ready,
        "not_ready_reason": standing.not_ready_reason,
        "nofailover": standing.rank.nofailover,
        "priority": standing.rank.priority,
        "fail_back_in_seconds": seconds_left(candidacy.fail_back, standing, now),
        "flapping": is_flapping(candidacy.flapping, now),
        "members": [json.loads(encode_member(member)) for member in members],
    }


def _notice(notice: Pause | None, wall: datetime) -> object:
    if notice is None:
        return None
    shown: dict[str, object] = json.loads(encode_pause(notice))
    left = None
    if notice.until is not None:
        left = round((notice.until - wall).total_seconds(), 1)
    return {**shown, "seconds_left": left}
