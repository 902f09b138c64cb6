"""An image from a NameNode and the edits behind it from the JournalNodes, kept in a work folder.

    <work>/<namespace id>-<cluster id>/fsimage_N  fsimage_N.md5  edits_A-B ...

What is there already and sound is not fetched again, so a second try costs what the first lacked.
"""

import asyncio
import re
from collections.abc import Sequence, Set
from pathlib import Path

import structlog

from ha.daemon import event_loop
from ha.record import dataclass
from hadoop.directory_lock import DirectoryLock
from hadoop.durable import rename_durably
from journal.model import NamespaceInfo, TxId
from journal.reader.manifest import Redundant
from journal.reader.reader import JournalReader
from namenode_sim.edits.segment_file import named_range
from namenode_sim.image.errors import ImageError
from namenode_sim.image.facts import image_facts
from namenode_sim.image.files import check_digest, digest_path, image_name
from namenode_sim.storage.retention import IMAGE
from namenode_sim.transfer.image_fetch import FetchFailed, fetch_image
from spark.ends.sources.cluster import Cluster, View, view
from spark.ends.sources.model import ReportStep, SourceError, Staged
from spark.ends.sources.segments import PART_SUFFIX, fetch_segment, why_unsound

log = structlog.get_logger()

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """The newest image that any NameNode has, and every finalized edit behind it."""

    cluster: Cluster

    def stage(self, work: Path, tell: ReportStep) -> Staged:
        """Fetch what is not here yet; see ``Source``."""
        return event_loop.run(stage_from_cluster(self.cluster, work, tell))


def folder_of(namespace: NamespaceInfo, work: Path) -> Path:
    """Return the folder of one cluster's files; those of another are never taken for its own."""
    name = f"{namespace.namespace_id}-{_NOT_A_NAME.sub('_', namespace.cluster_id)}"
    return work / name


async def stage_from_cluster(cluster: Cluster, work: Path, tell: ReportStep) -> Staged:
    """Fetch what is not in ``work`` yet, and remove what is no longer wanted there.

    The epoch is read before the lists of segments: if a new writer comes in between, the result
    carries the older epoch, and the NameNode refuses it.

    Raises:
        SourceError: as ``Source.stage``.
        InUse: if another merge works in the folder.
        OSError: if local storage refuses.
    """
    seen = await view(cluster)
    folder = folder_of(seen.namespace, work)
    folder.mkdir(parents=True, exist_ok=True)
    lock = DirectoryLock(folder)
    try:
        _sweep(folder, seen.image_txid)
        async with cluster.open_journal(seen.namespace) as reader:
            epoch = await reader.writer_epoch()
            image, image_bytes = await _image(cluster, seen, folder, tell)
            listed = await reader.segments(TxId(seen.image_txid + 1))
            edits_bytes = await _edits(reader, listed, folder, tell)
    finally:
        lock.release()
    reused = sum(count == 0 for count in (image_bytes, *edits_bytes))
    staged = Staged(
        image=image,
        edits=folder,
        base_txid=seen.image_txid,
        last_txid=max(seen.image_txid, listed[-1].segment.last if listed else TxId(0)),
        namespace=seen.namespace,
        epoch=epoch,
        fetched_bytes=image_bytes + sum(edits_bytes),
        reused_files=reused,
    )
    log.info(
        "source.staged",
        image_txid=staged.base_txid,
        last_txid=staged.last_txid,
        epoch=epoch,
        segments=len(listed),
        fetched_bytes=staged.fetched_bytes,
        reused_files=reused,
    )
    return staged


def adopt(image: Path, staged: Staged) -> None:
    """Keep a merged image as the next merge's base, so that it need not be sent here.

    Raises:
        OSError: if local storage refuses; the next merge then fetches it.
    """
    target = staged.edits / image.name
    rename_durably(digest_path(image), digest_path(target))
    rename_durably(image, target)


async def _image(cluster: Cluster, seen: View, folder: Path, tell: ReportStep) -> tuple[Path, int]:
    """Return the image, and how many bytes of it came from elsewhere."""
    image = folder / image_name(seen.image_txid)
    if image.exists():
        why = await asyncio.to_thread(_why_not_this_image, image, seen.namespace)
        if not why:
            return image, 0
        log.warning("source.image_unsound", path=str(image), why=why)
        image.unlink()
    failures = []
    for holder in seen.holders(cluster):
        tell(f"fetching {image.name} from {holder.namenode}")
        try:
            await fetch_image(
                holder.http,
                folder,
                seen.image_txid,
                seen.facts[holder.namenode].namespace,
                stall_seconds=cluster.stall_seconds,
                bootstrap=False,
            )
        except FetchFailed as failure:
            failures.append(f"{holder.namenode}: {failure}")
            continue
        if why := await asyncio.to_thread(_why_not_this_image, image, seen.namespace):
            image.unlink()
            failures.append(f"{holder.namenode}: {why}")
            continue
        return image, image.stat().st_size
    raise SourceError(
        f"{image.name} cannot be had from any NameNode: {'; '.join(failures)}. Is there a sound "
        "one in a name directory?"
    )


def _why_not_this_image(image: Path, namespace: NamespaceInfo) -> str:
    """Return why a file is no sound image of that file system; empty if it is one."""
    try:
        check_digest(image)
        facts = image_facts(image)
    except (ImageError, OSError) as problem:
        return str(problem)
    if facts.namespace_id != namespace.namespace_id:
        return (
            f"{image} is of namespace {facts.namespace_id}, the cluster is {namespace.namespace_id}"
        )
    return ""


async def _edits(
    reader: JournalReader, listed: Sequence[Redundant], folder: Path, tell: ReportStep
) -> list[int]:
    """Have exactly the listed segments in the folder; how many bytes of each were fetched."""
    _forget_segments(folder, {part.segment.name() for part in listed})
    fetched = []
    for number, part in enumerate(listed, 1):
        path = folder / part.segment.name()
        why = "it is not here"
        if path.exists():
            why = await asyncio.to_thread(why_unsound, path, part.segment)
            if why:
                log.warning("source.segment_unsound", path=str(path), why=why)
                path.unlink()
        if why:
            tell(f"fetching {path.name} ({number} of {len(listed)})")
            await fetch_segment(reader, part, folder)
        fetched.append(path.stat().st_size if why else 0)
    return fetched


def _sweep(folder: Path, image_txid: TxId) -> None:
    """Remove what an earlier time left half-done, and the images of other transactions."""
    for path in folder.iterdir():
        match = IMAGE.fullmatch(path.name.removesuffix(".md5"))
        other_image = match is not None and int(match[1]) != image_txid
        if other_image or path.suffix == PART_SUFFIX or path.name.startswith("fsimage.ckpt_"):
            path.unlink()


def _forget_segments(folder: Path, wanted: Set[str]) -> None:
    for path in folder.iterdir():
        if named_range(path.name) is not None and path.name not in wanted:
            path.unlink()
