"""What has reached the disk once a call of `RealFiles` has returned; none is left open."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from journal.storage.files import RealFiles, write_durably
from tests import awaits

Calls = list[tuple[str, int]]
"""The name of each file that was synced, and its size at that moment."""

SYNCED: dict[str, tuple[Callable[[RealFiles, Path], object], Calls]] = {
    "truncate": (lambda files, at: files.truncate(at / "file", 3), [("file", 3)]),
    "sync_file": (lambda files, at: files.sync_file(at / "file"), [("file", 5)]),
    "write_durably": (
        lambda files, at: write_durably(files, at / "new", b"12"),
        [("new.tmp", 2), ("folder", -1)],
    ),
    "sync_folder": (lambda files, at: files.sync_folder(at), [("folder", -1)]),
}


@pytest.mark.parametrize("what", SYNCED)
def test_what_is_durable_afterwards(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, expected = SYNCED[what]
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_bytes(b"12345")
    seen: Calls = []

    def note(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append((path.name, -1 if path.is_dir() else os.fstat(descriptor).st_size))

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(os, "fdatasync", note)
    call(RealFiles(), folder)
    assert seen == expected
    assert not awaits.files_open_below(tmp_path)
