"""Name directories on the disk: what a real NameNode left in one, and directories made of it."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from journal.frame import HEADER_BYTES, read_header
from journal.model import TxId
from namenode_sim.edits.codec import decode_all
from namenode_sim.edits.ops import Op
from namenode_sim.image.reader import load_image
from namenode_sim.namespace.namespace import Namespace

_IMAGE = re.compile(r"fsimage_(\d{19})")


def images(name_dir: Path) -> list[Path]:
    """Return all images, oldest first."""
    return sorted(p for p in (name_dir / "current").iterdir() if _IMAGE.fullmatch(p.name))


def segments(name_dir: Path) -> list[Path]:
    """Return all finalized segments, oldest first."""
    return sorted((name_dir / "current").glob("edits_[0-9]*-*"))


def edits(name_dir: Path, after: int = 0) -> Iterator[tuple[TxId, Op]]:
    for segment in segments(name_dir):
        data = segment.read_bytes()
        for txid, op in decode_all(data, read_header(data), start=HEADER_BYTES):
            if txid > after:
                yield txid, op


def replayed(name_dir: Path, image: Path, until: int) -> Namespace:
    namespace = load_image(image)
    for txid, op in edits(name_dir, namespace.last_applied):
        if txid <= until:
            namespace.apply(txid, op)
    return namespace


def only_first_image(name_dir: Path, target: Path) -> Path:
    """Make a copy in which a NameNode must read all edits: it has only the oldest image."""
    shutil.copytree(name_dir, target, ignore=shutil.ignore_patterns("in_use.lock"))
    for image in images(target)[1:]:
        image.unlink()
        image.with_name(f"{image.name}.md5").unlink()
    return target
