"""In what hosts should agree: their clocks and their configuration files.  Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from ha.cluster.daemon_fields import DaemonView
from ha.cluster.view import ClusterView, NameNodeRow, ZkfcRow
from ha.console.durations import span

CLOCK_SECONDS: Final = 2.0
"""HTTP's Date has whole seconds, so that a smaller difference cannot be seen."""
CLOCK_ADVICE: Final = "run NTP or chrony everywhere: pauses and drains expire by the wall clock"
DRIFT_ADVICE: Final = "compare nnha config show on these hosts, and restart those with wrong files"
MOST_KEYS: Final = 5
CLOCK_FIELD: Final = "clock_ahead_seconds"

Skew = tuple[str, str, float | None]
"""A daemon, its host, and how many seconds its clock is ahead of ours; None: not reported."""


def ahead(date: str, before: datetime, after: datetime) -> float | None:
    """Return how many seconds the clock of an answer with this Date header is ahead of ours."""
    try:
        theirs = parsedate_to_datetime(date).astimezone(UTC)
    except ValueError:
        return None
    if theirs > after:
        return (theirs - after).total_seconds()
    # Date is cut to whole seconds: it may be up to one behind a clock that is right.
    return min(0.0, (theirs - before).total_seconds() + 1.0)


def _daemon(row: NameNodeRow | ZkfcRow) -> str:
    return f"{'NameNode' if isinstance(row, NameNodeRow) else 'ZKFC of'} {row.namenode}"


def skews(rows: Sequence[NameNodeRow | ZkfcRow]) -> tuple[Skew, ...]:
    """Return the clocks of NameNodes and ZKFCs, which come with their pages."""
    return tuple(
        (_daemon(row), row.address.rpartition(":")[0], row.clock_ahead_seconds) for row in rows
    )


def clock_faults(found: Sequence[Skew]) -> Iterator[str]:
    """Yield which clocks are off, and by how much, against what most hosts say.

    Each host has one vote for each time that its daemons show; where as many say one thing as the
    other, this machine is believed.
    """
    told = [(name, host, skew) for name, host, skew in found if skew is not None]
    votes = [0.0, *{(host, round(skew / CLOCK_SECONDS)): skew for _, host, skew in told}.values()]
    right = max(votes, key=lambda one: (sum(_near(one, other) for other in votes), one == 0.0))
    ours = _near(right, 0.0)
    if not ours:
        yield f"this machine's clock is {_off(-right)} those of the cluster's hosts"
    for name, host, skew in told:
        if not _near(skew, right):
            than = "this machine's" if ours else "the other hosts'"
            yield f"the clock of {name} on {host} is {_off(skew - right)} {than}"


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= CLOCK_SECONDS


def _off(seconds: float) -> str:
    return f"{span(abs(seconds))} {'ahead of' if seconds > 0 else 'behind'}"


def configuration_drift(view: ClusterView) -> str | None:
    """Return which daemons have read other configuration files than most; None where none has."""
    daemons = {_daemon(row): row.daemon for row in view.namenodes}
    daemons |= {_daemon(row): row.daemon for row in view.zkfcs}
    daemons |= {f"JournalNode {row.node}": row.daemon for row in view.journalnodes}
    told = {name: one for name, one in daemons.items() if one and one.config_hash}
    hashes = Counter(one.config_hash for one in told.values())
    if len(hashes) < 2:
        return None
    ((usual, count), *_) = hashes.most_common(1)
    (like, *_) = (one for one in told.values() if one.config_hash == usual)
    others = {name: one for name, one in told.items() if one.config_hash != usual}
    return (
        f"configuration files differ{_keys(like, list(others.values()))}: {', '.join(others)} read "
        f"others than the other {count} daemons at their start"
    )


def _keys(usual: DaemonView, others: Sequence[DaemonView]) -> str:
    """Return which keys differ; empty where a daemon is older, and does not say."""
    if not all(one.config_keys for one in (usual, *others)):
        return ""
    texts = (text for one in others for text in {*usual.config_keys} ^ {*one.config_keys})
    keys = sorted({text.rpartition("=")[0] for text in texts}) or ["in a secret"]
    more = f" and {len(keys) - MOST_KEYS} more" if len(keys) > MOST_KEYS else ""
    return f" ({', '.join(keys[:MOST_KEYS])}{more})"
