"""Which nodes are witnesses of a writer's silence, and how long a majority has not heard it."""

import pytest

from journal.model import Epoch
from journal.silence import Heard, weigh


def heard(ago: float, *, promised: int = 7, writer: int = 7, lease: float = 1.0) -> Heard:
    return Heard(
        promised=Epoch(promised), writer=Epoch(writer), ago_seconds=ago, lease_seconds=lease
    )


CASES = {
    "all three": ([heard(1.5), heard(1.4), heard(1.3)], (3, 1.4)),
    "one has heard it just now: the majority counts": (
        [heard(1.5), heard(1.4), heard(0.1)],
        (3, 1.4),
    ),
    "two have heard it just now": ([heard(1.5), heard(0.2), heard(0.1)], (3, 0.2)),
    "two of three answer": ([heard(1.5), heard(1.4)], (2, 1.4)),
    "one of three answers": ([heard(9.0)], (1, 0.0)),
    "nobody answers": ([], (0, 0.0)),
    "one was started again, and has heard nobody": (
        [heard(9.0), heard(8.0), heard(7.0, writer=0, lease=0.0)],
        (2, 8.0),
    ),
    "two were started again": (
        [heard(9.0), heard(8.0, writer=0, lease=0.0), heard(7.0, writer=0, lease=0.0)],
        (1, 0.0),
    ),
    "two wait for a newer writer": (
        [heard(9.0), heard(8.0, promised=8), heard(7.0, promised=8)],
        (0, 0.0),
    ),
    "one has heard an older writer only": (
        [heard(9.0), heard(8.0), heard(7.0, promised=6, writer=6)],
        (2, 8.0),
    ),
    "one hears a newer one than it has promised yet": (
        [heard(9.0), heard(8.0), heard(7.0, promised=6)],
        (2, 8.0),
    ),
    "Hadoop's writer has no lease, and sends no heartbeats": (
        [heard(60.0, lease=0.0), heard(60.0, lease=0.0), heard(60.0, lease=0.0)],
        (0, 0.0),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_who_bears_witness(case: str) -> None:
    told, (witnesses, silent) = CASES[case]
    found = weigh(told, nodes=3)
    assert (found.witnesses, found.silent_seconds) == (witnesses, silent)


def test_the_longest_lease_counts_and_the_newest_epoch() -> None:
    told = [heard(9.0, lease=2.0), heard(9.0), heard(9.0, promised=6, writer=6, lease=5.0)]
    found = weigh(told, nodes=3)
    assert (found.lease_seconds, found.epoch, found.nodes) == (5.0, 7, 3)
