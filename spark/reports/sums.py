"""Exact sums of whole numbers by a whole key, fed by batches."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_COMBINED_AT_ROWS = 1_000_000
"""Partial sums of more rows than this are combined: that bounds the memory."""


class Sums:
    """Adds up columns by key; every key that was given once is there in the end."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = columns
        self._partial: list[pa.Table] = []
        self._rows = 0

    def add(self, keys: Ints, columns: Mapping[str, NDArray[np.generic]]) -> None:
        """Add one batch: each column has as many values as there are keys."""
        arrays = {name: columns[name].astype(np.int64, copy=False) for name in self._columns}
        self._keep(self._group(pa.table({"key": keys.astype(np.int64, copy=False), **arrays})))
        if self._rows > _COMBINED_AT_ROWS:
            self._combine()

    def totals(self) -> tuple[Ints, dict[str, Ints]]:
        """Return the keys in ascending order, and the sums for them."""
        self._combine()
        if not self._partial:
            empty = np.empty(0, np.int64)
            return empty, dict.fromkeys(self._columns, empty)
        table = self._partial[0].sort_by("key")
        return _numbers(table, "key"), {name: _numbers(table, name) for name in self._columns}

    def _combine(self) -> None:
        if len(self._partial) > 1:
            table = pa.concat_tables(self._partial)
            self._partial, self._rows = [], 0
            self._keep(self._group(table))

    def _keep(self, table: pa.Table) -> None:
        self._partial.append(table)
        self._rows += table.num_rows

    def _group(self, table: pa.Table) -> pa.Table:
        grouped = table.group_by("key").aggregate([(name, "sum") for name in self._columns])
        return grouped.rename_columns(
            ["key" if name == "key" else name.removesuffix("_sum") for name in grouped.column_names]
        )


def _numbers(table: pa.Table, name: str) -> Ints:
    found: Ints = table.column(name).to_numpy()
    return found


def bucket_sums(edges: Ints, values: Ints, amounts: Ints) -> tuple[Ints, Ints]:
    """Return how many values lie in each bucket between the edges, and their amounts' sums."""
    place = np.searchsorted(edges, values, side="right")
    counts = np.bincount(place, minlength=len(edges) + 1).astype(np.int64)
    sums = np.zeros(len(edges) + 1, np.int64)
    # bincount's weights are floats: not exact from 8 PB on.
    np.add.at(sums, place, amounts)
    return counts, sums
