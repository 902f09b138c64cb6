"""Why a name directory cannot be used; each message says what to do about it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hadoop.errors import StorageError


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


class Inconsistent(StorageError):
    """The directories, or files within one, contradict each other."""
