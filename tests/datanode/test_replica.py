"""Every operation on every replica: the whole table, then the numbers that decide."""

from dataclasses import replace

import pytest

from datanode.model import (
    BeingWritten,
    Block,
    BlockId,
    Finalized,
    GenerationStamp,
    Replica,
    ReplicaState,
    StorageId,
    Temporary,
    UnderRecovery,
    WaitingForRecovery,
    readable_length,
    reported_state,
)
from datanode.replicas.operations import (
    Append,
    BeginRecovery,
    Complete,
    Create,
    CreateCopy,
    EndRecovery,
    Invalidate,
    LeaveRecovery,
    News,
    OpenCopy,
    Operation,
    RecoverAppend,
    RecoverClose,
    RecoverPipeline,
    news_of,
)
from datanode.replicas.replica import Next, Refused, acknowledged, decide, received

DISK = StorageId("DS-1")


def stamp(number: int) -> GenerationStamp:
    return GenerationStamp(number)


def block(number: int) -> Block:
    return Block(BlockId(1 << 30), stamp(number))


B10 = block(10)
FINAL = Finalized(B10, DISK, 100)
OPEN = BeingWritten(B10, DISK, 100, acked=100)
LEFT = WaitingForRecovery(B10, DISK, 100)
UNREADABLE = WaitingForRecovery(B10, DISK, 0, readable=False)
COPY = Temporary(B10, DISK, 100)
AGREED = UnderRecovery(OPEN, stamp(11))
STATES: dict[str, Replica | None] = {
    "none": None, "FINALIZED": FINAL, "RBW": OPEN, "RWR": LEFT, "TEMPORARY": COPY, "RUR": AGREED,
}  # fmt: skip

#                                  none        FINALIZED   RBW         RWR       TEMPORARY  RUR
TABLE: dict[str, tuple[Operation, tuple[str, ...]]] = {
    "create": (Create(B10, DISK, 9), ("RBW", "-", "-", "-", "-", "-")),
    "create again": (
        Create(block(12), DISK, 9, again=True),
        ("RBW", "-", "RBW dropped", "RBW dropped", "RBW dropped", "-"),
    ),
    "copy, same stamp": (CreateCopy(B10, DISK, 9), ("TEMPORARY", "-", "-", "-", "-", "-")),
    "copy, newer": (
        CreateCopy(block(12), DISK, 9),
        ("TEMPORARY", "-", *(["TEMPORARY dropped"] * 3), "-"),
    ),
    "copy to a pipeline, same stamp": (
        CreateCopy(B10, DISK, 9, replaces_whole=True),
        ("TEMPORARY", "-", "-", "-", "-", "-"),
    ),
    "copy to a pipeline, newer": (
        CreateCopy(block(12), DISK, 9, replaces_whole=True),
        ("TEMPORARY", *(["TEMPORARY dropped"] * 4), "-"),
    ),
    "recover pipeline": (
        RecoverPipeline(B10, stamp(12), 100, 100),
        ("missing", "-", "RBW", "-", "-", "-"),
    ),
    "append": (Append(B10, stamp(12), 100), ("missing", "RBW", "-", "-", "-", "-")),
    "recover append": (
        RecoverAppend(B10, stamp(12), 100),
        ("missing", "RBW", "RBW", "-", "-", "-"),
    ),
    "recover close": (
        RecoverClose(B10, stamp(12), 100),
        ("missing", "FINALIZED", "FINALIZED", "-", "-", "-"),
    ),
    "complete": (Complete(B10), ("missing", "-", "FINALIZED", "-", "FINALIZED", "-")),
    "open copy": (OpenCopy(B10), ("missing", "-", "-", "-", "RBW", "-")),
    "begin recovery": (
        BeginRecovery(B10, stamp(12)),
        ("missing", "RUR", "RUR", "RUR", "missing", "RUR"),
    ),
    "end recovery": (
        EndRecovery(B10, stamp(11), 60),
        ("missing", "-", "-", "-", "-", "FINALIZED"),
    ),
    "leave recovery": (
        LeaveRecovery(B10, stamp(11)),
        ("missing", "-", "-", "-", "-", "RBW"),
    ),
    "invalidate": (
        Invalidate(B10),
        ("missing", "nothing", "nothing", "nothing", "nothing", "nothing"),
    ),
    "invalidate, other stamp": (Invalidate(block(9)), ("missing", "-", "-", "-", "-", "-")),
}


def name(replica: Replica | None) -> str:
    return next((one for one, sample in STATES.items() if type(sample) is type(replica)), "nothing")


def told(outcome: Next | Refused, before: Replica | None) -> str:
    match outcome:
        case Refused():
            return "missing" if outcome.missing else "-"
        case Next(replica=None):
            return "nothing"
        case Next():
            dropped = " dropped" if outcome.dropped and before is not None else ""
            return name(outcome.replica) + dropped


@pytest.mark.row("B25")
@pytest.mark.parametrize("row", TABLE)
def test_b25_every_operation_on_every_replica(row: str) -> None:
    operation, expected = TABLE[row]
    found = tuple(told(decide(operation, state), state) for state in STATES.values())
    assert found == expected


NUMBERS: dict[str, tuple[Operation, Replica, bool]] = {
    "recovery: the disk did not tell what it has": (
        BeginRecovery(B10, stamp(12)), UNREADABLE, False),
    "pipeline: replica older than the block": (
        RecoverPipeline(block(11), stamp(12), 0, 200), OPEN, False),
    "pipeline: replica newer than the new stamp": (
        RecoverPipeline(block(8), stamp(9), 0, 200), OPEN, False),
    "pipeline: bumped already by a first try": (
        RecoverPipeline(block(9), stamp(10), 0, 200), OPEN, True),
    "pipeline: fewer acknowledged than the client knows of": (
        RecoverPipeline(B10, stamp(12), 101, 200), OPEN, False),
    "pipeline: more received than the client has sent": (
        RecoverPipeline(B10, stamp(12), 0, 99), OPEN, False),
    "pipeline: received what the client knows of, not all acknowledged": (
        RecoverPipeline(B10, stamp(12), 100, 200), replace(OPEN, acked=99), False),
    "pipeline: more received than sent, though less is acknowledged": (
        RecoverPipeline(B10, stamp(12), 0, 99), replace(OPEN, acked=60), False),
    "append: another length": (Append(B10, stamp(12), 99), FINAL, False),
    "append: the same stamp": (Append(B10, stamp(10), 100), FINAL, True),
    "append: an older stamp": (Append(B10, stamp(9), 100), FINAL, False),
    "append: an older block": (Append(block(9), stamp(12), 100), FINAL, False),
    "recover append: not all acknowledged": (
        RecoverAppend(B10, stamp(12), 100), replace(OPEN, acked=99), False),
    "recover append: an open replica older than the block": (
        RecoverAppend(block(11), stamp(12), 100), OPEN, False),
    "recover append: a whole replica newer than the new stamp": (
        RecoverAppend(block(8), stamp(9), 100), FINAL, False),
    "recover close: another length": (RecoverClose(B10, stamp(12), 99), OPEN, False),
    "complete: another stamp": (Complete(block(9)), OPEN, False),
    "open copy: another stamp": (OpenCopy(block(9)), COPY, False),
    "create again: a newer replica is here": (
        Create(block(9), DISK, 0, again=True), OPEN, False),
    "recovery: the replica is older": (BeginRecovery(block(11), stamp(12)), OPEN, False),
    "recovery: the id is not newer": (BeginRecovery(B10, stamp(10)), OPEN, False),
    "recovery: an equal one runs": (BeginRecovery(B10, stamp(11)), AGREED, False),
    "recovery: a newer one takes over": (BeginRecovery(B10, stamp(12)), AGREED, True),
    "end: another recovery": (EndRecovery(B10, stamp(12), 100), AGREED, False),
    "end: another stamp": (EndRecovery(block(9), stamp(11), 100), AGREED, False),
    "leave: another recovery": (LeaveRecovery(B10, stamp(12)), AGREED, False),
    "end: longer than the replica": (EndRecovery(B10, stamp(11), 101), AGREED, False),
}  # fmt: skip


@pytest.mark.parametrize("case", NUMBERS)
def test_stamps_and_lengths(case: str) -> None:
    operation, before, allowed = NUMBERS[case]
    outcome = decide(operation, before)
    assert isinstance(outcome, Next) is allowed
    if isinstance(outcome, Refused):
        assert str(before.block) in outcome.why


def test_a_pipeline_goes_on_from_what_is_acknowledged() -> None:
    outcome = decide(RecoverPipeline(B10, stamp(12), 40, 100), replace(OPEN, acked=60))
    assert outcome == Next(replace(OPEN, block=block(12), length=60, acked=60))


BECOMES: dict[str, tuple[Operation, Replica, Replica]] = {
    "a close that is recovered": (
        RecoverClose(B10, stamp(12), 100), OPEN, Finalized(block(12), DISK, 100)),
    "a recovery that ends": (
        EndRecovery(B10, stamp(11), 60), AGREED, Finalized(block(11), DISK, 60)),
    "a recovery that another takes over": (
        BeginRecovery(B10, stamp(12)), AGREED, UnderRecovery(OPEN, stamp(12))),
    "a copy that is opened keeps its space": (
        OpenCopy(B10), replace(COPY, length=60, reserved=128),
        BeingWritten(B10, DISK, 60, acked=60, reserved=128)),
}  # fmt: skip


@pytest.mark.parametrize("case", BECOMES)
def test_what_a_replica_becomes(case: str) -> None:
    operation, before, after = BECOMES[case]
    assert decide(operation, before) == Next(after)


def test_a_running_recovery_is_told_apart() -> None:
    outcome = decide(BeginRecovery(B10, stamp(11)), AGREED)
    assert isinstance(outcome, Refused)
    assert outcome.recovery_in_progress


def test_readers_see_what_is_acknowledged() -> None:
    growing = received(replace(OPEN, acked=60, length=60), 100)
    assert (growing.length, readable_length(growing)) == (100, 60)
    growing = acknowledged(growing, 90, b"tail")
    assert readable_length(growing) == 90
    assert acknowledged(growing, 80, b"old") == growing
    assert received(growing, 70).length == 100
    assert readable_length(UnderRecovery(OPEN, stamp(12))) == 100


@pytest.mark.parametrize("replica", [FINAL, LEFT, AGREED], ids=["FINALIZED", "RWR", "RUR"])
def test_what_nobody_writes_does_not_grow(replica: Replica) -> None:
    assert received(replica, 200) == replica
    assert acknowledged(replica, 100, b"tail") == replica


def test_a_report_shows_what_was_before_a_recovery_and_no_copies() -> None:
    assert reported_state(AGREED) is ReplicaState.RBW
    assert reported_state(COPY) is None
    assert reported_state(LEFT) is ReplicaState.RWR


def test_what_name_nodes_are_told() -> None:
    told_of = {row: news_of(operation) for row, (operation, _) in TABLE.items()}
    assert {row for row, news in told_of.items() if news is News.RECEIVING} == {
        "create", "create again", "append", "recover append",
    }  # fmt: skip
    assert {row for row, news in told_of.items() if news is News.RECEIVED} == {
        "complete", "recover close", "end recovery",
    }  # fmt: skip
