"""Edits that a real Hadoop cluster wrote, applied by us, give the images that it saved itself."""

from pathlib import Path

import pytest

from namenode_sim.edits import ops
from namenode_sim.image.reader import load_image
from tests.interop.hadoop_server import Hadoop
from tests.interop.known_differences import content_differences
from tests.interop.name_dirs import edits, images, only_first_image, replayed

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

NEVER_WRITTEN_BY_HADOOP_3 = {ops.SetGenstampV1, ops.SetNsQuota, ops.ClearNsQuota, ops.Symlink}
"""The first three are read only; the last needs a switch that is off by default."""

IN_OTHER_TESTS = {ops.RollingUpgradeStart, ops.RollingUpgradeFinalize}


def test_the_workload_has_every_kind_of_edit(worked_in: Path) -> None:
    written = {type(op) for _, op in edits(worked_in)}
    assert set(ops.OP_CLASSES) - written == NEVER_WRITTEN_BY_HADOOP_3 | IN_OTHER_TESTS


def test_replay_gives_the_image_that_the_active_saved(worked_in: Path) -> None:
    first, *later = images(worked_in)
    for image in later:
        theirs = load_image(image)
        ours = replayed(worked_in, first, theirs.last_applied)
        assert content_differences(ours, theirs, live=True) == [], image.name


def test_replay_from_any_image_gives_the_next(worked_in: Path) -> None:
    *earlier, last = images(worked_in)
    theirs = load_image(last)
    for image in earlier:
        ours = replayed(worked_in, image, theirs.last_applied)
        assert content_differences(ours, theirs, live=True) == [], image.name


def test_replay_gives_what_hadoop_replays(hadoop: Hadoop, worked_in: Path, tmp_path: Path) -> None:
    name_dir = only_first_image(worked_in, tmp_path / "name")
    *_, (last, _op) = edits(name_dir)
    ours = replayed(name_dir, images(name_dir)[0], last)
    hadoop.save_again(name_dir)
    theirs = load_image(images(name_dir)[-1])
    assert theirs.last_applied > last
    assert content_differences(ours, theirs) == []
