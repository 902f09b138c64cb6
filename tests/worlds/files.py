"""Images and segments as files in a directory."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from journal.frame import file_header
from journal.model import NamespaceInfo, TxId
from namenode_sim.edits.codec import NEWEST_LAYOUT, encode
from namenode_sim.edits.ops import Op
from namenode_sim.image.files import image_name
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace

Log = Sequence[tuple[int, Op]]
PREALLOCATED = b"\xff" * 4096
"""What follows the edits of an open segment."""


def info(layout: int = -65, namespace_id: int = 7) -> NamespaceInfo:
    return NamespaceInfo(layout, namespace_id, "CID-test", 0, "BP-1-127.0.0.1-2")


def save(
    namespace: Namespace, folder: Path, *, layout: int = -65, codec: str = "", parts: int = 0
) -> Path:
    """Save a namespace as an image of ``parts`` sub-sections, and its digest next to it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / image_name(namespace.last_applied)
    save_image(namespace, path, info(layout), codec=codec, sub_sections=parts)
    return path


def frames(first: int, edits: Iterable[Op], layout: int = -65) -> bytes:
    return b"".join(encode(op, TxId(txid), layout) for txid, op in enumerate(edits, start=first))


def write_segment(
    folder: Path, first: int, edits: Sequence[Op], *, layout: int = -65, closed: bool = True
) -> Path:
    """Write a segment file as Hadoop leaves it; an open one ends in preallocated space."""
    last = first + len(edits) - 1
    name = f"edits_{first:019d}-{last:019d}" if closed else f"edits_inprogress_{first:019d}"
    path, padding = folder / name, b"" if closed else PREALLOCATED
    path.write_bytes(file_header(layout) + frames(first, edits, layout) + padding)
    return path


def write_log(folder: Path, log: Log, *, layout: int = NEWEST_LAYOUT, closed: bool = True) -> Path:
    edits = [op for _, op in log]
    return write_segment(folder, log[0][0], edits, layout=layout, closed=closed)
