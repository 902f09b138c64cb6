"""Why a directory of a NameNode or a DataNode cannot be used; each message says what to do."""

from pathlib import Path


class StorageError(Exception):
    """A name directory cannot be used.

    Args:
        path: the file or directory at fault.
        found: what was found there.
        advice: what to do about it.
    """

    def __init__(self, path: Path, found: str, advice: str) -> None:
        super().__init__(path, found, advice)
        self.path = path
        self.found = found
        self.advice = advice

    def __str__(self) -> str:
        """Return file, finding and advice in one or two sentences."""
        return f"{self.path} {self.found}. {self.advice}"


class InUse(StorageError):
    """Another process works in the directory."""
