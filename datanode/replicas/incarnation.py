"""``nnha/incarnation``: distinguishes a data directory from a copy of it.

A copy has the identity of the original.  NameNodes would see two DataNodes of one name, and believe
the last report of either.  See docs/reference/datanode.md#data-directories.
"""

import os
from pathlib import Path
from typing import Final

from datanode.errors import UnusableVolume
from hadoop.durable import rename_durably

_FILE: Final = Path("nnha") / "incarnation"
_MAX_BYTES: Final = 200


def mark_original(volume: Path) -> None:
    """Bind a directory to its file system, once; raise ``OSError`` if that cannot be written."""
    file = volume / _FILE
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
    file = volume / _FILE
    try:
        with file.open("rb") as found:
            inode = os.fstat(found.fileno()).st_ino
            text = found.read(_MAX_BYTES).decode("ascii", "replace")
    except FileNotFoundError:
        return
    if f"inode={inode}" not in text.splitlines():
        raise UnusableVolume(
            volume,
            "was copied from another data directory, or restored from a backup",
            f"If the original is gone for good, delete {file} and start again; if not, this "
            "DataNode needs a directory of its own: two must not have one identity.",
        )
