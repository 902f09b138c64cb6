"""How far an image is loaded: written by the thread that loads it, read by others."""

import io
from pathlib import Path
from typing import Any, Final

DIGEST_SHARE: Final = 0.03
"""What the first reading takes, which only compares the digest: measured, 1/30 of the second."""


class LoadAbandoned(Exception):
    """The namespace is not wanted any more."""


class LoadProgress:
    """The state of one load.  One thread loads; any other may look, or abandon the load.

    Each attribute is replaced as a whole, so that no lock is needed.
    """

    def __init__(self) -> None:
        self.image: str = ""
        """The name of the file that is being loaded; empty before it is known."""
        self.share: float = 0.0
        """From 0 to 1, never less than before for one file."""
        self._abandoned = False

    def abandon(self) -> None:
        """Have the load end at its next reading."""
        self._abandoned = True

    def digesting(self, path: Path) -> io.BufferedReader:
        """Open a file for the comparison with its digest.

        Raises:
            OSError: if that cannot be done.
        """
        self.image, self.share = path.name, 0.0
        return self._open(path, 0.0, DIGEST_SHARE)

    def loading(self, path: Path) -> io.BufferedReader:
        """Open a file for the load itself; errors as above."""
        return self._open(path, DIGEST_SHARE, 1.0)

    def _open(self, path: Path, start: float, end: float) -> io.BufferedReader:
        return io.BufferedReader(_WatchedFile(path, self, start, end))

    def reached(self, share: float) -> None:
        """Note that a share has been read.

        Raises:
            LoadAbandoned: if the namespace is not wanted any more.
        """
        if self._abandoned:
            raise LoadAbandoned
        self.share = max(self.share, min(share, 1.0))


class _WatchedFile(io.FileIO):
    """A file that reports each reading.  What is read twice counts twice, up to the end."""

    def __init__(self, path: Path, progress: LoadProgress, start: float, end: float) -> None:
        super().__init__(path, "rb")
        self._progress, self._start, self._width = progress, start, end - start
        self._size = max(1, path.stat().st_size)
        self._seen = 0

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - any writable buffer
        size = super().readinto(buffer) or 0
        self._seen += size
        self._progress.reached(self._start + self._width * min(1.0, self._seen / self._size))
        return size
