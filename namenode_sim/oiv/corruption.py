"""Directory entries that lead nowhere (Hadoop's PBImageCorruptionDetector)."""

from pathlib import Path
from typing import Final, TextIO

from ha.record import dataclass
from namenode_sim.oiv.opened import OpenedImage
from namenode_sim.oiv.paths import PathFinder, Unlinked, parents_store, read_links, text
from namenode_sim.oiv.values import csv_field

HEADER: Final = (
    "CorruptionType", "Id", "IsSnapshot", "ParentPath", "ParentId", "Name", "NodeType",
    "CorruptChildren",
)  # fmt: skip


@dataclass(slots=True)
class _Found:
    """What is wrong with one inode."""

    missing: bool = False
    """It is mentioned, but is no inode."""
    missing_children: int = 0

    def kind(self) -> str:
        both = "With" if self.missing and self.missing_children else ""
        corrupt = "CorruptNode" if self.missing else ""
        return f"{corrupt}{both}{'MissingChild' if self.missing_children else ''}"


def write_corruption(
    image: OpenedImage, out: TextIO, *, delimiter: str = "\t", temporary: Path | None = None
) -> int:
    """List inodes that directories name but that are not there, and those directories.

    Returns how many there are.

    Raises:
        ImageError: if the image is malformed beyond that.
        OSError: if ``temporary`` exists or cannot be written.
    """
    with parents_store(temporary) as parents:
        finder = PathFinder(parents)
        known: set[int] = set()
        for inode in image.inodes():
            known.add(inode.id)
            if inode.HasField("directory"):
                finder.names[inode.id] = text(inode.name)
        found = _check(image, finder, known)
        count = len(found)
        out.write(delimiter.join(HEADER) + "\n")
        for inode in image.inodes() if found else ():
            if inode.id in found:
                try:
                    path = finder.parent_path(inode.id)
                except Unlinked:
                    continue
                one = found.pop(inode.id)
                out.write(_line(inode.id, one, finder, delimiter, path, text(inode.name), "Node"))
        for number, one in sorted(found.items()):
            name = finder.names.get(number, "")
            kind = "Node" if number in known else "Unknown"
            out.write(_line(number, one, finder, delimiter, None, name, kind))
        return count


def _check(image: OpenedImage, finder: PathFinder, known: set[int]) -> dict[int, _Found]:
    found: dict[int, _Found] = {}
    for parent, children in read_links(image, finder):
        if parent not in known:
            found.setdefault(parent, _Found()).missing = True
        missing = [child for child in children if child not in known]
        for child in missing:
            found.setdefault(child, _Found()).missing = True
        if missing:
            found.setdefault(parent, _Found()).missing_children = len(missing)
    return found


def _line(
    number: int,
    one: _Found,
    finder: PathFinder,
    delimiter: str,
    path: str | None,
    name: str,
    kind: str,
) -> str:
    parent = finder.parents.get(number)
    fields = (
        one.kind(),
        str(number),
        "false" if path is not None else "true",
        csv_field(path or ""),
        "Missing" if parent is None else str(parent),
        csv_field(name),
        kind,
        str(one.missing_children),
    )
    return delimiter.join(fields) + "\n"
