"""A merge that is killed at any point leaves nothing but what the next run removes."""

import subprocess
import sys
from pathlib import Path

import pytest

from namenode_sim.image.files import check_digest
from namenode_sim.image.reader import load_image
from spark.engine.outcome import InlineEngine
from spark.merge.job import merge_on
from spark.merge.stages import Progress
from spark.merge.workdir import PREFIX
from tests import ROOT
from tests.namenode_sim.namespace.dump import differences
from tests.spark.merge import job_tree

SIGKILLED = -9


def killed(current: Path, out: Path, *point: str, engine: str = "inline") -> str:
    """Run a merge until it has killed itself; gives what it printed."""
    places = (str(current / job_tree.BASE_NAME), str(current), str(out))
    ended = subprocess.run(
        [sys.executable, "-m", "tests.spark.merge.killed_merge", engine, *places, *point],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert ended.returncode == SIGKILLED, ended.stderr
    return ended.stdout


def assert_nothing_is_visible(out: Path) -> None:
    """Allow a digest: it goes first, and without its image it says nothing."""
    names = {path.name for path in out.iterdir() if not path.name.startswith(PREFIX)}
    assert names <= {"in_use.lock", "merge.tmp", f"{job_tree.MERGED_NAME}.md5"}


@pytest.fixture(scope="module")
def current(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return job_tree.tree_directory(tmp_path_factory.mktemp("name"))


@pytest.fixture(scope="module")
def words(current: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Progress]:
    """Return every report of progress of an undisturbed merge."""
    out, told = tmp_path_factory.mktemp("out"), list[Progress]()
    merge_on(
        InlineEngine(), current / job_tree.BASE_NAME, current, out, out, told.append,
        range_bytes=job_tree.RANGE_BYTES,
    )  # fmt: skip
    return told


STAGES = 8
"""Points spread over the merge, in addition to the two renames: ten in all."""


@pytest.mark.parametrize("part", range(STAGES + 2))
def test_the_run_after_a_killed_one_succeeds_and_cleans_up(
    tmp_path: Path, current: Path, words: list[Progress], part: int
) -> None:
    assert len({at.stage for at in words}) >= STAGES // 2
    if part < STAGES:
        point = ("told", str(1 + part * (len(words) - 1) // (STAGES - 1)))
    else:
        point = ("renamed", str(1 + part - STAGES))
    killed(current, tmp_path, *point)
    assert list(tmp_path.glob(f"{PREFIX}*")) != []
    assert_nothing_is_visible(tmp_path)
    done = merge_on(InlineEngine(), current / job_tree.BASE_NAME, current, tmp_path, tmp_path)
    assert not done.merged.already_there
    assert differences(load_image(done.merged.image), job_tree.whole_tree()) == []
    check_digest(done.merged.image)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [job_tree.MERGED_NAME, f"{job_tree.MERGED_NAME}.md5"]
