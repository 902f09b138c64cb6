"""Put a backup in place: name directories here, and a journal with the edits behind the image."""

import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from ha.conf.configuration import Configuration
from ha.conf.keys.namenode import ALLOW_FORMAT, REFORMAT_DISABLED
from ha.console.exit_codes import FAILED, REFUSED
from ha.daemon.process import ExitWith
from hadoop.durable import sync_folder, write_durably
from journal.errors import JournalError
from journal.model import NamespaceInfo, TxId
from namenode_sim.image.files import image_name
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.startup.beside_active import refuse_active
from namenode_sim.startup.identity import (
    NameNodeIdentity,
    edits_directories,
    journal_reader,
    name_directories,
)
from namenode_sim.startup.questions import Consent
from namenode_sim.startup.shared_edits import ask_nodes, initialize_shared_edits
from namenode_sim.storage.fill import copy_image
from namenode_sim.storage.format import erase, erase_edits, find_occupied, lock_all
from namenode_sim.storage.version_file import parse_version
from spark.backup.create import image_of
from spark.backup.model import AUTHORITY, VERSION, BackupError, Manifest

_NEW: Final = "current.restore"
_APART: Final = 1 << 40
"""How far the numbers of a restored file system begin above those of its backup."""


async def restore_namespace(
    conf: Configuration,
    place: NameNodeIdentity,
    consent: Consent,
    backup: Path,
    manifest: Manifest,
    namespace: Namespace,
    *,
    keep_journal: bool,
) -> None:
    """Fill this NameNode's name directories and the journal from a backup that was verified.

    ``namespace`` is what the backup holds; it is put in place as one image, apart from all that was
    lost (``move_apart``).  With ``keep_journal`` the backup's image is taken as it is, and the
    journal stays and must have the edits behind it.  What could be refused is refused before
    anything changes, by the rules of ``--format``.
    Raise ExitWith (3 refused, 4 the journal was not filled), ImageError, StorageError or OSError.
    """
    directories = name_directories(conf, place.address)
    everywhere = edits_directories(conf, place.address)
    info = parse_version((backup / VERSION).read_bytes())
    with lock_all(directories):
        full = list(map(str, find_occupied(everywhere)))
        if keep_journal:
            await _ensure_journal(conf, place, info, manifest)
        else:
            full += [f"the journal on {node}" for node in await ask_nodes(place, info)]
        await _refuse(conf, place, consent, full)
        if not keep_journal:
            move_apart(namespace)
        try:
            for directory in directories:
                with _new_current(directory, backup / VERSION) as folder:
                    if keep_journal:
                        copy_image([image_of(backup)], folder)
                    else:
                        save_image(namespace, folder / image_name(namespace.last_applied), info)
                    txid = manifest.image_txid if keep_journal else namespace.last_applied
                    write_durably(folder / "seen_txid", b"%d\n" % txid)
            erase_edits(everywhere, directories)
            for directory in directories:
                erase(directory / "current")
                (directory / _NEW).rename(directory / "current")
                sync_folder(directory)
        finally:
            for directory in directories:
                shutil.rmtree(directory / _NEW, ignore_errors=True)
    if keep_journal:
        return
    try:
        await initialize_shared_edits(conf, place, Consent(force=True, ask=None))
    except ExitWith as failure:
        raise ExitWith(
            FAILED,
            f"the name directories are restored, but the journal is not: {failure.message}. → run "
            "nnha namenode --initialize-shared-edits --force on this host",
        ) from failure


async def _ensure_journal(
    conf: Configuration, place: NameNodeIdentity, info: NamespaceInfo, manifest: Manifest
) -> None:
    """Raise ExitWith if the journal lacks an edit that the backup has behind its image."""
    reader = journal_reader(conf, place, info)
    try:
        await reader.ensure_served(TxId(manifest.image_txid + 1), manifest.last_txid)
    except JournalError as failure:
        raise ExitWith(
            REFUSED,
            f"the journal {place.journal.journal_id} does not hold the edits behind the image: "
            f"{failure}. Nothing was changed. → without --keep-journal the backup's edits replace "
            "it, and later ones are lost",
        ) from failure
    finally:
        await reader.close()


async def _refuse(
    conf: Configuration, place: NameNodeIdentity, consent: Consent, full: list[str]
) -> None:
    shown = ", ".join(full)
    await refuse_active(
        place,
        code=REFUSED,
        because="and a restore would erase the file system that it serves; nothing was changed, "
        "and --force does not override this. → stop all NameNodes first",
    )
    if not conf.get(ALLOW_FORMAT) or (full and conf.get(REFORMAT_DISABLED)):
        key = REFORMAT_DISABLED if conf.get(ALLOW_FORMAT) else ALLOW_FORMAT
        raise ExitWith(REFUSED, f"{key.name} forbids it; nothing was changed. In the way: {shown}")
    if full:
        consent.require(
            f"Erase what is in {shown} and restore the backup ? (Y or N)",
            code=REFUSED,
            refusal=f"{shown} holds a file system, and nothing was changed. → to erase it for "
            "good, give --force",
        )


def move_apart(namespace: Namespace) -> None:
    """Raise transactions, block ids and stamps above all that the lost file system may have used.

    DataNodes obey no NameNode whose last transaction is below one that they have heard: Hadoop's
    until they are restarted, ours afterwards, too.  And a replica of a lost file, on a DataNode
    that was down, must not be taken for a block of a new one.
    """
    namespace.last_applied = TxId(namespace.last_applied + _APART)
    namespace.counters.last_block_id += _APART
    namespace.counters.generation_stamp_v2 += _APART


@contextmanager
def _new_current(directory: Path, version: Path) -> Iterator[Path]:
    """Give an empty folder to be filled as ``current``, under another name; VERSION comes last."""
    folder = directory / _NEW
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    yield folder
    write_durably(folder / VERSION, version.read_bytes())


def restore_authority(backup: Path, target: Path) -> None:
    """Unpack the authority into a folder that does not exist yet.

    Raise BackupError where the backup has none, holds anything but files and folders below its
    root, or the target is not empty, and OSError.  The members are checked here, too: Python 3.11.0
    to 3.11.3 have no extraction filters.
    """
    if not (backup / AUTHORITY).is_file():
        raise BackupError("this backup holds no authority; nothing was changed")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupError(f"{target} is not empty; nothing was changed")
    with tarfile.open(backup / AUTHORITY) as archive:
        members = archive.getmembers()
        for member in members:
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts or not (member.isdir() or member.isreg()):
                raise BackupError(f"{member.name!r} in {AUTHORITY} is no file below it")
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
        archive.extractall(target, members)
    sync_folder(target)
