"""Planted bugs of the rule by which a learner votes again without a writer's word."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final

from journal.core import learner, voters
from journal.core.requests import AdmitByVoters
from journal.core.state import JournalState
from journal.core.voters import Voter, VoterBaseline
from journal.model import NO_TXID, Epoch
from journal.node.repair.admission import Admission
from tests.simulation.engine.mutants import Planted, Planting, replacing

_SIM: Final = "tests/simulation/journal/test_"
_CORE: Final = "tests/journal/core/test_"
_WORD: Final = _SIM + "voters_word.py::test_"
_WIPED: Final = (
    "it takes a wiped node that votes again without a writer's word, and a recovery that it decides"
)
bug: Final = Planted()


@bug.killed_by(_WORD + "what_was_acknowledged_before_the_wipe_must_be_final", why=_WIPED)
@bug.replacing("voters' word without a mark", voters, "set_baseline", 0)
def no_mark(_voters: Collection[Voter], epoch: Epoch, _nodes: int) -> VoterBaseline:
    return VoterBaseline(epoch, NO_TXID)


@bug.killed_by(_WORD + "a_late_start_of_a_superseded_writer_gives_no_vote", why=_WIPED)
@bug("voters' word under an older promise", 0)
def any_promise() -> Planting:
    return replacing(voters, "require_majority", lambda promises, epoch, nodes: None)


@bug.killed_by(_WORD + "a_claim_from_before_the_wipe_has_been_given_up", why=_WIPED)
@bug("voters' word while a claim may be under way", 0)
def no_wait() -> Planting:
    return replacing(Admission, "_claims_may_be_under_way", lambda self: False)


@bug.killed_by(_CORE + "voters.py::test_a_learner_stays_one_because", why=_WIPED)
@bug.replacing("voters' word before a recovery is over", learner, "admit_by_voters", 0)
def no_start_heard(really: Any, state: JournalState, request: AdmitByVoters) -> Any:
    return really(replace(state, start_heard=request.epoch), request)


@bug.killed_by(_SIM + "voters_word.py::test_without_a_majority_of_voters_nobody_votes", why=_WIPED)
@bug("one voter's word", 0)
def one_voter() -> Planting:
    return replacing(voters, "majority", lambda nodes: 1)


@bug.killed_by(
    _CORE + "voters.py::test_the_word_is_what_any_of_them_has_finalized",
    why="it takes an end that comes between the learner's last sync and the voters' word",
)
@bug.replacing("voters' word without their segments", voters, "admission_request", 0)
def nothing_required(really: Any, *asked: Any) -> Any:
    said = really(*asked)
    return replace(said, required=said.required[-1:])
