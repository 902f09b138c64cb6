"""A small tree that is large enough for several ranges, and edits in every part of it."""

from pathlib import Path
from typing import Final

from namenode_sim.edits import ops
from namenode_sim.image.files import image_name
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.startup.startup_world import held_by, mkdir
from tests.worlds.files import info, write_segment

DIRECTORIES: Final = 20
BEFORE: Final[tuple[ops.Op, ...]] = (
    ops.StartLogSegment(),
    *(mkdir(f"/{d:02d}") for d in range(DIRECTORIES)),
    *(mkdir(f"/{d:02d}/{c:02d}") for d in range(DIRECTORIES) for c in range(15)),
    ops.EndLogSegment(),
)
AFTER: Final[tuple[ops.Op, ...]] = (
    ops.StartLogSegment(),
    ops.Delete("/03", 8),
    ops.Rename("/05", "/06/moved", 9),
    mkdir("/06/moved/new"),
    ops.Rename("/07/01", "/07/renamed", 9),
    ops.Delete("/07/02", 9),
    *(ops.SetPermissions(f"/{d:02d}/14", 0o700) for d in range(8, DIRECTORIES)),
    ops.Rename("/18", "/new", 10),
    mkdir("/18"),
    ops.EndLogSegment(),
)
LAST_OF_TREE: Final = len(BEFORE) + len(AFTER)
BASE_NAME: Final = f"fsimage_{len(BEFORE):019d}"
MERGED_NAME: Final = f"fsimage_{LAST_OF_TREE:019d}"
RANGE_BYTES: Final = 1500


def tree_directory(folder: Path) -> Path:
    """Make a folder with the image and the segment behind it."""
    before = held_by(BEFORE)
    save_image(before, folder / image_name(before.last_applied), info())
    write_segment(folder, len(BEFORE) + 1, AFTER)
    return folder


def whole_tree() -> Namespace:
    """Return what a merge makes, replayed by the namespace itself."""
    return held_by((*BEFORE, *AFTER))
