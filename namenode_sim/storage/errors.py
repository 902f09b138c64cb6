"""Why a name directory cannot be used; each message says what to do about it."""

from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def usable(directory: Path) -> Iterator[None]:
    """Report what the system refuses in a name directory like anything else that is wrong there.

    Raises:
        StorageError: for an OSError inside the ``with``.
    """
    try:
        yield
    except OSError as problem:
        raise StorageError(
            directory,
            f"cannot be used: {problem}",
            "Mend what is wrong there (disk, permissions, a file or directory in the way), or take "
            "the directory out of dfs.namenode.name.dir.",
        ) from problem


class NotFormatted(StorageError):
    """No namespace has been created there yet."""


class NotEmpty(StorageError):
    """Formatting would destroy what is there."""


class InUse(StorageError):
    """Another process works in the directory."""


class Inconsistent(StorageError):
    """The directories, or files within one, contradict each other."""
