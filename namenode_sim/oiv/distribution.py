"""How large the files of an image are (Hadoop's FileDistributionCalculator)."""

from collections import Counter
from typing import Final, TextIO

from ha.record import dataclass
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.oiv.opened import OpenedImage
from namenode_sim.oiv.values import size_text

DEFAULT_MAX_SIZE: Final = 1 << 37
DEFAULT_STEP: Final = 1 << 21
_PROGRESS: Final = 1 << 20


@dataclass(slots=True)
class _Totals:
    files: int = 0
    directories: int = 0
    blocks: int = 0
    space: int = 0
    largest: int = 0


def write_distribution(
    image: OpenedImage, out: TextIO, *, max_size: int = 0, step: int = 0, readable: bool = False
) -> None:
    """Count the files in each interval of sizes.

    A file belongs to the interval that ends with the next multiple of ``step``; those larger than
    ``max_size`` to the last.  0 stands for Hadoop's defaults, 128 GiB and 2 MiB.

    Raises:
        ImageError: if the image is malformed.
    """
    max_size, step = max_size or DEFAULT_MAX_SIZE, step or DEFAULT_STEP
    last = max_size // step
    counts: Counter[int] = Counter()
    totals = _Totals()
    for number, inode in enumerate(image.inodes()):
        if inode.type == pb.INode.FILE:
            size = _add_file(totals, inode.file)
            counts[last if size > max_size else min(last, -(-size // step))] += 1
        elif inode.type == pb.INode.DIRECTORY:
            totals.directories += 1
        if number % _PROGRESS == 0:
            out.write(f"Processed {number} inodes.\n")  # in the output, as Hadoop has it
    out.write("Size Range\tNumFiles\n" if readable else "Size\tNumFiles\n")
    for bucket, count in sorted(counts.items()):
        if readable:
            end = totals.largest if bucket == last else bucket * step
            begin = max(0, bucket - 1) * step
            opening = "(" if bucket else "["
            out.write(f"{opening}{size_text(begin)}, {size_text(end)}]\t{count}\n")
        else:
            out.write(f"{bucket * step}\t{count}\n")
    out.write(
        f"totalFiles = {totals.files}\ntotalDirectories = {totals.directories}\n"
        f"totalBlocks = {totals.blocks}\ntotalSpace = {totals.space}\n"
        f"maxFileSize = {totals.largest}\n"
    )


def _add_file(totals: _Totals, file: pb.INodeFile) -> int:
    size = sum(block.numBytes for block in file.blocks)
    totals.files += 1
    totals.blocks += len(file.blocks)
    totals.space += size * file.replication
    totals.largest = max(totals.largest, size)
    return size
