"""Asks ZooKeeper: which servers serve, who holds the lock, what operators and ZKFCs have noted."""

import asyncio
import dataclasses
from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ha.cluster.query import Look, NoAnswer, read_all
from ha.cluster.unreachable import NO_ANSWER, is_silence
from ha.cluster.zookeeper_view import LockView, NoticesView, ZooKeeperRow
from ha.conf.keys.units import ensemble
from ha.conf.topology import HostPort
from ha.elector.zookeeper.breadcrumb import decode
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.lock_check import untrusted_znodes
from ha.elector.zookeeper.outcome import value_of
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, content_of, parent_exists
from ha.notices import store
from ha.notices.codec import MAX_ENTRY_CHARACTERS
from ha.notices.model import BadNotice, Member, Pause
from ha.record import dataclass

LOCK_RESERVE_SECONDS = 0.2
"""Kept back of the deadline for hanging up on ZooKeeper."""

NEWEST = 10
"""Records of the history that are read: enough to see past some failed attempts."""


@dataclass(frozen=True, slots=True)
class Ensemble:
    """What the servers and the nameservice's znodes say."""

    servers: tuple[ZooKeeperRow, ...] = ()
    lock: LockView = LockView()
    notices: NoticesView = NoticesView()


class OpenSession(Protocol):
    """Gives a connected session for as long as it is used, as ``znodes.connected`` does."""

    def __call__(
        self, settings: ZooKeeperSettings, *, deadline_seconds: float
    ) -> AbstractAsyncContextManager[Session]: ...


async def ask_zookeeper(
    look: Look, settings: ZooKeeperSettings | None, open_session: OpenSession = connected
) -> Ensemble:
    """Ask each server, and one session of those that answer; None: there is no ZooKeeper."""
    if settings is None:
        return Ensemble()
    servers = ensemble(settings.hosts).servers
    rows = tuple(await asyncio.gather(*(_server(look, server) for server in servers)))
    # A frozen server accepts a session and keeps it: only those that answered are asked further.
    well = [row.server for row in rows if row.error is None]
    if not well:
        silent = (
            f"{NO_ANSWER} in {look.seconds:g} s from any ZooKeeper server"
            if all(is_silence(row.error) for row in rows)
            else "no ZooKeeper server answers"
        )
        return Ensemble(rows, LockView(error=silent), NoticesView(error=silent))
    answering = dataclasses.replace(settings, hosts=",".join(well))
    try:
        lock, notices = await look.ask(_znodes(look, answering, open_session))
    except NoAnswer as error:
        return Ensemble(rows, LockView(error=str(error)), NoticesView(error=str(error)))
    return Ensemble(rows, lock, notices)


async def _znodes(
    look: Look, settings: ZooKeeperSettings, open_session: OpenSession
) -> tuple[LockView, NoticesView]:
    seconds = max(0.1, look.left() - LOCK_RESERVE_SECONDS)
    async with open_session(settings, deadline_seconds=seconds) as session:
        lock, exists, pause, drains, (members, namesakes), history = await asyncio.gather(
            _lock(session, settings),
            parent_exists(session, settings),
            _pause(session, settings),
            store.read_drains(session, settings),
            asyncio.gather(
                store.read_members(session, settings), store.read_namesakes(session, settings)
            ),
            store.read_history(session, settings, NEWEST),
        )
        doubted = await _reasons_not_obeyed(session, settings, drains)
        granted = session.timeout_seconds
    if not exists:
        because = f"{settings.scope} is not formatted; nnha zkfc --format-zk"
        return LockView(error=because), NoticesView(error=because)
    notices = (pause, *drains.values(), *members.values())
    bad = [one for one in notices if isinstance(one, BadNotice)]
    return dataclasses.replace(lock, session_timeout_seconds=granted), NoticesView(
        history=history,
        pause=pause if isinstance(pause, Pause) and store.PAUSE_ZNODE not in doubted else None,
        drains={
            name: one.value
            for name, one in drains.items()
            if isinstance(one, store.Noted) and name not in doubted
        },
        members={name: one for name, one in members.items() if isinstance(one, Member)},
        namesakes=namesakes,
        unreadable=tuple(str(one)[:MAX_ENTRY_CHARACTERS] for one in (*bad, *doubted.values())),
    )


async def _reasons_not_obeyed(
    session: Session, settings: ZooKeeperSettings, drains: Collection[str]
) -> Mapping[str, str]:
    """Return why ZKFCs do not obey the pause or a drain, by ``NnhaPause`` and the NameNode's id."""
    above, pause = store.drains_path(settings), store.pause_path(settings)
    paths = {store.PAUSE_ZNODE: (pause,), **{name: (above, f"{above}/{name}") for name in drains}}
    found = await untrusted_znodes(
        session, settings, settings.scope, *(path for those in paths.values() for path in those)
    )
    told = {}
    for name, those in paths.items():
        why = next((found[path] for path in (settings.scope, *those) if path in found), "")
        if why and value_of(await session.look(those[-1]), f"look at {those[-1]}") is not None:
            told[name] = f"{those[-1]} is not obeyed: {why}; nnha zkfc --format-zk --keep"
    return told


async def _pause(session: Session, settings: ZooKeeperSettings) -> Pause | BadNotice | None:
    try:
        noted = await store.read_pause(session, settings)
    except BadNotice as failure:
        return failure
    return None if noted is None else noted.value


async def _lock(session: Session, settings: ZooKeeperSettings) -> LockView:
    content = await content_of(session, settings.lock)
    return LockView(holder=None if content is None else decode(content).namenode)


async def _server(look: Look, server: HostPort) -> ZooKeeperRow:
    """Ask with the four-letter word `srvr`, which ZooKeeper allows by default."""
    row = ZooKeeperRow(str(server))

    async def question() -> str:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        try:
            writer.write(b"srvr")
            return (await read_all(reader)).decode("utf-8", "replace")
        finally:
            writer.close()

    try:
        answer = await look.ask(question())
    except NoAnswer as error:
        return dataclasses.replace(row, error=str(error))
    for line in answer.splitlines():
        name, _, value = line.partition(":")
        if name == "Mode":
            return dataclasses.replace(row, mode=value.strip()[:MAX_ENTRY_CHARACTERS])
    if "not currently serving" in answer:
        return dataclasses.replace(row, error="up, but not serving (no quorum)")
    return dataclasses.replace(row, mode="unknown")  # it answers; `srvr` is not allowed there
