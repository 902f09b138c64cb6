"""What a backup says of itself: ``manifest.json``, written last.  Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from ha.record import dataclass
from journal.model import TxId

MANIFEST: Final = "manifest.json"
VERSION: Final = "VERSION"
ZNODES: Final = "znodes.json"
AUTHORITY: Final = "authority.tar"
UNFINISHED: Final = "_unfinished."
"""Begins the name of a directory that is being written, and of one whose writer was killed."""
FORMAT: Final = 1


class BackupError(Exception):
    """A backup cannot be made, found or used; the message says what state things are in."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One file of a backup."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The facts of a whole backup.

    ``image_txid`` is the last edit in the image and ``last_txid`` the last one in the backup.
    ``made_at`` is in seconds since 1970; ``nnha`` is the version that wrote it.
    """

    nameservice: str
    cluster_id: str
    namespace_id: int
    image_txid: TxId
    last_txid: TxId
    made_at: float
    nnha: str
    files: Mapping[str, Stored]

    def text(self) -> bytes:
        """Return it as JSON."""
        return (json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n").encode()


def parse_manifest(data: bytes) -> Manifest:
    """Parse what ``Manifest.text`` wrote; raise BackupError for anything else."""
    try:
        found = json.loads(data)
        if (written := found.pop("format")) != FORMAT:
            raise BackupError(
                f"its format is {written}, and this version reads {FORMAT}; use a newer nnha"
            )
        files = {name: Stored(**file) for name, file in found.pop("files").items()}
        manifest = Manifest(**found, files=files)
        stray = [name for name in files if "/" in name or name in ("", ".", "..", MANIFEST)]
        if stray or not 0 <= manifest.image_txid <= manifest.last_txid:
            raise BackupError(f"{MANIFEST} names files or transactions that cannot be: {stray}")
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise BackupError(f"{MANIFEST} is damaged: {problem}") from problem
    return manifest
