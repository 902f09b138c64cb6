"""nnha completion: the scripts, and what Tab offers."""

import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from ha.cli.main import COMMANDS, main
from tests.ha.cli.conftest import PORTS
from tests.ha.cli.nnha_run import nnha
from tests.ha.cli.stand_ins import write_configuration


def offered(words: list[str], incomplete: str) -> list[str]:
    shell = ShellComplete(main, {}, "nnha", "_NNHA_COMPLETE")
    return [item.value for item in shell.get_completions(words, incomplete)]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_each_shell_gets_a_script_that_it_can_read(shell: str, tmp_path: Path) -> None:
    told = await nnha("completion", shell)
    assert told.code == 0
    assert "_NNHA_COMPLETE" in told.out
    if shutil.which(shell) is None:
        return
    script = tmp_path / "script"
    script.write_text(told.out)
    read = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False)
    assert (read.returncode, read.stderr) == (0, "")


def test_commands_options_and_namenodes_are_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered([], "") == list(COMMANDS)
    assert offered([], "swi") == ["switchover"]
    assert "--version" in offered([], "--v")
    assert "--dry-run" in offered(["switchover"], "--d")
    assert offered(["safemode"], "") == ["get", "enter", "leave", "wait", "forceExit"]
    write_configuration(tmp_path, PORTS)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    for words in ("switchover", "failover", "drain", "explain", "fence test", "safemode get"):
        assert offered(words.split(), "n") == ["nn1", "nn2"]
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path / "none"))
    assert offered(["drain"], "n") == []


def test_no_command_is_loaded_to_offer_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_name: str, _entry: object) -> click.Command:
        raise AssertionError("a command was imported")

    monkeypatch.setattr("ha.cli.main._load", load)
    assert offered([], "d")
