"""The lease's arithmetic against the worlds that it must be right in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.errors import InvariantBroken
from journal.lease import DRIFT_MARGIN, Lease, left_to_wait
from journal.model import NodeName
from journal.quorum import majority

NODES = tuple(NodeName(f"jn{i}:1") for i in range(5))
seconds = st.floats(min_value=0, max_value=100, allow_nan=False)


def lease_of(count: int, duration: float = 1.0) -> Lease:
    return Lease(duration, frozenset(NODES[:count]))


def test_a_lease_counts_from_the_newest_send_time_that_a_majority_has_answered() -> None:
    lease = lease_of(3)
    assert lease.valid_until is None
    lease = lease.accepted([NODES[0]], 10.0)
    assert lease.valid_until is None
    assert not lease.covers(0)
    lease = lease.accepted([NODES[1]], 11.0)
    assert lease.valid_until == 11.0
    lease = lease.accepted([NODES[2]], 12.0)
    assert lease.valid_until == 12.0
    assert lease.covers(11.999)
    assert not lease.covers(12.0)


def test_an_answer_that_comes_late_takes_nothing_back() -> None:
    lease = lease_of(3).accepted(NODES[:2], 10.0)
    assert lease.accepted(NODES[:2], 9.0) == lease


def test_a_stranger_s_answer_is_never_counted() -> None:
    with pytest.raises(InvariantBroken):
        lease_of(3).accepted([NODES[4]], 1.0)


@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 4), seconds)))
def test_the_end_is_the_last_instant_that_a_majority_vouches_for(
    count: int, answers: list[tuple[int, float]]
) -> None:
    lease = lease_of(count)
    for node, sent_at in answers:
        lease = lease.accepted([NODES[node % count]], sent_at)
    moments = sorted({sent_at for _, sent_at in answers}, reverse=True)

    def vouching(moment: float) -> int:
        return len({node % count for node, sent_at in answers if sent_at >= moment})

    proven = [moment for moment in moments if vouching(moment) >= majority(count)]
    assert lease.valid_until == (proven[0] + 1.0 if proven else None)


speeds = st.floats(min_value=-0.02, max_value=0.02)
majorities = st.sampled_from([frozenset(s) for s in ({0, 1}, {0, 2}, {1, 2}, {0, 1, 2})])


@given(
    st.tuples(seconds, seconds, seconds),
    majorities,
    majorities,
    seconds,
    seconds,
    st.tuples(speeds, speeds, speeds),
    st.floats(min_value=0.01, max_value=60),
)
def test_no_new_writer_acknowledges_while_an_old_lease_runs(
    flights: tuple[float, float, float],
    heard_by: frozenset[int],
    granted_by: frozenset[int],
    after: float,
    reply_after: float,
    drift: tuple[float, float, float],
    duration: float,
) -> None:
    """Try any delays and any majorities, with clocks 2 % fast or slow."""
    old, node, new = (1 + d for d in drift)
    sent = 1000.0
    accepted = {i: sent + flights[i] for i in heard_by}
    # A node grants the new epoch only after it has accepted the old one's last request.
    granted = {i: accepted.get(i, sent) + after for i in granted_by}
    answers = [(granted[i] - accepted[i]) * node for i in granted_by & heard_by]
    others = [1e6 for _ in granted_by - heard_by]
    lease = Lease(duration, frozenset(NODES[:3])).accepted([NODES[i] for i in heard_by], 0.0)
    assert lease.valid_until is not None
    lease_ends = sent + lease.valid_until / old
    has_answers = max(granted.values()) + reply_after
    assert has_answers + left_to_wait(duration, answers + others) / new >= lease_ends - 1e-6


def test_a_new_writer_waits_only_what_is_left() -> None:
    assert DRIFT_MARGIN == 0.05
    longest = 1 + DRIFT_MARGIN
    assert left_to_wait(1.0, [0.0, 5.0]) == longest
    assert left_to_wait(1.0, [0.3, 5.0]) == pytest.approx(longest - 0.3)
    assert left_to_wait(1.0, [2.0, 5.0]) == 0
    assert left_to_wait(0.0, [0.0]) == 0
    assert left_to_wait(1.0, []) == longest
