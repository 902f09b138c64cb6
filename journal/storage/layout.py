"""File names in a journal's ``current`` folder, and what each of them means.  Pure."""

import re
from typing import Final

from ha.record import dataclass
from journal.model import Epoch, Segment, TxId

CURRENT: Final = "current"
PAXOS: Final = "paxos"
SEGMENTS: Final = "segments"
VERSION: Final = "VERSION"
PROMISE: Final = "last-promised-epoch"
INCARNATION: Final = "incarnation"
WRITER: Final = "last-writer-epoch"
COMMITTED: Final = "committed-txid"
PURGED: Final = "purged-txid"
READ_LEASE: Final = "read-lease-micros"
FETCHED: Final = "edits.sync"
"""Next to ``current``: whole segments on their way from a peer; worthless after a crash."""
PREVIOUS: Final = "previous"
PREVIOUS_UNFINISHED: Final = "previous.tmp"
REMOVED_UNFINISHED: Final = "removed.tmp"
FINALIZED_UNFINISHED: Final = "finalized.tmp"
HALF_DONE: Final = (
    PREVIOUS_UNFINISHED,
    REMOVED_UNFINISHED,
    FINALIZED_UNFINISHED,
    "lastcheckpoint.tmp",
)
JOURNAL_FOLDERS: Final = (CURRENT, PREVIOUS_UNFINISHED, REMOVED_UNFINISHED)
"""A journal has at least one of them, at whatever point a crash has left it."""
LOCK: Final = "in_use.lock"
UNFINISHED: Final = ".tmp"
"""What a file is called while it is being written; worthless after a crash."""

_JOURNAL_ID = re.compile(r"[A-Za-z0-9._-]+\Z", re.ASCII)
_LONGEST_NAME: Final = 200
_SHOWN: Final = 100
_FINALIZED = re.compile(r"edits_(\d{1,19})-(\d{1,19})\Z", re.ASCII)
_IN_PROGRESS = re.compile(r"edits_inprogress_(\d{1,19})\Z", re.ASCII)
_DOWNLOAD = re.compile(r"edits_inprogress_(\d{1,19})\.epoch=(\d{1,19})\Z", re.ASCII)
_REMAINS = re.compile(
    r"edits_(?:inprogress_(\d{1,19})|\d{1,19}-(\d{1,19}))"
    r"\.(?:empty|stale|corrupt|trash|epoch=\d{1,19})\Z",
    re.ASCII,
)
_PLAIN = re.compile(r"\d{1,19}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class FinalizedFile:
    """A segment that will never change again."""

    first: TxId
    last: TxId


@dataclass(frozen=True, slots=True)
class InProgressFile:
    """A segment that is, or was when its writer left, being written."""

    first: TxId


@dataclass(frozen=True, slots=True)
class DownloadedFile:
    """Bytes fetched for a recovery of that epoch, not yet in place."""

    first: TxId
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class UnfinishedFile:
    """A file whose writing a crash cut short."""


EditsFile = FinalizedFile | InProgressFile | DownloadedFile | UnfinishedFile


def meaning(name: str) -> EditsFile | None:
    """Return what a file name in ``current`` means, or None for files that are not ours."""
    if name.endswith(UNFINISHED):
        return UnfinishedFile()
    if found := _FINALIZED.match(name):
        first, last = TxId(int(found[1])), TxId(int(found[2]))
        return FinalizedFile(first, last) if 0 < first <= last else None
    if found := _IN_PROGRESS.match(name):
        return InProgressFile(TxId(int(found[1])))
    if found := _DOWNLOAD.match(name):
        return DownloadedFile(TxId(int(found[1])), Epoch(int(found[2])))
    return None


def remains_of(name: str) -> TxId | None:
    """Up to where a file that was moved aside, or left by a download, is known to hold edits.

    That is its last txid if its name says so, else its first; None for every other name.
    """
    found = _REMAINS.match(name)
    return None if found is None else TxId(int(found[1] or found[2]))


def segment_start(name: str) -> TxId | None:
    """Return the first txid of the segment of a file in ``paxos`` or ``segments``, in decimal."""
    return TxId(int(name)) if _PLAIN.match(name) else None


def in_progress_name(first: TxId) -> str:
    """Return the file name of a segment that is being written."""
    return Segment(first, first, finalized=False).name()


def download_name(first: TxId, epoch: Epoch) -> str:
    """Return where the bytes for a recovery are kept until the decision is durable."""
    return f"{in_progress_name(first)}.epoch={epoch}"


def aside_name(name: str, why: str) -> str:
    """Return the name of a file kept for a person to look at: ``.empty``, ``.corrupt``."""
    return f"{name}.{why}"


def why_bad_journal_id(journal_id: str) -> str | None:
    """Return why a journal may not have this name, which becomes a folder's; None if it is fine.

    Hadoop forbids slashes and a leading dot only.  Blanks, backslashes, percent signs, control
    characters and look-alikes of other alphabets name folders that scripts and people mistake for
    others (docs/reference/operations.md#names-from-a-peer).
    """
    if not journal_id:
        return "a journal's name cannot be empty"
    if journal_id.startswith("."):
        return f"the journal's name {journal_id[:_SHOWN]!r} begins with a dot"
    if len(journal_id.encode()) > _LONGEST_NAME:
        return f"the journal's name is longer than {_LONGEST_NAME} bytes"
    if not _JOURNAL_ID.match(journal_id):
        return (
            f"the journal's name {journal_id[:_SHOWN]!r} contains other characters than letters"
            " a-z, digits, dots, dashes and underscores"
        )
    return None
