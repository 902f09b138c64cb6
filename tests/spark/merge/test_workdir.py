"""Work directories: one run's own, gone at its end, and cleaned up after runs that died."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spark.merge.workdir import PREFIX, remove_left_over, work_directory

HOLDER = """
import sys
from pathlib import Path
from spark.merge.workdir import work_directory
with work_directory(Path(sys.argv[1])) as room:
    (room / "half").write_bytes(b"x")
    print(room, flush=True)
    sys.stdin.read()
"""


def holder(parent: Path) -> tuple["subprocess.Popen[str]", Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def ended(process: "subprocess.Popen[str]") -> None:
    process.communicate()


def test_a_work_directory_goes_with_its_run(tmp_path: Path) -> None:
    with work_directory(tmp_path / "new" / "parent") as room:
        assert room.name.startswith(PREFIX)
        (room / "part").write_bytes(b"x")
    assert list((tmp_path / "new" / "parent").iterdir()) == []
    with pytest.raises(KeyError), work_directory(tmp_path) as room:
        raise KeyError(room)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    process, left = holder(tmp_path)
    process.send_signal(signal.SIGKILL)
    ended(process)
    assert (left / "half").exists()
    with work_directory(tmp_path) as room:
        assert sorted(tmp_path.iterdir()) == [room]


def test_a_living_run_s_directory_is_left_alone(tmp_path: Path) -> None:
    process, used = holder(tmp_path)
    try:
        assert remove_left_over(tmp_path) == []
        with work_directory(tmp_path):
            assert (used / "half").exists()
    finally:
        ended(process)


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / f"{PREFIX}file").write_bytes(b"")
    closed_to_us = tmp_path / f"{PREFIX}closed"
    (closed_to_us / "in_use.lock").mkdir(parents=True)
    half_removed = tmp_path / f"{PREFIX}0.gone"
    half_removed.mkdir()
    assert remove_left_over(tmp_path) == [half_removed]
    assert {path.name for path in tmp_path.iterdir()} == {
        "mine",
        f"{PREFIX}file",
        closed_to_us.name,
    }
