"""Hadoop's names of the opcodes (FSEditLogOpCodes)."""

import re
from typing import Final

from namenode_sim.edits import ops

_ODD_NAMES: Final[dict[type[ops.Op], str]] = {
    ops.SetXAttr: "OP_SET_XATTR",
    ops.RemoveXAttr: "OP_REMOVE_XATTR",
    ops.SetQuotaByStorageType: "OP_SET_QUOTA_BY_STORAGETYPE",
}


def _name(op: type[ops.Op]) -> str:
    words = re.findall(r"[A-Z][a-z0-9]+|V\d", op.__name__)
    return _ODD_NAMES.get(op, "_".join(["OP", *words]).upper())


NAME_OF: Final[dict[type[ops.Op], str]] = {op: _name(op) for op in ops.OP_CLASSES}
OP_OF: Final[dict[str, type[ops.Op]]] = {name: op for op, name in NAME_OF.items()}

ALL_NAMES: Final[tuple[tuple[int, str], ...]] = (
    *sorted(
        {
            **{op.opcode: name for op, name in NAME_OF.items()},
            5: "OP_DATANODE_ADD",
            6: "OP_DATANODE_REMOVE",
        }.items()
    ),
    (-1, "OP_INVALID"),
)
"""Every opcode that has a name, in Hadoop's order; 5, 6 and -1 are never ops."""
