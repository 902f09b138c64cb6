"""`nnha cluster down` and `nnha dfs` find the cluster that runs, whatever was started after it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deploy.local.cluster.places import OWNER_FILE, remember
from deploy.local.demo.command import cluster
from deploy.local.demo.dfs import configured_directory

LISTENS = "import sys; print('up', flush=True); sys.stdin.read()"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@contextmanager
def running(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run what looks like the `nnha cluster up` of this directory, and is the last one here."""
    directory.mkdir(parents=True, exist_ok=True)
    look = [sys.executable, "-c", LISTENS, "cluster", "up"]
    with subprocess.Popen(look, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            (directory / OWNER_FILE).write_text(f"{process.pid}\n")
            remember(directory)
            yield process
        finally:
            process.kill()


def bench(directory: Path) -> Path:
    """Make a directory of a demo or a bench: used last, but not to be stopped."""
    directory.mkdir(parents=True)
    remember(directory)
    return directory


def down(*words: str) -> Result:
    return CliRunner().invoke(cluster, ["down", *words])


def test_a_bench_that_came_later_is_not_taken_for_it(tmp_path: Path) -> None:
    with running(tmp_path / "var" / "cluster-1") as process:
        bench(tmp_path / "var" / "bench-kill-2")
        told = down()
        assert told.exit_code == 0, told.output
        assert told.output == f"stopped; data and logs stay in {tmp_path / 'var' / 'cluster-1'}\n"
        assert process.wait(30) == -15


def test_the_shell_asks_the_cluster_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    for kept in ("cluster-1", "bench-kill-2"):
        (tmp_path / "var" / kept / "conf").mkdir(parents=True)
        (tmp_path / "var" / kept / "conf" / "core-site.xml").touch()
    with running(tmp_path / "var" / "cluster-1"):
        remember(tmp_path / "var" / "bench-kill-2")
        assert configured_directory(None) == tmp_path / "var" / "cluster-1" / "conf"
    assert configured_directory(None) == tmp_path / "var" / "bench-kill-2" / "conf"


def test_of_several_the_newest_is_stopped_and_the_others_are_named(tmp_path: Path) -> None:
    first, second = tmp_path / "var" / "b-first", tmp_path / "var" / "a-second"
    with running(first) as old, running(second) as new:
        told = down()
        assert told.exit_code == 0, told.output
        assert new.wait(30) == -15
        assert old.poll() is None
        assert told.output.splitlines()[1:] == [
            f"another one still runs: nnha cluster down --directory {first}"
        ]


def test_one_that_is_kept_elsewhere_is_found_while_it_is_the_last_one(tmp_path: Path) -> None:
    with running(tmp_path / "elsewhere") as process:
        assert down().exit_code == 0
        assert process.wait(30) == -15


def test_where_none_runs_it_says_where_it_looked_and_what_it_found(tmp_path: Path) -> None:
    assert f"Looked below {tmp_path / 'var'} for a cluster" in down().output
    last = bench(tmp_path / "var" / "bench-kill-2")
    (last / OWNER_FILE).write_text("1\n")  # a number that is another process's by now
    told = down()
    assert told.exit_code == 1
    assert f"there is none (the last directory used here is {last}; none runs in it)" in told.output
    named = down("--directory", str(last))
    assert named.output == f"Error: Looked for a running cluster in {last}; there is none\n"
