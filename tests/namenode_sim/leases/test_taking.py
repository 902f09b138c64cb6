"""Which client gets an open file, row by row."""

from dataclasses import replace
from itertools import product

import pytest

from namenode_sim.leases.expiry import OwnHolder, expired, own_holder
from namenode_sim.leases.taking import (
    SOFT_LIMIT_SECONDS,
    Answer,
    Caller,
    Granted,
    Intent,
    Refusal,
    Release,
    Writer,
    take,
)

WRITER = Writer("writer", "m1", 5.0, recovers=False)
SILENT = replace(WRITER, silent_seconds=SOFT_LIMIT_SECONDS + 1)
OTHER = Caller("other", "m2", Intent.APPEND)
ITSELF = Caller("writer", "m1", Intent.CREATE)
FORCED = Caller("other", "m2", Intent.RECOVER, force=True)
BECAUSE = "Failed to APPEND_FILE /f for other on m2 because"


def later(caller: Caller) -> Release:
    text = f"Failed to {caller.intent.value} /f for {caller.client} on {caller.machine} because"
    return Release(Refusal(f"{text} lease recovery is in progress. Try again later.", True))


CASES: dict[str, tuple[Writer | None, Caller, Answer]] = {
    "a closed file": (None, OTHER, Granted()),
    "a closed file, by recoverLease": (None, FORCED, Granted()),
    "its own writer": (
        WRITER, ITSELF,
        Refusal("Failed to CREATE_FILE /f for writer on m1 because writer is already the current "
                "lease holder."),
    ),
    "its own writer, after the soft limit": (
        SILENT, ITSELF,
        Refusal("Failed to CREATE_FILE /f for writer on m1 because writer is already the current "
                "lease holder."),
    ),
    "its own writer, by recoverLease": (
        WRITER, replace(ITSELF, intent=Intent.RECOVER, force=True),
        later(replace(ITSELF, intent=Intent.RECOVER)),
    ),
    "a holder without a lease": (
        replace(WRITER, silent_seconds=None), OTHER,
        Refusal(f"{BECAUSE} the file is under construction but no leases found."),
    ),
    "recoverLease": (WRITER, FORCED, later(FORCED)),
    "recoverLease while a recovery runs": (replace(WRITER, recovers=True), FORCED, later(FORCED)),
    "after the soft limit": (SILENT, OTHER, later(OTHER)),
    "at the soft limit": (
        replace(WRITER, silent_seconds=SOFT_LIMIT_SECONDS), OTHER,
        Refusal(f"{BECAUSE} this file lease is currently owned by writer on m1"),
    ),
    "within the soft limit": (
        WRITER, OTHER, Refusal(f"{BECAUSE} this file lease is currently owned by writer on m1"),
    ),
    "within the soft limit, while a recovery runs": (
        replace(WRITER, recovers=True), OTHER,
        Refusal(f"{BECAUSE} another recovery is in progress by writer on m1", in_recovery=True),
    ),
}  # fmt: skip


@pytest.mark.row("B24")
@pytest.mark.parametrize(("writer", "caller", "answer"), CASES.values(), ids=CASES.keys())
def test_a_caller_wants_a_file(writer: Writer | None, caller: Caller, answer: Answer) -> None:
    assert take("/f", writer, caller) == answer


def test_nobody_takes_a_file_from_a_writer_that_lives() -> None:
    for intent, recovers, silent in product(Intent, (False, True), (0.0, 59.9, 60.0)):
        answer = take("/f", Writer("w", "m", silent, recovers), Caller("c", "m", intent))
        assert isinstance(answer, Refusal)


def test_the_longest_silent_are_looked_at_first() -> None:
    renewed = {"c": 10.0, "late": 95.0, "b": 3.0, "a": 10.0}
    assert expired(renewed, 100.0, 50.0) == ["b", "a", "c"]
    assert expired(renewed, 60.0, 50.0) == ["b"]
    assert expired({}, 60.0, 50.0) == []


def test_the_namenode_changes_its_name_after_each_hard_limit() -> None:
    first = own_holder(None, 100.0, 1_700_000, 50.0)
    assert first == OwnHolder("HDFS_NameNode-1700000", 100.0)
    assert own_holder(first, 150.0, 1_750_000, 50.0) is first
    assert own_holder(first, 151.0, 1_751_000, 50.0).name == "HDFS_NameNode-1751000"
