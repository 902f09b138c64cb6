"""Safe mode: both conditions, the extension, what operators may do, and what the tip says."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from namenode_sim.blocks.model import Stage
from namenode_sim.blocks.safemode import (
    Counts,
    Extension,
    Hold,
    Off,
    Pending,
    ReplicasWouldBeDeleted,
    SafeMode,
    SafeModeRules,
    begin,
    counts_of,
    enter,
    force_exit,
    leave,
    look,
    tip,
)
from namenode_sim.blocks.state import BlockState

RULES = SafeModeRules(extension_seconds=30.0)
TWO_NODES = replace(RULES, min_datanodes=2)
AT_ONCE = replace(RULES, extension_seconds=0.0)


def run_low(mode: SafeMode) -> SafeMode:
    """Return a mode in which name directories have too little room."""
    return replace(mode, low_resources=True)


PENDING, EXTENSION, OFF = SafeMode(Pending()), SafeMode(Extension(100.0)), SafeMode(Off())

BEGINNINGS = {
    "without blocks there is nothing to wait for": (RULES, Counts(0, 0), OFF),
    "one block is less than the threshold needs of one, rounded down": (RULES, Counts(1, 0), OFF),
    "two blocks need one": (RULES, Counts(2, 0), PENDING),
    "without blocks DataNodes are waited for": (TWO_NODES, Counts(0, 0), PENDING),
    "a threshold of 0 waits for no block": (replace(RULES, threshold=0.0), Counts(99, 0), OFF),
    "a negative threshold waits for no block": (
        replace(RULES, threshold=-1.0), Counts(99, 0), OFF,
    ),
    "a threshold above 1 waits for ever": (replace(RULES, threshold=1.5), Counts(9, 9), PENDING),
}  # fmt: skip


@pytest.mark.parametrize(("rules", "counts", "mode"), BEGINNINGS.values(), ids=BEGINNINGS.keys())
def test_a_start(rules: SafeModeRules, counts: Counts, mode: SafeMode) -> None:
    assert begin(rules, counts) == mode


SOME, ENOUGH = Counts(1000, 998), Counts(1000, 999)

LOOKS = {
    "a block too few": (PENDING, RULES, SOME, 100.0, PENDING),
    "enough blocks begin the extension": (PENDING, RULES, ENOUGH, 100.0, EXTENSION),
    "a DataNode too few": (PENDING, TWO_NODES, replace(ENOUGH, live_datanodes=1), 100.0, PENDING),
    "enough of both": (PENDING, TWO_NODES, replace(ENOUGH, live_datanodes=2), 100.0, EXTENSION),
    "without an extension it ends at once": (PENDING, AT_ONCE, ENOUGH, 100.0, OFF),
    "an extension of less than a second is one, too": (
        PENDING, replace(RULES, extension_seconds=0.5), ENOUGH, 100.0, EXTENSION,
    ),
    "the extension lasts": (EXTENSION, RULES, ENOUGH, 129.9, EXTENSION),
    "and ends": (EXTENSION, RULES, ENOUGH, 130.0, OFF),
    "a condition that fails meanwhile makes it last": (EXTENSION, RULES, SOME, 130.0, EXTENSION),
    "a DataNode that dies meanwhile, too": (
        EXTENSION, TWO_NODES, replace(ENOUGH, live_datanodes=1), 130.0, EXTENSION,
    ),
    "it ends late when the condition holds again": (EXTENSION, RULES, ENOUGH, 500.0, OFF),
    "an active deleted what was missing": (PENDING, RULES, Counts(998, 998), 100.0, EXTENSION),
    "an image that is too old is not left by itself": (
        EXTENSION, RULES, replace(ENOUGH, bytes_in_future=7), 130.0, EXTENSION,
    ),
    "nor at once": (PENDING, AT_ONCE, replace(ENOUGH, bytes_in_future=7), 100.0, PENDING),
    "what is off stays off": (OFF, RULES, Counts(1000, 0), 100.0, OFF),
    "an operator's safe mode does not end by itself": (
        enter(EXTENSION), RULES, ENOUGH, 130.0, enter(OFF),
    ),
    "nor that of a full disk": (run_low(OFF), RULES, ENOUGH, 130.0, run_low(OFF)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "rules", "counts", "now", "after"), LOOKS.values(), ids=LOOKS.keys()
)
def test_a_look(
    mode: SafeMode, rules: SafeModeRules, counts: Counts, now: float, after: SafeMode
) -> None:
    assert look(mode, rules, counts, now, taking_over=False) == after
    assert look(mode, rules, counts, now, taking_over=True) == mode


@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 3), st.sampled_from([0, 0, 0, 5])), max_size=30
    )
)
def test_it_ends_only_when_all_holds_and_then_for_good(seen: list[tuple[int, int, int]]) -> None:
    rules, mode, reached = SafeModeRules(min_datanodes=2, extension_seconds=3.0), PENDING, None
    for now, (safe, live, future) in enumerate(seen):
        counts = Counts(10, safe, live, future)
        after = look(mode, rules, counts, float(now), taking_over=False)
        holds = safe >= 9 and live >= 2
        if holds and reached is None:
            reached = now
        if mode.is_on() and not after.is_on():
            assert holds
            assert not future
            assert reached is not None
            assert now >= reached + 3
        assert mode.is_on() or not after.is_on()
        mode = after


def test_a_share_of_blocks_is_what_java_computes() -> None:
    # 0.999f is 0.9990000128746033: of a thousand blocks, one need not be safe.
    assert [RULES.needed(total) for total in (1000, 2000, 10**7)] == [999, 1998, 9_990_000]


def test_only_an_operator_ends_what_an_operator_or_a_full_disk_began() -> None:
    assert enter(OFF).hold() is Hold.OPERATOR
    assert enter(PENDING).hold() is Hold.OPERATOR
    assert run_low(PENDING).hold() is run_low(OFF).hold() is Hold.OPERATOR
    assert PENDING.hold() is Hold.START
    assert OFF.hold() is Hold.NOTHING
    assert leave(SOME) == OFF
    with pytest.raises(ReplicasWouldBeDeleted, match="7 bytes"):
        leave(replace(SOME, bytes_in_future=7))
    assert force_exit() == OFF


TIPS = {
    "blocks and DataNodes are missing": (
        PENDING, TWO_NODES, replace(SOME, live_datanodes=1), 100.0,
        "The reported blocks 998 needs additional 1 blocks to reach the threshold 0.9990 of total "
        "blocks 1000.\nThe number of live datanodes 1 needs an additional 1 live datanodes to "
        "reach the minimum number 2.\nSafe mode will be turned off automatically once the "
        "thresholds have been reached.",
    ),
    "the extension runs": (
        EXTENSION, RULES, replace(ENOUGH, live_datanodes=3), 112.2,
        "The reported blocks 999 has reached the threshold 0.9990 of total blocks 1000. The number "
        "of live datanodes 3 has reached the minimum number 0. In safe mode extension. Safe mode "
        "will be turned off automatically in 17 seconds.",
    ),
    "just enough of both": (
        EXTENSION, TWO_NODES, replace(ENOUGH, live_datanodes=2), 100.0,
        "The reported blocks 999 has reached the threshold 0.9990 of total blocks 1000. The number "
        "of live datanodes 2 has reached the minimum number 2. In safe mode extension. Safe mode "
        "will be turned off automatically in 30 seconds.",
    ),
    "an operator": (
        enter(PENDING), RULES, SOME, 100.0,
        'It was turned on manually. Use "hdfs dfsadmin -safemode leave" to turn safe mode off.',
    ),
    "off": (OFF, RULES, ENOUGH, 100.0, ""),
}  # fmt: skip


@pytest.mark.parametrize(("mode", "rules", "counts", "now", "text"), TIPS.values(), ids=TIPS.keys())
def test_the_tip(
    mode: SafeMode, rules: SafeModeRules, counts: Counts, now: float, text: str
) -> None:
    assert tip(mode, rules, counts, now) == text


def test_the_tip_names_what_would_be_lost() -> None:
    text = tip(PENDING, RULES, replace(SOME, bytes_in_future=7), 100.0)
    assert "loss of 7 byte(s)" in text
    assert "automatically" not in text
    assert tip(run_low(OFF), RULES, ENOUGH, 100.0).startswith("Resources are low on NN.")


def test_only_complete_blocks_are_waited_for() -> None:
    state = BlockState()
    state.add_block(1, 2**30 + 1, 100, 1001, 3, Stage.COMPLETE)
    state.add_block(1, 2**30 + 2, 100, 1002, 3, Stage.UNDER_CONSTRUCTION)
    state.add_block(2, -(2**63) + 16, 100, 1003, 0, Stage.COMPLETE)
    assert counts_of(state, 4) == Counts(1, 0, 4)
    slot = state.map.find(2**30 + 1)
    assert slot is not None
    state.take(slot, state.add_storage("n", "s"))
    assert counts_of(state, 4) == Counts(1, 1, 4)
