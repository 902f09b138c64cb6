"""The file that a recovery's or a peer's bytes go to."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from journal.storage.files import Files, OpenFile


class Download:
    """Ends with ``finish`` or ``discard``; any call raises StorageFailed, as the disk's do."""

    def __init__(
        self,
        files: Files,
        path: Path,
        file: OpenFile,
        *,
        working: Callable[[str], AbstractContextManager[None]],
        forget: Callable[[Path], None],
    ) -> None:
        self._files = files
        self._path = path
        self._file = file
        self._working = working
        self._forget = forget
        self.size_bytes = 0

    def append(self, data: bytes) -> None:
        with self._working("write a recovery's bytes"):
            self._file.append(data)
        self.size_bytes += len(data)

    def finish(self) -> None:
        """Make the bytes and their name durable.

        The name too: a decision that outlives a power cut without its bytes can neither be
        rolled forward nor taken back.
        """
        with self._working("sync a recovery's bytes"):
            self._file.sync()
            self._file.close()
            self._files.sync_folder(self._path.parent)

    def discard(self) -> None:
        """Forget the bytes: the source did not hold what was decided."""
        self._file.close()
        with self._working("drop a recovery's bytes"):
            self._files.remove(self._path)
        self._forget(self._path)
