"""Parts of daemons' status pages; a part that an older daemon does not report is None.  Pure."""

from collections.abc import Mapping

from ha.notices.codec import entry
from ha.notices.model import PhaseDuration
from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class DaemonView:
    """Which process a daemon is; None for what it did not report."""

    version: str | None
    commit: str | None
    pid: int | None
    started_at: str | None
    """RFC 3339, UTC."""
    config_hash: str | None
    """Equal on all nodes with the same configuration files."""
    insecure: tuple[str, ...]
    """The interfaces that are open without authentication."""
    config_keys: tuple[str, ...] = ()
    """``key=hash``, without secrets."""


@dataclass(frozen=True, slots=True)
class CheckpointView:
    """The newest image of a NameNode."""

    txid: int
    at: str | None
    """When it was saved or received, RFC 3339 in UTC; None: not known."""
    pending_transactions: int | None
    """Edits that it lacks."""
    problem: str | None
    """Why the last attempt to save or ship one failed."""


@dataclass(frozen=True, slots=True)
class TakeoverView:
    """A takeover that has begun and is not finished, with the phases behind it."""

    number: int | None
    seconds: float | None
    phases: tuple[PhaseDuration, ...]


@dataclass(frozen=True, slots=True)
class HealthChange:
    """When a controller changed its judgement of its NameNode, and to what."""

    at: str
    health: str
    reason: str | None


def checkpoint_view(page: Mapping[str, object]) -> CheckpointView | None:
    """Read the entry ``checkpoint`` of a NameNode's page."""
    found = page.get("checkpoint")
    if not isinstance(found, dict) or (txid := entry(int, found.get("txid"))) is None:
        return None
    last = entry(int, page.get("last_txid"))
    return CheckpointView(
        txid=txid,
        at=entry(str, found.get("at")),
        pending_transactions=None if last is None else max(0, last - txid),
        problem=entry(str, found.get("problem")),
    )
