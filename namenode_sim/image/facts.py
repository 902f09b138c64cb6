"""What an image says of itself, read without loading it."""

from pathlib import Path

from ha.record import dataclass
from journal.model import TxId
from namenode_sim.image.container import SUB, next_message
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.sections import ImageSections


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What a newer image takes over from an image.

    ``codec`` is empty for none; ``sub_sections`` is the number in the section of inodes (0: none).
    ``txid`` is the last edit that it holds, whatever its file is called.
    """

    layout: int
    namespace_id: int
    codec: str
    sub_sections: int
    txid: TxId


def image_facts(path: Path) -> ImageFacts:
    """Read them.

    Raises:
        ImageError: if it is no sound image; names the file.
        OSError: if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            sections = ImageSections(file)
            with sections.open("NS_INFO") as messages:
                found = pb.NameSystemSection.FromString(next_message(messages))
    except ImageError as problem:
        raise ImageError(f"{path}: {problem}") from problem
    summary = sections.summary
    parts = sum(1 for section in summary.sections if section.name == f"INODE{SUB}")
    return ImageFacts(
        layout=summary.layout,
        namespace_id=found.namespaceId,
        codec=summary.codec,
        sub_sections=parts,
        txid=TxId(found.transactionId),
    )
