"""Remove the files of edits that are no longer needed (docs/reference/journal-node.md#purging)."""

from collections.abc import Collection
from pathlib import Path

from journal.core.effects import PurgeFiles
from journal.storage import layout
from journal.storage.files import Files


def purge(files: Files, current: Path, effect: PurgeFiles, busy: Collection[Path]) -> None:
    """Carry out a purge.

    A segment's file goes before what is written about it: a record without its file says
    nothing, a file without its record would be taken for one that Hadoop wrote.

    Args:
        busy: files that a download is writing to; they stay whatever their names say.
    """
    for segment in effect.segments:
        files.remove(current / segment.name())
    for name in files.names(current):
        remains = layout.remains_of(name)
        if remains is not None and remains < effect.minimum and current / name not in busy:
            files.remove(current / name)
    files.sync_folder(current)
    for first in effect.decisions:
        files.remove(current / layout.PAXOS / str(first))
    for segment in effect.segments:
        files.remove(current / layout.SEGMENTS / str(segment.first))
    if effect.decisions:
        files.sync_folder(current / layout.PAXOS)
