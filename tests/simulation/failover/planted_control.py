"""Bugs of the controller, of fencing and of hand-overs, to be planted."""

from dataclasses import replace
from typing import Any, Final

from fencing.model import FencingOutcome, FencingReport
from ha.elector import runner, term_keeper
from ha.elector.model import Term
from ha.elector.zookeeper.errors import TakeoverImpossible
from ha.service.errors import ServiceUnreachable
from ha.zkfc.candidacy import core
from ha.zkfc.candidacy.model import CedeAsked, CedeEnded, DemotionTried, RecheckDue, StatusReported
from ha.zkfc.candidacy.state import Out, Step
from ha.zkfc.handover import cede
from ha.zkfc.handover.cede import Ceding
from ha.zkfc.handover.graceful_failover import HandOver
from ha.zkfc.process import controller
from ha.zkfc.process.controller import Controller
from ha.zkfc.record.attempts import Attempts
from ha.zkfc.takeover import namenode_process, takeover
from ha.zkfc.takeover.former_active import Proof
from ha.zkfc.takeover.takeover import Takeover
from tests.simulation.engine.mutants import Planted, Planting, all_of, replacing
from tests.simulation.failover.mutants import UNCHECKED
from tests.simulation.failover.seams import wall_step

_ONE_AFTER_THE_OTHER: Final = (
    "tests/ha/elector/test_work_order.py::"
    "test_a_demotion_does_not_overtake_a_promotion_behind_a_takeover_that_was_called_off"
)
_CANDIDACY: Final = "tests/ha/zkfc/test_core.py::test_"
_ORDERS: Final = "tests/ha/zkfc/test_orders.py::test_"
_PREDECESSOR: Final = "tests/ha/zkfc/test_predecessor.py::test_"
bug: Final = Planted(300, beside=UNCHECKED)

# ---- cede and hand-over --------------------------------------------------------------------


@bug.replacing("a cede never fences", cede, "CedeAsked")
def cede_never_fences(seconds: float, *, needs_fencing: bool) -> Any:
    return CedeAsked(seconds, needs_fencing=False)


@bug.replacing("a cede without a demotion", Takeover, "demote")
async def cede_without_demotion(self: Takeover) -> bool:
    return True


@bug.killed_by(
    _ORDERS + "a_cede_half_way_through_a_takeover_leaves_the_breadcrumb[3]",
    why="it takes a demotion that is answered after the promotion; 1 of 500 worlds shows it",
)
@bug.replacing("a cede forgets the promotion", Ceding, "cede")
async def cede_forgets_the_promotion(self: Ceding, seconds: float) -> None:
    if seconds > 0:
        confirmed = await self._takeover.demote()
        self._decide(CedeAsked(seconds, needs_fencing=not confirmed))
    else:
        self._decide(CedeEnded())


@bug.replacing("a cede ends at once", core, "_judge_healthy")
def cede_ends_at_once(really: Any, state: Any, now: float) -> Any:
    back = state.stood_back
    return really(state if back is None else replace(state, place=Out(back.because)), now)


@bug.replacing("a cede never ends", controller, "step")
def cede_never_ends(really: Any, state: Any, event: Any, *, now: float) -> Any:
    if isinstance(event, RecheckDue | StatusReported) and state.stood_back is not None:
        return Step(state)
    return really(state, event, now=now)


@bug.replacing("peers are not released", HandOver, "_release")
async def peers_not_released(self: HandOver, asked: Any) -> None:
    return None


@bug.replacing("an earlier hand-over's success counts", HandOver, "_wait_for_attempt")
async def any_attempt_counts(really: Any, self: HandOver, before: Any) -> Any:
    return await really(self, -1)


@bug.replacing("the lock is success", HandOver, "__init__")
def lock_is_success(really: Any, self: HandOver, *arguments: Any, **named: Any) -> None:
    situation = named.pop("situation")

    def serving() -> Any:
        return replace(situation(), serving=True)

    really(self, *arguments, situation=serving, **named)


@bug("a hand-over waits in vain")
def waits_in_vain() -> Planting:
    def yield_to_cede_request(self: HandOver, *, has_lock: bool) -> None:
        return None

    async def nobody(self: HandOver) -> str:
        return ""

    return all_of(
        replacing(HandOver, "yield_to_cede_request", yield_to_cede_request),
        replacing(HandOver, "_find_third_lock_holder", nobody),
    )


@bug.replacing("rivals stand back for each other", HandOver, "yield_to_cede_request", 1500)
def stands_back_for_a_rival(really: Any, self: HandOver, *, has_lock: bool) -> None:
    really(self, has_lock=True)


@bug.killed_by(
    _ORDERS + "of_two_hand_overs_one_does_not_let_go_whom_the_other_asked",
    why="it takes two hand-overs at once among three; 1 of 4,000 worlds shows it",
)
@bug.replacing("one hand-over lets go for all", Ceding, "cede")
async def lets_go_for_all(really: Any, self: Ceding, seconds: float, client_id: bytes) -> None:
    await really(self, seconds, b"anybody")


@bug.replacing("a failed attempt is success", Attempts, "add")
def failure_is_success(really: Any, self: Attempts, record: Any) -> None:
    really(self, replace(record, succeeded=True))


# ---- fencing -------------------------------------------------------------------------------


@bug.replacing("a fence that timed out succeeded", Takeover, "_run_methods")
async def timeout_is_success(self: Takeover, target: Any) -> FencingReport:
    report = await _RUN(self, target)
    timed_out = [one for one in report.attempts if one.outcome is FencingOutcome.TIMED_OUT]
    if report.fenced or not timed_out:
        return report
    lied = tuple(replace(one, outcome=FencingOutcome.SUCCEEDED) for one in timed_out)
    return replace(report, attempts=lied)


_RUN = Takeover._run_methods


@bug.replacing("a fence that failed succeeded", Takeover, "_run_methods")
async def failure_is_fenced(self: Takeover, target: Any) -> FencingReport:
    report = await _RUN(self, target)
    good = tuple(replace(one, outcome=FencingOutcome.SUCCEEDED) for one in report.attempts)
    return replace(report, attempts=good)


@bug.replacing("silence is taken for standby", Takeover, "_request_standby")
async def silence_is_standby(really: Any, self: Takeover, *arguments: Any, **named: Any) -> Any:
    refusal = await really(self, *arguments, **named)
    return None if refusal is not None and "no " in refusal.text else refusal


@bug.replacing("journal-epoch proves death", takeover, "predecessor_gone")
def epoch_proves_death(really: Any, term: Term, proofs: Any) -> Any:
    return really(term, [Proof.KILLED for _ in proofs])


@bug.killed_by(
    _ORDERS + "one_that_answers_but_was_never_active_says_nothing_of_those_before_it",
    why="a writer that the journal refuses ends within a beat; 1 of 150 worlds shows it",
)
@bug.replacing("a predecessor that never settled", takeover, "predecessor_gone")
def unsettled_predecessor(term: Term, proofs: Any) -> bool:
    return all(proof is not Proof.NOTHING for proof in proofs)


@bug.killed_by(
    _PREDECESSOR + "only_the_very_process_on_this_very_machine_is_seen_to_end",
    why="it takes a port that is closed by a process that lives; 1 of 150 worlds shows it",
)
@bug.replacing("a death is guessed", namenode_process.NameNodeProcess, "describe_end")
def death_is_guessed(self: Any) -> str:
    return "guessed"


@bug.killed_by(
    _ORDERS + "a_record_of_an_earlier_term_says_nothing_of_the_present_owner",
    why="a writer that the journal refuses ends within a beat: its lease seldom outlives "
    "the takeover in which its successor dies, and the record is a settled one only "
    "until then",
)
@bug.replacing("a record of any term counts", term_keeper, "decode_term")
def any_term_counts(really: Any, breadcrumb: int, data: bytes | None) -> Any:
    for guess in range(max(0, breadcrumb - 400), breadcrumb + 1):
        if (found := really(guess, data)) is not Term.UNKNOWN:
            return found
    return really(breadcrumb, data)


# ---- the controller's judgement ------------------------------------------------------------


@bug.replacing("ill, and no breadcrumb left", core, "_leave")
def ill_leaves_no_breadcrumb(really: Any, state: Any, because: str, *, needs_fencing: bool) -> Any:
    return really(state, because, needs_fencing=False)


bug.add(
    "the NameNode's word is ignored",
    replacing(core, "_handle_mismatch", lambda state, _said, _now: Step(state)),
)


@bug.killed_by(
    _CANDIDACY + "decisions[ill while in: leave, keep the breadcrumb]",
    why="whoever comes back as a standby contradicts its controller, which leaves for "
    "that; it takes one that is ill for long, and 1 of 500 worlds shows it",
)
@bug("bad health is ignored", 600)
def bad_health_ignored() -> Planting:
    return replacing(core, "_judge_unwell", lambda state, _now: Step(state))


@bug.replacing("wall clock used", controller, "step")
def wall_clock(really: Any, state: Any, event: Any, *, now: float) -> Any:
    return really(state, event, now=now + wall_step())


@bug.replacing("a pause is not obeyed", core, "find_bar")
def pause_not_obeyed(really: Any, standing: Any, **named: Any) -> Any:
    notices = standing.notices
    if notices is not None:
        standing = replace(standing, notices=replace(notices, pause=None))
    return really(standing, **named)


@bug.killed_by(
    _ONE_AFTER_THE_OTHER,
    why="a NameNode does one transition after the other, and a demotion is asked for again",
)
@bug.replacing("work of the election overtakes", runner, "_run_after")
async def overtaking_demotion(_previous: Any, work: Any) -> None:
    await work()


@bug.killed_by(
    _ORDERS + "a_namenode_whose_controller_has_no_lock_is_told_to_stand_by",
    why="the next owner has fenced it, or the journal refuses it, and then it ends",
)
@bug.replacing("no demotion is sent", Controller, "serve_as_standby")
async def demotion_not_sent(self: Controller) -> None:
    self._decide(DemotionTried())


@bug.killed_by(
    _ORDERS + "a_promotion_without_an_answer_is_a_failed_takeover",
    why="the NameNode's reports contradict its controller soon; 1 of 50 worlds shows it",
)
@bug.replacing("a silent promotion succeeded", Takeover, "promote")
async def promotes_though_failed(really: Any, self: Takeover, **named: Any) -> None:
    try:
        await really(self, **named)
    except TakeoverImpossible as failure:
        if not isinstance(failure.__cause__, ServiceUnreachable):
            raise


@bug.killed_by(
    _ORDERS + "a_claim_about_predecessors_ends_with_what_is_known_of_our_lock",
    why="it takes a host that stops at the very promotion; 1 of 1,000 worlds shows it",
)
@bug("nobody else serves, and never will")
def claim_without_end() -> Planting:
    return replacing(controller, "former_gone_until", lambda contact, now: 1e9)


@bug.replacing("nobody else serves, without proof", Takeover, "promote")
async def claims_nobody_serves(really: Any, self: Takeover, **_named: Any) -> None:
    await really(self, predecessor_gone_until=1e9)
