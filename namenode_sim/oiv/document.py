"""Write an image as one XML document or as JSON lines, section by section."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, TextIO

from namenode_sim.oiv import hadoop2, hadoop3
from namenode_sim.oiv.elements import SectionView, json_lines, xml
from namenode_sim.oiv.inode_elements import Reading
from namenode_sim.oiv.opened import OpenedImage

FIRST_LAYOUT_OF_HADOOP_3: Final = -64
_REVISION: Final = "nnha"

_View = Callable[[str, Iterator[bytes], Reading], SectionView | None]


def write_xml(image: OpenedImage, out: TextIO, *, hadoop: int | None = None) -> None:
    """Write the image as Hadoop's viewer prints it.

    Args:
        image: what to print.
        out: where to.
        hadoop: the release line whose viewer to follow, 2 or 3; by default the one that writes
            images of this layout.

    Raises:
        ImageError: if the image is malformed; what is printed so far is no whole document.
    """
    old = hadoop == 2 or (hadoop is None and image.summary.layout > FIRST_LAYOUT_OF_HADOOP_3)
    out.write('<?xml version="1.0"?>\n<fsimage>')
    if not old:
        _write_section(hadoop3.version_view(image.summary.layout, 1, _REVISION), out)
    reading = Reading(image.strings, lambda name: name.decode("utf-8", "replace"))
    view = hadoop2.view if old else hadoop3.view
    _each_section(image, reading, view, lambda shown: _write_section(shown, out))
    out.write("</fsimage>\n")


def _each_section(
    image: OpenedImage, reading: Reading, view: _View, write: Callable[[SectionView], None]
) -> None:
    """Write the sections within the ``with`` that says where an error is."""
    for name in hadoop3.LOAD_ORDER:
        if not image.has(name):
            continue
        with image.section(name) as found:
            shown = view(name, found, reading)
            if shown is not None:
                write(shown)
            else:
                deque(found, maxlen=0)


def _write_section(view: SectionView, out: TextIO) -> None:
    elements = iter(view.elements)
    head = f"<{view.name}>{view.opening}"
    if view.optional:
        first = next(elements, None)
        if first is None:
            return
        head += xml(first)
    out.write(head)
    for element in elements:
        out.write(xml(element))
    out.write(f"</{view.name}>{view.closing}")


def write_json_lines(image: OpenedImage, out: TextIO) -> None:
    """Write the image as one JSON object a line, with the names of Hadoop 3's XML.

    A name that is not UTF-8 keeps its bytes as lone surrogates (Python's ``surrogateescape``).

    Raises:
        ImageError: if the image is malformed.
    """
    version = hadoop3.version_view(image.summary.layout, 1, _REVISION)
    out.writelines(json_lines(version))
    reading = Reading(image.strings, lambda name: name.decode("utf-8", "surrogateescape"))
    _each_section(image, reading, hadoop3.view, lambda shown: out.writelines(json_lines(shown)))
