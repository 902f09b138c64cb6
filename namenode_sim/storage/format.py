"""Create a new file system in name directories."""

import contextlib
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import structlog

from hadoop.directory_lock import DirectoryLock
from hadoop.durable import make_folder, sync_folder, write_durably
from journal.model import NamespaceInfo
from namenode_sim.image.files import image_name
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage.errors import NotEmpty, usable
from namenode_sim.storage.fill import COMMENT, is_blank
from namenode_sim.storage.version_file import version_text

log = structlog.get_logger()


def refuse_occupied(directories: Iterable[Path]) -> None:
    """Raise NotEmpty for the first directory that holds something."""
    for directory in directories:
        with usable(directory):
            _refuse_non_empty(directory)


def format_locked(
    directories: Iterable[Path],
    namespace_info: NamespaceInfo,
    namespace: Namespace,
    *,
    comment: str = COMMENT,
) -> None:
    """Create a new file system in all directories: VERSION, seen_txid 0 and ``fsimage_0``.

    What is there is erased; the caller holds ``lock_all``.  VERSION is written last: a directory
    with VERSION is formatted, one without is not, whenever the power goes.

    Raises:
        StorageError: if one cannot be written.
    """
    for directory in directories:
        with usable(directory):
            _format(directory, namespace_info, namespace, comment)


def erase_edits(directories: Iterable[Path], but_for: Collection[Path]) -> None:
    """Remove a file system's edits where they lie apart: the next one's have the same names.

    Raises:
        StorageError: if the disk refuses.
    """
    for directory in directories:
        if directory not in but_for:
            with usable(directory):
                erase(directory / "current")


@contextlib.contextmanager
def lock_all(directories: Sequence[Path]) -> Iterator[None]:
    """Hold directories that are to be filled anew; they are created where they do not exist.

    Raises:
        InUse: if another process works in one.
        StorageError: if one cannot be made or written.
    """
    with ExitStack() as locks:
        for directory in directories:
            with usable(directory):
                if not directory.exists():
                    locks.callback(_remove_if_empty, directory)
                make_folder(directory, 0o700)
                locks.callback(DirectoryLock(directory).release)
        yield


def _remove_if_empty(directory: Path) -> None:
    """Remove a directory that was made for nothing."""
    with contextlib.suppress(OSError):
        directory.rmdir()


def find_occupied(directories: Iterable[Path]) -> list[Path]:
    """Return the directories that hold something that formatting would erase."""
    return [directory for directory in directories if not is_blank(directory)]


def _refuse_non_empty(directory: Path) -> None:
    current = directory / "current"
    held = sorted(path.name for path in current.iterdir()) if current.is_dir() else []
    if held:
        shown = ", ".join(held[:3]) + (f" and {len(held) - 3} more" if len(held) > 3 else "")
        raise NotEmpty(
            current,
            f"is not empty: it holds {shown}",
            "Formatting would erase that file system for good. If that is what you want, move the "
            "directory away, or give --force.",
        )


def erase(current: Path) -> None:
    """Remove what a directory holds.

    VERSION goes first: a crash in here must not leave half a file system that says it is one.
    """
    if current.exists():
        (current / "VERSION").unlink(missing_ok=True)
        sync_folder(current)
        shutil.rmtree(current)


def _format(directory: Path, info: NamespaceInfo, namespace: Namespace, comment: str) -> None:
    current = directory / "current"
    erase(current)
    current.mkdir(mode=0o700)
    sync_folder(directory)
    save_image(namespace, current / image_name(namespace.last_applied), info)
    write_durably(current / "seen_txid", b"0\n")
    write_durably(current / "VERSION", version_text(info, comment=comment))
    log.info("storage.formatted", path=str(directory), cluster_id=info.cluster_id)
