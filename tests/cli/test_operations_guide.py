"""docs/operations.md names what the commands can end with, and no command that does not exist."""

import re
from pathlib import Path

import pytest

from ha.cli import exits
from ha.cli.ending import Code
from ha.cli.main import COMMANDS

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()


@pytest.mark.parametrize("code", list(Code))
def test_every_code_of_an_ending_is_explained(code: Code) -> None:
    assert f"`{code}`" in GUIDE


def test_every_exit_code_is_explained() -> None:
    codes = {value for name, value in vars(exits).items() if name.isupper() and value != 255}
    told = {int(row) for row in re.findall(r"^\| (\d+) \|", GUIDE.split("## Exit codes")[1], re.M)}
    assert told == codes


def test_every_command_that_is_named_exists() -> None:
    named = set(re.findall(r"\bnnha ([a-z]+)", GUIDE))
    assert named <= set(COMMANDS)
