"""The wheel with nothing but the base of its dependencies: what it takes, and what runs.

It is installed into a fresh virtual environment that sees neither the checkout nor .venv.  The bar
is for what pip adds; what a virtual environment brings itself is shown next to it.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from deploy.local.cluster.layout import Layout, plan
from deploy.local.cluster.processes import wait_until
from deploy.local.cluster.site import journalnode_overrides, write_conf_dir
from ha.cli.main import COMMANDS
from tests.package.__main__ import run
from tests.package.locks import path_of

MOST_MEGABYTES: Final = 80.0
"""What the wheel and its base may take on a disk, bytecode included."""
NEED_AN_EXTRA: Final = frozenset(
    {"cluster", "datanode", "demo", "namenode", "namespace", "oiv", "security"}
)
"""All other commands must be there with the base alone."""
ADVICE: Final = re.compile(r"needs \w+: pip install 'nnha\[\w+\]'")
THEIRS: Final = ("spark", "journal")
"""Packages of the index, of which we know nothing else."""
COMMAND_SECONDS: Final = 60.0
START_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Size:
    """Of a folder: whole blocks on its disk, and the bytes in its files; decimal megabytes."""

    disk: float
    files: float

    def less(self, other: "Size") -> "Size":
        return Size(round(self.disk - other.disk, 1), round(self.files - other.files, 1))


def size_of(folder: Path) -> Size:
    found = [one.lstat() for one in folder.rglob("*") if one.is_file() and not one.is_symlink()]
    disk, files = sum(one.st_blocks * 512 for one in found), sum(one.st_size for one in found)
    return Size(round(disk / 1e6, 1), round(files / 1e6, 1))


def figures(folder: Path, wheel: Path) -> Mapping[str, object]:
    """Install it below ``folder`` and try it; ``base_wrong`` has what is not as it should be."""
    environment = folder / "base"
    run(sys.executable, "-m", "venv", str(environment))
    empty = size_of(environment)
    python = environment / "bin" / "python"
    pip = (str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps")
    run(*pip, "--require-hashes", "-r", str(path_of("base")))
    run(*pip, str(wheel))
    whole = size_of(environment)
    added = whole.less(empty)
    wrong = [
        *too_large(added),
        *broken_commands(environment, folder),
        *_daemons(environment, folder),
        *_beside_theirs(environment, folder, pip),
    ]
    return {
        "base_added_disk_megabytes": added.disk,
        "base_added_file_megabytes": added.files,
        "environment_disk_megabytes": empty.disk,
        "environment_file_megabytes": empty.files,
        "base_wrong": wrong,
    }


def too_large(added: Size) -> list[str]:
    """Return what to say where the bar is not held."""
    if added.disk <= MOST_MEGABYTES:
        return []
    return [f"the base takes {added.disk} MB, more than {MOST_MEGABYTES:g} MB"]


def _nnha(environment: Path, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(environment / "bin" / "nnha"), *words], cwd=folder, env=_env(), check=False,
        capture_output=True, text=True, timeout=COMMAND_SECONDS,
    )  # fmt: skip


def _env() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}


def broken_commands(environment: Path, folder: Path) -> Iterator[str]:
    for name in COMMANDS:
        told = _nnha(environment, folder, name, "--help")
        advised = told.returncode == 2 and ADVICE.search(told.stderr) is not None
        well = advised if name in NEED_AN_EXTRA else told.returncode == 0
        if not well or "Traceback" in told.stderr:
            yield f"nnha {name} --help: exit code {told.returncode}: {told.stderr[-500:]}"


def _beside_theirs(environment: Path, folder: Path, pip: Sequence[str]) -> Iterator[str]:
    """Install the index's packages of names that our tree has inside; both work, and ours goes."""
    run(*pip, *THEIRS)
    yield from broken_commands(environment, folder)
    yield from _theirs_lost(environment, folder)
    run(*pip[:3], "uninstall", "-q", "-y", "nnha")
    yield from (f"after ours was removed: {what}" for what in _theirs_lost(environment, folder))
    if (environment / "bin" / "nnha").exists():
        yield "nnha is still there after it was removed"


def _theirs_lost(environment: Path, folder: Path) -> Iterator[str]:
    python = str(environment / "bin" / "python")
    for name in THEIRS:
        # Found, not imported: theirs need what they need.
        find = f"from importlib.util import find_spec; print(find_spec({name!r}).origin)"
        told = subprocess.run(
            [python, "-c", find],
            cwd=folder,
            env=_env(),
            check=False,
            capture_output=True,
            text=True,
        )
        if f"site-packages/{name}" not in told.stdout or "nnha" in told.stdout:
            yield f"the package {name} is not theirs: {told.stdout}{told.stderr[-300:]}"


def _daemons(environment: Path, folder: Path) -> Iterator[str]:
    """Start a JournalNode, a controller and the page, ask them, and stop them on request."""
    layout = plan(folder / "cluster")
    write_conf_dir(layout)
    for name, (words, url) in _starts(layout).items():
        with _running(environment, folder, layout, words) as process:
            question = f"{url.removeprefix('http://')}/livez"
            wait_until(
                partial(_answers, environment, folder, question),
                what=f"nnha {name} of the base alone to be live",
                deadline_seconds=START_SECONDS,
                abandon=partial(_ended, process),
            )
            if name == "web":
                told = _nnha(environment, folder, "status", "--conf-dir", str(layout.conf_dir))
                if "Traceback" in told.stderr or "ns1" not in told.stdout:
                    yield f"nnha status: {told.returncode}: {told.stdout}{told.stderr[-500:]}"
            process.send_signal(signal.SIGTERM)
            code = process.wait(timeout=COMMAND_SECONDS)
            if code != 0:
                yield f"nnha {name}: exit code {code} on SIGTERM"


def _starts(layout: Layout) -> Mapping[str, tuple[tuple[str, ...], str]]:
    overrides = journalnode_overrides(layout, "jn1").items()
    node = tuple(word for key, text in overrides for word in ("-D", f"{key}={text}"))
    return {
        "journalnode": (("journalnode", *node), layout.url("jn1")),
        "zkfc": (("zkfc", "-D", "dfs.ha.namenode.id=nn1"), layout.url("zkfc-nn1")),
        "web": (("web",), layout.url("web")),
    }


@contextmanager
def _running(
    environment: Path, folder: Path, layout: Layout, words: tuple[str, ...]
) -> Iterator["subprocess.Popen[bytes]"]:
    command = [str(environment / "bin" / "nnha"), *words, "--conf-dir", str(layout.conf_dir)]
    with (folder / f"{words[0]}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=_env(), stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def _answers(environment: Path, folder: Path, question: str) -> bool:
    return _nnha(environment, folder, "probe", question).returncode == 0


def _ended(process: "subprocess.Popen[bytes]") -> str | None:
    code = process.poll()
    return None if code is None else f"it ended with exit code {code}"
