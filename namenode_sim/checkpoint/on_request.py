"""Images at an operator's request, on the active as on a standby (FSImage.saveNamespace)."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from hadoop.errors import StorageError
from journal.model import TxId
from namenode_sim.checkpoint.standby import CheckpointAbandoned, to_its_end
from namenode_sim.image.errors import ImageError
from namenode_sim.storage.storage import NameStorage
from namenode_sim.term.namenode import NameNode
from namenode_sim.term.role import Role

log = structlog.get_logger()

_TRANSITION = "{} is changing its role, and has saved no image; the older one is whole. Try again"


class NotSaved(Exception):
    """No image was saved, and the older ones are whole; the message says why."""


class SaveOnRequest:
    """Saves the namespace of one NameNode in a thread while nothing changes it.

    ``purged`` is called after each image with its transaction and the number of directories that
    have it, and lets old edits go.  A transition ends a saving: it must not wait for a disk.
    """

    def __init__(
        self, namenode: NameNode, storage: NameStorage, purged: Callable[[TxId, int], None]
    ) -> None:
        self._namenode = namenode
        self._storage = storage
        self._purged = purged
        self._abandon = threading.Event()
        namenode.listen_for_roles(lambda _: self._abandon.set())

    async def save(self, window_seconds: int, most_edits: int) -> bool:
        """Save, and return True; return False where the newest image will do.

        It does if it was written in the last ``window_seconds`` and lacks at most ``most_edits``
        edits; never where both are 0.  The caller keeps safe mode on until this ends.

        Raises:
            NotSaved: if no name directory took the image, or the role changes.
        """
        try:
            if (window_seconds or most_edits) and self._is_recent(window_seconds, most_edits):
                return False
            self._namenode.roll_edits()
            async with self._namenode.unchanged():
                self._begin()
                txid = self._namenode.namespace.last_applied
                began = time.monotonic()
                path = await to_its_end(self._save_blocking, self._abandon)
        except CheckpointAbandoned:
            raise NotSaved(_TRANSITION.format(self._namenode.name)) from None
        except (OSError, ImageError, StorageError) as failure:
            log.warning("namespace.not_saved", because=str(failure))
            raise NotSaved(str(failure)) from failure
        seconds = round(time.monotonic() - began, 3)
        log.info("namespace.saved", image=path.name, txid=txid, seconds=seconds)
        self._purged(txid, len(self._storage.directories))
        return True

    def _begin(self) -> None:
        """Raise CheckpointAbandoned in the midst of a transition; one to come sets the event."""
        self._abandon.clear()
        if self._namenode.state.role not in {Role.ACTIVE, Role.STANDBY}:
            raise CheckpointAbandoned

    def _is_recent(self, window_seconds: int, most_edits: int) -> bool:
        age = time.time() - self._storage.newest_image().stat().st_mtime
        lacking = self._namenode.namespace.last_applied - self._storage.newest_txid()
        return age <= window_seconds and lacking <= most_edits

    def _save_blocking(self) -> Path:
        return self._storage.save(self._namenode.namespace, self._check)

    def _check(self) -> None:
        if self._abandon.is_set():
            raise CheckpointAbandoned
