"""Make a journal's folder anew."""

from pathlib import Path

from journal.core.effects import FormatStorage
from journal.storage import layout
from journal.storage.files import Files, remove_durably, write_durably
from journal.storage.incarnation import NOT_ADMITTED, Incarnation, admitted_by, write_incarnation
from journal.storage.small_files import version_text


def format_folder(files: Files, root: Path, effect: FormatStorage) -> None:
    """Drop whatever ``current`` holds, and begin a journal there.

    VERSION goes first and comes last: a crash in between leaves an unformatted folder.

    Raises:
        OSError: the disk failed.
    """
    current = root / layout.CURRENT
    files.make_folder(current)
    files.sync_folder(root.parent)
    files.sync_folder(root)
    remove_durably(files, current / layout.VERSION)
    for name in files.names(current):
        files.remove(current / name)
    files.make_folder(current / layout.PAXOS)
    files.make_folder(current / layout.SEGMENTS)
    files.sync_folder(current)
    admitted = admitted_by(None) if effect.founding else NOT_ADMITTED
    write_incarnation(files, current, Incarnation(effect.incarnation, admitted))
    write_durably(files, current / layout.VERSION, version_text(effect.namespace))
