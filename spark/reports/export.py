"""Reads an export of a namespace: its facts, and its Parquet files batch by batch."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ha.record import dataclass, replace
from spark.reports.batch import DIRECTORY, FILE, NOTHING, SYMLINK, Directories, Inodes, Words
from spark.reports.model import ExportDamaged, NotAnExport, Source
from spark.reports.sums import Ints
from spark.reports.trees import rows_of

FORMAT: Final = 1
BATCH_ROWS: Final = 1 << 17
_KINDS: Final = {"FILE": FILE, "DIRECTORY": DIRECTORY, "SYMLINK": SYMLINK}
_UNLIMITED: Final = 1 << 62
"""Hadoop writes its longest number where a quota is not limited (the root's names)."""
_INODE_COLUMNS: Final = (
    "id", "parent_id", "type", "user", "group", "mtime_ms", "atime_ms", "replication", "length",
    "blocks", "under_construction", "ec_policy_id", "ns_quota", "ds_quota",
)  # fmt: skip
_WORDS: Final = ("type", "user", "group")
_TIMES: Final = ("mtime_ms", "atime_ms")
_DIRECTORY_COLUMNS: Final = (
    "id", "parent_id", "depth", "files", "subdirectories", "bytes",
    "subtree_files", "subtree_directories", "subtree_bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Export:
    """One export whose facts and columns were found good; its rows are read when asked for."""

    folder: Path
    source: Source
    inode_files: tuple[Path, ...]
    directory_files: tuple[Path, ...]

    def inodes(self, words: Words) -> Iterator[Inodes]:
        """Yield every inode, in batches; raise ExportDamaged if the export says another number."""
        rows = 0
        for path in self.inode_files:
            for batch in _batches(path, _INODE_COLUMNS, _WORDS):
                rows += batch.num_rows
                with _reading(path):
                    found = _inodes(batch, words, path)
                yield found
        if rows != self.source.inodes:
            raise ExportDamaged(
                f"{self.folder / 'inodes'} has {rows} rows, but export.json says "
                f"{self.source.inodes}; export the image again"
            )

    def file_lengths(self) -> tuple[Ints, Ints]:
        """Return the ids and lengths of all files."""
        ids: list[Ints] = []
        lengths: list[Ints] = []
        for path in self.inode_files:
            for batch in _batches(path, ("id", "type", "length"), ("type",)):
                files = batch.filter(pc.equal(batch.column("type").cast(pa.string()), "FILE"))
                ids.append(_numbers(files, "id"))
                lengths.append(_numbers(files, "length"))
        return _join(ids), _join(lengths)

    def directories(self) -> Directories:
        """Return all directories but for their paths."""
        parts: list[list[Ints]] = [[] for _ in _DIRECTORY_COLUMNS]
        for path in self.directory_files:
            for batch in _batches(path, _DIRECTORY_COLUMNS):
                for part, name in zip(parts, _DIRECTORY_COLUMNS, strict=True):
                    part.append(_numbers(batch, name, NOTHING if name == "parent_id" else 0))
        ids, parent_ids, *others = (_join(part) for part in parts)
        order = np.argsort(ids, kind="stable")
        ids, parent_ids = ids[order], parent_ids[order]
        if len(ids) and (np.diff(ids) == 0).any():
            raise ExportDamaged(f"{self.folder / 'directories'} names a directory twice")
        found = Directories(ids, parent_ids, *(column[order] for column in others))
        return Directories(ids, rows_of(found, parent_ids), *(column[order] for column in others))

    def paths(self, ids: Iterable[int]) -> dict[int, str]:
        """Return the paths of these directories; one that is missing is ``inode N``."""
        wanted = pa.array(sorted(set(ids)), pa.int64())
        found = {int(number.as_py()): f"inode {number}" for number in wanted}
        for path in self.directory_files if found else ():
            for batch in _batches(path, ("id", "path")):
                hits = batch.filter(pc.is_in(batch.column("id"), value_set=wanted))
                with _reading(path):
                    columns = (hits.column("id").to_pylist(), hits.column("path").to_pylist())
                found.update(zip(*columns, strict=True))
        return found


def open_export(folder: Path) -> Export:
    """Find an export and check its form.

    Raises NotAnExport (no export, or of another format) or ExportDamaged.
    """
    facts = folder / "export.json"
    try:
        text = facts.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NotAnExport(
            f"{folder} is no export: it has no export.json; make one with nnha namespace export"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ExportDamaged(f"{facts} cannot be read: {error}") from error
    said = _source(folder, facts, text)
    inode_files = _files(folder / "inodes")
    export = Export(folder, said, inode_files, _files(folder / "directories"))
    for path in export.inode_files:
        _check_columns(path, _INODE_COLUMNS)
    for path in export.directory_files:
        _check_columns(path, (*_DIRECTORY_COLUMNS, "path"))
    newest = max(map(_newest_ms, inode_files))
    as_of_ms = min(newest, said.at_ms) if newest else said.at_ms
    return replace(export, source=replace(said, as_of_ms=as_of_ms))


def _source(folder: Path, facts: Path, text: str) -> Source:
    try:
        said = json.loads(text)
    except ValueError as error:
        raise ExportDamaged(f"{facts} is no JSON: {error}; export the image again") from error
    if not isinstance(said, dict) or "format" not in said:
        raise NotAnExport(f"{facts} names no format: it is not of nnha namespace export")
    if said["format"] != FORMAT:
        raise NotAnExport(
            f"{facts} is of format {said['format']!r}, and we read {FORMAT}; "
            "export the image again with this nnha"
        )
    try:
        at_ms = _time_ms(said["at"])
        txid, inodes = int(said["txid"]), int(said["inodes"])
        return Source(str(folder), str(said["image"]), txid, inodes, at_ms, at_ms)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ExportDamaged(f"{facts} lacks a fact or has a wrong one: {error!r}") from error


def _time_ms(said: Any) -> int:  # noqa: ANN401 - JSON
    """ISO 8601 (UTC if it names no zone), or milliseconds."""
    if isinstance(said, int):
        return said
    found = datetime.fromisoformat(said)
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def _files(folder: Path) -> tuple[Path, ...]:
    found = tuple(sorted(folder.glob("*.parquet")))
    if not found:
        raise ExportDamaged(f"{folder} has no Parquet file; export the image again")
    return found


def _newest_ms(path: Path) -> int:
    """Return the newest time in a file; 0 if it has none.

    Not from the file's statistics: asked of a damaged file, pyarrow 26 ends the process.
    """
    newest = 0
    for batch in _batches(path, _TIMES):
        for name in _TIMES:
            newest = max(newest, pc.max(batch.column(name)).as_py() or 0)
    return newest


def _check_columns(path: Path, wanted: Iterable[str]) -> None:
    with _reading(path), pq.ParquetFile(path) as file:
        there = set(file.schema_arrow.names)
    missing = sorted(set(wanted) - there)
    if missing:
        raise NotAnExport(f"{path} has no column {', '.join(missing)}: it is of another program")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    # Damage that no checksum covers shows up as indexes that lead nowhere, or as no UTF-8.
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, IndexError) as error:
        first_line = str(error).splitlines()[0] if str(error) else repr(error)
        raise ExportDamaged(
            f"{path} cannot be read: {first_line}; export the image again"
        ) from error


def _batches(
    path: Path, columns: Iterable[str], words: tuple[str, ...] = ()
) -> Iterator[pa.RecordBatch]:
    # One file after the other: an error names its file, and the memory is that of a few batches.
    with _reading(path), _open(path, words) as file:
        yield from file.iter_batches(BATCH_ROWS, columns=list(columns))


def _open(path: Path, words: tuple[str, ...]) -> pq.ParquetFile:
    return pq.ParquetFile(path, read_dictionary=list(words), page_checksum_verification=True)


def _inodes(batch: pa.RecordBatch, words: Words, path: Path) -> Inodes:
    kind = _kind(batch, path)
    names = _numbers(batch, "ns_quota", NOTHING)
    space = _numbers(batch, "ds_quota", NOTHING)
    return Inodes(
        id=_numbers(batch, "id"),
        parent_id=_numbers(batch, "parent_id", NOTHING),
        kind=kind,
        user=_word_numbers(batch, "user", words),
        group=_word_numbers(batch, "group", words),
        mtime_ms=_numbers(batch, "mtime_ms"),
        atime_ms=_numbers(batch, "atime_ms"),
        replication=_numbers(batch, "replication"),
        length=np.where(kind == FILE, _numbers(batch, "length"), 0),
        blocks=_numbers(batch, "blocks"),
        under_construction=_numbers(batch, "under_construction").astype(np.bool_),
        ec_policy_id=_numbers(batch, "ec_policy_id"),
        names_quota=np.where((names < 0) | (names >= _UNLIMITED), NOTHING, names),
        space_quota=np.where((space < 0) | (space >= _UNLIMITED), NOTHING, space),
    )


def _kind(batch: pa.RecordBatch, path: Path) -> np.ndarray[Any, np.dtype[np.int8]]:
    types, places = _words(batch, "type")
    unknown = set(types) - set(_KINDS)
    if unknown:
        raise ExportDamaged(f"{path} has inodes of type {sorted(unknown)}")
    return np.array([_KINDS[name] for name in types], np.int8)[places]


def _word_numbers(batch: pa.RecordBatch, name: str, words: Words) -> Ints:
    found, places = _words(batch, name)
    return np.array([words.number(word) for word in found], np.int64)[places]


def _words(batch: pa.RecordBatch, name: str) -> tuple[list[str], Ints]:
    """Return a column's different words, and each row's place among them; null is empty."""
    column = batch.column(name)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    found = [word or "" for word in column.dictionary.to_pylist()]
    if column.null_count:
        found.append("")
    places = column.indices.cast(pa.int64()).fill_null(len(found) - 1)
    return found, places.to_numpy(zero_copy_only=False)


def _numbers(batch: pa.RecordBatch, name: str, nothing: int = 0) -> Ints:
    column = batch.column(name).cast(pa.int64())
    found: Ints = column.fill_null(nothing).to_numpy(zero_copy_only=False)
    return found


def _join(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
