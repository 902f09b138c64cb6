"""nnha itself: its table of commands, its help, its version, and mistyped commands."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner
from packaging.utils import canonicalize_name

from ha.cli.main import COMMANDS, LazyGroup, main
from ha.cli.missing import EXTRAS
from tests.package.locks import derived, entries

ROOT: Final = Path(__file__).resolve().parents[3]


def nnha(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ha.cli.main", *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_help_lists_every_command_without_loading_one() -> None:
    program = (
        "import sys, click.testing, ha.cli.main as m\n"
        "print(click.testing.CliRunner().invoke(m.main, ['--help']).output)\n"
        "heavy = {'grpc', 'aiohttp', 'kazoo', 'rich', 'journal', 'namenode_sim'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )
    assert told.returncode == 0, told.stderr
    for name, entry in COMMANDS.items():
        assert f"  {name} " in told.stdout
        assert entry.summary in told.stdout


def test_the_version_is_the_projects() -> None:
    assert nnha("--version").stdout.startswith("nnha 0.")


@pytest.mark.parametrize(
    ("typed", "meant"), [("statsu", "status"), ("hadmin", "haadmin"), ("journalnod", "journalnode")]
)
def test_a_mistyped_command_is_answered_with_what_was_meant(typed: str, meant: str) -> None:
    told = CliRunner().invoke(main, [typed])
    assert told.exit_code == 2
    assert f"There is no command '{typed}'." in told.output
    assert meant in told.output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_can_be_loaded(name: str) -> None:
    context = click.Context(main)
    assert isinstance(main, LazyGroup)
    assert isinstance(main.get_command(context, name), click.Command)


def test_a_command_of_a_package_that_is_not_installed_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "journal.node.process", None)
    monkeypatch.delitem(sys.modules, "journal.node.process.command", raising=False)
    told = CliRunner().invoke(main, ["journalnode"])
    assert told.exit_code == 1
    assert "is not part of this installation" in told.output


def without(modules: set[str], *words: str) -> "subprocess.CompletedProcess[str]":
    """Run nnha where these modules are not installed."""
    said = (
        f"import sys; sys.modules.update(dict.fromkeys({sorted(modules)!r}))\n"
        "from ha.cli.main import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", said, *words],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def brought_by(extra: str) -> set[str]:
    """Return the modules that are there where nothing but this extra was asked for."""
    locked, known = set(entries(derived(extra))), metadata.packages_distributions()
    return {one for one in EXTRAS if {canonicalize_name(it) for it in known.get(one, "?")} & locked}


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("namenode", "namenode"),
        ("datanode", "namenode"),
        ("oiv", "namenode"),
        ("namespace", "spark"),
        ("security", "tls"),
        ("cluster", "demo"),
        ("demo", "demo"),
    ],
)
def test_a_command_says_which_extra_is_missing_and_that_one_suffices(
    command: str, extra: str
) -> None:
    told = without(set(EXTRAS), command, "--help")
    assert told.returncode == 2
    assert re.search(rf"nnha {command} needs \w+: pip install 'nnha\[{extra}\]'", told.stderr)
    assert "Traceback" not in told.stderr
    told = without(set(EXTRAS) - brought_by(extra), command, "--help")
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize(("module", "extra"), EXTRAS.items())
def test_the_extra_that_is_told_brings_the_module_and_the_base_does_not(
    module: str, extra: str
) -> None:
    if extra == "sasl":  # not locked: Kerberos needs the system's libraries
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        assert "pure-sasl" in str(project["optional-dependencies"][extra])
        return
    names = {canonicalize_name(one) for one in metadata.packages_distributions()[module]}
    assert names <= set(entries(derived(extra)))
    assert not names & set(entries(derived("")))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_structlog_if_it_logs_and_richs_tracebacks_never(command: str) -> None:
    said = (
        "import sys\n"
        "from ha.cli.main import COMMANDS, _load\n"
        f"_load({command!r}, COMMANDS[{command!r}])\n"
        f"assert ('structlog' in sys.modules) is COMMANDS[{command!r}].logs\n"
        "assert 'rich.traceback' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", said], check=True, timeout=60)


def test_the_script_of_a_daemon_runs_it_and_does_without_rich_too(tmp_path: Path) -> None:
    """Check the project's table and ``./run``: scripts that were written for Hadoop call it."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = scripts["zkfc"].partition(":")
    call = f"from {module} import {name}; {name}()"
    assert call in (ROOT / "run").read_text()
    said = (
        "import sys\n"
        "try:\n"
        f"    {call}\n"
        "finally:\n"
        "    assert 'structlog' in sys.modules\n"
        "    assert not {'rich', 'pygments'} & set(sys.modules)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", said, "--conf-dir", str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert told.returncode == 78
    assert told.stderr.splitlines()[-1].startswith(f"zkfc: {tmp_path} holds neither core-site.xml")


@pytest.mark.parametrize(
    "words",
    [
        ("status", "--timeout"),
        ("journal", "status", "--timeout"),
        ("probe", "1", "--timeout"),
        ("switchover", "--wait"),
        ("pause", "--wait"),
        ("namenode", "--wait"),
    ],
    ids=" ".join,
)
def test_what_is_no_number_is_no_number_of_seconds(words: tuple[str, ...]) -> None:
    told = CliRunner().invoke(main, [*words, "nan"])
    assert told.exit_code == 2
    assert "'nan' is no number of seconds." in told.output
