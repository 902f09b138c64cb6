"""What a node remembers of its writers' read leases, for the one that follows them."""

from dataclasses import replace
from pathlib import Path

import pytest

from journal.core.effects import PersistReadLease
from journal.core.machine import step
from journal.core.requests import Heartbeat, PrepareRecovery, Request, Stamp
from journal.model import Epoch, TxId
from tests.journal.core.requests_of import LocalJournal, Writer, formatted, segment
from tests.journal.core.test_rules import holding

LEASES: dict[str, tuple[int, Request, int]] = {
    "a longer one is remembered": (5, PrepareRecovery(Stamp(Epoch(2), 0, None, 9), TxId(1)), 9),
    "while it recovers, an older writer's counts": (
        9,
        PrepareRecovery(Stamp(Epoch(2), 0, None, 5), TxId(1)),
        9,
    ),
    "a writer that writes has outlasted it": (9, Heartbeat(Stamp(Epoch(1), 0, None, 5)), 5),
    "a refused one may hold none": (9, Heartbeat(Stamp(Epoch(1), -1, None, 20)), 9),
}


@pytest.mark.parametrize(("known", "request_", "then"), LEASES.values(), ids=list(LEASES))
def test_the_longest_read_lease_that_may_run_is_remembered(
    known: int, request_: Request, then: int
) -> None:
    done = step(replace(holding(segment(1, 3)), read_lease_micros=known), request_)
    assert done.state.read_lease_micros == then
    assert (PersistReadLease(then) in done.effects) == (then != known)


def test_it_is_remembered_after_a_restart(tmp_path: Path) -> None:
    formatted(tmp_path).close()
    journal = LocalJournal(tmp_path)
    assert journal.state.read_lease_micros == 0
    journal.ask(Writer(1).new_epoch())
    journal.ask(Heartbeat(Stamp(Epoch(1), 0, None, 1_500_000)))
    journal.close()
    assert LocalJournal(tmp_path).state.read_lease_micros == 1_500_000
