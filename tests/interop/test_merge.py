"""The divided merge against Hadoop: its own checkpoints, and its NameNode that loads Spark's."""

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from namenode_sim.edits.segment_file import named_range
from namenode_sim.image.files import digest_path
from namenode_sim.image.reader import load_image
from spark.engine.model import Engine
from spark.engine.outcome import InlineEngine
from spark.engine.session import SparkSettings, spark_started
from spark.merge.job import MergedOn, merge_on
from tests.interop import admin_workload, file_workload
from tests.interop.hadoop_server import Hadoop
from tests.interop.known_differences import content_differences
from tests.interop.name_dirs import images, segments

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

STEPS = len(file_workload.STEPS) + len(admin_workload.STEPS)
"""Those of the workload that take no snapshots, which cannot be divided."""
RANGE_BYTES = 2000


def txid_of(image: Path) -> int:
    return int(image.name.rpartition("_")[2])


@pytest.fixture
def on_spark(tmp_path: Path) -> Iterator[Engine]:
    with spark_started(SparkSettings("local[2]", tmp_path / "spark")) as started:
        yield started.engine


def merged(engine: Engine, worked_in: Path, base: Path, until: Path, folder: Path) -> MergedOn:
    """Merge, on ``base``, the edits that ``until`` holds, too."""
    edits = folder / "edits"
    edits.mkdir(parents=True)
    for segment in segments(worked_in):
        promised = named_range(segment.name)
        assert promised is not None
        if (promised.last or 0) <= txid_of(until):
            shutil.copy(segment, edits)
    out = folder / "out"
    return merge_on(engine, base, edits, out, folder, range_bytes=RANGE_BYTES)


def test_each_step_of_a_workload_is_merged_as_hadoop_saved_it(
    worked_in: Path, tmp_path: Path
) -> None:
    found = images(worked_in)[: STEPS + 1]
    for number, (base, theirs) in enumerate(pairwise(found)):
        done = merged(InlineEngine(), worked_in, base, theirs, tmp_path / str(number))
        assert done.single_process_because is None
        assert done.merged.image.name == theirs.name
        ours = load_image(done.merged.image)
        assert content_differences(ours, load_image(theirs), live=True) == [], theirs.name


def test_a_name_node_starts_from_what_spark_merged_and_prints_the_same_tree(
    hadoop: Hadoop, on_spark: Engine, worked_in: Path, tmp_path: Path
) -> None:
    first, last = images(worked_in)[0], images(worked_in)[STEPS]
    done = merged(on_spark, worked_in, first, last, tmp_path)
    assert done.single_process_because is None
    printed = [
        sorted(hadoop.print_image(image, "Delimited").splitlines())
        for image in (done.merged.image, last)
    ]
    assert printed[0] == printed[1]
    # A name directory with no image but ours, and none of the edits: it must come from the image.
    name_dir = tmp_path / "name"
    (name_dir / "current").mkdir(parents=True)
    shutil.copy(worked_in / "current" / "VERSION", name_dir / "current")
    (name_dir / "current" / "seen_txid").write_text(f"{txid_of(last)}\n")
    for path in (done.merged.image, digest_path(done.merged.image)):
        shutil.copy(path, name_dir / "current")
    hadoop.save_again(name_dir)
    again = images(name_dir)[-1]
    assert txid_of(again) > txid_of(last)
    assert content_differences(load_image(done.merged.image), load_image(again)) == []
