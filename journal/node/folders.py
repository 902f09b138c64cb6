"""Prepares and lists the folders of a JournalNode's journals."""

from pathlib import Path

import structlog

from journal.errors import StorageFailed
from journal.storage.files import RealFiles
from journal.storage.layout import JOURNAL_FOLDERS, why_bad_journal_id

log = structlog.get_logger()


def prepare_folder(folder: Path, mode: int) -> None:
    """Create a folder, durably, if it does not exist, and check that it can be written to.

    Raises:
        StorageFailed: the folder cannot be used; the message says what to do.
    """
    key = "dfs.journalnode.edits.dir"
    if not folder.is_absolute():
        raise StorageFailed(f"{key}={folder} should be an absolute path.")
    try:
        missing = [place for place in (folder, *folder.parents) if not place.exists()]
        if missing:
            folder.mkdir(mode=mode, parents=True)
            for place in missing:
                RealFiles().sync_folder(place.parent)
        if not folder.is_dir():
            raise StorageFailed(f"{key}: {folder} is a file. Not a directory: name another one.")
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as failure:
        raise StorageFailed(
            f"{key}: Cannot create directory {folder} or write to it: {failure}. Nothing was "
            "started. Give this user the folder, or name another one."
        ) from failure


def journal_folders(folder: Path) -> list[Path]:
    """Return the folders of journals in ``folder``; log and skip those with an invalid name."""
    found = []
    for entry in sorted(folder.iterdir()):
        if not any((entry / name).is_dir() for name in JOURNAL_FOLDERS):
            continue
        bad = why_bad_journal_id(entry.name)
        if bad is None:
            found.append(entry)
        else:
            log.warning("journal.folder_skipped", folder=str(entry), because=bad)
    return found
