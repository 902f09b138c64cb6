"""Every operation on every replica: the whole table, then the numbers that decide."""

from dataclasses import replace

import pytest

from datanode import model
from datanode.replicas import operations
from datanode.replicas.replica import Next, OperationRefused, acknowledged, decide, received
from hadoop.blocks import Block, BlockId, GenerationStamp

DISK = model.StorageId("DS-1")


def stamp(number: int) -> GenerationStamp:
    return GenerationStamp(number)


def block(number: int) -> Block:
    return Block(BlockId(1 << 30), stamp(number))


B10 = block(10)
FINAL = model.Finalized(B10, DISK, 100)
OPEN = model.BeingWritten(B10, DISK, 100, acked=100)
LEFT = model.WaitingForRecovery(B10, DISK, 100)
UNREADABLE = model.WaitingForRecovery(B10, DISK, 0, readable=False)
COPY = model.Temporary(B10, DISK, 100)
AGREED = model.UnderRecovery(OPEN, stamp(11))
STATES: dict[str, model.Replica | None] = {
    "none": None, "FINALIZED": FINAL, "RBW": OPEN, "RWR": LEFT, "TEMPORARY": COPY, "RUR": AGREED,
}  # fmt: skip

#                                  none        FINALIZED   RBW         RWR       TEMPORARY  RUR
TABLE: dict[str, tuple[operations.Operation, tuple[str, ...]]] = {
    "create": (operations.Create(B10, DISK, 9), ("RBW", "-", "-", "-", "-", "-")),
    "create again": (
        operations.Create(block(12), DISK, 9, again=True),
        ("RBW", "-", "RBW dropped", "RBW dropped", "RBW dropped", "-"),
    ),
    "copy, same stamp": (
        operations.CreateCopy(B10, DISK, 9),
        ("TEMPORARY", "-", "-", "-", "-", "-"),
    ),
    "copy, newer": (
        operations.CreateCopy(block(12), DISK, 9),
        ("TEMPORARY", "-", *(["TEMPORARY dropped"] * 3), "-"),
    ),
    "copy to a pipeline, same stamp": (
        operations.CreateCopy(B10, DISK, 9, replaces_whole=True),
        ("TEMPORARY", "-", "-", "-", "-", "-"),
    ),
    "copy to a pipeline, newer": (
        operations.CreateCopy(block(12), DISK, 9, replaces_whole=True),
        ("TEMPORARY", *(["TEMPORARY dropped"] * 4), "-"),
    ),
    "recover pipeline": (
        operations.RecoverPipeline(B10, stamp(12), 100, 100),
        ("missing", "-", "RBW", "-", "-", "-"),
    ),
    "append": (operations.Append(B10, stamp(12), 100), ("missing", "RBW", "-", "-", "-", "-")),
    "recover append": (
        operations.RecoverAppend(B10, stamp(12), 100),
        ("missing", "RBW", "RBW", "-", "-", "-"),
    ),
    "recover close": (
        operations.RecoverClose(B10, stamp(12), 100),
        ("missing", "FINALIZED", "FINALIZED", "-", "-", "-"),
    ),
    "complete": (operations.Complete(B10), ("missing", "-", "FINALIZED", "-", "FINALIZED", "-")),
    "open copy": (operations.OpenCopy(B10), ("missing", "-", "-", "-", "RBW", "-")),
    "begin recovery": (
        operations.BeginRecovery(B10, stamp(12)),
        ("missing", "RUR", "RUR", "RUR", "missing", "RUR"),
    ),
    "end recovery": (
        operations.EndRecovery(B10, stamp(11), 60),
        ("missing", "-", "-", "-", "-", "FINALIZED"),
    ),
    "leave recovery": (
        operations.LeaveRecovery(B10, stamp(11)),
        ("missing", "-", "-", "-", "-", "RBW"),
    ),
    "invalidate": (
        operations.Invalidate(B10),
        ("missing", "nothing", "nothing", "nothing", "nothing", "nothing"),
    ),
    "invalidate, other stamp": (
        operations.Invalidate(block(9)),
        ("missing", "-", "-", "-", "-", "-"),
    ),
}


def name(replica: model.Replica | None) -> str:
    return next((one for one, sample in STATES.items() if type(sample) is type(replica)), "nothing")


def told(outcome: Next | OperationRefused, before: model.Replica | None) -> str:
    match outcome:
        case OperationRefused():
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
    assert tuple(told(decide(operation, state), state) for state in STATES.values()) == expected


NUMBERS: dict[str, tuple[operations.Operation, model.Replica, bool]] = {
    "recovery: the disk did not tell what it has": (
        operations.BeginRecovery(B10, stamp(12)), UNREADABLE, False),
    "pipeline: replica older than the block": (
        operations.RecoverPipeline(block(11), stamp(12), 0, 200), OPEN, False),
    "pipeline: replica newer than the new stamp": (
        operations.RecoverPipeline(block(8), stamp(9), 0, 200), OPEN, False),
    "pipeline: bumped already by a first try": (
        operations.RecoverPipeline(block(9), stamp(10), 0, 200), OPEN, True),
    "pipeline: fewer acknowledged than the client knows of": (
        operations.RecoverPipeline(B10, stamp(12), 101, 200), OPEN, False),
    "pipeline: more received than the client has sent": (
        operations.RecoverPipeline(B10, stamp(12), 0, 99), OPEN, False),
    "pipeline: received what the client knows of, not all acknowledged": (
        operations.RecoverPipeline(B10, stamp(12), 100, 200), replace(OPEN, acked=99), False),
    "pipeline: more received than sent, though less is acknowledged": (
        operations.RecoverPipeline(B10, stamp(12), 0, 99), replace(OPEN, acked=60), False),
    "append: another length": (operations.Append(B10, stamp(12), 99), FINAL, False),
    "append: the same stamp": (operations.Append(B10, stamp(10), 100), FINAL, True),
    "append: an older stamp": (operations.Append(B10, stamp(9), 100), FINAL, False),
    "append: an older block": (operations.Append(block(9), stamp(12), 100), FINAL, False),
    "recover append: not all acknowledged": (
        operations.RecoverAppend(B10, stamp(12), 100), replace(OPEN, acked=99), False),
    "recover append: an open replica older than the block": (
        operations.RecoverAppend(block(11), stamp(12), 100), OPEN, False),
    "recover append: a whole replica newer than the new stamp": (
        operations.RecoverAppend(block(8), stamp(9), 100), FINAL, False),
    "recover close: another length": (operations.RecoverClose(B10, stamp(12), 99), OPEN, False),
    "complete: another stamp": (operations.Complete(block(9)), OPEN, False),
    "open copy: another stamp": (operations.OpenCopy(block(9)), COPY, False),
    "create again: a newer replica is here": (
        operations.Create(block(9), DISK, 0, again=True), OPEN, False),
    "recovery: the replica is older": (operations.BeginRecovery(block(11), stamp(12)), OPEN, False),
    "recovery: the id is not newer": (operations.BeginRecovery(B10, stamp(10)), OPEN, False),
    "recovery: an equal one runs": (operations.BeginRecovery(B10, stamp(11)), AGREED, False),
    "recovery: a newer one takes over": (operations.BeginRecovery(B10, stamp(12)), AGREED, True),
    "end: another recovery": (operations.EndRecovery(B10, stamp(12), 100), AGREED, False),
    "end: another stamp": (operations.EndRecovery(block(9), stamp(11), 100), AGREED, False),
    "leave: another recovery": (operations.LeaveRecovery(B10, stamp(12)), AGREED, False),
    "end: longer than the replica": (operations.EndRecovery(B10, stamp(11), 101), AGREED, False),
}  # fmt: skip


@pytest.mark.parametrize("case", NUMBERS)
def test_stamps_and_lengths(case: str) -> None:
    operation, before, allowed = NUMBERS[case]
    outcome = decide(operation, before)
    assert isinstance(outcome, Next) is allowed
    if isinstance(outcome, OperationRefused):
        assert str(before.block) in outcome.why


def test_a_pipeline_goes_on_from_what_is_acknowledged() -> None:
    outcome = decide(operations.RecoverPipeline(B10, stamp(12), 40, 100), replace(OPEN, acked=60))
    assert outcome == Next(replace(OPEN, block=block(12), length=60, acked=60))


BECOMES: dict[str, tuple[operations.Operation, model.Replica, model.Replica]] = {
    "a close that is recovered": (
        operations.RecoverClose(B10, stamp(12), 100), OPEN, model.Finalized(block(12), DISK, 100)),
    "a recovery that ends": (
        operations.EndRecovery(B10, stamp(11), 60), AGREED, model.Finalized(block(11), DISK, 60)),
    "a recovery that another takes over": (
        operations.BeginRecovery(B10, stamp(12)), AGREED, model.UnderRecovery(OPEN, stamp(12))),
    "a copy that is opened keeps its space": (
        operations.OpenCopy(B10), replace(COPY, length=60, reserved=128),
        model.BeingWritten(B10, DISK, 60, acked=60, reserved=128)),
}  # fmt: skip


@pytest.mark.parametrize("case", BECOMES)
def test_what_a_replica_becomes(case: str) -> None:
    operation, before, after = BECOMES[case]
    assert decide(operation, before) == Next(after)


def test_a_running_recovery_is_told_apart() -> None:
    outcome = decide(operations.BeginRecovery(B10, stamp(11)), AGREED)
    assert isinstance(outcome, OperationRefused)
    assert outcome.recovery_in_progress


def test_readers_see_what_is_acknowledged() -> None:
    growing = received(replace(OPEN, acked=60, length=60), 100)
    assert (growing.length, model.readable_length(growing)) == (100, 60)
    growing = acknowledged(growing, 90, b"tail")
    assert model.readable_length(growing) == 90
    assert acknowledged(growing, 80, b"old") == growing
    assert received(growing, 70).length == 100
    assert model.readable_length(model.UnderRecovery(OPEN, stamp(12))) == 100


@pytest.mark.parametrize("replica", [FINAL, LEFT, AGREED], ids=["FINALIZED", "RWR", "RUR"])
def test_what_nobody_writes_does_not_grow(replica: model.Replica) -> None:
    assert received(replica, 200) == replica
    assert acknowledged(replica, 100, b"tail") == replica


def test_a_report_shows_what_was_before_a_recovery_and_no_copies() -> None:
    assert model.reported_state(AGREED) is model.ReplicaState.RBW
    assert model.reported_state(COPY) is None
    assert model.reported_state(LEFT) is model.ReplicaState.RWR


def test_what_name_nodes_are_told() -> None:
    told_of = {row: operations.news_of(operation) for row, (operation, _) in TABLE.items()}
    assert {row for row, news in told_of.items() if news is operations.News.RECEIVING} == {
        "create", "create again", "append", "recover append",
    }  # fmt: skip
    assert {row for row, news in told_of.items() if news is operations.News.RECEIVED} == {
        "complete", "recover close", "end recovery",
    }  # fmt: skip
