"""The notices in ZooKeeper: pause, drain, members, history; as values and as JSON."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import isfinite
from typing import NoReturn, TypeVar

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

MAX_TEXT = 2000
"""Characters of one text that are kept: a znode must stay far below ZooKeeper's 1 MiB."""


class BadNotice(Exception):
    """A znode's bytes that are no notice of its kind; the text quotes what was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """No automatic role change in this nameservice, until an operator ends it or time does."""

    owner: str
    """Who asked, as ``user@host``."""
    reason: str
    since: datetime
    until: datetime | None
    """None: until somebody ends it."""

    def over(self, now: datetime) -> bool:
        """Has it expired?  Then it is as if it were not there."""
        return self.until is not None and now >= self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """This NameNode is no candidate, until an operator ends it or time does."""

    owner: str
    reason: str
    since: datetime
    until: datetime | None

    def over(self, now: datetime) -> bool:
        """Has it expired?  Then it is as if it were not there."""
        return self.until is not None and now >= self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One running ZKFC, as it sees itself; ephemeral, so it is gone with its session."""

    namenode: str
    zkfc_http: str
    """host:port of its /status; empty when it has none."""
    zkfc_rpc: str
    """host:port of its ZKFCProtocol."""
    pid: int
    started: datetime
    health: str
    """Its judgement of its NameNode, ``ha.health.core.Health``."""
    state: str
    """What its NameNode says it is: active, standby, initializing, observer, unknown."""
    ready: bool
    """Its NameNode says that it could become active."""
    not_ready_reason: str
    nofailover: bool
    priority: int
    in_election: bool
    out_because: str
    """Why it is not in the election; empty when it is."""
    version: str
    pause_seen: datetime | None = None
    """``since`` of the pause that it obeys; None: it knows of none in force."""
    drain_seen: datetime | None = None
    """The same of its NameNode's drain."""
    host: str = ""
    """The machine that it runs on, by its own name; empty where an older version says none."""


class FailoverKind(StrEnum):
    """Who wanted the role to move."""

    AUTO = "auto"
    SWITCHOVER = "switchover"
    MANUAL = "manual"


class FailoverResult(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PhaseDuration:
    """How long one phase of a failover took."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FencingAttempt:
    """One method tried on one NameNode."""

    method: str
    target: str
    result: str
    seconds: float | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverRecord:
    """One failover attempt, written by the ZKFC that took over or tried to.  None: not known."""

    at: datetime
    """When it ended."""
    namenode: str
    """Who was to become active."""
    cause: str
    actor: str | None
    """The operator, for a switchover; None when nobody asked."""
    kind: FailoverKind
    result: FailoverResult
    failure: str | None
    phases: tuple[PhaseDuration, ...]
    epoch: int | None
    last_txid: int | None
    previous: str | None
    """Who was active before."""
    fencing: tuple[FencingAttempt, ...]
    session: str | None
    """ZooKeeper's number of the session that held the lock, in hex."""
    lock_czxid: int | None

    @property
    def seconds(self) -> float:
        """How long it took: the phases' sum."""
        return sum(phase.seconds for phase in self.phases)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One znode of the history; its number only ever grows, though not by ones."""

    number: int
    record: FailoverRecord | None
    unreadable: str = ""
    """Why there is no record: one bad znode must not hide the others."""


# -- to JSON --------------------------------------------------------------------------------------


def encode_pause(pause: Pause | Drain) -> bytes:
    """A pause or a drain, as it lies in ZooKeeper."""
    return json.dumps(
        {
            "owner": _short(pause.owner),
            "reason": _short(pause.reason),
            "since": time_text(pause.since),
            "until": _time_or_none(pause.until),
        }
    ).encode()


def encode_member(member: Member) -> bytes:
    """A member, as it lies in ZooKeeper."""
    return json.dumps(
        {
            "namenode": member.namenode,
            "zkfc_http": member.zkfc_http,
            "zkfc_rpc": member.zkfc_rpc,
            "pid": member.pid,
            "started": time_text(member.started),
            "health": member.health,
            "state": member.state,
            "ready": member.ready,
            "not_ready_reason": _short(member.not_ready_reason),
            "nofailover": member.nofailover,
            "priority": member.priority,
            "in_election": member.in_election,
            "out_because": _short(member.out_because),
            "version": member.version,
            "pause_seen": _time_or_none(member.pause_seen),
            "drain_seen": _time_or_none(member.drain_seen),
            "host": member.host,
        }
    ).encode()


def encode_record(record: FailoverRecord) -> bytes:
    """A record of the history, as it lies in ZooKeeper."""
    return json.dumps(record_json(record)).encode()


def record_json(record: FailoverRecord) -> dict[str, object]:
    """The record's fixed keys; what is not known is None."""
    return {
        "at": time_text(record.at),
        "namenode": record.namenode,
        "cause": _short(record.cause),
        "actor": record.actor,
        "kind": record.kind.value,
        "result": record.result.value,
        "failure": None if record.failure is None else _short(record.failure),
        "phases": [{"name": one.name, "seconds": one.seconds} for one in record.phases],
        "epoch": record.epoch,
        "last_txid": record.last_txid,
        "previous": record.previous,
        "fencing": [
            {
                "method": one.method,
                "target": one.target,
                "result": one.result,
                "seconds": one.seconds,
                "detail": _short(one.detail),
            }
            for one in record.fencing
        ],
        "session": record.session,
        "lock_czxid": record.lock_czxid,
    }


def time_text(moment: datetime) -> str:
    """RFC 3339, UTC, milliseconds.  Raises ValueError for a time without a zone."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; notices are in UTC")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _time_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else time_text(moment)


# -- from JSON: unknown keys are of a newer version and pass ---------------------------------------


def decode_pause(data: bytes) -> Pause:
    """The pause these bytes say.  Raises BadNotice."""
    found = _Found("pause", data)
    return Pause(
        owner=found.text("owner"),
        reason=found.text("reason"),
        since=found.moment("since"),
        until=found.perhaps("until", _Found.moment),
    )


def decode_drain(data: bytes) -> Drain:
    """The drain these bytes say.  Raises BadNotice."""
    found = _Found("drain", data)
    return Drain(
        owner=found.text("owner"),
        reason=found.text("reason"),
        since=found.moment("since"),
        until=found.perhaps("until", _Found.moment),
    )


def decode_member(data: bytes) -> Member:
    """The member these bytes say.  Raises BadNotice."""
    found = _Found("member", data)
    return Member(
        namenode=found.text("namenode"),
        zkfc_http=found.text("zkfc_http"),
        zkfc_rpc=found.text("zkfc_rpc"),
        pid=found.whole("pid"),
        started=found.moment("started"),
        health=found.text("health"),
        state=found.text("state"),
        ready=found.flag("ready"),
        not_ready_reason=found.text("not_ready_reason"),
        nofailover=found.flag("nofailover"),
        priority=found.whole("priority"),
        in_election=found.flag("in_election"),
        out_because=found.text("out_because"),
        version=found.text("version"),
        pause_seen=found.perhaps("pause_seen", _Found.moment),
        drain_seen=found.perhaps("drain_seen", _Found.moment),
        host=found.perhaps("host", _Found.text) or "",
    )


def decode_record(data: bytes) -> FailoverRecord:
    """The failover these bytes tell of.  Raises BadNotice."""
    found = _Found("record of a failover", data)
    return FailoverRecord(
        at=found.moment("at"),
        namenode=found.text("namenode"),
        cause=found.text("cause"),
        actor=found.perhaps("actor", _Found.text),
        kind=found.one_of("kind", FailoverKind),
        result=found.one_of("result", FailoverResult),
        failure=found.perhaps("failure", _Found.text),
        phases=tuple(
            PhaseDuration(one.text("name"), one.number("seconds")) for one in found.many("phases")
        ),
        epoch=found.perhaps("epoch", _Found.whole),
        last_txid=found.perhaps("last_txid", _Found.whole),
        previous=found.perhaps("previous", _Found.text),
        fencing=tuple(
            FencingAttempt(
                method=one.text("method"),
                target=one.text("target"),
                result=one.text("result"),
                seconds=one.perhaps("seconds", _Found.number),
                detail=one.text("detail"),
            )
            for one in found.many("fencing")
        ),
        session=found.perhaps("session", _Found.text),
        lock_czxid=found.perhaps("lock_czxid", _Found.whole),
    )


class _Found:
    """A JSON object, and complaints that name the kind of notice, the key and what is there."""

    def __init__(self, kind: str, data: object) -> None:
        self._kind = kind
        value = _load(kind, data) if isinstance(data, bytes) else data
        if not isinstance(value, dict):
            raise BadNotice(f"no {kind}: a JSON object is wanted, found {str(value)[:80]!r}")
        self._values: dict[str, object] = value

    def text(self, key: str) -> str:
        value = self._values.get(key)
        if not isinstance(value, str):
            return self._bad(key, "a text")
        return value.encode("utf-8", "replace").decode()  # half a surrogate pair fits no terminal

    def flag(self, key: str) -> bool:
        value = self._values.get(key)
        return value if isinstance(value, bool) else self._bad(key, "true or false")

    def whole(self, key: str) -> int:
        value = self._values.get(key)
        return value if type(value) is int else self._bad(key, "a whole number")

    def number(self, key: str) -> float:
        value = self._values.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            with suppress(OverflowError):
                if isfinite(found := float(value)):  # Python reads and writes NaN, JSON has none
                    return found
        return self._bad(key, "a number")

    def moment(self, key: str) -> datetime:
        value = self.text(key)
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return self._bad(key, "a time such as 2026-01-31T12:00:00.000Z")
        if moment.tzinfo is None:
            return self._bad(key, "a time with its zone")
        try:
            return moment.astimezone(UTC)
        except OverflowError:  # somebody's "for ever", 9999-12-31T23:59:59-05:00, is year 10000
            return self._bad(key, "a time whose UTC is in the calendar")

    def one_of(self, key: str, words: type[E]) -> E:
        try:
            return words(self.text(key))
        except ValueError:
            return self._bad(key, "one of " + ", ".join(words))

    def perhaps(self, key: str, read: "Callable[[_Found, str], T]") -> T | None:
        return None if self._values.get(key) is None else read(self, key)

    def many(self, key: str) -> "list[_Found]":
        value = self._values.get(key)
        if not isinstance(value, list):
            return self._bad(key, "a list")
        return [_Found(f"{self._kind} ({key})", one) for one in value]

    def _bad(self, key: str, wanted: str) -> NoReturn:
        found = str(self._values.get(key))[:80]
        raise BadNotice(f"no {self._kind}: {key} should be {wanted}, found {found!r}")


def _load(kind: str, data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as failure:
        raise BadNotice(f"no {kind}: {len(data)} bytes, {data[:80]!r}") from failure


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
