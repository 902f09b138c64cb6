"""An image from outside goes into all name directories at once.

See docs/reference/namenode.md#accepting-an-image.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import structlog

from hadoop.durable import rename_durably
from hadoop.errors import StorageError
from journal.model import TxId
from namenode_sim.image.errors import ImageError
from namenode_sim.image.facts import image_facts
from namenode_sim.image.files import image_name, unfinished_name, write_digest
from namenode_sim.image.structure import announced_inodes, checked_inodes
from namenode_sim.storage.storage import NameStorage

log = structlog.get_logger()


class ImageDamaged(Exception):
    """What came is not what was announced; nothing of it was kept."""


class ImageIntake:
    """Receives one image; until ``publish`` its files are not taken for an image.

    Blocking: everything here runs in a thread.  A directory that fails on the way is dropped, as
    with every other write; the image is taken as long as one directory is left.
    """

    def __init__(self, storage: NameStorage, txid: TxId, *, shrink_to: int = 0) -> None:
        """Make room; an image of fewer inodes than ``shrink_to`` is refused if the newest one here
        has more than twice as many.
        """
        self._storage = storage
        self._shrink_to = shrink_to
        self._txid = txid
        self._name = image_name(txid)
        # Not as a saving calls it: one of the same edits may begin before this has come.
        self._beside = f"{unfinished_name(txid)}.received"
        self._files: dict[Path, BinaryIO] = {}
        self._digest = hashlib.md5(usedforsecurity=False)
        self._size = 0
        storage.in_work.add(self._beside)
        storage.in_all(self._open)

    def feed(self, data: bytes) -> None:
        """Write the next bytes.

        Raises:
            StorageError: when no directory takes them.
        """
        self._size += len(data)
        self._digest.update(data)
        self._storage.in_all(lambda current: self._write(current, data))

    def publish(self, size: int, digest: str) -> int:
        """Compare with what was announced, and name the image; return the number of directories.

        Raises:
            ImageDamaged: if length or digest differ, or it is no image of that transaction and of
                this file system.
            StorageError: when no directory takes it.
        """
        found = self._digest.hexdigest()
        if (self._size, found) != (size, digest):
            raise ImageDamaged(
                f"{self._name} came damaged: {self._size} bytes with digest {found}, announced "
                f"were {size} with {digest}; nothing of it was kept"
            )
        self._storage.in_all(self._sync)
        self._require_image()
        self._storage.in_all(lambda current: self._rename(current, digest))
        return len(self._storage.directories)

    def discard(self) -> None:
        """Close, and delete what has no name yet, also on a disk that refused it."""
        for current, file in self._files.items():
            with suppress(OSError):
                file.close()  # writes what is left of a write that failed, once more
            with suppress(OSError):
                (current / self._beside).unlink(missing_ok=True)
        self._files.clear()
        self._storage.in_work.discard(self._beside)

    def _require_image(self) -> None:
        """Refuse what cannot be loaded, or not under its name.

        A digest only shows that all came.  Older images and their edits are deleted behind an
        image, so one that a broken sender made up would take the namespace with it.
        """
        path = self._storage.directories[0] / "current" / self._beside
        try:
            facts, inodes = image_facts(path), checked_inodes(path)
        except (ImageError, OSError) as problem:
            raise ImageDamaged(
                f"{self._name} came whole, but is no fsimage: {problem}; nothing of it was kept"
            ) from problem
        if facts.txid != self._txid:
            raise ImageDamaged(
                f"{self._name} holds edits up to {facts.txid}, not {self._txid}; nothing of it was "
                "kept"
            )
        ours = self._storage.namespace_info.namespace_id
        if facts.namespace_id != ours:
            raise ImageDamaged(
                f"{self._name} is of namespace {facts.namespace_id}, this NameNode's is {ours}; "
                "nothing of it was kept"
            )
        self._require_size(inodes)

    def _require_size(self, inodes: int) -> None:
        """Refuse an image that lacks most of what there was, and of what there is now."""
        if inodes >= self._shrink_to:
            return
        try:
            newest = announced_inodes(self._storage.newest_image())
        except (ImageError, OSError, StorageError) as problem:
            log.warning("image.newest_unreadable", problem=str(problem))
            return
        if inodes * 2 < newest:
            raise ImageDamaged(
                f"{self._name} has {inodes:,} inodes, the newest has {newest:,}: it is not taken "
                "for the same file system; nothing of it was kept. Where so much was deleted on "
                "purpose, set nnha.image.accept-shrink to true and offer it again"
            )

    def _open(self, current: Path) -> None:
        self._files[current] = (current / self._beside).open("wb")

    def _write(self, current: Path, data: bytes) -> None:
        self._files[current].write(data)

    def _sync(self, current: Path) -> None:
        file = self._files[current]
        file.flush()
        os.fsync(file.fileno())

    def _rename(self, current: Path, digest: str) -> None:
        write_digest(current / self._name, digest)
        rename_durably(current / self._beside, current / self._name)
