"""The segment that a journal's disk has open, or closed last."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from journal.core import effects
from journal.model import TxId
from journal.storage.files import OpenFile

LEAVE_SEGMENTS_ALONE: Final = (
    effects.AbandonSegment,
    effects.DropDownload,
    effects.ForgetDecision,
    effects.PersistAdmission,
    effects.PersistDecision,
    effects.PersistPromise,
    effects.PersistWriter,
    effects.RecordSegment,
    effects.RememberCommitted,
)
"""Effects after which every closed segment's file is what it was."""


@dataclass(slots=True)
class Writing:
    """The open segment: its file, the digest of its edits, and how far it is durable."""

    first: TxId
    file: OpenFile
    end: int
    hash: "hashlib._Hash"
    dirty: bool = False


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a segment's bytes lie: the file, from its beginning to ``end``."""

    path: Path
    end: int
