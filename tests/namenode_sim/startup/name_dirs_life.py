"""The life of two name directories on real files: a process for the shim that records it.

``python -m tests.namenode_sim.startup.name_dirs_life ROOT LOG MARKS`` lives it and notes in MARKS
how many operations LOG had when each act was done.
"""

import hashlib
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from journal.model import TxId
from namenode_sim.edits.ops import Mkdir
from namenode_sim.edits.values import Permission
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage.retention import Retention
from namenode_sim.storage.storage import NameStorage, StorageSettings, open_name_dirs
from namenode_sim.transfer.image_intake import ImageIntake
from tests.worlds.files import info, save
from tests.worlds.name_dirs import format_name_dirs

LIFE: Final = (
    ("format", 0),
    ("open", 0),
    ("save", 1),
    ("save", 2),
    ("save", 3),
    ("fill", 3),
    ("save", 4),
    ("upload", 5),
    ("save_again", 5),
    ("close", 5),
    ("format_by_force", 0),
)
"""Each act, and the last edit of the newest image behind it."""


def directories_of(root: Path) -> list[Path]:
    return [root / "disks" / name for name in "ab"]


class NameDirs:
    """One method for each act."""

    def __init__(self, root: Path) -> None:
        self._directories = directories_of(root)
        self._namespace = Namespace.empty("hdfs")
        self._storage: NameStorage | None = None

    def format(self) -> None:
        format_name_dirs(self._directories[:1], info(), self._namespace)

    def open(self, count: int = 1, codec: str = "") -> None:
        self.close()
        settings = StorageSettings(retention=Retention(images=2, extra_edits=1), codec=codec)
        self._storage = open_name_dirs(self._directories[:count], settings)

    def fill(self) -> None:
        self._directories[1].mkdir()
        self.open(2)

    def save(self) -> None:
        self._grow()
        self._opened().save(self._namespace)

    def save_again(self) -> None:
        """Save as a recovery does that has nothing to mend."""
        self.open(2, codec="org.apache.hadoop.io.compress.GzipCodec")
        self._opened().save(self._namespace)

    def upload(self) -> None:
        self._grow()
        with TemporaryDirectory() as elsewhere:
            data = save(self._namespace, Path(elsewhere)).read_bytes()
        intake = ImageIntake(self._opened(), self._namespace.last_applied)
        intake.feed(data)
        intake.publish(len(data), hashlib.md5(data, usedforsecurity=False).hexdigest())
        intake.discard()
        self._opened().purge()

    def close(self) -> None:
        if self._storage is not None:
            self._storage.close()

    def format_by_force(self) -> None:
        another = info(namespace_id=8)
        format_name_dirs(self._directories, another, Namespace.empty("hdfs"), force=True)

    def _opened(self) -> NameStorage:
        assert self._storage is not None
        return self._storage

    def _grow(self) -> None:
        txid = TxId(self._namespace.last_applied + 1)
        self._namespace.apply(txid, Mkdir(0, f"/{txid}", 1, 1, Permission("a", "b", 0o755)))


def main(root: Path, log: Path, marks: Path) -> None:
    lived, counted = NameDirs(root), []
    for act, _ in LIFE:
        getattr(lived, act)()
        counted.append(log.read_bytes().count(b"\n"))
    marks.write_text(" ".join(map(str, counted)))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
