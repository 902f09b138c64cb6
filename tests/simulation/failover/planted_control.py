"""Bugs of the controller, of fencing and of hand-overs, to be planted."""

from dataclasses import replace
from typing import Any

from fencing.model import FencingOutcome, FencingReport
from ha.elector import runner, term_keeper
from ha.elector.model import Term
from ha.elector.term import term_of as term_of_record
from ha.elector.zookeeper.errors import TakeoverImpossible
from ha.service.errors import ServiceUnreachable
from ha.zkfc.candidacy import core
from ha.zkfc.candidacy.eligibility import Bar
from ha.zkfc.candidacy.eligibility import bar as bar_of
from ha.zkfc.candidacy.model import CedeAsked, CedeEnded, DemotionTried, RecheckDue, StatusReported
from ha.zkfc.candidacy.state import Out, Step
from ha.zkfc.handover import cede
from ha.zkfc.handover.cede import StandingBack
from ha.zkfc.handover.graceful_failover import HandOver
from ha.zkfc.process import controller
from ha.zkfc.process.controller import Controller
from ha.zkfc.record.attempts import Attempts
from ha.zkfc.takeover import namenode_process, takeover
from ha.zkfc.takeover.former_active import Proof, predecessor_gone
from ha.zkfc.takeover.takeover import Takeover
from tests.simulation.engine.mutants import Planting, all_of, replacing
from tests.simulation.failover.seams import wall_step

# ---- cede and hand-over --------------------------------------------------------------------


def cede_never_fences() -> Planting:
    """Delete the breadcrumb at a cede though our NameNode did not say that it is standby."""

    def asked(seconds: float, *, needs_fencing: bool) -> Any:  # noqa: ANN401
        return CedeAsked(seconds, needs_fencing=False)

    return replacing(cede, "CedeAsked", asked)


def cede_without_demotion() -> Planting:
    """Do not ask our NameNode to stand by: giving the lock away is taken to be enough."""

    async def demote(self: Takeover) -> bool:
        return True

    return replacing(Takeover, "demote", demote)


def cede_forgets_the_promotion() -> Planting:
    """Ignore a promotion that came under way in the meantime."""

    async def cede(self: StandingBack, seconds: float) -> None:
        if seconds > 0:
            confirmed = await self._takeover.demote()
            self._decide(CedeAsked(seconds, needs_fencing=not confirmed))
        else:
            self._decide(CedeEnded())

    return replacing(StandingBack, "cede", cede)


def cede_ends_at_once() -> Planting:
    """Let the timer of an earlier cede, or a health report, end the present one."""
    really = core._stand

    def stand(state: Any, now: float) -> Any:  # noqa: ANN401
        back = state.stood_back
        return really(state if back is None else replace(state, place=Out(back.because)), now)

    return replacing(core, "_stand", stand)


def cede_never_ends() -> Planting:
    """Leave the timer that ends a pause unset; nothing else ends it."""
    really = core.step

    def step(state: Any, event: Any, *, now: float) -> Any:  # noqa: ANN401
        if isinstance(event, RecheckDue | StatusReported) and state.stood_back is not None:
            return Step(state)
        return really(state, event, now=now)

    return replacing(controller, "step", step)


def peers_not_released() -> Planting:
    """Let those that were asked to stand back wait until their time is up."""

    async def release(self: HandOver, asked: Any) -> None:  # noqa: ANN401
        return None

    return replacing(HandOver, "_release", release)


def any_attempt_counts() -> Planting:
    """Take the success of an earlier, interleaved hand-over for ours."""
    really = HandOver._wait_for_attempt

    async def wait(self: HandOver, before: Any) -> Any:  # noqa: ANN401
        return await really(self, -1)  # type: ignore[arg-type]

    return replacing(HandOver, "_wait_for_attempt", wait)


def lock_is_success() -> Planting:
    """Call it active to hold the lock, though the takeover is still under way."""
    really = HandOver.__init__

    def init(self: HandOver, *arguments: Any, **named: Any) -> None:  # noqa: ANN401
        situation = named.pop("situation")

        def serving() -> Any:  # noqa: ANN401
            return replace(situation(), serving=True)

        really(self, *arguments, situation=serving, **named)

    return replacing(HandOver, "__init__", init)


def waits_in_vain() -> Planting:
    """Let a hand-over miss that another one has won: it waits for its whole limit."""

    def give_way(self: HandOver, *, has_lock: bool) -> None:
        return None

    async def nobody(self: HandOver) -> str:
        return ""

    return all_of(
        replacing(HandOver, "give_way", give_way), replacing(HandOver, "_third_with_lock", nobody)
    )


def stands_back_for_a_rival() -> Planting:
    """Let a target that waits for the lock stand back for another one, which does so for it."""
    really = HandOver.give_way

    def give_way(self: HandOver, *, has_lock: bool) -> None:
        really(self, has_lock=True)

    return replacing(HandOver, "give_way", give_way)


def lets_go_for_all() -> Planting:
    """Let a hand-over that gives up end what another hand-over has asked for."""
    really = StandingBack.cede

    async def cede(self: StandingBack, seconds: float, asker: bytes) -> None:
        await really(self, seconds, b"anybody")

    return replacing(StandingBack, "cede", cede)


def failure_is_success() -> Planting:
    """Let the record of an attempt count, whatever is in it."""
    really = Attempts.add

    def add(self: Attempts, record: Any) -> None:  # noqa: ANN401
        really(self, replace(record, succeeded=True))

    return replacing(Attempts, "add", add)


# ---- fencing -------------------------------------------------------------------------------


def timeout_is_success() -> Planting:
    """Take a method that did not end in time to have done its work."""

    async def run(self: Takeover, target: Any) -> FencingReport:  # noqa: ANN401
        report = await _RUN(self, target)
        timed_out = [one for one in report.attempts if one.outcome is FencingOutcome.TIMED_OUT]
        if report.fenced or not timed_out:
            return report
        lied = tuple(replace(one, outcome=FencingOutcome.SUCCEEDED) for one in timed_out)
        return replace(report, attempts=lied)

    return replacing(Takeover, "_run_methods", run)


_RUN = Takeover._run_methods


def failure_is_fenced() -> Planting:
    """Ignore what the methods report."""

    async def run(self: Takeover, target: Any) -> FencingReport:  # noqa: ANN401
        report = await _RUN(self, target)
        good = tuple(replace(one, outcome=FencingOutcome.SUCCEEDED) for one in report.attempts)
        return replace(report, attempts=good)

    return replacing(Takeover, "_run_methods", run)


def silence_is_standby() -> Planting:
    """Take a NameNode that does not answer the polite request to be gone."""
    really = Takeover._ask_to_stand_by

    async def ask(self: Takeover, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        refusal = await really(self, *arguments, **named)
        return None if refusal is not None and "no " in refusal.text else refusal

    return replacing(Takeover, "_ask_to_stand_by", ask)


def epoch_proves_death() -> Planting:
    """Take journal-epoch, which touches nothing, to have ended the old active."""
    really = predecessor_gone

    def gone(term: Term, proofs: Any) -> bool:  # noqa: ANN401
        return really(term, [Proof.KILLED for _ in proofs])

    return replacing(takeover, "predecessor_gone", gone)


def unsettled_predecessor() -> Planting:
    """Accept the end of the one that the breadcrumb names, though it never was active."""

    def gone(term: Term, proofs: Any) -> bool:  # noqa: ANN401
        return all(proof is not Proof.NOTHING for proof in proofs)

    return replacing(takeover, "predecessor_gone", gone)


def death_is_guessed() -> Planting:
    """Record a NameNode that its own controller leaves as ended."""

    def ended(self: Any) -> str:  # noqa: ANN401
        return "guessed"

    return replacing(namenode_process.LocalProcess, "ended", ended)


def any_term_counts() -> Planting:
    """Take a record of an earlier term for one of the present breadcrumb."""
    really = term_of_record

    def term_of(breadcrumb: int, data: bytes | None) -> Term:
        for guess in range(max(0, breadcrumb - 400), breadcrumb + 1):
            if (found := really(guess, data)) is not Term.UNKNOWN:
                return found
        return really(breadcrumb, data)

    return replacing(term_keeper, "term_of", term_of)


# ---- the controller's judgement ------------------------------------------------------------


def ill_leaves_no_breadcrumb() -> Planting:
    """Let an unhealthy active leave as if its NameNode were standby."""
    really = core._leave

    def leave(state: Any, because: str, *, needs_fencing: bool) -> Any:  # noqa: ANN401
        return really(state, because, needs_fencing=False)

    return replacing(core, "_leave", leave)


def reports_not_believed() -> Planting:
    """Ignore what the NameNode says that it is."""
    return replacing(core, "_mismatch", lambda state, _said, _now: Step(state))


def bad_health_ignored() -> Planting:
    """Keep an ill NameNode in the election."""
    return replacing(core, "_unwell", lambda state, _now: Step(state))


def wall_clock() -> Planting:
    """Count pauses on a clock that people set."""
    really = core.step

    def step(state: Any, event: Any, *, now: float) -> Any:  # noqa: ANN401
        return really(state, event, now=now + wall_step())

    return replacing(controller, "step", step)


def pause_not_obeyed() -> Planting:
    """Let a pause bar no NameNode from a free lock."""
    really = bar_of

    def bar(standing: Any, **named: Any) -> Bar | None:  # noqa: ANN401
        notices = standing.notices
        if notices is not None:
            standing = replace(standing, notices=replace(notices, pause=None))
        return really(standing, **named)

    return replacing(core, "bar", bar)


def overtaking_demotion() -> Planting:
    """Let pieces of the election's work overtake each other."""

    async def after(_previous: Any, work: Any) -> None:  # noqa: ANN401
        await work()

    return replacing(runner, "_after", after)


def demotion_not_sent() -> Planting:
    """Do not inform our NameNode that the lock is another's."""

    async def serve_as_standby(self: Controller) -> None:
        self._decide(DemotionTried())

    return replacing(Controller, "serve_as_standby", serve_as_standby)


def promotes_though_failed() -> Planting:
    """Take a promotion without an answer to have gone well."""
    really = Takeover.promote

    async def promote(self: Takeover, **named: Any) -> None:  # noqa: ANN401
        try:
            await really(self, **named)
        except TakeoverImpossible as failure:
            if not isinstance(failure.__cause__, ServiceUnreachable):
                raise

    return replacing(Takeover, "promote", promote)


def claim_without_end() -> Planting:
    """Claim what was proven of the predecessors for ever, also of those that come later."""
    return replacing(controller, "lasting_until", lambda contact, now: 1e9)


def claims_nobody_serves() -> Planting:
    """Inform the new active always that no earlier one serves anything."""
    really = Takeover.promote

    async def promote(self: Takeover, **_named: Any) -> None:  # noqa: ANN401
        await really(self, predecessor_gone_until=1e9)

    return replacing(Takeover, "promote", promote)
