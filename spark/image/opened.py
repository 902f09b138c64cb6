"""Open an image for a distributed merge: its summary, its ranges, its small sections.

See docs/reference/checkpoint.md#open.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from google.protobuf.message import DecodeError

from ha.record import dataclass
from namenode_sim.image.codecs import decompressed
from namenode_sim.image.container import SUB, Section, Summary, stretch
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.sections import ImageSections
from spark.engine.model import Engine, TaskFailed
from spark.engine.outcome import attempt_name
from spark.image.ranges import ImageRange, cut, range_bytes

LARGE: Final = ("INODE", "INODE_DIR")
"""The sections that are worked on in ranges; the others are small, or copied as they are."""
_HEADER_LOOK: Final = 4096


@dataclass(frozen=True, slots=True)
class OpenedImage:
    """An image and where the parts of its large sections lie."""

    path: str
    summary: Summary
    header: bytes
    """The INodeSection message that begins INODE."""
    inodes: tuple[ImageRange, ...]
    directories: tuple[ImageRange, ...]
    unpacked: tuple[str, ...] = ()
    """Files of the work directory that hold what was compressed."""

    @property
    def divided(self) -> bool:
        """Whether the image has sub-sections."""
        return any(section.name == "INODE" + SUB for section in self.summary.sections)

    def section_header(self) -> pb.INodeSection:
        """Return how many inodes there are, and the last id given out."""
        return pb.INodeSection.FromString(self.header)

    def small(self, name: str) -> bytes:
        """Return the plain bytes of a section, none if it is absent.

        Raises:
            ImageError: if they cannot be decompressed; names file and section.
        """
        parts = self.summary.parts(name)
        return b"".join(b"".join(_plain(self.path, part, self.summary.codec)) for part in parts)


def open_image(engine: Engine, path: Path, work: Path, *, size: int | None = None) -> OpenedImage:
    """Open an image; a compressed one is unpacked into the work directory first.

    Args:
        engine: runs the unpacking.
        path: the image, where executors see it too.
        work: the work directory, likewise.
        size: bytes of a range; by default as many as suit the engine.

    Raises:
        ImageError: if it is no image that we know; names the file.
        TaskFailed: if a part could not be unpacked; names file and offset.
        OSError: if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            summary = ImageSections(file).summary
        for name in ("NS_INFO", "STRING_TABLE", "INODE"):
            if summary.find(name) is None:
                raise ImageError(f"it has no section {name}")  # noqa: TRY301 - named below
        stretches = {name: summary.parts(name) for name in LARGE}
    except ImageError as problem:
        raise ImageError(f"{path} cannot be opened: {problem}") from problem
    places = {
        name: [(str(path), part.offset, part.offset + part.length) for part in parts]
        for name, parts in stretches.items()
    }
    if summary.codec:
        places = _unpack(engine, path, summary.codec, stretches, work)
    header, places["INODE"][0] = _split_header(*places["INODE"][0])
    ranges = {name: tuple(_ranges(engine, path, name, places[name], size)) for name in LARGE}
    unpacked = tuple({place[0] for found in places.values() for place in found} - {str(path)})
    return OpenedImage(str(path), summary, header, ranges["INODE"], ranges["INODE_DIR"], unpacked)


FileSpan = tuple[str, int, int]
"""A file and the span of it that holds a stretch of messages."""


def _ranges(
    engine: Engine, image: Path, name: str, places: list[FileSpan], size: int | None
) -> Iterator[ImageRange]:
    total = sum(end - begin for _, begin, end in places)
    size = size or range_bytes(name, total, engine.parallelism)
    number = 0
    for path, begin, end in places:
        told = "" if path == str(image) else str(image)
        for item in cut(path, name, begin, end, size, number, told):
            yield item
            number += 1


def _split_header(path: str, begin: int, end: int) -> tuple[bytes, FileSpan]:
    """Return the INodeSection, and where the inodes begin."""
    with Path(path).open("rb") as file:
        file.seek(begin)
        look = file.read(min(_HEADER_LOOK, end - begin))
    length = look[0] if look else 0
    if not 0 < length < 0x80 or length >= len(look):
        raise ImageError(
            f"{path}: section INODE does not begin with its header at byte {begin}; take another "
            "copy of this image"
        )
    raw = look[1 : 1 + length]
    try:
        header = pb.INodeSection.FromString(raw)
    except DecodeError as problem:
        raise ImageError(
            f"{path}: the header of section INODE at byte {begin} is malformed ({problem})"
        ) from problem
    if not header.HasField("numInodes"):
        raise ImageError(f"{path}: the header of section INODE at byte {begin} has no count")
    return raw, (path, begin + 1 + length, end)


@dataclass(frozen=True, slots=True)
class UnpackTask:
    """A compressed part to be unpacked into the work directory."""

    path: str
    section: Section
    codec: str
    work: str


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The file that holds the plain bytes, and how many there are."""

    path: str
    length: int


def unpack(task: UnpackTask) -> Unpacked:
    """Unpack one part.

    Raises:
        ImageError: if it is broken; names file and offset.
    """
    out = Path(task.work) / attempt_name(f"plain-{task.section.name}-{task.section.offset}")
    length = 0
    with out.open("wb") as file:
        for chunk in _plain(task.path, task.section, task.codec):
            file.write(chunk)
            length += len(chunk)
    return Unpacked(str(out), length)


def _unpack(
    engine: Engine, path: Path, codec: str, stretches: dict[str, tuple[Section, ...]], work: Path
) -> dict[str, list[FileSpan]]:
    tasks = [
        (name, UnpackTask(str(path), part, codec, str(work)))
        for name, parts in stretches.items()
        for part in parts
    ]
    try:
        found = dict(engine.run("unpack", unpack, [task for _, task in tasks]))
    except TaskFailed as failed:
        if failed.kind == ImageError.__name__:
            raise ImageError(failed.cause) from failed
        raise
    places: dict[str, list[FileSpan]] = {name: [] for name in stretches}
    for number, (name, _) in enumerate(tasks):
        places[name].append((found[number].path, 0, found[number].length))
    return places


def _plain(path: str, section: Section, codec: str) -> Iterator[bytes]:
    try:
        with Path(path).open("rb") as file:
            raw = stretch(file, section.offset, section.length)
            yield from decompressed(raw, codec)
    except ImageError as problem:
        raise ImageError(
            f"{path}: section {section.name} at byte {section.offset}: {problem}"
        ) from problem
