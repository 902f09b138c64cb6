"""The processors of the viewer by name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, Final, TextIO

from ha.record import dataclass, field
from namenode_sim.image.errors import ImageError
from namenode_sim.image.sections import BROKEN
from namenode_sim.oiv.corruption import write_corruption
from namenode_sim.oiv.delimited import Columns, write_delimited
from namenode_sim.oiv.distribution import write_distribution
from namenode_sim.oiv.document import write_json_lines, write_xml
from namenode_sim.oiv.opened import OpenedImage, ReportRead


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the processors; each uses those that concern it."""

    hadoop: int | None = None
    columns: Columns = field(default_factory=Columns)
    temporary: Path | None = None
    max_size: int = 0
    step: int = 0
    readable: bool = False


Processor = Callable[[OpenedImage, TextIO, Options], str]
"""Writes its view of an image; returns what the user should know in addition, or nothing."""


def _xml(image: OpenedImage, out: TextIO, options: Options) -> str:
    write_xml(image, out, hadoop=options.hadoop)
    return ""


def _json(image: OpenedImage, out: TextIO, _options: Options) -> str:
    write_json_lines(image, out)
    return ""


def _write_delimited(image: OpenedImage, out: TextIO, options: Options) -> str:
    unlinked = write_delimited(image, out, options.columns, options.temporary)
    if not unlinked:
        return ""
    return f"{unlinked} inodes are left out: no path leads to them, so they are only in snapshots"


def _distribution(image: OpenedImage, out: TextIO, options: Options) -> str:
    write_distribution(
        image, out, max_size=options.max_size, step=options.step, readable=options.readable
    )
    return ""


def _corruption(image: OpenedImage, out: TextIO, options: Options) -> str:
    delimiter = options.columns.delimiter
    found = write_corruption(image, out, delimiter=delimiter, temporary=options.temporary)
    return f"{found} inodes are corrupt or miss children" if found else "no corruption was found"


PROCESSORS: Final[Mapping[str, Processor]] = {
    "XML": _xml,
    "Delimited": _write_delimited,
    "FileDistribution": _distribution,
    "DetectCorruption": _corruption,
    "JSON": _json,
}


def process(
    processor: Processor,
    file: BinaryIO,
    out: TextIO,
    options: Options,
    report: ReportRead | None = None,
) -> str:
    """Print an image; returns a remark for the user, or nothing.

    Raises:
        ImageError: if the image is malformed.
        OSError: if something cannot be read or written.
    """
    try:
        return processor(OpenedImage(file, report), out, options)
    except BROKEN as problem:
        what = f"{type(problem).__name__}: {problem}"
        raise ImageError(f"an inode is malformed ({what})") from problem
