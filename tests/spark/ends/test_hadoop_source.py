"""Images and edits on Hadoop's file systems, through real Hadoop classes in a real JVM."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from deploy.local.cluster.java import class_path, find_java
from journal.model import TxId
from namenode_sim.checkpoint.merge import merge
from namenode_sim.edits.errors import EditsError
from namenode_sim.image.files import image_name
from namenode_sim.image.reader import load_image
from namenode_sim.namespace.namespace import Namespace
from spark.ends.hadoop_files import HadoopFiles
from spark.ends.options import Ends, open_sink, open_source
from spark.ends.sinks.hadoop import HadoopSink
from spark.ends.sinks.model import SinkFailed, SinkOutcome, SinkRefused
from spark.ends.sources.hadoop import HadoopSource
from spark.ends.sources.model import SourceError
from tests.namenode_sim.namespace.dump import differences
from tests.spark.ends.source_world import OPS, SEGMENTS, segment_name, whole
from tests.worlds.files import info, write_segment
from tests.worlds.name_dirs import format_name_dirs

IMAGE_0 = image_name(TxId(0))
_JARS = (
    "hadoop-client-api-*.jar",
    "hadoop-client-runtime-*.jar",
    "slf4j-api-*.jar",
    "jcl-over-slf4j-*.jar",
    "commons-lang3-*.jar",
    "py4j-*.jar",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def files(store: Path) -> Iterator[HadoopFiles]:
    """Start one JVM for all tests; a view file system stands for any that is not local."""
    port, token = launch_gateway(
        classpath=class_path(*_JARS), java_path=str(find_java().executable), die_on_exit=True,
        enable_auth=True, return_proc=False,
    )  # fmt: skip
    gateway: Any = JavaGateway(
        gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True)
    )
    configuration = gateway.jvm.org.apache.hadoop.conf.Configuration()
    configuration.set("fs.viewfs.mounttable.store.link./data", store.as_uri())
    yield HadoopFiles(gateway.jvm, configuration)
    gateway.shutdown()


@pytest.fixture
def place(store: Path, tmp_path: Path) -> str:
    """Make a name directory with three segments in the store; return its URI."""
    folder = store / tmp_path.name
    format_name_dirs([folder], info(), Namespace.empty("hdfs"))
    first = 1
    for segment in SEGMENTS:
        write_segment(folder / "current", first, segment)
        first += len(segment)
    return f"viewfs://store/data/{tmp_path.name}"


@pytest.fixture
def current(store: Path, tmp_path: Path) -> Path:
    return store / tmp_path.name / "current"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_merge_from_and_to_a_hadoop_file_system(
    files: HadoopFiles, place: str, store: Path, tmp_path: Path
) -> None:
    source = HadoopSource(place, place, lambda: files)
    staged = source.stage(tmp_path, print)
    assert (staged.base_txid, staged.last_txid) == (0, len(OPS))
    again = source.stage(tmp_path, print)
    assert (again.fetched_bytes, again.reused_files) == (0, 4)
    sink = HadoopSink(f"{place}/out", lambda: files)
    merged = merge(staged.image, staged.edits, sink.folder(tmp_path)).image
    assert sink.publish(merged, staged, print).outcome is SinkOutcome.PUBLISHED
    out = store / tmp_path.name / "out"
    assert [name for name in names(out) if not name.startswith(".")] == [
        merged.name, f"{merged.name}.md5",
    ]  # fmt: skip
    assert differences(load_image(out / merged.name), whole()) == []
    assert sink.publish(merged, staged, print).outcome is SinkOutcome.ALREADY_THERE
    (out / f"{merged.name}.md5").write_text(f"{'0' * 32} *{merged.name}\n")
    (out / f".{merged.name}.md5.crc").unlink()
    before = (out / merged.name).read_bytes()
    with pytest.raises(SinkRefused, match="another image of the same transaction"):
        sink.publish(merged, staged, print)
    assert (out / merged.name).read_bytes() == before


def test_what_is_damaged_or_missing_there_is_named_by_its_uri(
    files: HadoopFiles, place: str, current: Path, tmp_path: Path
) -> None:
    source = HadoopSource(place, f"{place}/current", lambda: files)
    torn = current / segment_name(2)
    torn.write_bytes(torn.read_bytes()[:-5])
    (current / f".{torn.name}.crc").unlink(missing_ok=True)
    with pytest.raises(
        SourceError, match=f"{place}/current/{torn.name} is damaged: .* before transaction"
    ):
        source.stage(tmp_path, print)
    assert not any(torn.name in name for name in names(tmp_path))


def test_a_folder_there_without_edits_is_taken_for_a_mistyped_one(
    files: HadoopFiles, place: str, current: Path, tmp_path: Path
) -> None:
    (current.parent / "other").mkdir()
    with pytest.raises(SourceError, match=f"{place}/other holds no edits_"):
        HadoopSource(place, f"{place}/other", lambda: files).stage(tmp_path, print)


def test_a_gap_there_is_named(
    files: HadoopFiles, place: str, current: Path, tmp_path: Path
) -> None:
    (current / segment_name(1)).unlink()
    with pytest.raises(EditsError, match=f"{place}/{segment_name(2)}.*transactions .* missing"):
        HadoopSource(place, place, lambda: files).stage(tmp_path, print)


def test_an_image_that_does_not_fit_its_digest_is_not_kept(
    files: HadoopFiles, place: str, current: Path, tmp_path: Path
) -> None:
    image = current / IMAGE_0
    image.write_bytes(image.read_bytes()[:-1] + b"x")
    with pytest.raises(SourceError, match=f"{place}/current/{IMAGE_0} does not fit"):
        HadoopSource(place, place, lambda: files).stage(tmp_path, print)
    assert IMAGE_0 not in names(tmp_path)
    with pytest.raises(SourceError, match="does not exist"):
        HadoopSource(f"{place}/nothing", place, lambda: files).stage(tmp_path, print)


def test_a_place_that_cannot_be_written_keeps_nothing_half_done(
    files: HadoopFiles, place: str, current: Path, tmp_path: Path
) -> None:
    staged = HadoopSource(place, place, lambda: files).stage(tmp_path, print)
    (current.parent / "out").write_text("a file where a directory belongs")
    with pytest.raises(SinkFailed, match="was not published"):
        HadoopSink(f"{place}/out", lambda: files).publish(staged.image, staged, print)
    with pytest.raises(SinkFailed, match="No FileSystem for scheme"):
        HadoopSink("nosuch://x/out", lambda: files).publish(staged.image, staged, print)


def test_the_options_say_which_end_it_is(tmp_path: Path) -> None:
    def no_java() -> HadoopFiles:
        raise AssertionError("no JVM is needed to open a source")

    both = Ends(image="hdfs://c/image", edits=str(tmp_path), out="s3a://b/out")
    assert both.need_java
    source = open_source(both, no_java)
    assert isinstance(source, HadoopSource)
    assert source.edits == tmp_path.as_uri()
    assert isinstance(open_sink(both, no_java), HadoopSink)
    assert not Ends(image="/a", edits="file:///b", out="/c").need_java
    for wrong in (Ends(image="/a"), Ends(image="/a", from_cluster=True), Ends(from_cluster=False)):
        with pytest.raises(click.UsageError):
            open_source(wrong, no_java)
    for wrong in (Ends(), Ends(out="/a", upload=True)):
        with pytest.raises(click.UsageError):
            open_sink(wrong, no_java)
