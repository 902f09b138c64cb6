"""What a source hands to a merge: an image and finalized segments on local storage."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ha.record import dataclass
from journal.model import Epoch, NamespaceInfo, TxId

ReportStep = Callable[[str], None]
"""Hears in words what is being done, for people."""


@dataclass(frozen=True, slots=True)
class Staged:
    """An image whose digest is right, and the finalized segments behind it.

    Args:
        image: ``fsimage_N`` with its digest next to it.
        edits: a folder with the segments.
        base_txid: N.
        last_txid: the last edit in the segments; N if there is none behind the image.
        namespace: whose image it is, where the source knows.
        epoch: under which the edits were written, where the source knows.
        fetched_bytes: how much had to be brought here.
        reused_files: how many files were here already and sound.
        digest_checked: whether the image's digest was compared; else the merge does it.
    """

    image: Path
    edits: Path
    base_txid: TxId
    last_txid: TxId
    namespace: NamespaceInfo | None = None
    epoch: Epoch | None = None
    fetched_bytes: int = 0
    reused_files: int = 0
    digest_checked: bool = True


class Source(Protocol):
    """A place that has images and edits."""

    def stage(self, work: Path, tell: ReportStep) -> Staged:
        """Have the newest image and every finalized edit behind it on local storage.

        The callback is called with what is done.

        Args:
            work: an existing folder that the source may keep files in from one time to the next.

        Raises:
            SourceError: if something is missing, damaged or another cluster's, or does not answer.
            EditsError, ImageError: the same, where a file says so.
            OSError: if local storage refuses.
        """
        ...


class SourceError(Exception):
    """An image or an edit is missing, damaged or another cluster's, or there is no answer.

    The message names the file or the transaction, and says what to do.  Nothing of what could not
    be had is left behind.
    """
