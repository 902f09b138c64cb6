"""The table of edits says what the offline edits viewer says, whatever it is cut into."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.codec import NEWEST_LAYOUT, encode
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import Block, CacheDirective, Permission, RpcIds
from namenode_sim.oev.events import Edit, Start
from namenode_sim.oev.json_lines import JsonLinesSink
from namenode_sim.storage.local_edits import Located
from spark.tables.edit_parts import EditsPart, parts_of, read_part
from spark.tables.edit_rows import EDIT_TYPES, edit_batch
from tests.namenode_sim.image.image_world import real
from tests.spark.tables.tables_world import random_namespace
from tests.worlds.files import Log, write_log

RPC = RpcIds(b"0123456789abcdef", 4)
PERMISSION = Permission("alice", "users", 0o640)


def viewed(log: Log) -> list[dict[str, Any]]:
    file = io.BytesIO()
    sink = JsonLinesSink(file)
    sink.take(Start(NEWEST_LAYOUT))
    for txid, op in log:
        sink.take(Edit(TxId(txid), op, None))
    return [json.loads(line) for line in file.getvalue().splitlines()[1:]]


def table(parts: Sequence[EditsPart]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for part in parts:
        edits = list(read_part(part))
        rows += edit_batch(edits, Path(part.path).name, tuple(EDIT_TYPES)).to_pylist()
    return rows


@pytest.fixture(scope="module")
def log() -> Log:
    return random_namespace(11)[1]


@pytest.mark.parametrize("size", [1, 300, 5000, 1 << 30])
def test_all_edits_of_a_directory(tmp_path: Path, log: Log, size: int) -> None:
    third = len(log) // 3
    files = [write_log(tmp_path, log[:third]), write_log(tmp_path, log[third:])]
    parts = parts_of(tmp_path, in_progress=False, size=size)
    assert (len(parts) > 2) == (size < 1 << 30)
    rows = table(parts)
    for row, seen in zip(rows, viewed(log), strict=True):
        details = json.loads(row["details"])
        assert {"txid": row["txid"], "op": row["op"], **details} == seen
    whole = {path.name: path.read_bytes() for path in files}
    for row, (txid, op) in zip(rows, log, strict=True):
        frame = encode(op, TxId(txid), NEWEST_LAYOUT)
        assert whole[row["segment"]][row["offset"] :].startswith(frame)
    assert table(parts_of(files[1], in_progress=False, size=size)) == rows[third:]


FIELDS: dict[str, tuple[Op, dict[str, Any]]] = {
    "a creation": (
        ops.Add(7, "/a", 3, 11, 12, 128, (Block(1, 2, 3),), PERMISSION, (), (), "c", "m",
                rpc=RPC),
        {"op": "OP_ADD", "path": "/a", "inode_id": 7, "time_ms": 11, "user": "alice",
         "group": "users", "mode": 0o640, "replication": 3, "blocks": 1, "client_name": "c",
         "client_machine": "m", "call_id": 4},
    ),
    "a file closed, which does not say its id": (
        ops.Close(0, "/a", 3, 11, 12, 128, (), PERMISSION),
        {"op": "OP_CLOSE", "path": "/a", "time_ms": 11, "user": "alice", "group": "users",
         "mode": 0o640, "replication": 3, "blocks": 0},
    ),
    "a rename": (
        ops.Rename("/a", "/b", 5), {"op": "OP_RENAME", "path": "/a", "dst": "/b", "time_ms": 5}
    ),
    "a concat": (
        ops.ConcatDelete("/t", ("/s",), 6), {"op": "OP_CONCAT_DELETE", "path": "/t", "time_ms": 6}
    ),
    "an owner": (
        ops.SetOwner("/a", "bob", ""),
        {"op": "OP_SET_OWNER", "path": "/a", "user": "bob", "group": ""},
    ),
    "a time that stays": (ops.Times("/a", -1, 3), {"op": "OP_TIMES", "path": "/a"}),
    "a snapshot": (
        ops.CreateSnapshot("/d", "s", 9), {"op": "OP_CREATE_SNAPSHOT", "path": "/d", "time_ms": 9}
    ),
    "a cache directive": (
        ops.AddCacheDirective(CacheDirective(1, "/c", 2, "p", 3)),
        {"op": "OP_ADD_CACHE_DIRECTIVE", "path": "/c"},
    ),
    "a counter": (ops.SetGenstampV2(5), {"op": "OP_SET_GENSTAMP_V2"}),
}  # fmt: skip


@pytest.mark.parametrize("case", FIELDS)
def test_the_columns_of(case: str) -> None:
    op, said = FIELDS[case]
    (row,) = edit_batch([Located(TxId(3), op, 17, 40)], "edits_x", tuple(EDIT_TYPES)).to_pylist()
    expected = dict.fromkeys(EDIT_TYPES, None) | said
    del row["details"], expected["details"]
    assert row == expected | {"txid": 3, "segment": "edits_x", "offset": 17}


def test_a_segment_in_progress_counts_only_if_asked(tmp_path: Path, log: Log) -> None:
    write_log(tmp_path, log[:50])
    open_one = write_log(tmp_path, log[50:], closed=False)
    with open_one.open("ab") as file:
        file.write(b"\x02\x00\x00")  # a torn tail
    parts = parts_of(tmp_path, in_progress=False, size=1 << 20)
    assert [row["txid"] for row in table(parts)] == [txid for txid, _ in log[:50]]
    parts = parts_of(tmp_path, in_progress=True, size=500)
    assert [row["txid"] for row in table(parts)] == [txid for txid, _ in log]
    with pytest.raises(EditsError, match="inProgress"):
        parts_of(open_one, in_progress=False, size=1)
    raw = bytearray(open_one.read_bytes())
    raw[200] ^= 1
    open_one.write_bytes(raw)
    with pytest.raises(EditsError, match="no torn tail") as caught:
        parts_of(tmp_path, in_progress=True, size=500)
    assert (caught.value.file, caught.value.txid is None) == (str(open_one), False)


@pytest.mark.parametrize("size", [200, 1 << 20])
def test_damage_is_told_with_file_offset_and_transaction(
    tmp_path: Path, log: Log, size: int
) -> None:
    path = write_log(tmp_path, log)
    rows = table(parts_of(path, in_progress=False, size=size))
    bad = rows[len(rows) // 2]
    raw = bytearray(path.read_bytes())
    raw[bad["offset"] + 13] ^= 1
    path.write_bytes(raw)
    with pytest.raises(EditsError) as caught:
        table(parts_of(path, in_progress=False, size=size))
    error = caught.value
    assert (error.file, error.offset, error.txid) == (str(path), bad["offset"], bad["txid"])


def test_missing_edits_are_told(tmp_path: Path, log: Log) -> None:
    write_log(tmp_path, log[:40])
    write_log(tmp_path, log[41:])
    with pytest.raises(EditsError, match="transactions 41 to 41 are missing"):
        parts_of(tmp_path, in_progress=False, size=1 << 20)
    short = write_log(tmp_path, log[:40])
    short.write_bytes(short.read_bytes()[:-4])
    with pytest.raises(EditsError):
        table(parts_of(short, in_progress=False, size=1 << 20))
    early = write_log(tmp_path, log[:20]).rename(tmp_path / short.name)
    with pytest.raises(EditsError, match="should go on to transaction 40") as caught:
        table(parts_of(early, in_progress=False, size=1 << 20))
    assert (caught.value.offset, caught.value.txid) == (early.stat().st_size, 21)
    (tmp_path / "none").mkdir()
    with pytest.raises(EditsError, match="holds no segments"):
        parts_of(tmp_path / "none", in_progress=False, size=1 << 20)


def test_edits_that_hadoop_wrote() -> None:
    rows = table(parts_of(real("name-dir"), in_progress=True, size=1000))
    assert [row["txid"] for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) > 26
    stored = table(parts_of(real("edits/editsStored"), in_progress=False, size=1000))
    assert {"OP_ADD", "OP_RENAME", "OP_ADD_CACHE_POOL"} <= {row["op"] for row in stored}
