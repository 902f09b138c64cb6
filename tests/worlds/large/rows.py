"""Rows of bytes built a column at a time, for writing millions of small messages with numpy."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.uint64]
Sizes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Column:
    """A piece of every row: the first ``sizes`` bytes of each line of ``data``."""

    data: Bytes
    sizes: Sizes


def varints(values: Numbers, width: int, present: NDArray[np.bool_] | None = None) -> Column:
    """Return protobuf varints of at most ``width`` bytes; none in rows not ``present``."""
    data = np.empty((len(values), width), np.uint8)
    sizes = np.ones(len(values), np.int64)
    for index in range(width):
        shifted = values >> np.uint64(7 * index)
        more = shifted >= 128
        data[:, index] = (shifted & np.uint64(0x7F)) | np.where(more, 0x80, 0).astype(np.uint64)
        sizes += more
    if sizes.max(initial=0) > width:
        raise ValueError(f"a number of {sizes.max()} bytes is not to be written in {width}")
    return Column(data, sizes if present is None else np.where(present, sizes, 0))


def constant(text: bytes, rows: int, present: NDArray[np.bool_] | None = None) -> Column:
    """Return the same bytes in every row, or in those that are ``present``."""
    data = np.broadcast_to(np.frombuffer(text, np.uint8), (rows, len(text)))
    there = np.ones(rows, np.bool_) if present is None else present
    return Column(data, there.astype(np.int64) * len(text))


def fixed64(values: Numbers) -> Column:
    data = values.astype("<u8").view(np.uint8).reshape(len(values), 8)
    return Column(data, np.full(len(values), 8, np.int64))


class Table:
    """A few texts, one of which each row has."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        self.sizes = np.array([len(text) for text in texts], np.int64)
        self.data = np.zeros((len(texts), max(int(self.sizes.max()), 1)), np.uint8)
        for line, text in zip(self.data, texts, strict=True):
            line[: len(text)] = np.frombuffer(text, np.uint8)

    def column(self, which: NDArray[np.int64]) -> Column:
        return Column(self.data[which], self.sizes[which])


def total(columns: Sequence[Column]) -> Sizes:
    sizes: Sizes = np.sum([column.sizes for column in columns], axis=0, dtype=np.int64)
    return sizes


def joined(columns: Sequence[Column]) -> Bytes:
    """Return all rows behind each other, each being its pieces behind each other."""
    rows = len(columns[0].sizes)
    width = sum(column.data.shape[1] for column in columns)
    data = np.empty((rows, width), np.uint8)
    mask = np.empty((rows, width), np.bool_)
    at = 0
    for column in columns:
        end = at + column.data.shape[1]
        data[:, at:end] = column.data
        np.less(np.arange(end - at), column.sizes[:, None], out=mask[:, at:end])
        at = end
    return data[mask]


def padded(flat: Bytes, sizes: Sizes, width: int) -> Column:
    """Put rows that lie behind each other each on a line of its own again."""
    data = np.zeros((len(sizes), width), np.uint8)
    data[np.arange(width) < sizes[:, None]] = flat
    return Column(data, sizes)


def delimited(columns: Sequence[Column], *, width: int) -> list[Column]:
    sizes = total(columns)
    return [varints(sizes.astype(np.uint64), width), *columns]


def mixed(values: NDArray[np.int64], seed: int) -> Numbers:
    """Hash each number (the finalizer of SplitMix64): the same ones on every machine."""
    with np.errstate(over="ignore"):
        state = values.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15) % 2**64)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))
