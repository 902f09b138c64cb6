"""docs/operations.md names what the commands can end with, and no command that does not exist."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from ha.cli.explain.config import config
from ha.cli.main import COMMANDS
from ha.conf.client_proxy import without_client_proxy
from ha.conf.configuration import load_configuration
from ha.console import exit_codes
from ha.console.result import Code
from tests import ROOT
from tests.hosts.page import steps

GUIDE = (ROOT / "docs" / "operations.md").read_text()


@pytest.mark.parametrize("code", list(Code))
def test_every_code_of_an_ending_is_explained(code: Code) -> None:
    assert f"`{code}`" in GUIDE


def test_every_exit_code_is_explained() -> None:
    codes = {value for name, value in vars(exit_codes).items() if name.isupper() and value != 255}
    told = {int(row) for row in re.findall(r"^\| (\d+) \|", GUIDE.split("## Exit codes")[1], re.M)}
    assert told == codes


def test_every_command_that_is_named_exists() -> None:
    assert set(re.findall(r"\bnnha ([a-z]+)", GUIDE)) <= set(COMMANDS)


@pytest.mark.parametrize("page", ["migration.md", "not-here-yet.md"])
def test_every_command_of_another_page_exists(page: str) -> None:
    named = set(re.findall(r"`nnha ([a-z]+)", (ROOT / "docs" / page).read_text()))
    assert named
    assert named <= set(COMMANDS)


def test_the_sample_configuration_is_whole_and_can_be_used(tmp_path: Path) -> None:
    """Use it as printed, in two files; what a client needs is in it, too."""
    for step in steps(GUIDE):
        if step.path.endswith(".xml"):
            (tmp_path / Path(step.path).name).write_text(step.text)
    assert len(list(tmp_path.iterdir())) == 2
    told = CliRunner().invoke(config, ["validate", "--conf-dir", str(tmp_path)])
    assert (told.exit_code, told.stderr) == (0, "")
    assert without_client_proxy(load_configuration(tmp_path)) == ()
