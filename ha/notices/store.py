"""The notices in ZooKeeper, read and written through a short session of the caller's.

Every function may raise what ``ha.elector.zookeeper.outcome.value_of`` raises: ZooKeeperRefused (it
had no effect) and ZooKeeperUnavailable (it may have had).  BadNotice means that somebody else wrote
there.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.errors import ZooKeeperRefused
from ha.elector.zookeeper.lock_check import untrusted_znodes
from ha.elector.zookeeper.outcome import Outcome, Refusal, Refused, value_of
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.notices import model
from ha.notices.model import Drain
from ha.record import dataclass

PAUSE_ZNODE = "NnhaPause"
DRAIN_ZNODE = "NnhaDrain"
MEMBERS_ZNODE = "NnhaMembers"
SECOND_ZKFCS_ZNODE = "NnhaNamesakes"
HISTORY_ZNODE = "NnhaHistory"
RECORD_PREFIX = "r-"
KEPT_RECORDS = 100
WRITE_ATTEMPTS = 5

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Noted(Generic[T]):
    """A notice and the version of its znode, for a conditional delete."""

    value: T
    version: int
    written_at: float = 0.0
    """When it was written, in seconds since 1970 by ZooKeeper's clock; 0: it is not known."""


def pause_path(settings: ZooKeeperSettings) -> str:
    """Return the path of the pause's znode."""
    return f"{settings.scope}/{PAUSE_ZNODE}"


def drains_path(settings: ZooKeeperSettings) -> str:
    """Return the parent znode of the drains, each of which has its NameNode's id as its name."""
    return f"{settings.scope}/{DRAIN_ZNODE}"


def members_path(settings: ZooKeeperSettings) -> str:
    """Return the parent znode of the members, each of which has its NameNode's id as its name."""
    return f"{settings.scope}/{MEMBERS_ZNODE}"


def second_zkfcs_path(settings: ZooKeeperSettings) -> str:
    """Return the parent znode of second controllers, which may not join the election."""
    return f"{settings.scope}/{SECOND_ZKFCS_ZNODE}"


def history_path(settings: ZooKeeperSettings) -> str:
    """Return the parent znode of the records of failovers."""
    return f"{settings.scope}/{HISTORY_ZNODE}"


def steering_paths(settings: ZooKeeperSettings) -> tuple[str, ...]:
    """Return the znodes whose writers can steer the election, the scope first."""
    return (
        settings.scope,
        settings.lock,
        settings.breadcrumb,
        settings.term,
        settings.count,
        pause_path(settings),
        drains_path(settings),
        members_path(settings),
    )


# -- pause ----------------------------------------------------------------------------------------


async def read_pause(session: Session, settings: ZooKeeperSettings) -> Noted[model.Pause] | None:
    """Read the pause, expired or not; return None when there is none."""
    return await _read(session, pause_path(settings), model.decode_pause)


async def write_pause(session: Session, settings: ZooKeeperSettings, pause: model.Pause) -> None:
    """Begin a pause, in place of one that there may be."""
    await _ensure_obeyed(session, settings, "pause")
    await _put(session, pause_path(settings), model.encode_pause(pause))


async def clear_pause(session: Session, settings: ZooKeeperSettings, *, version: int = -1) -> bool:
    """End the pause (only at this version, unless -1); False when there was none to end."""
    return await _clear(session, pause_path(settings), version)


# -- drain ----------------------------------------------------------------------------------------


async def read_drains(
    session: Session, settings: ZooKeeperSettings
) -> Mapping[str, Noted[Drain] | model.BadNotice]:
    """Read the drains by NameNode, expired or not; an unreadable one does not hide the others."""
    return await _read_all(session, drains_path(settings), model.decode_drain)


async def read_drain(
    session: Session, settings: ZooKeeperSettings, namenode: str
) -> Noted[Drain] | None:
    """Read a NameNode's drain, expired or not; return None when there is none."""
    return await _read(session, f"{drains_path(settings)}/{namenode}", model.decode_drain)


async def write_drain(
    session: Session, settings: ZooKeeperSettings, namenode: str, drain: Drain
) -> None:
    """Drain this NameNode, in place of a drain that there may be."""
    await _ensure_obeyed(session, settings, "drain", drains_path(settings))
    await _ensure(session, drains_path(settings))
    await _put(session, f"{drains_path(settings)}/{namenode}", model.encode_pause(drain))


async def clear_drain(
    session: Session, settings: ZooKeeperSettings, namenode: str, *, version: int = -1
) -> bool:
    """End the drain (only at this version, unless -1); False when there was none to end."""
    return await _clear(session, f"{drains_path(settings)}/{namenode}", version)


# -- members --------------------------------------------------------------------------------------


async def read_members(
    session: Session, settings: ZooKeeperSettings
) -> Mapping[str, model.Member | model.BadNotice]:
    """Read the running ZKFCs by NameNode; an unreadable one does not hide the others."""
    found = await _read_all(session, members_path(settings), model.decode_member)
    return {
        name: one if isinstance(one, model.BadNotice) else one.value for name, one in found.items()
    }


async def read_namesakes(session: Session, settings: ZooKeeperSettings) -> tuple[model.Member, ...]:
    """Read the running ZKFCs that may not join the election, without unreadable ones."""
    found = await _read_all(session, second_zkfcs_path(settings), model.decode_member)
    return tuple(one.value for one in found.values() if not isinstance(one, model.BadNotice))


# -- history --------------------------------------------------------------------------------------


async def read_history(
    session: Session, settings: ZooKeeperSettings, count: int = KEPT_RECORDS
) -> tuple[model.HistoryEntry, ...]:
    """Read the newest ``count`` records, newest first."""
    path = history_path(settings)
    names = (await _record_names(session, path))[::-1][:count]
    found = await asyncio.gather(*(_entry(session, path, name) for name in names))
    return tuple(entry for entry in found if entry is not None)


async def append_history(
    session: Session, settings: ZooKeeperSettings, record: model.FailoverRecord
) -> int:
    """Add a record and drop the oldest beyond KEPT_RECORDS; return its number.

    Safe with several writers: ZooKeeper numbers the records, and a record that another one has
    dropped already is dropped.  Unknown outcome: it may be there, so it is not tried again here.
    """
    path = history_path(settings)
    await _ensure(session, path)
    outcome = await session.create_numbered(f"{path}/{RECORD_PREFIX}", model.encode_record(record))
    made = value_of(outcome, f"create a record in {path}")
    names = await _record_names(session, path)
    for name in names[: max(0, len(names) - KEPT_RECORDS)]:
        await _clear(session, f"{path}/{name}", -1)
    return _number(made.rsplit("/", 1)[1])


async def _record_names(session: Session, path: str) -> list[str]:
    """Return the records' names, oldest first; ours only."""
    names = await _children(session, path)
    return sorted((name for name in names if _is_record(name)), key=_number)


def _is_record(name: str) -> bool:
    return name.startswith(RECORD_PREFIX) and name.removeprefix(RECORD_PREFIX).isdigit()


def _number(name: str) -> int:
    return int(name.removeprefix(RECORD_PREFIX))


async def _entry(session: Session, path: str, name: str) -> model.HistoryEntry | None:
    try:
        noted = await _read(session, f"{path}/{name}", model.decode_record)
    except model.BadNotice as failure:
        return model.HistoryEntry(_number(name), None, str(failure))
    return None if noted is None else model.HistoryEntry(_number(name), noted.value)


# -- znodes ---------------------------------------------------------------------------------------


async def _read(session: Session, path: str, decode: Callable[[bytes], T]) -> Noted[T] | None:
    outcome = await session.read(path)
    if _is(outcome, Refusal.NO_NODE):
        return None
    data, facts = value_of(outcome, f"read {path}")
    try:
        return Noted(decode(data), facts.version)
    except model.BadNotice as failure:
        raise model.BadNotice(f"{path}: {failure}") from failure


async def _read_all(
    session: Session, path: str, decode: Callable[[bytes], T]
) -> Mapping[str, Noted[T] | model.BadNotice]:
    async def one(name: str) -> Noted[T] | model.BadNotice | None:
        try:
            return await _read(session, f"{path}/{name}", decode)
        except model.BadNotice as failure:
            return failure

    names = sorted(await _children(session, path))
    found = await asyncio.gather(*map(one, names))
    # One that is gone since the listing was read is not there.
    return {name: value for name, value in zip(names, found, strict=True) if value is not None}


async def _children(session: Session, path: str) -> tuple[str, ...]:
    outcome = await session.children(path)
    return () if _is(outcome, Refusal.NO_NODE) else value_of(outcome, f"list {path}")


async def _put(session: Session, path: str, data: bytes) -> None:
    """Create or replace; another writer may create or delete it between our two steps."""
    for _ in range(WRITE_ATTEMPTS):
        if not _is(created := await session.create(path, data), Refusal.NODE_EXISTS):
            _formatted(created, path)
            return
        if not _is(written := await session.write(path, data, version=-1), Refusal.NO_NODE):
            value_of(written, f"write {path}")
            # It may be of before znodes were closed, and would not be obeyed.  Where we have no
            # right to that, it is not in doubt, or doctor says so.
            await session.set_acl(path, acl_version=-1)
            return
    raise ZooKeeperRefused(f"{path} keeps appearing and vanishing; who else writes there?")


async def _ensure_obeyed(
    session: Session, settings: ZooKeeperSettings, what: str, *above: str
) -> None:
    """Refuse what no controller would obey, as anybody could write in its place."""
    for path, why in (await untrusted_znodes(session, settings, settings.scope, *above)).items():
        raise ZooKeeperRefused(
            f"the ZKFCs would not obey a {what}: {path}: {why}; give the znodes the configured ACL "
            f"first: nnha zkfc --format-zk --keep"
        )


async def _ensure(session: Session, path: str) -> None:
    if not _is(created := await session.create(path), Refusal.NODE_EXISTS):
        _formatted(created, path)


async def _clear(session: Session, path: str, version: int) -> bool:
    outcome = await session.delete(path, version=version)
    if _is(outcome, Refusal.NO_NODE) or _is(outcome, Refusal.BAD_VERSION):
        return False
    value_of(outcome, f"delete {path}")
    return True


def _formatted(created: Outcome[None], path: str) -> None:
    if _is(created, Refusal.NO_NODE):
        raise ZooKeeperRefused(
            f"{path}: there is no znode above it; format the nameservice: nnha zkfc --format-zk"
        )
    value_of(created, f"create {path}")


def _is(outcome: Outcome[object], why: Refusal) -> bool:
    return isinstance(outcome, Refused) and outcome.why is why
