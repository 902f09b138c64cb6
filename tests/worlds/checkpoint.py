"""What one seed of `./run soak checkpoint` merges: a random namespace as an image, and edits on it.

The same seed gives the same files.  Every edit fits: the namespace itself has taken it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Final

from journal.model import NamespaceInfo, TxId
from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.image.codecs import (
    BZIP2_CODEC,
    GZIP_CODEC,
    LZ4_CODEC,
    SNAPPY_CODEC,
    ZLIB_CODEC,
    ZSTD_CODEC,
)
from namenode_sim.image.files import image_name
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from tests.worlds.attribute_deeds import ADMIN_DEEDS, ATTRIBUTE_DEEDS
from tests.worlds.author import FILE_DEEDS, Author, Deed, rename, rename_old
from tests.worlds.files import write_log
from tests.worlds.moving_deeds import (
    MOVING_DEEDS,
    PAST,
    fill,
    past,
    plain_file,
    touch_past,
)

LAYOUTS: Final = (-63, -65, -66, -67, -67)
NAMESPACE_ID: Final = 4711
FIRST_TXID: Final = 1000
_ERASURE_LAYOUT: Final = -64

CODECS: Final = (
    *(ZLIB_CODEC, GZIP_CODEC, BZIP2_CODEC),
    *((LZ4_CODEC, SNAPPY_CODEC) if find_spec("cramjam") else ()),
    *((ZSTD_CODEC,) if find_spec("zstandard") else ()),
)
"""Those whose packages are at hand."""


class Snapshots(StrEnum):
    """What snapshots have to do with the edits."""

    NONE = "none"
    UNTOUCHED = "there, and no edit comes near them"
    TOUCHED = "there, and edits change what they hold"
    MADE = "made by the edits"


@dataclass(frozen=True, slots=True)
class World:
    """An image, the edits behind it, and what may be expected of their merge.

    Attributes:
        image: the file, its digest next to it.
        edits: the folder of the segments.
        layout, codec, parts: how the image was saved; no sub-sections if ``parts`` is 0.
        range_bytes: how large the ranges are to be, so that there are many.
        snapshots: decides whether the merge can be divided.
        mixed: whether the edits have another layout than the image.
        inodes, ops: how many.
    """

    seed: int
    image: Path
    edits: Path
    layout: int
    codec: str
    parts: int
    range_bytes: int
    snapshots: Snapshots
    mixed: bool
    inodes: int
    ops: int

    @property
    def dividable(self) -> bool | None:
        """Whether the merge must be divided, must not be, or may be either (None)."""
        if self.mixed or self.snapshots is Snapshots.MADE:
            return False
        return None if self.snapshots is Snapshots.TOUCHED else True

    def __str__(self) -> str:
        codec = self.codec.rpartition(".")[2] or "plain"
        return (
            f"{self.inodes} inodes, {self.ops} edits, layout {self.layout}, {codec}, {self.parts} "
            f"parts, ranges of {self.range_bytes} bytes, snapshots {self.snapshots.name}"
        )


def make_world(seed: int, folder: Path) -> World:
    """Write image and segments of a seed into a folder."""
    random = Random(seed)
    layout = random.choice(LAYOUTS)
    snapshots = random.choice((*(Snapshots.NONE,) * 20, *Snapshots, *Snapshots))
    mixed = snapshots is Snapshots.NONE and layout != LAYOUTS[-1] and random.random() < 0.1
    author = Author(random, Namespace.empty("hdfs"))
    author.namespace.last_applied = TxId(FIRST_TXID)
    fill(author, random.choice((3, 100, 400, 400, 1500)))
    deeds = _deeds(layout)
    for _ in range(random.choice((0, 20, 100))):
        author.step(deeds)
    if snapshots in {Snapshots.UNTOUCHED, Snapshots.TOUCHED}:
        past(author)
        author.kept_out = frozenset((PAST,))
    codec = random.choice(CODECS) if random.random() < 0.4 else ""
    parts = random.choice((0, 0, 2, 5, 17))
    image = folder / image_name(author.namespace.last_applied)
    info = NamespaceInfo(layout, NAMESPACE_ID, "CID-soak", 0, "BP-soak")
    inodes = len(author.namespace.tree.inodes)
    save_image(author.namespace, image, info, codec=codec, sub_sections=parts)
    author.log.clear()
    for _ in range(random.choice((1, 20, 80, 300, 300))):
        author.step(deeds)
    author.write(ops.Times("/", author.now, -1))  # so that there is something
    if snapshots in {Snapshots.TOUCHED, Snapshots.MADE}:
        touch_past(author, new=snapshots is Snapshots.MADE)
    edits = folder / "edits"
    edits.mkdir()
    write_cut(edits, author.log, random, LAYOUTS[-1] if mixed else layout)
    return World(
        seed=seed,
        image=image,
        edits=edits,
        layout=layout,
        codec=codec,
        parts=parts,
        range_bytes=random.choice((200, 1000, 5000, 50_000)),
        snapshots=snapshots,
        mixed=mixed,
        inodes=inodes,
        ops=len(author.log),
    )


def _deeds(layout: int) -> Sequence[Deed]:
    """Return what happens; before layout -64 nothing is erasure coded."""
    deeds = (*FILE_DEEDS, *FILE_DEEDS, *ATTRIBUTE_DEEDS, *ADMIN_DEEDS, *MOVING_DEEDS, rename,
             rename_old)  # fmt: skip
    if layout > _ERASURE_LAYOUT:
        deeds = tuple(deed for deed in deeds if deed.__name__ not in {"create", "erasure_coding"})
        deeds += (plain_file,) * 6
    return deeds


def write_cut(folder: Path, log: Sequence[tuple[TxId, Op]], random: Random, layout: int) -> None:
    cuts = sorted(random.sample(range(1, len(log)), min(random.randrange(3), len(log) - 1)))
    for begin, end in zip([0, *cuts], [*cuts, len(log)], strict=True):
        part = log[begin:end]
        if part:
            write_log(folder, part, layout=layout)
