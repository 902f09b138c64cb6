"""One data directory: its lock, its VERSION files, and the files of its replicas.

Everything here blocks; the store calls it from the volume's own thread.
See docs/reference/datanode.md#data-directories.
"""

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog

from datanode import model
from datanode.errors import UnusableVolume
from datanode.replicas import layout, replica_files
from datanode.replicas.layout import NodeVersion, PoolVersion
from datanode.replicas.meta_file import BadMetaFile
from datanode.replicas.restart_marks import take_mark
from ha.record import dataclass, replace
from hadoop.blocks import Block, BlockId, Checksum
from hadoop.directory_lock import DirectoryLock
from hadoop.durable import rename_durably, sync_folder, write_durably
from hadoop.errors import InUse

log = structlog.get_logger()

DATA_DIR_KEY: Final = "dfs.datanode.data.dir"
INCARNATION: Final = Path("nnha") / "incarnation"
"""Distinguishes a data directory from a copy of it, which has the identity of the original.

NameNodes would see two DataNodes of one name, and believe the last report of either.
"""
INCARNATION_BYTES: Final = 200


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """One entry of ``dfs.datanode.data.dir``."""

    path: Path
    storage_type: str = "DISK"


@dataclass(frozen=True, slots=True)
class Usage:
    """The space of the file system under a volume, in bytes."""

    capacity: int
    free: int


class Volume:
    """A data directory that this process has locked."""

    def __init__(self, directory: DataDirectory) -> None:
        """Lock a directory; raise ``UnusableVolume`` if it is in use, not ours or not writable."""
        self.directory = directory
        self.path = directory.path
        self._pool: Path | None = None
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = DirectoryLock(self.path, key=DATA_DIR_KEY)
        except InUse as problem:
            raise UnusableVolume(self.path, problem.found, problem.advice) from problem
        except OSError as problem:
            raise unusable(self.path, problem) from problem
        try:
            self.version = self._read_version()
            check_original(self.path)
        except OSError as problem:
            self._lock.release()
            raise unusable(self.path, problem) from problem
        except BaseException:
            self._lock.release()
            raise

    def _read_version(self) -> NodeVersion | None:
        file = self.path / layout.CURRENT / layout.VERSION
        try:
            return layout.parse_node_version(file.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as problem:
            raise _not_understood(
                file, problem, "Point the DataNode to its own directory."
            ) from problem
        except OSError as problem:
            raise unusable(file, problem) from problem

    def close(self) -> None:
        """Let others have the directory."""
        self._lock.release()

    @property
    def storage(self) -> model.StorageId:
        """The id of this volume to NameNodes; known once it is formatted."""
        assert self.version is not None
        return self.version.storage

    def format(self, version: NodeVersion) -> None:
        """Make the directory one of this DataNode, without blocks; ``OSError`` where it cannot."""
        current = self.path / layout.CURRENT
        current.mkdir(mode=0o700, exist_ok=True)
        text = layout.node_version_text(version, comment=_now())
        write_durably(current / layout.VERSION, text)
        self.version = version

    def join(self, pool: PoolVersion) -> None:
        """Make the folders of a block pool, or check that those here are of the same namespace.

        Raises:
            UnusableVolume: if they are of another one.
            OSError: if the disk refuses.
        """
        folder = self.path / layout.CURRENT / pool.pool
        file = folder / layout.CURRENT / layout.VERSION
        try:
            found = layout.parse_pool_version(file.read_bytes())
        except FileNotFoundError:
            found = None
        except ValueError as problem:
            raise _not_understood(
                file, problem, "Restore the file or remove the pool's folder."
            ) from problem
        if found is not None and found != pool:
            raise UnusableVolume(
                file,
                f"is of namespace {found.namespace_id}, the NameNode is of {pool.namespace_id}",
                "Point the DataNode to the directories of this cluster.",
            )
        mark_original(self.path)
        for name in (layout.FINALIZED, layout.RBW):
            (folder / layout.CURRENT / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        if found is None:
            write_durably(file, layout.pool_version_text(pool, comment=_now()))
        if (folder / layout.TMP).exists():
            shutil.rmtree(folder / layout.TMP)
        (folder / layout.TMP).mkdir(mode=0o700)
        (folder / layout.CURRENT / layout.OLD_REPLICA_LIST).unlink(missing_ok=True)
        self._pool = folder

    def scan(self) -> list[model.Replica]:
        """Return the replicas on the disk; files that make no replica stay, with a line in the log.

        Raises:
            OSError: if a folder cannot be read: all that is in it would seem to be gone.
        """
        assert self._pool is not None
        found: list[model.Replica] = []
        current = self._pool / layout.CURRENT
        finalized = _Found(current / layout.FINALIZED)
        rbw = _Found(current / layout.RBW)
        self._mend_torn(finalized, rbw)
        for block_id, path in finalized.blocks.items():
            meta = finalized.newest_meta(block_id)
            if meta is None:
                log.warning("datanode.no_meta_file", file=str(path))
                continue
            try:
                found.append(model.Finalized(meta, self.storage, path.stat().st_size))
            except OSError as problem:
                log.warning("datanode.unreadable_replica", block=str(meta), why=str(problem))
        for block_id in rbw.blocks:
            meta = rbw.newest_meta(block_id)
            if meta is None:
                log.warning("datanode.no_meta_file", file=str(rbw.blocks[block_id]))
            else:
                replica = self._load_waiting(meta)
                found.append(take_mark(self.paths(replica), replica))
        return found

    def _mend_torn(self, finalized: "_Found", rbw: "_Found") -> None:
        """Reunite in ``rbw`` block and meta files that a crash between two renames has parted."""
        for block_id in [*finalized.blocks, *rbw.blocks]:
            for one, other in ((finalized, rbw), (rbw, finalized)):
                if block_id in one.blocks and not one.metas.get(block_id):
                    meta = other.newest_meta(block_id)
                    if meta is None or block_id in other.blocks:
                        continue
                    log.warning("datanode.torn_replica", block=str(meta), path=str(self.path))
                    one.move(block_id, rbw)
                    other.move(block_id, rbw)

    def _load_waiting(self, block: Block) -> model.WaitingForRecovery:
        replica = model.WaitingForRecovery(block, self.storage, 0)
        try:
            with replica_files.opened(self.paths(replica), writable=True) as files:
                length = files.valid_length(str(block))
                files.cut(length, str(block))
        except (BadMetaFile, OSError) as problem:
            log.warning("datanode.unreadable_replica", block=str(block), why=str(problem))
            return replace(replica, readable=isinstance(problem, BadMetaFile))
        return model.WaitingForRecovery(block, self.storage, length)

    def paths(self, replica: model.Replica) -> replica_files.ReplicaPaths:
        assert self._pool is not None
        folder = layout.folder_of(self._pool, replica)
        block = replica.block
        return replica_files.ReplicaPaths(
            folder / layout.block_name(block.block_id), folder / layout.meta_name(block)
        )

    def create(self, replica: model.Replica, checksum: Checksum) -> None:
        """Make the files of a new replica; what an earlier process left in their place goes."""
        paths = self.paths(replica)
        if isinstance(replica, model.Temporary):
            paths.unlink()
        replica_files.create_files(paths, checksum)

    def remove(self, replica: model.Replica) -> None:
        """Delete the files of a replica; no error where they are gone."""
        self.paths(replica).unlink()

    def change(self, before: model.Replica, after: model.Replica) -> None:
        """Move, rename and cut the files of a replica so that they fit its next state.

        The meta file goes first.  A crash in between leaves a block without one, which the next
        start mends; a block that was alone in ``rbw`` would count as empty.
        """
        old, new = self.paths(before), self.paths(after)
        if after.length < before.length:
            with replica_files.opened(old, writable=True) as files:
                files.cut(after.length, str(before.block))
        if new != old:
            new.block.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            old.meta.rename(new.meta)
            old.block.rename(new.block)

    def begin_move(
        self, replica: model.Finalized, checksum: Checksum
    ) -> replica_files.ReplicaPaths:
        """Make the files for a replica that comes from another volume, under names of their own.

        Raises:
            OSError: if such a move is under way, or if the disk refuses.
        """
        assert self._pool is not None
        folder, name = self._pool / layout.TMP, f"{replica.block}.moved"
        paths = replica_files.ReplicaPaths(folder / name, folder / f"{name}.meta")
        replica_files.create_files(paths, checksum)
        return paths

    def end_move(self, replica: model.Finalized, paths: replica_files.ReplicaPaths) -> None:
        """Put the files of a move in their places, and wait until a power cut leaves them there."""
        new = self.paths(replica)
        new.block.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            paths.meta.rename(new.meta)
            paths.block.rename(new.block)
            self.sync_names(replica)
        except OSError:
            self.remove(replica)
            raise

    def sync_names(self, replica: model.Replica) -> None:
        """Wait until a power cut leaves the files of a replica here, and not where they were."""
        assert self._pool is not None
        current = self._pool / layout.CURRENT
        for folder in (current / layout.RBW, *self.paths(replica).block.parents):
            if folder.is_relative_to(current):
                sync_folder(folder)

    def usage(self) -> Usage:
        found = os.statvfs(self.path)
        return Usage(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def check(self) -> None:
        """Raise ``OSError`` if nothing can be written here, or if the folders are gone."""
        assert self._pool is not None
        probe = self._pool / layout.CURRENT / layout.RBW / ".probe"
        probe.write_bytes(b"x")
        probe.unlink()
        next((self._pool / layout.CURRENT / layout.FINALIZED).iterdir(), None)


class _Found:
    """The files of replicas below one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.blocks: dict[BlockId, Path] = {}
        self.metas: dict[BlockId, list[tuple[Block, Path]]] = {}
        for path in _files(folder):
            block_id = layout.parse_block_name(path.name)
            meta = layout.parse_meta_name(path.name)
            if block_id is not None:
                self.blocks[block_id] = path
            elif meta is not None:
                self.metas.setdefault(meta.block_id, []).append((meta, path))

    def newest_meta(self, block_id: BlockId) -> Block | None:
        """Return the block with its highest stamp, and delete the meta files of older ones."""
        metas = sorted(self.metas.get(block_id, ()), key=lambda pair: pair[0].stamp)
        for old, path in metas[:-1]:
            log.warning("datanode.second_meta_file", block=str(old), file=str(path))
            path.unlink()
        self.metas[block_id] = metas[-1:]
        return metas[-1][0] if metas else None

    def move(self, block_id: BlockId, other: "_Found") -> None:
        """Give what is here of a block to another folder."""
        if other is self:
            return
        path = self.blocks.pop(block_id, None)
        if path is not None:
            other.blocks[block_id] = path.rename(other._folder / path.name)
        for meta, file in self.metas.pop(block_id, ()):
            moved = file.rename(other._folder / file.name)
            other.metas.setdefault(block_id, []).append((meta, moved))


def _files(folder: Path) -> Iterator[Path]:
    for name, _, files in os.walk(folder, onerror=_refused):
        for file in files:
            yield Path(name) / file


def _refused(problem: OSError) -> None:
    raise problem


def _not_understood(file: Path, problem: ValueError, advice: str) -> UnusableVolume:
    advice = problem.advice if isinstance(problem, layout.OtherLayout) else advice
    return UnusableVolume(file, f"cannot be used: {problem}", advice)


def unusable(path: Path, problem: OSError) -> UnusableVolume:
    return UnusableVolume(
        path,
        f"cannot be used: {problem}",
        f"Mend the disk or the permissions, or take it out of {DATA_DIR_KEY}.",
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%a %b %d %H:%M:%S UTC %Y")


def mark_original(volume: Path) -> None:
    """Bind a directory to its file system, once; raise ``OSError`` if that cannot be written."""
    file = volume / INCARNATION
    if file.exists():
        return
    file.parent.mkdir(mode=0o700, exist_ok=True)
    unfinished = file.with_name(file.name + ".tmp")
    with unfinished.open("wb") as written:
        inode = os.fstat(written.fileno()).st_ino
        written.write(f"#nnha: bound to this very file.\ninode={inode}\n".encode())
        written.flush()
        os.fsync(written.fileno())
    rename_durably(unfinished, file)


def check_original(volume: Path) -> None:
    """Raise ``UnusableVolume`` for a copy; a directory that was never marked is no copy."""
    file = volume / INCARNATION
    try:
        with file.open("rb") as found:
            inode = os.fstat(found.fileno()).st_ino
            text = found.read(INCARNATION_BYTES).decode("ascii", "replace")
    except FileNotFoundError:
        return
    if f"inode={inode}" not in text.splitlines():
        raise UnusableVolume(
            volume,
            "was copied from another data directory, or restored from a backup",
            f"If the original is gone for good, delete {file} and start again; if not, this "
            "DataNode needs a directory of its own: two must not have one identity.",
        )
