"""Edits as rows: what most people ask of an op in columns, and all of it as JSON."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

from journal.model import TxId
from namenode_sim.edits.ops import Op
from namenode_sim.oev.json_values import to_json
from namenode_sim.storage.local_edits import Located
from spark.tables.arrow import Batch

EDIT_TYPES: Final[Mapping[str, Any]] = {
    "txid": pa.int64(),
    "op": pa.string(),
    "path": pa.string(),
    "dst": pa.string(),
    "inode_id": pa.int64(),
    "time_ms": pa.int64(),
    "user": pa.string(),
    "group": pa.string(),
    "mode": pa.int32(),
    "replication": pa.int32(),
    "blocks": pa.int32(),
    "client_name": pa.string(),
    "client_machine": pa.string(),
    "call_id": pa.int32(),
    "segment": pa.string(),
    "offset": pa.int64(),
    "details": pa.string(),
}
"""The columns of the table of edits."""

_PATHS: Final = ("path", "src", "target", "snapshot_root")
_TIMES: Final = ("mtime", "time", "start_time", "finalize_time")
_NOT_SAID: Final = -1


def _first(op: Op, names: Iterable[str]) -> Any:  # noqa: ANN401 - an op's field
    return next((getattr(op, name) for name in names if hasattr(op, name)), None)


def _path(op: Op) -> str | None:
    found: str | None = _first(op, _PATHS)
    if found is None and hasattr(op, "directive"):
        found = op.directive.path
    return found


def _time(op: Op) -> int | None:
    found: int | None = _first(op, _TIMES)
    return None if found == _NOT_SAID else found


def _of_permission(name: str) -> Callable[[Op], Any]:
    def get(op: Op) -> Any:  # noqa: ANN401 - an op's field
        permission = getattr(op, "permission", None)
        return getattr(op if permission is None else permission, name, None)

    return get


_GETTERS: Final[Mapping[str, Callable[[Op], Any]]] = {
    "path": _path,
    "dst": lambda op: getattr(op, "dst", None),
    # Hadoop writes 0 where an op has a place for the id, but does not say it.
    "inode_id": lambda op: getattr(op, "inode_id", 0) or None,
    "time_ms": _time,
    "user": _of_permission("user"),
    "group": _of_permission("group"),
    "mode": _of_permission("mode"),
    "replication": lambda op: getattr(op, "replication", None),
    "blocks": lambda op: len(op.blocks) if hasattr(op, "blocks") else None,
    "client_name": lambda op: getattr(op, "client_name", None),
    "client_machine": lambda op: getattr(op, "client_machine", None),
    "call_id": lambda op: op.rpc.call_id if hasattr(op, "rpc") and op.rpc.client_id else None,
}


def edit_batch(edits: list[Located], segment: str, columns: tuple[str, ...]) -> Batch:
    """Rows of edits of one segment; ``columns`` are those wanted, in their order."""
    made: dict[str, list[Any]] = {}
    for name in columns:
        getter = _GETTERS.get(name)
        if getter is not None:
            made[name] = [getter(edit.op) for edit in edits]
    others: Mapping[str, Callable[[Located], Any]] = {
        "txid": lambda edit: edit.txid,
        "segment": lambda _edit: segment,
        "offset": lambda edit: edit.offset,
        "op": lambda edit: to_json(edit.txid, edit.op)["op"],
        "details": lambda edit: details_of(edit.txid, edit.op),
    }
    for name in columns:
        if name in others:
            made[name] = [others[name](edit) for edit in edits]
    return pa.record_batch({name: pa.array(made[name], EDIT_TYPES[name]) for name in columns})


def details_of(txid: TxId, op: Op) -> str:
    """Return all fields of an op as JSON, as ``nnha oev`` writes them, without txid and op."""
    fields = to_json(txid, op)
    del fields["txid"], fields["op"]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
