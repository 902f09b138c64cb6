"""Which writers have been silent beyond the hard limit, so that the NameNode takes their files.

See docs/reference/blocks.md#taking-a-lease.
"""

from collections.abc import Mapping

from ha.record import dataclass

OWN_PREFIX = "HDFS_NameNode-"


def expired(renewed: Mapping[str, float], now: float, hard_limit_seconds: float) -> list[str]:
    """Return the holders beyond the hard limit, the longest silent first; of equal ones by name."""
    silent = [(at, holder) for holder, at in renewed.items() if now - at > hard_limit_seconds]
    return [holder for _, holder in sorted(silent)]


@dataclass(frozen=True, slots=True)
class OwnHolder:
    """The name under which the NameNode itself holds files; ``since`` is when it took it."""

    name: str
    since: float


def own_holder(
    own: OwnHolder | None, now: float, now_ms: int, hard_limit_seconds: float
) -> OwnHolder:
    """Return the NameNode's holder name, a new one after each hard limit.

    A recovery that the NameNode began must expire like a client's, or a file whose recovery fails
    stays open for ever.
    """
    if own is not None and now - own.since <= hard_limit_seconds:
        return own
    return OwnHolder(f"{OWN_PREFIX}{now_ms}", now)
