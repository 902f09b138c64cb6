"""Every single fault and every pair of faults over the scripted workload.

Hadoop's test loses one request at each of two nodes; here any two calls, at any nodes, lose their
request or their answer, or their node loses power before or after them.
"""

import os

import pytest

from tests.campaigns.soak.exhaustive import explore_all
from tests.simulation.journal.exhaustive import Scope, first_strikes, named, parsed
from tests.simulation.journal.scripted import Call, Kind, Strike, play

JOBS = os.cpu_count() or 1


PAIRS = Scope(2, symmetric=True, rest=True)
"""Up to the names of the nodes; `./run soak journal --exhaustive pairs` names them all."""


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_two_faults_lose_nothing_whatever_the_second() -> None:
    """Take each 25th fault first, of all kinds; behind it every other."""
    firsts = first_strikes(PAIRS)[::25]
    tally = explore_all(PAIRS, JOBS, roots=firsts)
    assert {strike.kind for strike in firsts} == set(Kind)
    assert not tally.failures, tally.failures[:3]
    assert tally.worlds[1] >= 3
    assert tally.worlds[2] >= 120
    assert tally.acknowledged > 5 * tally.worlds[2]


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_pair_of_faults_loses_nothing() -> None:
    tally = explore_all(PAIRS, JOBS)
    assert not tally.failures, tally.failures[:3]
    assert tally.worlds[1] >= 60
    assert tally.worlds[2] >= 4000
    assert tally.acknowledged > 5 * tally.worlds[2]
    assert tally.spent < tally.worlds[2] / 10, "too many strikes fall on nodes that are down"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "part", [pytest.param(one, marks=[pytest.mark.long] if one else []) for one in range(5)]
)
def test_every_single_fault_on_every_node_is_survived(part: int) -> None:
    """Keep the quorum: both writers finish, and all edits are acknowledged."""
    undisturbed = play().outcome.acknowledged
    firsts = first_strikes(Scope(1))[part::5]
    assert {strike.kind for strike in firsts} == set(Kind)
    for first in firsts:
        played = play((first,))
        assert played.outcome.violation is None, f"{first}: {played.outcome.violation}"
        assert played.outcome.fired == (str(first),)
        assert played.outcome.acknowledged == undisturbed, first


@pytest.mark.row(
    "8.6 determineMaxIpcNumber", because="the explorer counts calls; the test: all kinds come up"
)
def test_the_workload_asks_every_kind_of_question() -> None:
    lines = "\n".join(play(keep_trace=True).outcome.lines)
    for request in ("NewEpoch", "StartLogSegment", "FinalizeLogSegment", "PrepareRecovery",
                    "AcceptRecovery"):  # fmt: skip
        assert f"request={request}" in lines
    assert "reason=fenced" in lines, "the late writer was not refused"


def test_strikes_have_names() -> None:
    strikes = (Strike(Call("jn1", 3), Kind.LOSE_REPLY), Strike(Call("jn2", 10), Kind.CRASH_AFTER))
    assert parsed(named(strikes)) == strikes
    with pytest.raises(ValueError, match="is no strike"):
        parsed("lose-reply@jn1")
