"""A little of what ``./run soak fuzz`` does for hours, and a check that it would find something."""

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.campaigns.soak.fuzz_random import fuzz_at_random, misbehaviour
from tests.campaigns.soak.fuzz_target import Target
from tests.campaigns.soak.fuzz_targets import TARGETS
from tests.hostile.shapes import hostile
from tests.needs import FILES_OF_HADOOP


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_the_seeds_are_sound(target: Target) -> None:
    seeds = target.seeds()
    if not seeds:
        FILES_OF_HADOOP.skip()
    for seed in seeds:
        target.run(seed)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@settings(max_examples=120, deadline=None)
@given(source=st.randoms(use_true_random=False))
def test_damaged_input_is_refused_with_the_decoders_own_errors(
    target: Target, source: Random
) -> None:
    data = hostile(target.seeds(), source, target.shape, target.prefix)
    assert misbehaviour(target, data, watch_memory=False) is None


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_refused_with_the_decoders_own_errors(target: Target, data: bytes) -> None:
    with suppress(*target.errors):
        target.run(data)


def _raises(_data: bytes) -> None:
    raise KeyError("not a typed error")


def _hangs(_data: bytes) -> None:
    while True:
        pass


def _grabs(_data: bytes) -> None:
    bytes(100 << 20)


@pytest.mark.parametrize(
    ("run", "kind"), [(_raises, "KeyError"), (_hangs, "hang"), (_grabs, "memory")]
)
def test_each_kind_of_misbehaviour_is_found(run: object, kind: str) -> None:
    target = Target("bad", run, (ValueError,), lambda: [b"seed"])  # type: ignore[arg-type]
    found = misbehaviour(target, b"x", watch_memory=True, seconds=0.2)
    assert found is not None
    assert found[0] == kind


def test_a_finding_is_kept_once_with_its_input(tmp_path: Path) -> None:
    target = Target("bad", _raises, (ValueError,), lambda: [b"seed"])
    _, findings = fuzz_at_random(target, seconds=0.05, seed=1, folder=tmp_path)
    assert [finding.kind for finding in findings] == ["KeyError"]
    assert Path(findings[0].path).exists()
