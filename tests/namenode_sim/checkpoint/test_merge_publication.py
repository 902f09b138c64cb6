"""How a merge shows its result, the same for one process and for the divided merge."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hadoop.directory_lock import DirectoryLock
from hadoop.errors import InUse
from namenode_sim.checkpoint.merge import Merged, merge
from namenode_sim.checkpoint.publication import MergeRefused
from spark.engine.outcome import InlineEngine
from spark.merge.job import merge_on
from tests.namenode_sim.startup.startup_world import snapshot
from tests.spark.merge.job_world import first_image, name_directory

Merging = Callable[[], Merged]


def divided(image: Path, edits: Path, out: Path) -> Merged:
    done = merge_on(InlineEngine(), image, edits, out, out)
    assert done.single_process_because is None
    return done.merged


WAYS: dict[str, Callable[[Path, Path, Path], Merged]] = {"one process": merge, "divided": divided}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture(params=WAYS)
def merging(request: pytest.FixtureRequest, tmp_path: Path, out: Path) -> Merging:
    current = name_directory(tmp_path / "name")
    way = WAYS[request.param]
    return lambda: way(first_image(current), current, out)


def test_a_second_run_changes_nothing(merging: Merging, out: Path) -> None:
    first = merging()
    assert not first.already_there
    before, stamp = snapshot(out), first.image.stat().st_mtime_ns
    assert merging().already_there
    assert (snapshot(out), first.image.stat().st_mtime_ns) == (before, stamp)


def test_a_run_that_was_killed_before_the_last_rename_is_completed(
    merging: Merging, out: Path
) -> None:
    result = merging()
    whole = snapshot(out)
    result.image.unlink()
    (out / "merge.tmp").mkdir()
    (out / "merge.tmp" / "fsimage.ckpt_1").write_bytes(b"half")
    assert not merging().already_there
    assert snapshot(out) == whole


def test_another_image_is_never_overwritten(merging: Merging, out: Path) -> None:
    other = merging().image
    other.write_bytes(other.read_bytes() + b"x")
    before = snapshot(out)
    with pytest.raises(MergeRefused, match="is another image of the same transaction"):
        merging()
    assert snapshot(out) == before


def test_two_merges_into_one_directory_do_not_meet(merging: Merging, out: Path) -> None:
    out.mkdir()
    lock = DirectoryLock(out)
    with pytest.raises(InUse):
        merging()
    lock.release()
    assert [path for path in out.iterdir() if path.name != "in_use.lock"] == []
