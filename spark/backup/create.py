"""Make a backup: what a running cluster has, in files that are checked before they are named."""

import hashlib
import os
import shutil
import tarfile
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from ha.daemon.in_thread import run_in_thread
from ha.daemon.version import version
from ha.security.certificate_files import CA_KEY
from hadoop.durable import sync_folder, write_durably
from journal.frame import file_header
from journal.model import NamespaceInfo, TxId
from journal.reader.frame_stream import Chunk
from namenode_sim.image.reader import load_image
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage.fill import COMMENT
from namenode_sim.storage.local_edits import chain, finalized_in, replay
from namenode_sim.storage.version_file import parse_version, version_text
from spark.backup.model import (
    AUTHORITY,
    MANIFEST,
    VERSION,
    BackupError,
    Manifest,
    Stored,
    parse_manifest,
)
from spark.ends.sources.cluster import Cluster
from spark.ends.sources.from_cluster import stage_from_cluster


async def gather(cluster: Cluster, room: Path) -> None:
    """Have the newest image, every durable edit behind it and VERSION in an empty folder.

    Raise SourceError where no NameNode or no majority of the JournalNodes gives it, and OSError.
    """
    staged = await stage_from_cluster(cluster, room / "staged", lambda _: None)
    namespace = staged.namespace
    if namespace is None:
        raise BackupError("the cluster does not say which file system it is")
    for path in list(staged.edits.iterdir()):
        if path.name.startswith(("fsimage_", "edits_")):
            path.rename(room / path.name)
    shutil.rmtree(room / "staged")
    async with cluster.open_journal(namespace) as reader:
        await _open_segment(reader.durable_edits(TxId(staged.last_txid + 1)), room)
    write_durably(room / VERSION, version_text(namespace, comment=COMMENT))


async def _open_segment(edits: AsyncGenerator[Chunk, None], room: Path) -> None:
    """Write edits that no segment of the lists holds as one finalized segment, if there are any."""
    part, first, last, layout = room / "open.part", TxId(0), TxId(0), 0
    async with aclosing(edits) as chunks:
        with part.open("wb") as file:
            async for chunk in chunks:
                if not first:
                    first, layout = chunk.first, chunk.layout_version
                    file.write(file_header(layout))
                elif chunk.layout_version != layout:
                    raise BackupError(f"the layout changes at {chunk.first}; try it again")
                last = chunk.last
                await run_in_thread(partial(file.write, chunk.records))
    if first:
        part.rename(room / f"edits_{first:019d}-{last:019d}")
    part.unlink(missing_ok=True)


def pack_authority(authority: Path, room: Path) -> None:
    """Put an authority's folder with its secret key into the backup; raise BackupError, OSError."""
    if not (authority / CA_KEY).is_file():
        raise BackupError(f"{authority} is no authority: it has no {CA_KEY}")
    with tarfile.open(room / AUTHORITY, "w") as archive:
        archive.add(authority, arcname=".")


def seal(room: Path, nameservice: str) -> tuple[str, Manifest]:
    """Check what was gathered, write the manifest, and have all of it on the disk.

    Return the name that it is to have.  Raise ImageError, EditsError, BackupError or OSError.
    """
    namespace, image_txid, info = _replay(room)
    now = time.time()
    files = {path.name: _digest(path) for path in sorted(room.iterdir())}
    manifest = Manifest(
        nameservice=nameservice,
        cluster_id=info.cluster_id,
        namespace_id=info.namespace_id,
        image_txid=image_txid,
        last_txid=namespace.last_applied,
        made_at=round(now, 3),
        nnha=version(),
        files=files,
    )
    write_durably(room / MANIFEST, manifest.text())
    sync_folder(room)
    moment = datetime.fromtimestamp(now, UTC)
    return f"backup-{moment:%Y%m%dT%H%M%S%f}Z-{manifest.last_txid}", manifest


def verify(folder: Path) -> tuple[Manifest, Namespace]:
    """Compare every digest, and replay image and edits in memory.

    Raise BackupError, ImageError or EditsError for what is missing or damaged, and OSError.
    """
    try:
        manifest = parse_manifest((folder / MANIFEST).read_bytes())
        for name, promised in manifest.files.items():
            if (found := _digest(folder / name)) != promised:
                raise BackupError(
                    f"{folder / name} has {found.size} bytes with the digest {found.sha256}; the "
                    f"manifest says {promised.size} with {promised.sha256}"
                )
    except FileNotFoundError as problem:
        raise BackupError(f"{problem.filename} is missing") from problem
    strays = {path.name for path in folder.iterdir()} - set(manifest.files) - {MANIFEST}
    if strays:
        raise BackupError(f"{folder} holds what the manifest does not name: {sorted(strays)}")
    namespace, image_txid, info = _replay(folder)
    held = (info.namespace_id, info.cluster_id, image_txid, namespace.last_applied)
    said = (manifest.namespace_id, manifest.cluster_id, manifest.image_txid, manifest.last_txid)
    if held != said:
        raise BackupError(
            f"{folder} holds (namespace, cluster, image, last edit) {held}; the manifest:  {said}"
        )
    return manifest, namespace


def image_of(folder: Path) -> Path:
    """Return the one image of a backup; raise BackupError if there is none, or more."""
    images = [path for path in folder.glob("fsimage_*") if not path.suffix]
    if len(images) != 1:
        raise BackupError(f"{folder} holds {len(images)} images, expected one")
    return images[0]


def _replay(folder: Path) -> tuple[Namespace, TxId, NamespaceInfo]:
    namespace = load_image(image_of(folder))
    image_txid = namespace.last_applied
    replay(namespace, chain(finalized_in(folder), TxId(image_txid + 1)))
    try:
        info = parse_version((folder / VERSION).read_bytes())
    except ValueError as problem:
        raise BackupError(f"{folder / VERSION}: {problem}") from problem
    return namespace, image_txid, info


def _digest(path: Path) -> Stored:
    """Read a file; what was read is on the disk when this returns."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Stored(path.stat().st_size, digest)
