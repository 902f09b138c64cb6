"""What to say of name directories without VERSION."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from hadoop.errors import StorageError
from namenode_sim.storage.errors import Inconsistent, NotFormatted
from namenode_sim.storage.fill import is_blank

_FORMAT_ADVICE: Final = (
    "To create a new, empty file system there: nnha namenode --format. To make this NameNode the "
    "standby of an existing one: nnha namenode --bootstrap-standby."
)


def missing(directory: Path, directories: Iterable[Path]) -> StorageError:
    """Return the error for a missing directory; never to format while another has images."""
    if directory.exists():
        return StorageError(directory, "is not a directory", "Move what lies there away.")
    good = [path for path in directories if (path / "current" / "VERSION").exists()]
    if not good:
        return NotFormatted(directory, "does not exist", _FORMAT_ADVICE)
    return StorageError(
        directory,
        f"does not exist, while {good[0]} is formatted",
        f"Mount its disk; or create the directory, empty, to have it filled from {good[0]}; or "
        "take it out of dfs.namenode.name.dir.",
    )


def unformatted(directories: Sequence[Path]) -> StorageError:
    """Return the error for a lack of VERSION; to create a file system only if none can be lost."""
    for directory in directories:
        if not is_blank(directory):
            return Inconsistent(
                directory / "current" / "VERSION",
                "is missing, while other files of a file system are there",
                "Restore it from another name directory or NameNode of that file system, or from a "
                "backup. If nothing there is needed: nnha namenode --bootstrap-standby --force, or "
                "--format --force for a new, empty file system.",
            )
    return NotFormatted(directories[0], "is not formatted", _FORMAT_ADVICE)


def ensure_blank(directory: Path, good: Path) -> None:
    """Raise Inconsistent for a directory without VERSION that cannot be filled from a good one."""
    if not is_blank(directory):
        raise Inconsistent(
            directory,
            f"holds files but no VERSION, while {good} is formatted",
            f"Empty {directory / 'current'} to have it filled from {good}, or take the directory "
            "out of dfs.namenode.name.dir.",
        )
