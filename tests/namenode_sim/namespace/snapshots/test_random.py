"""Random edits below snapshots: every snapshot keeps showing what was there when it was taken."""

import io
import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from namenode_sim.edits.ops import Op
from namenode_sim.image.reader import read_namespace
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.image.image_world import saved
from tests.namenode_sim.namespace.dump import differences
from tests.namenode_sim.namespace.given_edits import go_on
from tests.namenode_sim.namespace.snapshots.comparing import wrong
from tests.namenode_sim.namespace.snapshots.use_recount import counted_wrong
from tests.worlds.scribe import Draw, Scribe
from tests.worlds.scribe_actions import act

SEEDS = int(os.environ.get("NNHA_SNAPSHOT_SEEDS", "100"))
"""How many long random programs are tried in addition to hypothesis's short ones."""

PARTS = 5
"""Each has the time of a test, which all together take on a busy machine."""


def through_an_image(namespace: Namespace) -> Namespace:
    """Save and load, which must change nothing."""
    again = read_namespace(io.BytesIO(saved(namespace, -67)))
    assert differences(namespace, again) == []
    return again


def run(draw: Draw, steps: int) -> None:
    scribe = Scribe()
    written: list[Op] = []
    namespace = Namespace.empty("hdfs")
    for _ in range(steps):
        if draw(10) == 0:
            namespace = through_an_image(namespace)
        act(scribe, draw)
        edits = scribe.take_written()
        go_on(namespace, edits)
        written += edits
        assert wrong(namespace, scribe.model) == [], edits
        assert counted_wrong(namespace) == {}, edits
    replayed = Namespace.empty("hdfs")
    go_on(replayed, written)
    assert differences(replayed, namespace) == []


@settings(deadline=None)
@given(st.binary(min_size=40, max_size=400))
def test_short_programs(tape: bytes) -> None:
    rest = iter(tape)
    run(lambda limit: next(rest, 0) % limit, steps=len(tape) // 4)


@pytest.mark.parametrize("part", range(PARTS))
def test_long_programs(part: int) -> None:
    for seed in range(part, SEEDS, PARTS):
        chance = random.Random(seed)
        try:
            run(chance.randrange, steps=120)
        except Exception as failure:
            raise AssertionError(f"seed {seed}") from failure
