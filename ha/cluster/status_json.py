"""One look at the cluster as JSON: its schema is in ha/cli/schemas/status.json."""

from collections.abc import Mapping
from dataclasses import asdict

from ha.cluster.candidates import Readiness, failover_blockers, readiness
from ha.cluster.problems import problems
from ha.cluster.verdict import verdict
from ha.cluster.view import ClusterView, JournalNodeRow, NameNodeRow, ZkfcRow
from ha.console.result import API_VERSION
from ha.notices.model import Pause, time_text


def as_json(view: ClusterView) -> Mapping[str, object]:
    """Return fixed keys: none ever disappears, unknown values are null, txids are plain numbers."""
    since, because = view.election
    return {
        "apiVersion": API_VERSION,
        "command": "status",
        "nameservice": view.nameservice,
        "taken_at": view.taken_at,
        "seconds": view.seconds,
        "active": view.active.namenode if view.active is not None else None,
        "active_since": None if since is None else time_text(since),
        "active_because": because or None,
        "epoch": view.epoch,
        "verdict": verdict(view).as_json(),
        "automatic_failover": view.automatic_failover,
        "failover_ready": _ready(view),
        "failover_blocked_because": list(failover_blockers(view)),
        "healthy": not problems(view),
        "problems": list(problems(view)),
        "silent": list(view.silent),
        "own_delay_seconds": view.own_delay_seconds,
        "own_start_seconds": view.own_start_seconds,
        "spare_journalnodes": view.spare_journalnodes if view.journalnodes else None,
        "pause": None if view.pause is None else _notice(view.pause, view.pause_seen_by),
        "drains": [
            {"namenode": name} | _notice(one, (name,) if view.drain_seen(name) else ())
            for name, one in view.drains.items()
        ],
        "namenodes": [_namenode(view, row) for row in view.namenodes],
        "zkfcs": [_zkfc(view, row) for row in view.zkfcs],
        "journalnodes": [_journalnode(view, row) for row in view.journalnodes],
        "zookeeper": {
            "servers": [asdict(row) for row in view.zookeepers],
            "lock_holder": view.lock.holder,
            "lock_error": view.lock.error,
            "session_timeout_seconds": view.lock.session_timeout_seconds,
        },
    }


def _ready(view: ClusterView) -> bool | None:
    if not view.automatic_failover or readiness(view) is Readiness.UNKNOWN:
        return None
    return readiness(view) is Readiness.READY


def _namenode(view: ClusterView, row: NameNodeRow) -> Mapping[str, object]:
    return _without(_plain(row), "journal") | {
        "wanted": view.wanted(row),
        "lag_transactions": view.lag(row),
    }


def _zkfc(view: ClusterView, row: ZkfcRow) -> Mapping[str, object]:
    member = view.notices.members.get(row.namenode)
    return _without(_plain(row), "page_only") | {
        "priority": None if member is None else member.priority,
        "nofailover": None if member is None else member.nofailover,
        "pid": None if member is None else member.pid,
        "started": None if member is None else time_text(member.started),
        "version": None if member is None else member.version,
    }


def _journalnode(view: ClusterView, row: JournalNodeRow) -> Mapping[str, object]:
    return _plain(row) | {"state": view.state_of(row), "behind_transactions": view.behind(row)}


def _notice(notice: Pause, seen_by: tuple[str, ...]) -> dict[str, object]:
    return {
        "owner": notice.owner,
        "reason": notice.reason,
        "since": time_text(notice.since),
        "until": None if notice.until is None else time_text(notice.until),
        "seen_by": list(seen_by),
    }


def _plain(row: NameNodeRow | ZkfcRow | JournalNodeRow) -> dict[str, object]:
    """Return the row's fields in JSON's types: lists, no tuples; keys' hashes are for us."""
    return asdict(
        row,
        dict_factory=lambda pairs: {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in pairs
            if name != "config_keys"
        },
    )


def _without(entries: dict[str, object], key: str) -> dict[str, object]:
    return {name: value for name, value in entries.items() if name != key}
