"""No log line, metric, exit code or field of JSON is lost or changed without a reviewed diff.

``NNHA_REWRITE=1`` writes the texts anew.  Whether a line is reached is for its part's tests.
"""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture import outward
from tests.transitions import same_as

SHOWN: dict[str, Callable[..., list[str]]] = {
    "log_lines.txt": outward.log_lines,
    "metrics.txt": outward.metrics,
    "exit_codes.txt": outward.exit_codes,
    "fields.txt": outward.fields,
}

LOG = """
def f(one, tell: Callable[..., None]):
    log.warning("a.lost", node=one, code=7, **facts(one))
    say = log.info if one else log.error
    say("a.said", line=one)
    tell(f"a.{one}", line=one)
    g(log.debug)
    step("a.step", {"of": one})
"""
METRICS = """
LABELS = ("node",)
HELD = Gauge("nnha_held", "What is held", LABELS)
LOST = Counter("nnha_lost", "What is lost", [*LABELS, "why"])
"""
ENDS = """
from ha.console.exit_codes import DONE
BAD: Final = 7
def f(one):
    if one:
        raise ExitWith(BAD, "x")
    sys.exit(0 if one else BAD)
def g():
    return DONE
"""
FIELDS = """
def status(one) -> Mapping[str, object]:
    return {"lag": one.lag, "nodes": [{"name": of.name, **of.more()} for of in one.nodes], key: 1}
"""
PLANTED: dict[Callable[..., list[str]], tuple[str, tuple[tuple[str, str], ...]]] = {
    outward.log_lines: (
        LOG, (
        ("warning", "info"), ("a.lost", "a.los"), ("node=one, ", ""), ("code=7", "code=8"),
        (", **facts(one)", ""), ("log.info if", "log.debug if"), ('say("a.said", line=one)', ""),
        ("tell(f", "print(f"), ("log.debug", "log.info"), ('"of": one', ""), ("a.step", "a.st"),
    )),
    outward.metrics: (
        METRICS, (
        ("Gauge(", "Counter("), ("nnha_held", "nnha_hold"), ('"node",', '"name",'), ('"why"', ""),
    )),
    outward.exit_codes: (
        ENDS, (
        ("= 7", "= 8"), ("ExitWith(BAD", "ExitWith(1"), ("0 if one", "1 if one"),
        ("return DONE", "return 1"), ("    sys.exit(0 if one else BAD)\n", ""),
    )),
    outward.fields: (
        FIELDS, (
        ('"lag"', '"log"'), ('"name"', '"node"'), ("of.name, **of.more()", "of.name"),
        ('"nodes": [', '"node": ['), (", key: 1", ""),
    )),
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_what_operators_see_is_what_was_reviewed(name: str) -> None:
    same_as(Path(__file__).with_name(name), SHOWN[name](outward.product()))


@pytest.mark.parametrize("shown", PLANTED, ids=lambda shown: shown.__name__)
def test_each_slip_of_one_line_changes_the_text(shown: Callable[..., list[str]]) -> None:
    sound, slips = PLANTED[shown]
    codes = ("ha/console/exit_codes.py", ast.parse("DONE: Final = 0"))
    texts = {sound: None}
    for old, new in slips:
        assert sound.count(old) == 1, old
        texts[sound.replace(old, new)] = None
    lines = {tuple(shown([codes, ("m.py", ast.parse(text))])) for text in texts}
    assert len(lines) == len(texts) == len(slips) + 1
