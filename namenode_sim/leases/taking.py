"""Whether a caller gets an open file that another one writes, or wrote.

See docs/reference/blocks.md#taking-a-lease.
"""

from enum import Enum
from typing import Final

from ha.record import dataclass

SOFT_LIMIT_SECONDS: Final = 60.0
"""HdfsConstants.LEASE_SOFTLIMIT_PERIOD, after which another may take the file; no key sets it."""


class Intent(Enum):
    """What the caller is about to do with the file, as Hadoop's messages name it."""

    CREATE = "CREATE_FILE"
    APPEND = "APPEND_FILE"
    TRUNCATE = "TRUNCATE_FILE"
    RECOVER = "RECOVER_LEASE"


@dataclass(frozen=True, slots=True)
class Writer:
    """The client that holds an open file.

    ``silent_seconds`` is the time since the last renewal, None for a holder without a lease.
    ``recovers``: the last block is under recovery.
    """

    client: str
    machine: str
    silent_seconds: float | None
    recovers: bool


@dataclass(frozen=True, slots=True)
class Caller:
    """The client that wants the file. ``force``: the call is recoverLease, which waits for no
    limit.
    """

    client: str
    machine: str
    intent: Intent
    force: bool = False


@dataclass(frozen=True, slots=True)
class Granted:
    """The file is closed, so that there is nothing to take."""


@dataclass(frozen=True, slots=True)
class Release:
    """The writer's lease is to be released first; if the file is not closed then, refuse."""

    if_still_open: "Refusal"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The caller does not get the file now; ``in_recovery`` chooses between the two exceptions."""

    message: str
    in_recovery: bool = False


Answer = Granted | Release | Refusal


def take(path: str, writer: Writer | None, caller: Caller) -> Answer:
    """Decide on a caller's wish; ``writer`` is None for a closed file."""
    if writer is None:
        return Granted()
    because = (
        f"Failed to {caller.intent.value} {path} for {caller.client} on {caller.machine} because"
    )
    later = Refusal(f"{because} lease recovery is in progress. Try again later.", in_recovery=True)
    if not caller.force and writer.client == caller.client:
        return Refusal(f"{because} {caller.client} is already the current lease holder.")
    if writer.silent_seconds is None:
        return Refusal(f"{because} the file is under construction but no leases found.")
    if caller.force or writer.silent_seconds > SOFT_LIMIT_SECONDS:
        return Release(later)
    if writer.recovers:
        return Refusal(
            f"{because} another recovery is in progress by {writer.client} on {writer.machine}",
            in_recovery=True,
        )
    return Refusal(
        f"{because} this file lease is currently owned by {writer.client} on {writer.machine}"
    )
