"""A disk that is full before the last byte: the divided merge says so, and publishes nothing."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.merge.job_tree import BASE_NAME, MERGED_NAME, tree_directory


def merge(current: Path, out: Path, most: int) -> "subprocess.CompletedProcess[str]":
    """Run the command with a limit to its files' bytes: it cuts a write as a full disk does.

    It sets the limit itself: code between fork and exec runs with what other tests left of gRPC.
    """
    limited = (
        "import resource, runpy\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))\n"
        "runpy.run_module('ha.cli.main', run_name='__main__', alter_sys=True)\n"
    )
    given = ("--image", current / BASE_NAME, "--edits", current, "--out", out, "--engine", "pool")
    return subprocess.run(
        [sys.executable, "-c", limited, "checkpoint", "merge", *map(str, given)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("missing", [2, 40], ids=["in the last write", "in one before it"])
def test_an_image_that_did_not_fit_is_not_published(tmp_path: Path, missing: int) -> None:
    """Write to a raw file, which takes what fits and says how much.

    The rest was lost without a word.
    """
    current = tmp_path / "name"
    current.mkdir()
    tree_directory(current)
    whole = merge(current, tmp_path / "whole", resource.RLIM_INFINITY)
    assert whole.returncode == 0, whole.stderr
    size = (tmp_path / "whole" / MERGED_NAME).stat().st_size
    done = merge(current, tmp_path / "out", size - missing)
    assert (done.returncode, "Nothing was published" in done.stderr) == (4, True), done.stderr
    assert list((tmp_path / "out").iterdir()) == []
