"""``current/incarnation``: which life of this folder this is, and whether it has a vote.

A promise that was wiped away, and edits with it, must not be voted upon
(docs/reference/quorum-journal.md#learners).  So each folder has an identity of its own.  It is
bound to the very file that it stands in: a VERSION copied by hand comes without it, and a copy of
the whole folder is another file.  Both have no vote until a writer has seen that they hold
everything and admits them.
"""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ha.record import dataclass
from journal.model import Epoch
from journal.storage import layout
from journal.storage.files import Files

FOUNDING: Final = "founding"
NOT_ADMITTED: Final = "no"
_ID_DIGITS: Final = 32
_MAX_BYTES: Final = 1000

FreshId = Callable[[], str]


def random_id() -> str:
    """Return an incarnation that no folder ever had."""
    return secrets.token_hex(_ID_DIGITS // 2)


@dataclass(frozen=True, slots=True)
class Incarnation:
    """``admitted`` is ``founding``, the epoch of the writer that admitted it, or ``no``."""

    id: str
    admitted: str

    @property
    def learner(self) -> bool:
        """Whether it has no vote."""
        return self.admitted == NOT_ADMITTED


def admitted_by(epoch: Epoch | None) -> str:
    """Return the text in the file for a vote given by a writer or, with None, by the founders."""
    return FOUNDING if epoch is None else str(epoch)


def write_incarnation(files: Files, current: Path, incarnation: Incarnation) -> None:
    """Write it durably, with the number of the file that it is written to."""
    path = current / layout.INCARNATION
    unfinished = path.with_name(path.name + layout.UNFINISHED)
    file = files.create(unfinished)
    try:
        inode, generation = files.identity(unfinished)
        lines = [
            "#nnha: bound to this very file. A copy of it is worth nothing.",
            f"id={incarnation.id}",
            f"inode={inode}",
            f"generation={generation}",
            f"admitted={incarnation.admitted}",
        ]
        file.append(("\n".join(lines) + "\n").encode())
        file.sync()
    finally:
        file.close()
    files.rename(unfinished, path)
    files.sync_folder(current)


def read_incarnation(files: Files, current: Path) -> Incarnation | str:
    """Return what the file contains, or why this folder is not the one that it was made for."""
    path = current / layout.INCARNATION
    data = files.read(path)
    if data is None:
        return "it has no incarnation: its VERSION was copied, or another program made it"
    found = dict(
        line.partition("=")[::2]
        for line in data[:_MAX_BYTES].decode("ascii", "replace").splitlines()
        if not line.startswith("#")
    )
    identity, admitted = found.get("id", ""), found.get("admitted", "")
    if (
        len(identity) != _ID_DIGITS
        or identity.strip("0123456789abcdef")
        or not (admitted in (FOUNDING, NOT_ADMITTED) or admitted.isdecimal())
    ):
        return "its incarnation cannot be read"
    inode, generation = files.identity(path)
    # Some file systems count generations of a number, some do not.
    generations = {str(generation), found.get("generation", "0")} - {"0"}
    if found.get("inode") != str(inode) or len(generations) > 1:
        return "it was copied from another folder, or restored from a backup"
    return Incarnation(identity, admitted)
