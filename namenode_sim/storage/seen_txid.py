"""seen_txid: from which transaction on the newest segment of edits was begun.

See docs/reference/namenode.md#name-directories.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import structlog

from namenode_sim.storage.errors import Inconsistent

log = structlog.get_logger()

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")


def unreadable(directories: Iterable[Path]) -> dict[Path, Inconsistent]:
    """Return and log where the number cannot be read, and why."""
    found = {}
    for directory in directories:
        try:
            read_seen_txid(directory)
        except Inconsistent as problem:
            found[directory] = problem
            log.warning(
                "storage.images_left_out", path=str(directory / "current"), problem=str(problem)
            )
    return found


def read_seen_txid(directory: Path) -> int:
    """Return the number in the file's first line; 0 without a file, or for a negative one.

    Raises:
        Inconsistent: if it is no number, or cannot be read.
    """
    path = directory / "current" / "seen_txid"
    advice = "Write the first txid of the newest edits segment into it, in decimal."
    try:
        line = path.read_text("ascii", "replace").partition("\n")[0].strip()
    except FileNotFoundError:
        return 0
    except OSError as problem:
        raise Inconsistent(path, f"cannot be read: {problem}", advice) from problem
    if _NUMBER.fullmatch(line) is None:
        raise Inconsistent(path, f"holds {line[:40]!r}, expected a transaction id", advice)
    return max(0, int(line))
