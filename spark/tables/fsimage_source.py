"""Spark's data source ``fsimage``: the tables of an image as Arrow record batches.

Each partition is a piece of a section, or all of the string table.  Nothing of the image travels
through the driver but the small sections.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import datasource

from spark.tables.arrow import INODE_TYPES, Batch, InodeBatches
from spark.tables.ddl import chosen, ddl_of, path_of
from spark.tables.entry_columns import edges_of
from spark.tables.images import SPLIT_BYTES, ImageTables, Piece, open_tables, read_piece, split
from spark.tables.inode_columns import decode_blocks
from spark.tables.message_stream import Chunk

TABLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "inodes": INODE_TYPES,
    "edges": {"parent_id": pa.int64(), "child_id": pa.int64()},
    "blocks": {
        "inode_id": pa.int64(),
        "number": pa.int32(),
        "block_id": pa.int64(),
        "generation_stamp": pa.int64(),
        "length": pa.int64(),
    },
    "strings": {"kind": pa.string(), "id": pa.int64(), "text": pa.string()},
}
"""The tables and their columns (docs/namespace.md)."""


class FsImageSource(datasource.DataSource):  # type: ignore[misc]  # pyspark's own shape of a data source
    """``spark.read.format("fsimage").option("table", ...).load(path)``."""

    @classmethod
    def name(cls) -> str:
        return "fsimage"

    def schema(self) -> str:
        """Return the columns of the table that is asked for."""
        return ddl_of(self._columns())

    def reader(self, schema: Any) -> "FsImageReader":  # noqa: ANN401 - Spark's StructType
        size = int(self.options.get("split_bytes") or SPLIT_BYTES)
        if size < 1:
            raise ValueError(f"option split_bytes is {size}, expected a positive number")
        columns = tuple(schema.fieldNames())
        return FsImageReader(path_of(self.options), self._table(), columns, size)

    def _table(self) -> str:
        table = self.options.get("table") or "inodes"
        if table not in TABLES:
            raise ValueError(f"option table is {table!r}, expected one of {', '.join(TABLES)}")
        return table

    def _columns(self) -> dict[str, Any]:
        return chosen(self.options, TABLES[self._table()])


class FsImageReader(datasource.DataSourceReader):  # type: ignore[misc]  # pyspark's own shape
    """Reads one table of one image."""

    def __init__(self, path: str, table: str, columns: tuple[str, ...], size: int) -> None:
        self._path = path
        self._table = table
        self._columns = columns
        self._size = size

    def partitions(self) -> list[Any]:
        """Return partitions of a piece each; for the string table the image as a whole."""
        image = open_tables(self._path)
        if self._table == "strings":
            return [datasource.InputPartition(None)]
        pieces = image.entry_pieces if self._table == "edges" else image.inode_pieces
        # Spark wants a partition even where nothing is to be read.
        return [datasource.InputPartition(piece) for piece in split(pieces, self._size)] or [
            datasource.InputPartition(None)
        ]

    def read(self, partition: Any) -> Iterator[Batch]:  # noqa: ANN401 - Spark's InputPartition
        """Return the record batches of one partition."""
        image = open_tables(self._path)
        piece: Piece | None = partition.value
        if self._table == "strings":
            return iter([_strings(image).select(list(self._columns))])
        if piece is None:
            return iter(())
        return _ROWS[self._table](image, piece, self._columns)


def _inodes(image: ImageTables, piece: Piece, columns: tuple[str, ...]) -> Iterator[Batch]:
    return read_piece(piece, InodeBatches(image.strings, columns).batch)


def _edges(image: ImageTables, piece: Piece, columns: tuple[str, ...]) -> Iterator[Batch]:
    def batch(chunk: Chunk) -> Batch:
        parent, child = edges_of(chunk, image.references)
        return _batch("edges", columns, (parent, child))

    return read_piece(piece, batch)


def _blocks(_image: ImageTables, piece: Piece, columns: tuple[str, ...]) -> Iterator[Batch]:
    def batch(chunk: Chunk) -> Batch:
        rows = decode_blocks(chunk.data, chunk.starts, chunk.ends)
        values = (rows.inode_id, rows.number.astype(np.int32), rows.block_id,
                  rows.generation_stamp, rows.length)  # fmt: skip
        return _batch("blocks", columns, values)

    return read_piece(piece, batch)


def _batch(table: str, columns: tuple[str, ...], values: tuple[Any, ...]) -> Batch:
    found = dict(zip(TABLES[table], values, strict=True))
    return pa.record_batch({name: pa.array(found[name]) for name in columns})


def _strings(image: ImageTables) -> Batch:
    """Users, groups and names of extended attributes; in old images each is of all three kinds."""
    kinds = {
        "USER": image.strings.users,
        "GROUP": image.strings.groups,
        "XATTR": image.strings.xattrs,
    }
    rows = [
        (kind, number, text)
        for kind, table in kinds.items()
        for number, text in sorted(table.items())
        if number
    ]
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    named = zip(TABLES["strings"].items(), columns, strict=True)
    return pa.record_batch({name: pa.array(list(values), kind) for (name, kind), values in named})


_ROWS: Final[Mapping[str, Callable[[ImageTables, Piece, tuple[str, ...]], Iterator[Batch]]]] = {
    "inodes": _inodes,
    "edges": _edges,
    "blocks": _blocks,
}
