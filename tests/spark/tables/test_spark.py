"""Spark reads the same tables from images and edits as the rest of nnha, and says what is wrong."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from namenode_sim.image.codecs import ZLIB_CODEC
from namenode_sim.image.reader import read_namespace
from namenode_sim.namespace.inode import INodeDirectory, INodeFile, full_path
from spark.engine.session import SparkSettings, spark_started
from spark.engine.spark import SparkEngine
from spark.tables import register
from spark.tables.arrow import INODE_TYPES
from spark.tables.edit_rows import EDIT_TYPES
from spark.tables.export import export
from tests.spark.tables.tables_world import directory_row, exported_row, inode_row, random_namespace
from tests.spark.tables.test_edits import viewed
from tests.worlds.files import save, write_log

pytestmark = pytest.mark.cluster  # starts a Spark

CASES = {"plain": ("", 0), "compressed, with sub-sections": (ZLIB_CODEC, 3)}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    scratch = tmp_path_factory.mktemp("spark")
    with spark_started(SparkSettings("local[2]", scratch)) as started:
        session = SparkSession(started.engine.context)
        register(session)
        yield session


def rows(session: SparkSession, kind: str, path: Path, **options: str) -> list[dict[str, Any]]:
    frame = session.read.format(kind).options(**options).load(str(path))
    return [row.asDict() for row in frame.collect()]


@pytest.mark.parametrize("case", CASES)
def test_the_tables_of_an_image(session: SparkSession, tmp_path: Path, case: str) -> None:
    codec, parts = CASES[case]
    path = save(random_namespace(21)[0], tmp_path, codec=codec, parts=parts)
    with path.open("rb") as file:
        inodes = list(read_namespace(file).tree.inodes.values())
    found = rows(session, "fsimage", path, split_bytes="500")
    assert sorted(found, key=lambda row: row["id"]) == sorted(
        (inode_row(node) for node in inodes), key=lambda row: row["id"]
    )
    edges = rows(session, "fsimage", path, table="edges", split_bytes="500")
    assert sorted(tuple(edge.values()) for edge in edges) == sorted(
        (node.parent.id, node.id) for node in inodes if node.parent
    )
    if case != "plain":
        return
    blocks = rows(session, "fsimage", path, table="blocks", columns="inode_id, block_id,length")
    assert sorted(tuple(block.values()) for block in blocks) == sorted(
        (node.id, block.block_id, block.num_bytes)
        for node in inodes
        if isinstance(node, INodeFile)
        for block in node.blocks
    )
    strings = rows(session, "fsimage", path, table="strings")
    users = {row["text"] for row in strings if row["kind"] == "USER"}
    assert {node.user for node in inodes} - {""} <= users


def test_a_join_finds_directories(session: SparkSession, tmp_path: Path) -> None:
    namespace, _ = random_namespace(22)
    path = save(namespace, tmp_path)
    for table_name in ("inodes", "edges"):
        frame = session.read.format("fsimage").option("table", table_name).load(str(path))
        frame.createOrReplaceTempView(table_name)
    found = session.sql(
        "select d.name, count(*) as children, sum(i.length) as bytes from inodes d"
        " join edges e on d.id = e.parent_id join inodes i on i.id = e.child_id"
        " where d.type = 'DIRECTORY' group by d.id, d.name"
    ).collect()
    expected = [
        (node.name.decode(), len(node.children),
         sum(c.length() for c in node.children.values() if isinstance(c, INodeFile)))
        for node in namespace.tree.inodes.values()
        if isinstance(node, INodeDirectory) and node.children
    ]  # fmt: skip
    assert sorted(tuple(row) for row in found) == sorted(expected)


def test_columns_and_options(session: SparkSession, tmp_path: Path) -> None:
    path = save(random_namespace(23, 50)[0], tmp_path)
    reader = session.read.format("fsimage")
    assert reader.load(str(path)).columns == list(INODE_TYPES)
    frame = reader.option("columns", "length, id").load(f"file://{path}")
    assert frame.columns == ["length", "id"]
    assert frame.count() == len(random_namespace(23, 50)[0].tree.inodes)
    for wrong, said in (
        ({"table": "files"}, "expected one of inodes"),
        ({"columns": "id, size"}, "'size' is unknown"),
        ({"split_bytes": "0"}, "expected a positive number"),
    ):
        with pytest.raises(PySparkException, match=said):
            rows(session, "fsimage", path, **wrong)
    with pytest.raises(PySparkException, match="a path that this machine"):
        session.read.format("edits").load("hdfs://somewhere/x").count()


def test_the_table_of_edits(session: SparkSession, tmp_path: Path) -> None:
    _, log = random_namespace(24)
    write_log(tmp_path, log[:100])
    write_log(tmp_path, log[100:200])
    write_log(tmp_path, log[200:], closed=False)
    found = sorted(rows(session, "edits", tmp_path, inProgress="true"), key=lambda row: row["txid"])
    assert list(found[0]) == list(EDIT_TYPES)
    for row, seen in zip(found, viewed(log), strict=True):
        details = json.loads(row["details"])
        assert {"txid": row["txid"], "op": row["op"], **details} == seen
    some = rows(session, "edits", tmp_path, columns="op,txid")
    assert sorted((row["txid"], row["op"]) for row in some) == [
        (row["txid"], row["op"]) for row in found[:200]
    ]


def test_what_is_damaged_is_named(session: SparkSession, tmp_path: Path) -> None:
    namespace, log = random_namespace(25)
    segment = write_log(tmp_path, log)
    bad = rows(session, "edits", segment, columns="txid,offset")[len(log) // 2]
    raw = bytearray(segment.read_bytes())
    raw[bad["offset"] + 14] ^= 1
    segment.write_bytes(raw)
    with pytest.raises(PySparkException) as caught:
        rows(session, "edits", segment)
    for word in (segment.name, str(bad["offset"]), str(bad["txid"])):
        assert word in str(caught.value)
    image = save(namespace, tmp_path)
    whole = image.read_bytes()
    image.write_bytes(whole.replace(b"\x08\x02\x10", b"\x08\x07\x10"))
    with pytest.raises(PySparkException, match=f"{image.name}: section INODE, byte [0-9]+ of"):
        rows(session, "fsimage", image)
    image.write_bytes(whole[:-9])
    with pytest.raises(PySparkException, match=f"{image.name} cannot be read"):
        rows(session, "fsimage", image)


def test_an_export_by_spark_and_what_spark_reads_of_it(
    session: SparkSession, tmp_path: Path
) -> None:
    namespace, _ = random_namespace(26)
    path = save(namespace, tmp_path, parts=3)
    export(path, tmp_path / "out", SparkEngine(session.sparkContext), at="now")
    tree = [n for n in namespace.tree.inodes.values() if full_path(n)]
    inodes = [row.asDict() for row in session.read.parquet(str(tmp_path / "out/inodes")).collect()]
    assert sorted(inodes, key=lambda row: row["id"]) == sorted(
        (exported_row(node) for node in tree), key=lambda row: row["id"]
    )
    found = session.read.parquet(str(tmp_path / "out/directories")).collect()
    assert sorted((row.asDict() for row in found), key=lambda row: row["id"]) == sorted(
        (directory_row(node) for node in tree if isinstance(node, INodeDirectory)),
        key=lambda row: row["id"],
    )
