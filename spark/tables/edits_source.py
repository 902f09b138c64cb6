"""Spark's data source ``edits``: edit segments as a table."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pyspark.sql import datasource

from spark.tables.arrow import Batch
from spark.tables.ddl import chosen, ddl_of, flag, path_of
from spark.tables.edit_parts import EditsPart, parts_of, read_part
from spark.tables.edit_rows import EDIT_TYPES, edit_batch

PART_BYTES: Final = 16 * 1024 * 1024
"""What a task reads: some 100,000 edits."""
_ROWS: Final = 4096


class EditsSource(datasource.DataSource):  # type: ignore[misc]  # pyspark's own shape of a data source
    """``spark.read.format("edits").load(path)``."""

    @classmethod
    def name(cls) -> str:
        return "edits"

    def schema(self) -> str:
        """Return the columns that are asked for."""
        return ddl_of(chosen(self.options, EDIT_TYPES))

    def reader(self, schema: Any) -> "EditsReader":  # noqa: ANN401 - Spark's StructType
        columns = tuple(schema.fieldNames())
        return EditsReader(path_of(self.options), columns, flag(self.options, "inProgress"))


class EditsReader(datasource.DataSourceReader):  # type: ignore[misc]  # pyspark's own shape
    """Reads the segments of a directory, or one file."""

    def __init__(self, path: str, columns: tuple[str, ...], in_progress: bool) -> None:  # noqa: FBT001
        self._path = path
        self._columns = columns
        self._in_progress = in_progress

    def partitions(self) -> list[Any]:
        """Return partitions of one stretch of a segment each."""
        parts = parts_of(Path(self._path), in_progress=self._in_progress, size=PART_BYTES)
        # Spark wants a partition even where nothing is to be read.
        return [datasource.InputPartition(part) for part in parts] or [
            datasource.InputPartition(None)
        ]

    def read(self, partition: Any) -> Iterator[Batch]:  # noqa: ANN401 - Spark's InputPartition
        """Return the record batches of one partition."""
        part: EditsPart | None = partition.value
        if part is None:
            return
        name = Path(part.path).name
        edits = read_part(part)
        while some := list(islice(edits, _ROWS)):
            yield edit_batch(some, name, self._columns)
