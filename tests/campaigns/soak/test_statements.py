"""The reader of statements finds each kind of false one, and lets true and unknown ones be."""

import json
import re

import pytest

from tests import ROOT
from tests.campaigns.soak.newcomer import ASKING, CHANGING, NOT_PLAYED
from tests.campaigns.soak.statements import Said, Truth, false_statements

TRUTH = Truth(active="nn1", namenodes=("nn1", "nn2"))

FALSE = {
    "a daemon is down": "jn2  DOWN  connection timed out",
    "nothing runs": "the ZKFC of nn2 is not running",
    "nothing can be written": "2 problems: nothing can be written",
    "nobody is active": "active  NONE",
    "advice to kill": "end it with: kill -9 4711",
    "advice to start": "nn2 does not answer; start it: nnha namenode",
    "advice to format": "format it: nnha journal format --node jn1",
    "roles": "nn2   active   12",
    "a document": json.dumps({"namenodes": [{"id": "nn1", "state": "down"}]}),
    "a traceback": "Traceback (most recent call last):",
}
TRUE = (
    "nn1  active   12\nnn2  standby  12",
    "nn2 did not answer within 2 s; its state is unknown (this command itself was 1.4 s late)",
    json.dumps(
        {"namenodes": [{"id": "nn1", "state": "unknown"}, {"id": "nn2", "state": "standby"}]}
    ),
    "",
)


@pytest.mark.parametrize("output", FALSE.values(), ids=FALSE)
def test_a_false_statement_is_found(output: str) -> None:
    assert false_statements(Said(("status",), 0, output), TRUTH)


@pytest.mark.parametrize("output", TRUE)
def test_what_is_true_or_unknown_is_let_be(output: str) -> None:
    assert not false_statements(Said(("status",), 0, output), TRUTH)


def test_no_role_is_judged_while_roles_change() -> None:
    changing = Truth(active=None, namenodes=TRUTH.namenodes)
    assert not false_statements(Said(("status",), 0, FALSE["roles"]), changing)


def test_each_command_of_the_documents_is_played_or_has_a_reason() -> None:
    """Hold a command that the README learns to name against the truth, too."""
    text = (ROOT / "README.md").read_text() + (ROOT / "docs" / "commands.md").read_text()
    named = set(re.findall(r"`nnha ([a-z]+)", text))
    played = {command[0] for command in (*ASKING, *CHANGING)}
    assert named
    assert named - played - set(NOT_PLAYED) == set()
    assert not played & set(NOT_PLAYED)
