"""Name directories to merge, and what a merge on an engine makes of them."""

from itertools import takewhile
from pathlib import Path

from namenode_sim.edits.ops import AllowSnapshot, EndLogSegment
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.image.image_world import EDITS
from tests.namenode_sim.startup.startup_world import OPEN
from tests.worlds.files import info, write_segment
from tests.worlds.name_dirs import format_name_dirs

_BEFORE_SNAPSHOTS = tuple(takewhile(lambda op: not isinstance(op, AllowSnapshot), EDITS))
ROLLED = (*_BEFORE_SNAPSHOTS, EndLogSegment())
"""The edits of the images' tests up to the first about snapshots, which cannot be divided."""
LAST = len(ROLLED) + len(OPEN)


def name_directory(folder: Path, *, image_layout: int = -65) -> Path:
    """Make a name directory with an image and two finalized segments; return its ``current``."""
    format_name_dirs([folder], info(image_layout), Namespace.empty("hdfs"))
    current = folder / "current"
    write_segment(current, 1, ROLLED)
    write_segment(current, len(ROLLED) + 1, OPEN)
    return current


def first_image(current: Path) -> Path:
    return current / f"fsimage_{0:019d}"


def merged_name() -> str:
    return f"fsimage_{LAST:019d}"
