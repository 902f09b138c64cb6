"""The divided merge from end to end: the same namespace, or a clear error and nothing published."""

import gc
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from namenode_sim.checkpoint.merge import merge
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.ops import (
    AllowSnapshot,
    CreateSnapshot,
    EndLogSegment,
    StartLogSegment,
)
from namenode_sim.image.errors import ImageError
from namenode_sim.image.facts import image_facts
from namenode_sim.image.files import check_digest
from namenode_sim.image.reader import load_image
from namenode_sim.namespace.namespace import Namespace
from spark.engine.model import SparkUnavailable
from spark.engine.outcome import InlineEngine
from spark.merge import job
from spark.merge.command import merge_command
from spark.merge.job import MergedOn, merge_on
from spark.merge.merger import EngineName, Merger, choose
from spark.merge.progress_display import in_words
from spark.merge.stages import Progress
from tests.namenode_sim.image.image_world import real
from tests.namenode_sim.namespace.dump import differences
from tests.namenode_sim.startup.startup_world import OPEN, held_by, mkdir
from tests.spark.merge.job_world import LAST, ROLLED, first_image, merged_name, name_directory
from tests.worlds.files import info, write_segment
from tests.worlds.name_dirs import format_name_dirs


def merged(current: Path, out: Path, tell: Callable[[Progress], None] = lambda _: None) -> MergedOn:
    return merge_on(InlineEngine(), first_image(current), current, out, out, tell)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_the_result_is_the_replayed_namespace(tmp_path: Path) -> None:
    current, out = name_directory(tmp_path / "name"), tmp_path / "out"
    told: list[Progress] = []
    done = merge_on(InlineEngine(), first_image(current), tmp_path / "name", out, out, told.append)
    result = done.merged
    assert (result.from_txid, result.to_txid, result.segments) == (0, LAST, 2)
    assert (result.already_there, done.single_process_because) == (False, None)
    assert differences(load_image(result.image), held_by((*ROLLED, *OPEN))) == []
    assert result.inodes == len(load_image(result.image).tree.inodes)
    assert names_in(out) == [merged_name(), f"{merged_name()}.md5"]
    assert list(done.seconds) == [
        "open", "plan", "look up", "replay", "delta", "write", "publish",
    ]  # fmt: skip
    assert Progress("plan", LAST, LAST, "edits") in told
    assert Progress("replay", LAST, LAST, "edits") in told


def test_hadoops_own_checkpoint_holds_the_same(tmp_path: Path) -> None:
    source = real("name-dir/VERSION").parent
    done = merge_on(
        InlineEngine(), source / f"fsimage_{0:019d}", source, tmp_path / "out", tmp_path / "work"
    )
    theirs = load_image(source / f"fsimage_{26:019d}")
    assert differences(load_image(done.merged.image), theirs) == []
    assert done.single_process_because is None
    assert names_in(tmp_path / "work") == []


def test_edits_of_an_older_layout_leave_the_image_in_its_own(tmp_path: Path) -> None:
    """Merge as with every NameNode of ours: it formats at -67 and logs at -65."""
    current = name_directory(tmp_path / "name", image_layout=-67)
    done = merged(current, tmp_path / "out")
    assert done.single_process_because is None
    assert image_facts(done.merged.image).layout == -67
    theirs = merge(first_image(current), current, tmp_path / "whole")
    assert differences(load_image(done.merged.image), load_image(theirs.image)) == []


SNAPSHOTS = (
    StartLogSegment(),
    mkdir("/kept"),
    mkdir("/kept/x"),
    AllowSnapshot("/kept"),
    CreateSnapshot("/kept", "s", 1_234_567),
    EndLogSegment(),
)


def test_snapshots_keep_their_times(tmp_path: Path) -> None:
    """One process takes them over from the edits, and a divided merge from the image."""
    current = tmp_path / "name" / "current"
    format_name_dirs([current.parent], info(-67), Namespace.empty("hdfs"))
    write_segment(current, 1, SNAPSHOTS, layout=-67)
    first = merged(current, tmp_path / "first")
    assert first.single_process_because is not None
    write_segment(current, len(SNAPSHOTS) + 1, OPEN, layout=-67)
    second = merge_on(
        InlineEngine(), first.merged.image, current, tmp_path / "second", tmp_path / "second"
    )
    assert second.single_process_because is None
    for image in (first.merged.image, second.merged.image):
        (taken,) = load_image(image).snapshots.snapshottable.values()
        assert [(one.name, one.root.mtime) for one in taken] == [("s", 1_234_567)]


def command(current: Path, out: Path, *more: str) -> Result:
    given = ("--image", str(first_image(current)), "--edits", str(current), "--out", str(out))
    return CliRunner().invoke(merge_command, [*given, *more])


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def first_segment(current: Path) -> Path:
    return current / f"edits_{1:019d}-{len(ROLLED):019d}"


def with_unknown_op(current: Path) -> None:
    """Turn the last edit into one of an unknown kind, with a checksum that is right."""
    path = write_segment(current, LAST + 1, (StartLogSegment(), mkdir("/x")))
    data = path.read_bytes()
    frame = bytearray(data[25:-4])
    frame[0] = 200
    path.write_bytes(data[:25] + frame + struct.pack(">I", zlib.crc32(frame)))


def without_digest(current: Path) -> None:
    image = first_image(current)
    image.with_name(f"{image.name}.md5").unlink()


DAMAGES: dict[str, tuple[Callable[[Path], object], type[Exception], str]] = {
    "a damaged edit": (
        lambda c: flip(first_segment(c), 40),
        EditsError,
        "edits_.*, offset 25, transaction 2: the checksum is wrong",
    ),
    "a cut segment": (
        lambda c: first_segment(c).write_bytes(first_segment(c).read_bytes()[:-4]),
        EditsError,
        f"edits_.*{len(ROLLED)}, offset .*, transaction {len(ROLLED)}: ",
    ),
    "a missing segment": (
        lambda c: first_segment(c).unlink(),
        EditsError,
        f"edits_.*-.*{LAST}, transaction 1: transactions 1 to {len(ROLLED)} are missing",
    ),
    "an edit of an unknown kind": (
        with_unknown_op,
        EditsError,
        f"edits_.*{LAST + 2}, offset 25, transaction {LAST + 2}: .*200",
    ),
    "an edit that does not apply": (
        lambda c: write_segment(c, LAST + 1, (StartLogSegment(), mkdir("/no/parent"))),
        EditsError,
        f"edits_.*{LAST + 2}, offset 25, transaction {LAST + 2}: it cannot be applied",
    ),
    "a damaged image": (
        lambda c: flip(first_image(c), 60),
        ImageError,
        "fsimage_0000000000000000000",
    ),
    "a damaged image that can be read": (
        lambda c: (
            first_image(c)
            .with_name(first_image(c).name + ".md5")
            .write_text(f"{'0' * 32} *{first_image(c).name}\n")
        ),
        ImageError,
        "fsimage_0000000000000000000 is corrupt: its MD5 digest is [0-9a-f]*, expected 0000",
    ),
    "an image without digest": (without_digest, ImageError, "has no digest"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_nothing_is_published_from_damage_and_it_is_told_where(tmp_path: Path, case: str) -> None:
    damage, error, message = DAMAGES[case]
    current, out = name_directory(tmp_path / "name"), tmp_path / "out"
    damage(current)
    with pytest.raises(error, match=message):
        merged(current, out)
    assert names_in(out) == []
    done = command(current, out, "--engine", "local")
    assert done.exit_code == 4, done.output
    assert "Nothing was published" in done.output
    assert names_in(out) == []


UNDIVIDED: dict[str, tuple[Callable[[Path], object], str]] = {
    "an edit about snapshots": (
        lambda c: write_segment(c, LAST + 1, (StartLogSegment(), AllowSnapshot("/late"))),
        f"transaction {LAST + 2} is an edit about snapshots",
    ),
    "edits of a newer layout": (
        lambda c: write_segment(c, LAST + 1, (StartLogSegment(), mkdir("/x")), layout=-66),
        "the edits have layout version -66 and the image has -65",
    ),
}


@pytest.mark.parametrize("case", UNDIVIDED)
def test_what_cannot_be_divided_is_merged_by_one_process_and_told(
    tmp_path: Path, case: str
) -> None:
    change, reason = UNDIVIDED[case]
    current, out = name_directory(tmp_path / "name"), tmp_path / "out"
    change(current)
    done = merged(current, out)
    assert reason in (done.single_process_because or "")
    assert done.merged.to_txid == LAST + 2
    check_digest(done.merged.image)
    assert names_in(out) == [done.merged.image.name, f"{done.merged.image.name}.md5"]
    assert job.WHOLE in done.seconds


def test_the_command_tells_what_it_did_and_where_the_time_went(tmp_path: Path) -> None:
    current, out = name_directory(tmp_path / "name"), tmp_path / "out"
    done = command(current, out, "--engine", "pool", "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert (facts["engine"], facts["reason"]) == ("pool", "as asked for")
    assert (facts["to_txid"], facts["already_there"]) == (LAST, False)
    assert facts["spark_start_seconds"] is None
    assert {"plan", "look up", "write"} <= set(facts["stages"])
    assert f"checkpoint: plan: {LAST} of {LAST} edits" in done.stderr
    again = command(current, out, "--engine", "pool")
    assert (again.exit_code, "was there already, the same" in again.stdout) == (0, True)
    assert "engine pool: as asked for\nstages: open " in again.stdout
    by_size = command(current, tmp_path / "other")
    assert "engine local: the image has 0 MB, and below 67 MB one process" in by_size.stdout


def test_what_the_command_cannot_use_is_wrong_usage(tmp_path: Path) -> None:
    current, out = name_directory(tmp_path / "name"), tmp_path / "out"
    assert command(current, out, "--conf", "nonsense").exit_code == 2
    assert command(current, out, "--engine", "fastest").exit_code == 2
    remote = CliRunner().invoke(
        merge_command, ["--image", "hdfs://nn/x", "--edits", str(current), "--out", str(out)]
    )
    assert (remote.exit_code, "give --work DIR" in remote.output) == (2, True)


def test_the_engine_goes_by_the_image_s_size() -> None:
    small, large = choose(EngineName.AUTO, 60_000_000), choose(EngineName.AUTO, 84_000_000)
    assert (small.engine, large.engine) == (EngineName.LOCAL, EngineName.SPARK)
    assert large.reason == "the image has 84 MB; from 67 MB on it is divided"
    assert choose(EngineName.SPARK, 1).engine is EngineName.SPARK


# PySpark drops the launcher that failed with its pipe still open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_processes_do_what_spark_cannot_unless_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    current, out = name_directory(tmp_path / "name"), tmp_path / "out"
    monkeypatch.setattr("spark.merge.merger.SPARK_FROM_BYTES", 1)
    bad = {"spark.driver.memory": "nonsense"}
    with Merger(tmp_path / "work", master="local[1]", properties=bad) as merger:
        report = merger.merge(first_image(current), current, out)
    assert report.choice.engine is EngineName.POOL
    assert "Spark did not start on local[1]" in report.choice.reason
    assert report.spark_start_seconds is None
    assert differences(load_image(report.merged.image), held_by((*ROLLED, *OPEN))) == []
    asked = EngineName.SPARK
    with (
        Merger(tmp_path / "work", asked=asked, master="local[1]", properties=bad) as merger,
        pytest.raises(SparkUnavailable),
    ):
        merger.merge(first_image(current), current, tmp_path / "other")
    gc.collect()


def test_progress_is_told_in_words() -> None:
    assert in_words(Progress("plan", 40_000, 100_000, "edits"), 0.5) == "40,000 of 100,000 edits"
    assert in_words(Progress("plan", 40_000, None, "edits"), 2.0) == "40,000 edits, 20,000/s"
