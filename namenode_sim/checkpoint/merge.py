"""One image and its edits become a newer image, replayed in this process.

Nothing is published unless every edit was read, applied and saved, and what was saved reads back
with its digest.  The same input gives the same bytes, so a second run finds its own work done.
"""

from collections.abc import Callable
from pathlib import Path

import structlog

from ha.record import dataclass
from journal.model import NamespaceInfo, TxId
from namenode_sim.checkpoint.publication import publish, staged
from namenode_sim.edits.segment_file import open_segment
from namenode_sim.image.facts import ImageFacts, image_facts
from namenode_sim.image.files import check_digest, image_name, read_digest
from namenode_sim.image.reader import load_image
from namenode_sim.image.writer import save_image
from namenode_sim.storage.local_edits import LocalSegment, Located, chain, finalized_in, replay

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a merge is: bytes of edits read, of how many, and the last transaction."""

    done_bytes: int
    total_bytes: int
    txid: TxId


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge has published; ``already_there`` if an earlier run had done the same."""

    image: Path
    from_txid: TxId
    to_txid: TxId
    segments: int
    inodes: int
    digest: str
    already_there: bool


def merge(
    image: Path,
    edits: Path,
    out: Path,
    *,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Merged:
    """Replay the finalized segments behind ``image`` on it, and publish the result in ``out``.

    A segment in progress is left out: where it ends is not decided yet.

    Args:
        image: ``fsimage_N`` with its digest next to it.
        edits: a folder with segments, or a directory that has them in ``current``.
        out: where ``fsimage_M`` and its digest go; created if it does not exist.
        progress: hears how far the replay is.

    Raises:
        MergeRefused: if another image of the same transaction is there.
        EditsError: if an edit is damaged, missing or does not apply; names file, offset and
            transaction.
        ImageError: if the image is not sound, or the result does not fit into its layout.
        InUse: if another merge works in ``out``.
        OSError: if a file cannot be read or written.
    """
    namespace = load_image(image)
    start = namespace.last_applied
    folder = edits / "current" if (edits / "current").is_dir() else edits
    segments = chain(finalized_in(folder), TxId(start + 1))
    replay(namespace, segments, progress=_telling(segments, progress))
    facts = image_facts(image)
    info = namespace_info(facts, segments)
    with staged(out) as stage:
        made = stage / image_name(namespace.last_applied)
        save_image(namespace, made, info, codec=facts.codec, sub_sections=facts.sub_sections)
        check_digest(made)
        digest = read_digest(made)
        already_there = publish(made, out)
    return Merged(
        image=out / made.name,
        from_txid=start,
        to_txid=namespace.last_applied,
        segments=len(segments),
        inodes=len(namespace.tree.inodes),
        digest=digest,
        already_there=already_there,
    )


def namespace_info(facts: ImageFacts, segments: tuple[LocalSegment, ...]) -> NamespaceInfo:
    """Return what the new image says of itself: the newest layout among image and edits."""
    layouts = [facts.layout]
    for segment in segments:
        with open_segment(segment.path) as file:
            layouts.append(file.layout)
    return NamespaceInfo(min(layouts), facts.namespace_id, "", 0)


def _telling(
    segments: tuple[LocalSegment, ...], progress: Callable[[Progress], None]
) -> Callable[[LocalSegment, Located], None]:
    """Return a function that turns places in files into bytes of the whole."""
    starts, total = {}, 0
    for segment in segments:
        starts[segment.path] = total
        total += segment.path.stat().st_size
    return lambda segment, located: progress(
        Progress(starts[segment.path] + located.end, total, located.txid)
    )
