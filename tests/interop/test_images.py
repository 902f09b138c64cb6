"""Images that we save: a real NameNode starts from them, and saves what was in them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from journal.model import LAYOUT_VERSION, NamespaceInfo
from namenode_sim.image.container import read_summary
from namenode_sim.image.files import image_name
from namenode_sim.image.reader import load_image
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from tests.interop.hadoop_server import Hadoop
from tests.interop.known_differences import content_differences
from tests.interop.name_dirs import edits, images, replayed
from tests.interop.our_viewers import our_oiv
from tests.namenode_sim.namespace.dump import differences
from tests.worlds.name_dirs import format_name_dirs

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

CODECS = {
    "zlib": "org.apache.hadoop.io.compress.DefaultCodec",
    "gzip": "org.apache.hadoop.io.compress.GzipCodec",
    "bzip2": "org.apache.hadoop.io.compress.BZip2Codec",
}
PARALLEL = {
    "dfs.image.parallel.load": "true",
    "dfs.image.parallel.inode.threshold": "1",
    "dfs.image.parallel.target.sections": "4",
    "dfs.image.parallel.threads": "2",
}

VIEWS = [
    ("XML",),
    ("Delimited",),
    ("Delimited", "-sp", "-ec", "-delimiter", ","),
    ("FileDistribution",),
    ("FileDistribution", "-maxSize", "100000", "-step", "1000", "-format"),
    ("DetectCorruption",),
]
_REVISION = re.compile("<oivRevision>[^<]*</oivRevision>")

NEWEST = NamespaceInfo(-67, 4711, "CID-ours", 0, "BP-1-127.0.0.1-2")


def everything(worked_in: Path) -> Namespace:
    """Return the whole workload, replayed by us."""
    *_, (last, _op) = edits(worked_in)
    return replayed(worked_in, images(worked_in)[0], last)


@pytest.mark.parametrize("arguments", VIEWS, ids=" ".join)
def test_its_viewer_prints_any_image_as_ours_does(
    hadoop: Hadoop, worked_in: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    for image in images(worked_in):
        theirs = hadoop.print_image(image, *arguments)
        ours = our_oiv(image, tmp_path / "ours", *arguments)
        assert without_revision(ours) == without_revision(theirs), image.name


def without_revision(printed: str) -> str:
    """Return what is printed without the revision of the program that prints it."""
    return _REVISION.sub("", printed)


@pytest.mark.parametrize("namespace_id", [1, 2**31 - 1])
def test_a_name_node_starts_from_a_directory_of_ours(
    hadoop: Hadoop, worked_in: Path, tmp_path: Path, namespace_id: int
) -> None:
    name_dir, ours = tmp_path / "name", everything(worked_in)
    format_name_dirs([name_dir], replace(NEWEST, namespace_id=namespace_id), ours)
    [image] = images(name_dir)
    assert differences(ours, load_image(image)) == []
    printed = hadoop.print_image(image)
    assert without_revision(printed) == without_revision(our_oiv(image, tmp_path / "o", "XML"))
    hadoop.save_again(name_dir)
    theirs = load_image(images(name_dir)[-1])
    assert theirs.last_applied > ours.last_applied
    assert content_differences(ours, theirs) == []


SAVED_BY_HADOOP = {
    "zlib": {"dfs.image.compress": "true", "dfs.image.compression.codec": CODECS["zlib"]},
    "gzip": {"dfs.image.compress": "true", "dfs.image.compression.codec": CODECS["gzip"]},
    "bzip2": {"dfs.image.compress": "true", "dfs.image.compression.codec": CODECS["bzip2"]},
    "in parts": PARALLEL,
    "compressed in parts": {
        **PARALLEL,
        "dfs.image.compress": "true",
        "dfs.image.compression.codec": CODECS["gzip"],
    },
}


@pytest.mark.parametrize("settings", SAVED_BY_HADOOP.values(), ids=SAVED_BY_HADOOP.keys())
def test_images_compressed_and_in_parts_are_read_by_both(
    hadoop: Hadoop, worked_in: Path, tmp_path: Path, settings: dict[str, str]
) -> None:
    name_dir, whole = tmp_path / "name", everything(worked_in)
    format_name_dirs([name_dir], NEWEST, Namespace.empty("hdfs"))
    save_image(
        whole,
        name_dir / "current" / image_name(whole.last_applied),
        NEWEST,
        codec=settings.get("dfs.image.compression.codec", ""),
        sub_sections=int(settings.get("dfs.image.parallel.target.sections", "0")),
    )
    hadoop.save_again(name_dir, settings=settings)
    with images(name_dir)[-1].open("rb") as file:
        summary = read_summary(file)
    assert summary.codec == settings.get("dfs.image.compression.codec", "")
    assert content_differences(whole, load_image(images(name_dir)[-1])) == []


def test_a_directory_of_an_older_layout_needs_a_rolling_upgrade(
    hadoop: Hadoop, worked_in: Path, tmp_path: Path
) -> None:
    name_dir = tmp_path / "name"
    ours = load_image(images(worked_in)[2])
    format_name_dirs([name_dir], replace(NEWEST, layout_version=LAYOUT_VERSION), ours)
    with pytest.raises(Py4JJavaError, match="old layout version -65"):
        hadoop.save_again(name_dir)
    hadoop.save_again(name_dir, "-rollingUpgrade", "started")
    theirs = load_image(images(name_dir)[-1])
    assert content_differences(ours, theirs) == []


def test_a_rolling_upgrade_is_replayed(hadoop: Hadoop, tmp_path: Path) -> None:
    with hadoop.cluster(tmp_path, data_nodes=0) as cluster:
        fs = cluster.getFileSystem()
        upgrade, mode = "hdfs.protocol.HdfsConstants$RollingUpgradeAction", "fs.SafeModeAction"
        fs.setSafeMode(hadoop.enum(mode, "ENTER"))
        fs.rollingUpgrade(hadoop.enum(upgrade, "PREPARE"))
        fs.setSafeMode(hadoop.enum(mode, "LEAVE"))
        fs.mkdirs(hadoop.path("/during"))
        hadoop.save_namespace(fs)
        fs.rollingUpgrade(hadoop.enum(upgrade, "FINALIZE"))
        fs.mkdirs(hadoop.path("/after"))
        hadoop.save_namespace(fs)
    first, *later = images(tmp_path / "name")
    assert len(later) >= 2
    for image in later:
        theirs = load_image(image)
        ours = replayed(tmp_path / "name", first, theirs.last_applied)
        assert content_differences(ours, theirs, live=True) == [], image.name
    starts = [load_image(image).rolling_upgrade_start for image in later]
    assert any(starts)
    assert starts[-1] is None
