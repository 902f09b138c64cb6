"""The folders of an upgrade: ``previous`` and its ``.tmp`` states, undone or completed at load.

Hadoop moves ``current`` away before it upgrades, so that a crash finds a journal without its
promise.  Here ``previous.tmp`` is a copy made of hard links while ``current`` stays what it is:
whatever a writer is promised during an upgrade cannot be undone by a crash.
"""

from pathlib import Path
from typing import assert_never

import structlog

from journal.core import effects
from journal.errors import StorageFailed
from journal.model import Epoch, NamespaceInfo
from journal.storage import layout
from journal.storage.files import Files, with_contents, write_durably
from journal.storage.small_files import epoch_text, parse_version, version_text

log = structlog.get_logger()

_CHANGED_IN_PLACE = (layout.COMMITTED,)
"""Files that are written over, so that a link would change what it is to keep."""


def carry_out(files: Files, root: Path, effect: effects.UpgradeEffect) -> None:
    """Carry out one step."""
    match effect:
        case effects.TakeSnapshot():
            take_snapshot(files, root)
        case effects.PersistNamespace(namespace):
            adopt(files, root, namespace)
        case effects.DropPrevious():
            drop_previous(files, root)
        case effects.RestorePrevious(promised):
            restore_previous(files, root, promised)
        case effects.DiscardFiles():
            discard(files, root / layout.CURRENT, effect)
        case _:
            assert_never(effect)


def take_snapshot(files: Files, root: Path) -> None:
    """Keep ``current`` as ``previous.tmp``.  VERSION comes last: without it the copy is void."""
    current, kept = root / layout.CURRENT, root / layout.PREVIOUS_UNFINISHED
    files.remove(kept)
    files.make_folder(kept)
    for folder in (layout.PAXOS, layout.SEGMENTS):
        files.make_folder(kept / folder)
        for name in files.names(current / folder):
            files.link(current / folder / name, kept / folder / name)
        files.sync_folder(kept / folder)
    inside = (layout.VERSION, layout.PAXOS, layout.SEGMENTS)
    for name in files.names(current):
        if name not in inside and not name.endswith(layout.UNFINISHED):
            _keep(files, current / name, kept / name)
    files.sync_folder(kept)
    files.link(current / layout.VERSION, kept / layout.VERSION)
    files.sync_folder(kept)
    files.sync_folder(root)


def _keep(files: Files, path: Path, kept: Path) -> None:
    writable = isinstance(layout.meaning(path.name), layout.InProgressFile)
    if not writable and path.name not in _CHANGED_IN_PLACE:
        files.link(path, kept)
        return
    with files.view(path) as data:
        with_contents(files, kept, data)


def adopt(files: Files, root: Path, namespace: NamespaceInfo) -> None:
    """Write the new VERSION.  From there on a crash completes the upgrade."""
    write_durably(files, root / layout.CURRENT / layout.VERSION, version_text(namespace))
    files.rename(root / layout.PREVIOUS_UNFINISHED, root / layout.PREVIOUS)
    files.sync_folder(root)


def drop_previous(files: Files, root: Path) -> None:
    files.rename(root / layout.PREVIOUS, root / layout.FINALIZED_UNFINISHED)
    files.sync_folder(root)
    files.remove(root / layout.FINALIZED_UNFINISHED)
    files.sync_folder(root)


def restore_previous(files: Files, root: Path, promised: Epoch) -> None:
    """Put ``previous`` in place of ``current``, but for what this node is and has promised."""
    current, previous = root / layout.CURRENT, root / layout.PREVIOUS
    _carry_over(files, current, previous, promised)
    files.rename(current, root / layout.REMOVED_UNFINISHED)
    files.sync_folder(root)
    files.rename(previous, current)
    files.sync_folder(root)
    files.remove(root / layout.REMOVED_UNFINISHED)
    files.sync_folder(root)


def _carry_over(files: Files, current: Path, previous: Path, promised: Epoch) -> None:
    write_durably(files, previous / layout.PROMISE, epoch_text(promised))
    lease = files.read(current / layout.READ_LEASE)
    if lease is not None:
        write_durably(files, previous / layout.READ_LEASE, lease)
    if files.read(current / layout.INCARNATION) is not None:
        # The file itself, not its contents: a copy of it would be taken for another node's.
        files.remove(previous / layout.INCARNATION)
        files.link(current / layout.INCARNATION, previous / layout.INCARNATION)
    files.sync_folder(previous)


def discard(files: Files, current: Path, effect: effects.DiscardFiles) -> None:
    """Give the files of these segments the suffix ``.trash``."""
    names = [segment.name() for segment in effect.segments]
    for name in names:
        files.rename(current / name, current / layout.aside_name(name, "trash"))
    files.sync_folder(current)
    for folder, firsts in (
        (layout.PAXOS, effect.decisions),
        (layout.SEGMENTS, [segment.first for segment in effect.segments]),
    ):
        for first in firsts:
            files.remove(current / folder / str(first))
        files.sync_folder(current / folder)


def settle(files: Files, root: Path) -> None:
    """Finish or undo what a crash cut short.

    Raises:
        StorageFailed: two such states at once, which no crash leaves behind.

    See docs/reference/journal-node.md#half-done-states.
    """
    found = [name for name in files.names(root) if name in layout.HALF_DONE]
    if len(found) > 1:
        raise StorageFailed(
            f"{root} holds {' and '.join(found)} at once, which no crash leaves behind. Nothing "
            "was changed. Move one of them out of the way."
        )
    for name in found:
        _settle(files, root, name)
    if found:
        files.sync_folder(root)
        log.warning("upgrade.settled", folder=str(root), found=found[0])


def _settle(files: Files, root: Path, name: str) -> None:
    current, kept = root / layout.CURRENT, root / name
    whole = files.read(current / layout.VERSION) is not None
    match name:
        case layout.PREVIOUS_UNFINISHED:
            if not whole:  # only Hadoop moves ``current`` away
                files.remove(current)
                files.rename(kept, current)
            elif _is_older(files, kept, current):
                files.rename(kept, root / layout.PREVIOUS)
            else:
                files.remove(kept)
        case layout.REMOVED_UNFINISHED:
            if whole:
                files.remove(kept)
            else:
                files.rename(kept, current)
        case layout.FINALIZED_UNFINISHED:
            files.remove(kept)
        case _:
            raise StorageFailed(
                f"{root} holds {name}, which no JournalNode makes. Nothing was changed."
            )


def _is_older(files: Files, kept: Path, current: Path) -> bool:
    """Return whether ``current`` was upgraded after the copy was complete."""
    before, now = files.read(kept / layout.VERSION), files.read(current / layout.VERSION)
    return before is not None and before != now


def previous_namespace(files: Files, root: Path) -> NamespaceInfo | None:
    """Return what the journal was before its upgrade, or None if there is no way back."""
    path = root / layout.PREVIOUS / layout.VERSION
    data = files.read(path)
    return None if data is None else parse_version(path, data)
