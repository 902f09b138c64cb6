"""Keeps the highest claim over a restart, on every volume.

See docs/reference/datanode.md#claims.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import structlog

from datanode.namenodes.claim import Claims, decode, encode
from hadoop.durable import write_durably

log = structlog.get_logger()

_FILE: Final = Path("nnha") / "claim"


def read_claims(volumes: Iterable[Path]) -> Claims:
    """Return the highest claim of any volume; none on new volumes, or where it cannot be read."""
    best = Claims()
    for volume in volumes:
        try:
            found = decode((volume / _FILE).read_bytes())
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as problem:
            log.warning("datanode.claim_unreadable", path=str(volume / _FILE), why=str(problem))
            continue
        best = max(best, found, key=lambda claims: claims.highest)
    return best


def write_claims(volumes: Iterable[Path], claims: Claims) -> None:
    """Write a claim to all volumes; one that refuses is left out, for the others have it."""
    for volume in volumes:
        file = volume / _FILE
        try:
            file.parent.mkdir(mode=0o700, exist_ok=True)
            write_durably(file, encode(claims))
        except OSError as problem:
            log.warning("datanode.claim_not_written", path=str(file), why=str(problem))
