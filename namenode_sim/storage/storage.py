"""Name directories: where a NameNode keeps its images.

    <dir>/in_use.lock
    <dir>/current/VERSION  seen_txid  fsimage_<txid>  fsimage_<txid>.md5

Several directories hold copies of the same; one that fails while we write is dropped, and the
NameNode goes on as long as one is left.  With dfs.namenode.name.dir.restore each save tries the
dropped ones again.

See docs/reference/namenode.md#name-directories.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import structlog

from ha.record import dataclass
from hadoop.directory_lock import DirectoryLock
from hadoop.durable import write_durably
from hadoop.errors import StorageError
from journal.model import NamespaceInfo, TxId
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import check_digest, image_name, unfinished_name
from namenode_sim.image.load_progress import LoadProgress
from namenode_sim.image.reader import load_image
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage.errors import Inconsistent, usable
from namenode_sim.storage.fill import fill
from namenode_sim.storage.retention import IMAGE, Retention, purge
from namenode_sim.storage.seen_txid import read_seen_txid, unreadable
from namenode_sim.storage.unformatted import ensure_blank, missing, unformatted
from namenode_sim.storage.version_file import parse_version

log = structlog.get_logger()

OLDEST_LAYOUT: Final = -52
"""The first layout with a protobuf image."""
NEWEST_LAYOUT: Final = -67

_HALF_DONE: Final = ("previous.tmp", "removed.tmp", "finalized.tmp", "lastcheckpoint.tmp")


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """What becomes of failed directories and of superfluous files, and how an image is saved.

    ``codec`` compresses it, if not empty; from ``sub_sections_from`` inodes on it has that many
    ``sub_sections`` (0: none).
    """

    restore_failed: bool = False
    retention: Retention = Retention()
    codec: str = ""
    sub_sections: int = 0
    sub_sections_from: int = 0


class NameStorage:
    """Opened and locked name directories; ``close`` lets go of them.

    ``directories`` are in use; ``failed`` were, until they refused a write.  The images of one
    whose seen_txid is unreadable are left out until a newer one is saved.  ``in_work`` are the
    names of files that are being written: no left-overs.
    """

    def __init__(
        self,
        locks: dict[Path, DirectoryLock],
        namespace_info: NamespaceInfo,
        settings: StorageSettings | None = None,
    ) -> None:
        self.directories = tuple(locks)
        self.failed: tuple[Path, ...] = ()
        self.namespace_info = namespace_info
        self.in_work: set[str] = set()
        self._locks = locks
        self._settings = settings or StorageSettings()
        self._left_out = unreadable(self.directories)

    @property
    def seen_txid(self) -> TxId:
        """The newest segment that any directory knows of; edits must reach at least that far."""
        return TxId(max(map(read_seen_txid, self._known_directories() or self.directories)))

    def write_seen_txid(self, txid: TxId) -> None:
        """Note in all directories that edits from ``txid`` on exist.

        Raises:
            StorageError: when no directory took it.
        """
        self.in_all(lambda current: write_durably(current / "seen_txid", b"%d\n" % txid))

    def newest_images(self) -> tuple[Path, ...]:
        """Return all copies of the newest image.

        Raises:
            Inconsistent: if there is no image at all, or a newer one is among those left out.
        """
        found = _images(self._known_directories())
        if max(_images(self._left_out), default=-1) > max(found, default=-1):
            raise next(iter(self._left_out.values()))
        if not found:
            raise Inconsistent(
                self.directories[0] / "current",
                "is formatted but holds no fsimage",
                "Restore fsimage_N and its .md5 from a backup or from another NameNode.",
            )
        return found[max(found)]

    def newest_image(self) -> Path:
        return self.newest_images()[0]

    def newest_txid(self) -> TxId:
        return TxId(max(_images(self._known_directories()), default=0))

    @property
    def upgrade_pending(self) -> bool:
        """Whether a directory keeps the state before an upgrade (Hadoop's ``previous``)."""
        return any((directory / "previous").exists() for directory in self.directories)

    def load(self, progress: LoadProgress | None = None) -> Namespace:
        """Load the namespace of the newest image, from the first copy of it that is sound.

        An older image is never taken in its place without being asked: edits may be gone that only
        the newer one holds.

        Raises:
            ImageError, StorageError: the last copy's problem, if none is sound or can be read.
            LoadAbandoned: see ``load_image``.
        """
        *others, last = self.newest_images()
        for path in others:
            try:
                return load_image(path, progress)
            except (ImageError, OSError) as problem:
                log.warning("storage.image_copy_unusable", path=str(path), problem=str(problem))
        with usable(last):
            return load_image(last, progress)

    def save(self, namespace: Namespace, check: Callable[[], None] = lambda: None) -> Path:
        """Write ``fsimage_N`` for the namespace's last applied edit into all directories.

        Directories that failed are tried again first, if they are to be restored; what the new
        image makes superfluous is deleted afterwards.  ``check`` is called all the while; what it
        raises ends the saving, and nothing half-done is left.

        Raises:
            StorageError: when no directory took it.
        """
        if self._settings.restore_failed:
            self._restore_failed()
        name = image_name(namespace.last_applied)
        large = len(namespace.tree.inodes) >= self._settings.sub_sections_from

        def write(current: Path) -> None:
            # One of the same edits stays: between its digest and itself a crash would spoil it.
            if not _is_sound(current / name):
                save_image(
                    namespace,
                    current / name,
                    self.namespace_info,
                    codec=self._settings.codec,
                    sub_sections=self._settings.sub_sections if large else 0,
                    check=check,
                )
            if current.parent in self._left_out:
                write_durably(current / "seen_txid", b"%d\n" % namespace.last_applied)

        # Bad schedule: an image comes from elsewhere, and what it makes superfluous is deleted.
        unfinished = unfinished_name(namespace.last_applied)
        self.in_work.add(unfinished)
        try:
            self.in_all(write)
        finally:
            self.in_work.discard(unfinished)
        self._left_out = {}
        self.purge()
        return self.directories[0] / "current" / name

    def purge(self) -> TxId:
        """Delete the images and local edits that retention no longer asks for.

        Returns the first edit that must stay, in other journals too.
        """
        return TxId(
            purge(self._known_directories(), self._settings.retention, self.in_work).edits_from
        )

    def _known_directories(self) -> tuple[Path, ...]:
        """Return the directories whose images count."""
        return tuple(one for one in self.directories if one not in self._left_out)

    def _restore_failed(self) -> None:
        for directory in self.failed:
            try:
                self._restore(directory)
            except (OSError, StorageError, ImageError) as problem:
                log.warning("storage.not_restored", path=str(directory), problem=str(problem))
                continue
            self.failed = tuple(path for path in self.failed if path != directory)
            self.directories = (*self.directories, directory)
            log.info("storage.restored", path=str(directory))

    def _restore(self, directory: Path) -> None:
        """Make a directory that failed fit to be written again; its disk may be a new one."""
        with contextlib.suppress(OSError):
            self._locks[directory].release()  # whatever file that lock was on
        self._locks[directory] = DirectoryLock(directory)
        held = _read_version(directory)
        if held is None:
            fill(directory, self.newest_images(), self.namespace_info, self.seen_txid)
        elif held != self.namespace_info:
            raise Inconsistent(
                directory,
                f"now belongs to {held.storage_info()}",
                "Take it out of dfs.namenode.name.dir.",
            )
        else:
            write_durably(directory / "current" / "seen_txid", b"%d\n" % self.seen_txid)

    def in_all(self, write: Callable[[Path], None]) -> None:
        """Write into each directory's ``current``; one that fails is left out from now on.

        Other threads may leave one out, or take one back, before this one has ended.

        Raises:
            StorageError: when no directory took it.
        """
        failed, last = [], None
        for directory in self.directories:
            try:
                _still_ours(directory)
                write(directory / "current")
            except OSError as problem:
                last = problem
                log.warning("storage.directory_failed", path=str(directory), problem=str(problem))
                failed.append(directory)
        left = tuple(path for path in self.directories if path not in failed)
        if not left:
            raise StorageError(
                self.directories[0],
                "and all other name directories failed",
                "See the log for each one's problem; nothing can be saved before that is mended.",
            ) from last
        self.failed += tuple(path for path in failed if path not in self.failed)
        self.directories = left

    def close(self) -> None:
        for directory, lock in self._locks.items():
            try:
                lock.release()
            except OSError as problem:
                log.warning("storage.lock_not_released", path=str(directory), problem=str(problem))


def _is_sound(image: Path) -> bool:
    try:
        check_digest(image)
    except (ImageError, OSError):
        return False
    return True


def _still_ours(directory: Path) -> None:
    """Raise OSError where the VERSION file is gone.

    Local edits make a lost ``current`` anew; an image saved there could never be loaded again, so
    it would be no copy behind which edits may be purged.
    """
    if not (directory / "current" / "VERSION").is_file():
        raise OSError(f"{directory}/current/VERSION is gone; the directory was emptied meanwhile")


def _images(directories: Iterable[Path]) -> dict[int, tuple[Path, ...]]:
    """Return all finished images by txid; a directory that has just failed has none."""
    found: dict[int, tuple[Path, ...]] = {}
    for directory in directories:
        try:
            paths = sorted((directory / "current").iterdir())
        except OSError as problem:
            log.warning("storage.not_listed", path=str(directory), problem=str(problem))
            continue
        for path in paths:
            match = IMAGE.fullmatch(path.name)
            if match is not None:
                txid = int(match[1])
                found[txid] = (*found.get(txid, ()), path)
    return found


def open_name_dirs(
    directories: Sequence[Path], settings: StorageSettings | None = None
) -> NameStorage:
    """Lock the name directories and check that they belong together.

    A blank directory next to a formatted one is filled from it, as Hadoop does: that is how an
    operator adds a directory or replaces a broken disk.

    Raises:
        NotFormatted: if there is no file system in them; says what to run.
        InUse: if another process works in one.
        Inconsistent: if they contradict each other, or an upgrade was interrupted.
        StorageError: if one is missing, cannot be read or written, or its VERSION is damaged.
        ImageError: if a blank directory is to be filled and no copy of the image is sound.
    """
    with ExitStack() as opening:
        locks, infos = {}, {}
        for directory in directories:
            if not directory.is_dir():
                raise missing(directory, directories)
            with usable(directory):
                locks[directory] = DirectoryLock(directory)
                opening.callback(locks[directory].release)
                infos[directory] = _read_version(directory)
        formatted = {d: info for d, info in infos.items() if info is not None}
        if not formatted:
            raise unformatted(directories)
        first, info = next(iter(formatted.items()))
        blank = []
        for directory, other in infos.items():
            if other is None:
                ensure_blank(directory, first)
                blank.append(directory)
            elif other != info:
                raise Inconsistent(
                    directory / "current" / "VERSION",
                    f"belongs to {other.storage_info()} {other.block_pool_id}, but that of {first} "
                    f"to {info.storage_info()} {info.block_pool_id}",
                    "Name only directories of one file system in dfs.namenode.name.dir.",
                )
        storage = NameStorage({d: locks[d] for d in formatted}, info, settings)
        for directory in blank:
            with usable(directory):
                fill(directory, storage.newest_images(), info, storage.seen_txid)
        if blank:
            storage = NameStorage(locks, info, settings)
        opening.pop_all()
        return storage
    raise AssertionError("ExitStack never swallows")


def _read_version(directory: Path) -> NamespaceInfo | None:
    for name in _HALF_DONE:
        if (directory / name).exists():
            raise Inconsistent(
                directory / name,
                "is left from an upgrade, rollback or finalization that was interrupted",
                "Start the Hadoop version that began it once, so that it finishes or undoes it.",
            )
    path = directory / "current" / "VERSION"
    try:
        info = parse_version(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        _refuse_previous_alone(directory)
        return None
    except ValueError as problem:
        raise StorageError(
            path, f"cannot be used: {problem}", "Restore it from another name directory."
        ) from problem
    if not NEWEST_LAYOUT <= info.layout_version <= OLDEST_LAYOUT:
        raise StorageError(
            path,
            f"has layout version {info.layout_version}, expected {OLDEST_LAYOUT} to "
            f"{NEWEST_LAYOUT}",
            "Start the Hadoop version that wrote it, or upgrade the directory with Hadoop first.",
        )
    return info


def _refuse_previous_alone(directory: Path) -> None:
    if (directory / "previous").exists():
        raise Inconsistent(
            directory / "current" / "VERSION",
            f"is missing, while {directory / 'previous'} holds the state before an upgrade",
            "Restore current from another name directory or from a backup.",
        )
