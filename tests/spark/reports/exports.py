"""Small random exports for the tests of reports, and slow, plain answers about them."""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

DAY = 86_400_000
AT_MS = 1_700_000_000_000
ROOT = 16385
USERS = ("ada", "bob", "étienne", "hive", "x<&>\"'$\\frac$")


@dataclass(frozen=True, slots=True)
class Row:
    """One inode as the export has it."""

    id: int
    parent_id: int | None
    type: str
    name: str
    user: str
    group: str
    mtime_ms: int
    atime_ms: int | None
    replication: int = 0
    length: int = 0
    blocks: int = 0
    under_construction: bool = False
    ec_policy_id: int = 0
    ns_quota: int | None = None
    ds_quota: int | None = None


Rows = Mapping[int, Row]


def random_rows(dice: random.Random, count: int) -> dict[int, Row]:
    rows = {ROOT: Row(ROOT, None, "DIRECTORY", "", "hdfs", "supergroup", AT_MS, None)}
    rows[ROOT] = replace(rows[ROOT], ns_quota=(1 << 63) - 1)
    for inode in range(ROOT + 1, ROOT + count):
        rows[inode] = _random_row(dice, inode, rows)
    return rows


def _random_row(dice: random.Random, inode: int, rows: Rows) -> Row:
    parents = [row.id for row in list(rows.values())[-60:] if row.type == "DIRECTORY"] or [ROOT]
    kind = dice.choices(("FILE", "DIRECTORY", "SYMLINK"), (12, 4, 1))[0]
    written = AT_MS - dice.choice((0, 1, 40, 200, 365, 400, 2000)) * DAY + dice.randrange(-9, 9)
    row = Row(
        inode, dice.choice(parents), kind, f"n{inode}", dice.choice(USERS),
        dice.choice(("staff", "users")), written, None,
    )  # fmt: skip
    if kind == "DIRECTORY":
        if dice.random() < 0.2:
            row = replace(
                row, ns_quota=dice.choice((None, 3, 50)), ds_quota=dice.randrange(1 << 40)
            )
        return row
    read = dice.choice((0, written, written + 30 * DAY))
    if kind == "SYMLINK":
        return replace(row, atime_ms=read)
    length = dice.choice((0, 1, 900, 1 << 20, (1 << 20) - 1, 70 << 20, 300 << 20, 9 << 40))
    replication, policy = dice.choice(((3, 0), (1, 0), (0, 1), (0, 2)))
    return replace(
        row,
        atime_ms=read,
        length=length,
        blocks=-(-length // (128 << 20)),
        under_construction=dice.random() < 0.1,
        replication=replication,
        ec_policy_id=policy,
    )


def later(dice: random.Random, rows: Rows) -> dict[int, Row]:
    """Return the namespace later: files come, go, grow, shrink, and change their owner."""
    found = dict(rows)
    for row in list(rows.values()):
        chance = dice.random()
        if row.type == "FILE" and chance < 0.2:
            del found[row.id]
        elif row.type == "FILE" and chance < 0.4:
            found[row.id] = replace(row, length=dice.randrange(1 << 30))
        elif row.type == "FILE" and chance < 0.5:
            found[row.id] = replace(row, user=dice.choice(USERS))
    gone = [row.id for row in rows.values() if row.type == "DIRECTORY" and row.id != ROOT][5::40]
    for directory in gone:
        for inode in [directory, *below(found, directory)]:
            found.pop(inode, None)
    found.pop(min(row.id for row in rows.values() if row.type == "FILE"), None)
    _move_a_tree(dice, found)
    first = max(rows) + 1
    for inode in range(first, first + len(rows) // 4):
        found[inode] = _random_row(dice, inode, {ROOT: found[ROOT], **found})
    return found


def _move_a_tree(dice: random.Random, rows: dict[int, Row]) -> None:
    """Rename a directory to the root, or to another one that is not below it."""
    trees = [row for row in rows.values() if row.type == "DIRECTORY" and row.id != ROOT]
    moved = max(trees, key=lambda row: sum(1 for _ in below(rows, row.id)))
    inside = {moved.id, moved.parent_id, *below(rows, moved.id)}
    parent = dice.choice([row.id for row in trees if row.id not in inside] or [ROOT])
    rows[moved.id] = replace(moved, parent_id=parent)


def children(rows: Rows, directory: int) -> list[Row]:
    return [row for row in rows.values() if row.parent_id == directory]


def below(rows: Rows, directory: int) -> Iterator[int]:
    for child in children(rows, directory):
        yield child.id
        if child.type == "DIRECTORY":
            yield from below(rows, child.id)


def path_of(rows: Rows, inode: int) -> str:
    names = []
    here: int | None = inode
    while here is not None and here != ROOT:
        names.append(rows[here].name)
        here = rows[here].parent_id
    return "/" + "/".join(reversed(names))


def write_export(folder: Path, rows: Rows, *, txid: int = 100, at_ms: int = AT_MS) -> Path:
    """Write an export as ``nnha namespace export`` does, in two files a kind."""
    facts = {
        "image": f"fsimage_{txid}",
        "txid": txid,
        "inodes": len(rows),
        "at": at_ms,
        "format": 1,
    }
    for kind in ("inodes", "directories"):
        (folder / kind).mkdir(parents=True)
    (folder / "export.json").write_text(json.dumps(facts))
    schema = _schema("id", "parent_id", "mtime_ms", "atime_ms", "length", "ns_quota", "ds_quota",
                     texts=("type", "name", "user", "group"), flags=("under_construction",),
                     shorts=("replication", "blocks", "ec_policy_id"))  # fmt: skip
    columns = [{name: getattr(row, name) for name in schema.names} for row in rows.values()]
    _put(folder / "inodes", columns, schema)
    numbers = _schema("id", "parent_id", "files", "subdirectories", "bytes", "subtree_files",
                      "subtree_directories", "subtree_bytes",
                      texts=("path",), shorts=("depth",))  # fmt: skip
    _put(folder / "directories", [_directory(rows, row) for row in rows.values()
                                  if row.type == "DIRECTORY"], numbers)  # fmt: skip
    return folder


def _schema(
    *longs: str,
    texts: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
    shorts: tuple[str, ...] = (),
) -> pa.Schema:
    return pa.schema(
        [(name, pa.int64()) for name in longs]
        + [(name, pa.string()) for name in texts]
        + [(name, pa.bool_()) for name in flags]
        + [(name, pa.int32()) for name in shorts]
    )


def _put(folder: Path, rows: list[dict[str, object]], schema: pa.Schema) -> None:
    half = len(rows) // 2
    for number, part in enumerate((rows[:half], rows[half:])):
        table, path = pa.Table.from_pylist(part, schema), folder / f"part-{number}.parquet"
        pq.write_table(table, path, write_page_checksum=True)


def _directory(rows: Rows, row: Row) -> dict[str, object]:
    here = children(rows, row.id)
    tree = [rows[inode] for inode in below(rows, row.id)]
    path = path_of(rows, row.id)
    # As nnha namespace export does, and Hadoop's du -c: symlinks count as files.
    return {
        "id": row.id,
        "parent_id": row.parent_id,
        "path": path,
        "depth": 0 if row.id == ROOT else path.count("/"),
        "files": sum(child.type != "DIRECTORY" for child in here),
        "subdirectories": sum(child.type == "DIRECTORY" for child in here),
        "bytes": sum(child.length for child in here),
        "subtree_files": sum(child.type != "DIRECTORY" for child in tree),
        "subtree_directories": sum(child.type == "DIRECTORY" for child in tree),
        "subtree_bytes": sum(child.length for child in tree),
    }
