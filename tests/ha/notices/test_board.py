"""A board on a real ZooKeeper: it sees what others write, and what it shows goes with it."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from kazoo.client import KazooClient

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.client import Session, SessionFactory
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.outcome import Done, Doubt, Outcome, Unknown
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, ensure_parent
from ha.notices import store
from ha.notices.board import Board, utc_now
from ha.notices.expiry import Expiry
from ha.notices.model import BadNotice, Drain, Member, encode_member, encode_pause
from ha.notices.seen import FREE, Notices
from tests.ha.notices.test_model import MEMBER, NOON, PAUSE
from tests.ha.zkfc.zkfc_world import until
from tests.log_lines import captured

pytestmark = pytest.mark.zookeeper

_scopes = itertools.count(1)
DRAIN = Drain(owner="bob@ops1", reason="disk", since=NOON, until=None)
OURS = replace(MEMBER, namenode="nn1", zkfc_rpc="host1:8019", host="h1")
THEIRS = replace(MEMBER, namenode="nn2", zkfc_rpc="host2:8019", host="h2")
LASTING = replace(PAUSE, until=None)


@dataclass
class Place:
    """A formatted nameservice, and an operator's session."""

    zookeeper: ZooKeeperSettings
    session: Session
    clock: Callable[[], datetime] = utc_now
    running: list["asyncio.Task[None]"] = field(default_factory=list)

    def board(
        self, namenode: str, member: Member | None = None, *, open_session: SessionFactory = Session
    ) -> Board:
        # Without a poll that would help, watches must report everything.
        board = Board(
            self.zookeeper, namenode, lambda _: None, clock=lambda: self.clock(),
            open_session=open_session, poll_seconds=3600,
        )  # fmt: skip
        if member is not None:
            board.publish(member)
        self.running.append(asyncio.create_task(board.run()))
        return board

    async def stop(self, number: int) -> None:
        self.running[number].cancel()
        with suppress(asyncio.CancelledError):
            await self.running[number]

    async def members(self) -> dict[str, Member | BadNotice]:
        return dict(await store.read_members(self.session, self.zookeeper))

    async def shows(self, *members: Member) -> None:
        async with asyncio.timeout(30.0):
            while await self.members() != {one.namenode: one for one in members}:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def _place(hosts: str) -> AsyncIterator[Place]:
    settings = ZooKeeperSettings(
        hosts=hosts,
        session_timeout_seconds=4.0,
        scope=f"/hadoop-ha/board{next(_scopes)}",
        acl=parse_acl("world:anyone:rwcda"),
    )
    async with connected(settings, deadline_seconds=10.0) as session:
        await ensure_parent(session, settings)
        place = Place(settings, session)
        try:
            yield place
        finally:
            for number in range(len(place.running)):
                await place.stop(number)


async def _sees(board: Board, condition: Callable[[Notices], object], what: str) -> None:
    await until(lambda: board.notices and condition(board.notices), what, seconds=30.0)


async def test_a_pause_is_seen_when_it_comes_changes_and_goes(zookeeper: ZooKeeper) -> None:
    async with _place(zookeeper.connect) as place:
        board = place.board("nn1")
        await _sees(board, lambda seen: seen.pause is None, "nothing")
        await store.write_pause(place.session, place.zookeeper, LASTING)
        await _sees(board, lambda seen: seen.pause == LASTING, "the pause")
        other = replace(LASTING, reason="longer than we thought")
        await store.write_pause(place.session, place.zookeeper, other)
        await _sees(board, lambda seen: seen.pause == other, "the new reason")
        await store.clear_pause(place.session, place.zookeeper)
        await _sees(board, lambda seen: seen.pause is None, "no pause")


async def test_only_the_own_drain_counts(zookeeper: ZooKeeper) -> None:
    async with _place(zookeeper.connect) as place:
        one, two = place.board("nn1"), place.board("nn2")
        await _sees(one, lambda seen: seen.drain is None, "nothing")
        await store.write_drain(place.session, place.zookeeper, "nn1", DRAIN)
        await _sees(one, lambda seen: seen.drain == DRAIN, "the drain")
        await _sees(two, lambda seen: seen.drain is None, "none of its own")
        await store.clear_drain(place.session, place.zookeeper, "nn1")
        await _sees(one, lambda seen: seen.drain is None, "no drain")


async def test_expired_notices_are_as_if_absent_and_taken_away(zookeeper: ZooKeeper) -> None:
    async with _place(zookeeper.connect) as place:
        since = utc_now().replace(microsecond=0)
        ends = since + timedelta(milliseconds=600)
        place.clock = lambda: ends - timedelta(milliseconds=200)
        board = place.board("nn1", OURS)
        pause = replace(LASTING, since=since, until=ends)
        await store.write_pause(place.session, place.zookeeper, pause)
        drain = replace(DRAIN, since=since, until=ends)
        await store.write_drain(place.session, place.zookeeper, "nn1", drain)
        await _sees(board, lambda seen: seen.pause and seen.drain, "both")
        place.clock = lambda: ends
        await _sees(board, lambda seen: not seen.pause and not seen.drain, "neither")
        async with asyncio.timeout(30.0):
            while await store.read_pause(place.session, place.zookeeper) is not None:
                await asyncio.sleep(0.01)
            while await store.read_drain(place.session, place.zookeeper, "nn1") is not None:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(days=400)], ids=str)
async def test_a_fast_clock_ends_no_pause_and_no_drain(
    zookeeper: ZooKeeper, ahead: timedelta
) -> None:
    async with _place(zookeeper.connect) as place:
        since = utc_now().replace(microsecond=0)
        pause = replace(LASTING, since=since, until=since + timedelta(minutes=30))
        drain = replace(DRAIN, since=since, until=since + timedelta(minutes=30))
        await store.write_pause(place.session, place.zookeeper, pause)
        await store.write_drain(place.session, place.zookeeper, "nn1", drain)
        place.clock = lambda: utc_now() + ahead
        with captured("notices.clock_is_ahead") as logs:
            board = place.board("nn1", OURS)
            await _sees(board, lambda seen: seen.pause and seen.drain, "both")
            # The second reading, which another member brings, asks ZooKeeper for no time again.
            place.board("nn2", THEIRS)
            await _sees(board, lambda seen: seen.members, "the other")
        assert board.notices
        assert (board.notices.pause, board.notices.drain) == (pause, drain)
        assert await store.read_pause(place.session, place.zookeeper) is not None
        ours = [line for line in logs if line["namenode"] == "nn1"]
        assert len(ours) == 2, logs
        assert abs(ours[0]["clock_ahead_seconds"] - ahead.total_seconds()) < 30
        assert 1700 < ours[0]["seconds_left"] <= 1800


@pytest.mark.parametrize("shown_by", ["nn2", ""])
async def test_a_fast_clock_that_cannot_ask_ends_a_pause_for_itself_alone(
    zookeeper: ZooKeeper, shown_by: str
) -> None:
    """Our member znode is another session's still, or is not there: ZooKeeper's time is unknown."""
    async with _place(zookeeper.connect) as place:
        since = utc_now().replace(microsecond=0)
        pause = replace(LASTING, since=since, until=since + timedelta(minutes=30))
        await store.write_pause(place.session, place.zookeeper, pause)
        place.board("nn2", THEIRS)
        await place.shows(THEIRS)
        noted = store.Noted(pause, 0, written_at=since.timestamp())
        member = f"{store.members_path(place.zookeeper)}/{shown_by}" if shown_by else ""
        clear = partial(store.clear_pause, place.session, place.zookeeper)
        late = utc_now() + timedelta(hours=1)
        found = await Expiry("nn1").in_force(place.session, late, member, noted, clear)
        assert found[0] is None
        assert await store.read_pause(place.session, place.zookeeper) is not None


async def test_a_pause_whose_time_is_over_by_all_clocks_does_not_outlive_a_fast_one(
    zookeeper: ZooKeeper,
) -> None:
    async with _place(zookeeper.connect) as place:
        since = utc_now().replace(microsecond=0)
        pause = replace(LASTING, since=since, until=since + timedelta(seconds=1))
        await store.write_pause(place.session, place.zookeeper, pause)
        place.clock = lambda: utc_now() + timedelta(hours=1)
        board = place.board("nn1", OURS)
        await _sees(board, lambda seen: seen.pause == pause, "the pause")
        await _sees(board, lambda seen: seen.pause is None, "its end")


async def test_an_unreadable_pause_pauses_nobody(zookeeper: ZooKeeper) -> None:
    async with _place(zookeeper.connect) as place:
        await place.session.create(store.pause_path(place.zookeeper), b"until tomorrow")
        board = place.board("nn1")
        await _sees(board, lambda seen: seen.pause is None, "none")


async def test_what_may_not_be_read_keeps_nobody_waiting(zookeeper: ZooKeeper) -> None:
    """Go on to the election, which shows what is wrong, instead of waiting for ever."""
    async with _place(zookeeper.connect) as place:
        closed = replace(place.zookeeper, acl=parse_acl("digest:ann:x:rwcda"))
        async with connected(closed, deadline_seconds=10.0) as ann:
            await ann.create(store.pause_path(place.zookeeper), encode_pause(LASTING))
            await ann.create(store.members_path(place.zookeeper))
            await ann.create(place.zookeeper.lock)
        board = place.board("nn1", OURS)
        await _sees(board, lambda seen: seen == Notices(), "nothing that it may read")
        await until(lambda: "member" in board._complaints, "a complaint", seconds=30.0)
        assert store.pause_path(place.zookeeper) in board._complaints


async def test_members_see_one_another_come_change_and_go(zookeeper: ZooKeeper) -> None:
    async with _place(zookeeper.connect) as place:
        one, two = place.board("nn1", OURS), place.board("nn2", THEIRS)
        await _sees(one, lambda seen: seen.members == (THEIRS,), "nn2")
        await _sees(two, lambda seen: seen.members == (OURS,), "nn1")
        ill = replace(THEIRS, health="unhealthy")
        two.publish(ill)
        await _sees(one, lambda seen: seen.members == (ill,), "nn2 ill")
        late = replace(THEIRS, namenode="nn3", zkfc_rpc="host3:8019")
        place.board("nn3", late)
        await _sees(one, lambda seen: seen.members == (ill, late), "nn3 has come")
        await place.stop(2)
        await place.stop(1)
        await _sees(one, lambda seen: seen.members == (), "nn2 gone")


async def test_the_lock_is_seen_taken_and_free(zookeeper: ZooKeeper) -> None:
    async with _place(zookeeper.connect) as place:
        board = place.board("nn1")
        await _sees(board, lambda seen: seen.lock_holder == FREE, "free")
        lock = place.zookeeper.lock
        await place.session.create(lock, encode(ActiveNodeInfo("ns", "nn2", "h", 1, 2)))
        await _sees(board, lambda seen: seen.lock_holder == "nn2", "nn2's")
        await place.session.delete(lock)
        await _sees(board, lambda seen: seen.lock_holder == FREE, "free again")


async def test_a_member_is_there_again_after_its_session_expired(zookeeper: ZooKeeper) -> None:
    async with _place(zookeeper.connect) as place:
        board = place.board("nn1", OURS)
        await place.shows(OURS)
        session = board.connected_session
        assert session is not None
        before = session.session_id
        await _end(zookeeper.connect, session)
        await until(
            lambda: (
                board.connected_session is not None
                and board.connected_session.session_id not in (None, before)
            ),
            "another session",
            seconds=30.0,
        )
        await place.shows(OURS)


class SilentHolder:
    """A session that writes, and gets no answer that it has."""

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - a session's own
        self._session = Session(*arguments, **named)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a session has
        return getattr(self._session, name)

    async def write(self, path: str, data: bytes, *, version: int) -> Outcome[int]:
        await self._session.write(path, data, version=version)
        return Unknown(Doubt.LOST)


async def test_what_is_shown_is_what_stands_there_and_not_what_was_written_last(
    zookeeper: ZooKeeper,
) -> None:
    async with _place(zookeeper.connect) as place:
        board = place.board("nn1", OURS, open_session=SilentHolder)  # type: ignore[arg-type]
        await place.shows(OURS)
        ill = replace(OURS, health="unhealthy")
        board.publish(ill)
        await place.shows(ill)
        board.publish(OURS)
        # It reads the notices only when it need not write any more; the first time it may have been
        # at it already.
        await store.write_pause(place.session, place.zookeeper, LASTING)
        await _sees(board, lambda seen: seen.pause, "the pause")
        await store.clear_pause(place.session, place.zookeeper)
        await _sees(board, lambda seen: seen.pause is None, "no pause")
        assert await place.members() == {"nn1": OURS}


async def _end(hosts: str, session: Session) -> None:
    """End a session at the server, as if it had been silent for too long."""

    def end() -> None:
        thief = KazooClient(hosts=hosts, client_id=session._client.client_id, timeout=10)
        thief.start()
        thief.stop()
        thief.close()

    await asyncio.to_thread(end)


async def test_one_that_somebody_deletes_is_there_again(zookeeper: ZooKeeper) -> None:
    async with _place(zookeeper.connect) as place:
        place.board("nn1", OURS)
        await place.shows(OURS)
        await place.session.delete(f"{store.members_path(place.zookeeper)}/nn1")
        await place.shows(OURS)


@pytest.mark.row("W22")
async def test_what_an_earlier_process_left_behind_is_replaced_before_it_expires(
    zookeeper: ZooKeeper,
) -> None:
    """Kill a zkfc and start it again: its old session lives on for a while."""
    async with _place(zookeeper.connect) as place:
        path = store.members_path(place.zookeeper)
        await place.session.create(path)
        left = replace(OURS, pid=OURS.pid + 1)
        assert await place.session.create(f"{path}/nn1", encode_member(left), ephemeral=True) == (
            Done(None)
        )
        place.board("nn1", OURS)
        await place.shows(OURS)


ELSEWHERE = replace(OURS, zkfc_rpc="elsewhere:8019", host="h9")
COPIED = replace(OURS, host="h9")
"""The same configuration on another machine: the address is ours, and the process lives."""


@pytest.mark.row("W22")
@pytest.mark.parametrize("other", [ELSEWHERE, COPIED], ids=["another port", "a copy"])
async def test_w22_another_living_zkfc_of_the_same_name_is_left_alone(
    zookeeper: ZooKeeper, other: Member
) -> None:
    async with _place(zookeeper.connect) as place:
        first = place.board("nn1", other)
        await place.shows(other)
        second = place.board("nn1", OURS)
        await _sees(second, lambda seen: seen.namesake, "it sees the first")
        assert second.notices is not None
        told = second.notices.namesake
        assert f"process {other.pid} on h9, at {other.zkfc_rpc}, since 2026-" in told
        await place.shows(other)
        assert first.notices is not None
        assert first.notices.namesake == ""
        assert await store.read_namesakes(place.session, place.zookeeper) == (OURS,)
        await place.stop(0)
        await _sees(second, lambda seen: not seen.namesake, "the first is gone")
        await place.shows(OURS)
        async with asyncio.timeout(30.0):
            while await store.read_namesakes(place.session, place.zookeeper):
                await asyncio.sleep(0.01)


@pytest.mark.row("W22")
async def test_w22_of_several_that_start_at_once_exactly_one_may_stand(
    zookeeper: ZooKeeper,
) -> None:
    """Name the namesake in every notice, the first one too: else a controller would join early."""
    async with _place(zookeeper.connect) as place:
        told: dict[str, list[Notices]] = {f"h{number}": [] for number in range(5)}
        for host, heard in told.items():
            board = Board(place.zookeeper, "nn1", heard.append, poll_seconds=3600)
            board.publish(replace(OURS, host=host))
            place.running.append(asyncio.create_task(board.run()))
        await until(lambda: all(told.values()), "all have read", seconds=30.0)
        may = [host for host, heard in told.items() if any(not one.namesake for one in heard)]
        assert len(may) == 1
        await place.shows(replace(OURS, host=may[0]))
