"""Planted bugs of the rule by which a learner votes again without a writer's word."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from journal.core import learner, voters
from journal.core.effects import Step
from journal.core.requests import AdmitByVoters
from journal.core.state import JournalState
from journal.core.voters import Mark, Voter
from journal.model import NO_TXID, Epoch
from journal.node.repair.admission import Admission
from tests.simulation.engine.mutants import Planting, replacing


def no_mark() -> Planting:
    """Ignore how far the voters' edits reached."""

    def careless(_voters: Collection[Voter], epoch: Epoch, _nodes: int) -> Mark:
        return Mark(epoch, NO_TXID)

    return replacing(voters, "mark", careless)


def any_promise() -> Planting:
    return replacing(voters, "require_majority", lambda promises, epoch, nodes: None)


def no_wait() -> Planting:
    return replacing(Admission, "_claims_may_be_under_way", lambda self: False)


def no_start_heard() -> Planting:
    """Take a writer that is still recovering for one that writes."""
    admit = learner.admit_by_voters

    def careless(state: JournalState, request: AdmitByVoters) -> Step:
        return admit(replace(state, start_heard=request.epoch), request)

    return replacing(learner, "admit_by_voters", careless)


def one_voter() -> Planting:
    return replacing(voters, "majority", lambda nodes: 1)


def nothing_required() -> Planting:
    """Require nothing that the voters have finalized since."""
    word = voters.word

    def careless(*asked: Any) -> AdmitByVoters:  # noqa: ANN401
        said = word(*asked)
        return replace(said, required=said.required[-1:])

    return replacing(voters, "word", careless)
