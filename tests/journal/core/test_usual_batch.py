"""The short way of a batch decides as the long way, whatever is drawn; each condition counts."""

import ast
import inspect
import random
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Final

import pytest

from journal.core import state as core_state
from journal.core import usual_batch as module
from journal.core.effects import Step
from journal.core.limits import MAX_COMMITTED_LEAP, MAX_SERIAL_LEAP
from journal.core.requests import Journal, Stamp
from journal.core.state import JournalState
from journal.core.usual_batch import usual_batch
from journal.model import Epoch, TxId
from tests.journal.core.requests_of import NAMESPACE, outcome, records, segment

CASES: Final = 5_000
Short = Callable[[JournalState, Journal], Step | None]


def usual(rng: random.Random) -> tuple[JournalState, Journal]:
    epoch, first, held = Epoch(rng.randint(3, 5)), rng.choice((1, 4)), rng.randint(0, 3)
    following, count = first + held, rng.randint(1, 3)
    opened = core_state.OpenSegment(
        TxId(first), TxId(following), rng.choice((b"", b"d")), epoch, rng.choice((-66, -67))
    )
    committed = TxId(max(0, following - rng.randint(1, 3)))
    state = JournalState(
        NAMESPACE,
        incarnation="life",
        promised=epoch,
        writer=epoch,
        serial=rng.choice((core_state.NO_SERIAL, 0, 7, 7, 7)),
        committed=committed,
        claimed=TxId(committed + rng.choice((0, 1, 9))),
        purged=TxId(rng.choice((0, 1))),
        read_lease_micros=rng.choice((0, 5)),
        open=opened,
        segments={TxId(1): segment(1, 3, finalized=rng.random() < 0.8)} if first == 4 else {},
    )
    stamp = Stamp(
        epoch,
        state.serial + rng.choice((1, 1, 2)),
        rng.choice((None, committed, TxId(following - 1), TxId(following + 5))),
        state.read_lease_micros,
        rng.choice((None, NAMESPACE.namespace_id)),
    )
    content = records(following, following + count - 1, epoch)
    return state, Journal(stamp, TxId(first), TxId(following), count, content)


def drawn(rng: random.Random) -> tuple[JournalState, Journal]:
    """Draw the usual case, with up to three facts of it changed."""
    state, batch = usual(rng)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        state, batch = rng.choice((_other_state, _other_stamp, _other_batch))(state, batch, rng)
    return state, batch


def _other_state(
    state: JournalState, batch: Journal, rng: random.Random
) -> tuple[JournalState, Journal]:
    opened = state.open or core_state.OpenSegment(TxId(1), TxId(2))
    change = rng.choice(
        (
            {"namespace": None},
            {"open": None},
            {"open": replace(opened, next_txid=opened.first)},
            {"open": replace(opened, next_txid=TxId(opened.next_txid + 1))},
            {"open": replace(opened, writer=Epoch(rng.randint(2, 6)))},
            {"promised": Epoch(rng.randint(2, 6))},
            {"writer": Epoch(rng.randint(2, 6))},
            {"serial": rng.choice((core_state.SERIAL_UNKNOWN, core_state.NO_SERIAL, 8, 9, 10))},
            {"committed": TxId(rng.choice((0, 9, 2 * MAX_COMMITTED_LEAP)))},
            {"claimed": TxId(rng.randint(0, 9))},
            {"read_lease_micros": rng.choice((3, 9))},
            {"learner": True},
            {"decisions": {TxId(1): core_state.Decision(segment(1, 3), Epoch(2))}},
            {"damaged": {TxId(1): core_state.Damage(segment(1, 3), "rot")}, "segments": {}},
        )
    )
    return replace(state, **change), batch


def _other_stamp(
    state: JournalState, batch: Journal, rng: random.Random
) -> tuple[JournalState, Journal]:
    serial = state.serial + rng.choice((-1, 0, MAX_SERIAL_LEAP, MAX_SERIAL_LEAP + 1))
    claims = (0, 1, 9, MAX_COMMITTED_LEAP, 2 * MAX_COMMITTED_LEAP)
    change = rng.choice(
        (
            {"epoch": Epoch(rng.randint(2, 6))},
            {"serial": serial},
            {"committed": TxId(rng.choice(claims))},
            {"read_lease_micros": rng.choice((0, 3, 5, 9))},
            {"namespace_id": 99},
        )
    )
    return state, replace(batch, stamp=replace(batch.stamp, **change))


def _other_batch(
    state: JournalState, batch: Journal, rng: random.Random
) -> tuple[JournalState, Journal]:
    flipped = bytearray(batch.records or b"x")
    flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
    change = rng.choice(
        (
            {"segment_first": TxId(rng.choice((1, 2, 4)))},
            {"first": TxId(max(1, batch.first + rng.choice((-1, 1))))},
            {"count": batch.count + rng.choice((-1, 1))},
            {"count": 0, "records": b""},
            {"records": bytes(flipped)},
            {"records": batch.records + b"\xff" * 9},
            {"records": batch.records[:-1]},
            {"records": b""},
        )
    )
    return state, replace(batch, **change)


def differs(short: Short, cases: int, seed: int = 0) -> tuple[bool, int]:
    """Return whether the short way ever decides otherwise, and how often it decided at all."""
    rng, decided = random.Random(seed), 0
    for _ in range(cases):
        state, batch = drawn(rng)
        found = short(state, batch)
        if found is None:
            continue
        decided += 1
        if found != outcome(state, batch):
            return True, decided
    return False, decided


@pytest.mark.parametrize("seed", range(20))
def test_the_short_way_decides_as_the_rules_or_not_at_all(seed: int) -> None:
    different, decided = differs(usual_batch, CASES, seed)
    assert not different
    assert decided > CASES / 5


def test_what_is_usual_never_takes_the_long_way() -> None:
    rng = random.Random(1)
    for _ in range(2_000):
        state, batch = usual(rng)
        assert state.open is not None
        held, stamp = state.open.next_txid > state.open.first, batch.stamp
        forward = stamp.committed is None or stamp.committed >= state.committed
        assert (usual_batch(state, batch) is not None) == (held and forward), (state, batch)


def test_no_fact_of_the_state_is_lost_on_the_short_way() -> None:
    """Carry over every field, also one that is new in JournalState."""
    state, _ = usual(random.Random(3))
    assert state.open is not None
    marks = {f.name: object() for f in fields(JournalState)} | {"open": state.open}
    after = replace(state, **marks).after_batch(8, TxId(1), TxId(2), TxId(3))  # type: ignore[arg-type]
    changed = {f.name for f in fields(after) if getattr(after, f.name) is not marks[f.name]}
    assert changed == {"serial", "committed", "claimed", "open"}
    assert (after.serial, after.committed, after.claimed) == (8, 1, 2)
    assert after.open == replace(state.open, next_txid=TxId(3), digest=b"")


KNOWN: Final = JournalState(
    NAMESPACE,
    incarnation="life",
    promised=Epoch(3),
    writer=Epoch(3),
    serial=7,
    committed=TxId(3),
    claimed=TxId(9),
    purged=TxId(1),
    read_lease_micros=5,
    open=core_state.OpenSegment(TxId(1), TxId(6), b"", Epoch(3), -66),
)
"""1-5 are here, of which 1-3 are known to be committed; 9 was claimed."""
SAID: Final = Stamp(Epoch(3), 8, None, 5)
SHORT: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[int, int]]] = {
    # what is otherwise in the state and the stamp, and what is committed and claimed behind it
    "no claim": ({}, {}, (3, 9)),
    "the claim of what is known": ({}, {"committed": TxId(3)}, (3, 3)),
    "a claim of more": ({}, {"committed": TxId(4)}, (4, 4)),
    "a claim of all": ({}, {"committed": TxId(5)}, (5, 5)),
    "a claim of more than is here": ({}, {"committed": TxId(8)}, (5, 8)),
    "the farthest claim": (
        {},
        {"committed": TxId(5 + MAX_COMMITTED_LEAP)},
        (5, 5 + MAX_COMMITTED_LEAP),
    ),
    "the first request": ({"serial": core_state.NO_SERIAL}, {"serial": 0}, (3, 9)),
    "the farthest request": ({}, {"serial": 7 + MAX_SERIAL_LEAP}, (3, 9)),
    "no lease": ({"read_lease_micros": 0}, {"read_lease_micros": 0}, (3, 9)),
}
LONG: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a newer writer is promised": ({"promised": Epoch(4)}, {}),
    "a newer writer asks": ({}, {"epoch": Epoch(4)}),
    "another writer has begun the last segment": ({"writer": Epoch(2)}, {}),
    "a claim of less": ({}, {"committed": TxId(2)}),
    "a claim far ahead": ({}, {"committed": TxId(6 + MAX_COMMITTED_LEAP)}),
    "a request for the second time": ({}, {"serial": 7}),
    "a request far ahead": (
        {"read_lease_micros": 9},
        {"read_lease_micros": 9, "serial": 8 + MAX_SERIAL_LEAP},
    ),
    "a request after a restart": ({"serial": core_state.SERIAL_UNKNOWN}, {}),
    "another lease": ({"read_lease_micros": 7}, {}),
}


def batch_of(stamp: Stamp) -> Journal:
    return Journal(stamp, TxId(1), TxId(6), 2, records(6, 7, 3))


@pytest.mark.parametrize(("in_state", "in_stamp", "behind"), SHORT.values(), ids=list(SHORT))
def test_what_each_fact_becomes_on_the_short_way(
    in_state: dict[str, Any], in_stamp: dict[str, Any], behind: tuple[int, int]
) -> None:
    state, batch = replace(KNOWN, **in_state), batch_of(replace(SAID, **in_stamp))
    done = usual_batch(state, batch)
    assert done is not None
    assert done == outcome(state, batch)
    assert (done.state.committed, done.state.claimed) == behind


@pytest.mark.parametrize(("in_state", "in_stamp"), LONG.values(), ids=list(LONG))
def test_what_takes_the_long_way(in_state: dict[str, Any], in_stamp: dict[str, Any]) -> None:
    assert usual_batch(replace(KNOWN, **in_state), batch_of(replace(SAID, **in_stamp))) is None


def _without(number: int) -> Short | None:
    """Return the short way without one of its conditions."""
    tree = ast.parse(inspect.getsource(module))
    tests = [node.test for node in ast.walk(tree) if isinstance(node, ast.If)]
    conditions = [
        (test, i) for test in tests if isinstance(test, ast.BoolOp) for i in range(len(test.values))
    ]
    if number >= len(conditions):
        return None
    test, index = conditions[number]
    test.values[index] = ast.Constant(value=False)
    scope: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(tree), "planted", "exec"), scope)
    short: Short = scope["usual_batch"]
    return short


def test_every_condition_is_needed() -> None:
    number = 0
    while (short := _without(number)) is not None:
        try:
            noticed, _ = differs(short, 20_000)
        except (AttributeError, TypeError):
            noticed = True
        assert noticed, f"condition {number} of usual_batch is needed by no case"
        number += 1
    assert number > 10
