"""Reads parts of daemons' status pages; a part that an older daemon does not report is None."""

from collections.abc import Iterator, Mapping
from typing import Final, cast

from ha.cluster.daemon_parts import CheckpointView, DaemonView, HealthChange, TakeoverView
from ha.cluster.query import number, text, texts, whole
from ha.notices.model import PhaseDuration

MOST_CHANGES: Final = 64
MOST_PHASES: Final = 20


def daemon_view(page: Mapping[str, object]) -> DaemonView | None:
    """Read the entry ``daemon`` of any daemon's page."""
    found = _object(page.get("daemon"))
    if found is None:
        return None
    return DaemonView(
        version=text(found, "version"),
        commit=text(found, "commit"),
        pid=whole(found, "pid"),
        started_at=text(found, "started_at"),
        config_hash=text(found, "config_hash"),
        insecure=texts(found, "insecure"),
    )


def checkpoint_view(page: Mapping[str, object]) -> CheckpointView | None:
    """Read the entry ``checkpoint`` of a NameNode's page."""
    found = _object(page.get("checkpoint"))
    txid = None if found is None else whole(found, "txid")
    if found is None or txid is None:
        return None
    last = whole(page, "last_txid")
    return CheckpointView(
        txid=txid,
        at=text(found, "at"),
        pending_transactions=None if last is None else max(0, last - txid),
        problem=text(found, "problem"),
    )


def takeover_view(page: Mapping[str, object]) -> TakeoverView | None:
    """Read the entry ``takeover`` of a controller's page."""
    found = _object(page.get("takeover"))
    if found is None:
        return None
    return TakeoverView(
        number=whole(found, "number"),
        seconds=number(found, "seconds"),
        phases=tuple(_phases(found.get("phases")))[:MOST_PHASES],
    )


def health_changes(page: Mapping[str, object]) -> tuple[HealthChange, ...]:
    """Read the entry ``health_changes`` of a controller's page, the newest first."""
    return tuple(_changes(page.get("health_changes")))[:MOST_CHANGES]


def _phases(found: object) -> Iterator[PhaseDuration]:
    for one in _objects(found):
        name, seconds = text(one, "name"), number(one, "seconds")
        if name is not None and seconds is not None:
            yield PhaseDuration(name, seconds)


def _changes(found: object) -> Iterator[HealthChange]:
    for one in _objects(found):
        at, health = text(one, "at"), text(one, "health")
        if at is not None and health is not None:
            yield HealthChange(at, health, text(one, "reason"))


def _objects(found: object) -> Iterator[Mapping[str, object]]:
    for one in found if isinstance(found, list) else ():
        if isinstance(one, dict):
            yield one


def _object(found: object) -> Mapping[str, object] | None:
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else None
