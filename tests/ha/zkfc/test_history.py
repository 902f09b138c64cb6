"""Every failover is written down: what, why, by whom, how long; never at the failover's cost."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from deploy.local.cluster import zookeeper as cluster_zookeeper
from deploy.local.cluster.java import find_java
from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.processes import Supervisor
from fencing.model import ShellMethod
from ha.elector import events
from ha.elector.model import AttemptNumber, SessionNumber
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.outcome import Done
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected
from ha.notices.model import FailoverKind, FailoverRecord, FailoverResult, HistoryEntry, Member
from ha.notices.store import append_history, read_history
from ha.service.errors import ServiceFailed
from ha.zkfc.record.cause import (
    cause_of,
    kind_of,
    newest_active,
    predecessor_of,
    why_abandoned,
)
from ha.zkfc.record.history import MAX_WAITING, History
from ha.zkfc.record.takeover_record import AttemptRecord, HandOverRequest
from ha.zkfc.settings.settings import FencingPlan, ZkfcSettings
from tests import local_services
from tests.ha.zkfc.zkfc_world import DEADLINE_SECONDS, World, Worlds, until, world
from tests.log_lines import captured

SESSION = SessionNumber(1)


def an_attempt(**given: object) -> AttemptRecord:
    plain = AttemptRecord(
        number=AttemptNumber(1), succeeded=True, text="", fenced="", duration_seconds=0.1,
        finished_at=datetime.now(UTC).isoformat(), previous="nn1",
    )  # fmt: skip
    return replace(plain, **given)  # type: ignore[arg-type]


def a_member(*, in_election: bool, out_because: str = "") -> Member:
    return Member(
        namenode="nn1", zkfc_http="", zkfc_rpc="h:1", pid=1, started=datetime.now(UTC),
        health="healthy", state="standby", ready=True, not_ready_reason="", nofailover=False,
        priority=0, in_election=in_election, out_because=out_because, version="0",
    )  # fmt: skip


HAS_A_NEW_ONE = "the lock was gone: the session of nn1 ended, and its zkfc has a new one"
CAUSES: list[tuple[AttemptRecord, Member | None, str]] = [
    (an_attempt(asked=HandOverRequest("ann", "10.0.0.1")), None, "asked for by ann from 10.0.0.1"),
    (
        an_attempt(asked=HandOverRequest("ann", "10.0.0.1", "new disk")),
        None,
        "asked for by ann from 10.0.0.1: new disk",
    ),
    (
        an_attempt(asked=HandOverRequest("zkfc", "h", "it ranks first", by_itself=True)),
        None,
        "it ranks first",
    ),
    (an_attempt(), None, "the lock was gone: the session of nn1 ended"),
    (an_attempt(seen_ended=True), None, "the process of nn1 ended, as its own zkfc saw"),
    (
        an_attempt(),
        a_member(in_election=False, out_because="our NameNode is unhealthy"),
        "the zkfc of nn1 left the election: our NameNode is unhealthy",
    ),
    (an_attempt(), a_member(in_election=True), HAS_A_NEW_ONE),
    (an_attempt(), a_member(in_election=True, out_because="it was unhealthy"), HAS_A_NEW_ONE),
    (an_attempt(), a_member(in_election=False), HAS_A_NEW_ONE),
    (an_attempt(witnessed="its host is silent"), None, "witnessed: its host is silent"),
    (
        an_attempt(previous=""),
        None,
        "the lock was free, and no earlier active is recorded: it ceded, or there was none",
    ),
    (an_attempt(previous="nn2"), None, "the lock was free, and nn2 itself was the last active"),
    (
        an_attempt(previous="", unreadable=True),
        None,
        "the lock was free, and what is recorded of an earlier active cannot be read",
    ),
]


@pytest.mark.parametrize(("attempt", "former", "cause"), CAUSES)
def test_the_cause(attempt: AttemptRecord, former: Member | None, cause: str) -> None:
    assert cause_of(attempt, "nn2", former) == cause


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (events.QuitRequested(keep_breadcrumb=True), "asked to cede, or its NameNode became unfit"),
        (events.SessionSuspended(SESSION), "connection to ZooKeeper was lost"),
        (events.SessionExpired(SESSION), "session with ZooKeeper ended"),
        (events.LockGone(SESSION), "lock was gone"),
        (events.LockSeen(SESSION, ours=False), "or another's"),
        (events.OutcomeUnknown(SESSION, "set"), "did not say whether it carried out: set"),
        (events.RequestRefused(SESSION, "set", "no auth"), "refused a request"),
    ],
)
def test_a_takeover_that_was_left_half_done_says_why(event: events.Event, told: str) -> None:
    """Say it in words, and not by the name of a class: it stands in `nnha history`."""
    assert told in why_abandoned(event)


def an_entry(namenode: str, result: FailoverResult) -> HistoryEntry:
    record = FailoverRecord(
        at=datetime.now(UTC), namenode=namenode, cause="", actor=None, kind=FailoverKind.AUTO,
        result=result, failure=None, phases=(), epoch=None, last_txid=None, previous="nn9",
        fencing=(), session=None, lock_czxid=None,
    )  # fmt: skip
    return HistoryEntry(1, record)


UNREADABLE = HistoryEntry(2, None, "no record of a failover")
NN1, NN2 = (an_entry(name, FailoverResult.SUCCEEDED) for name in ("nn1", "nn2"))
NN3_NOT = an_entry("nn3", FailoverResult.FAILED)
NEWEST: dict[str, tuple[list[HistoryEntry], str]] = {
    "nobody ever was": ([], ""),
    "the newest": ([NN2, NN1], "nn2"),
    "before one that failed, and one that cannot be read": ([UNREADABLE, NN3_NOT, NN1], "nn1"),
    "nobody, as far as can be read": ([UNREADABLE, NN3_NOT], ""),
}


@pytest.mark.parametrize(("entries", "active"), NEWEST.values(), ids=NEWEST)
def test_who_became_active_last(entries: list[HistoryEntry], active: str) -> None:
    assert newest_active(entries) == active


async def records(
    here: World, enough: Callable[[Sequence[FailoverRecord]], object]
) -> list[FailoverRecord]:
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        connected(here.zookeeper, deadline_seconds=10.0) as session,
    ):
        while True:
            found = await read_history(session, here.zookeeper)
            read = [one.record for one in reversed(found) if one.record is not None]
            if enough(read):
                return read
            await asyncio.sleep(0.02)


@pytest.mark.zookeeper
async def test_an_automatic_failover_is_recorded_with_phases_and_fencing(here: World) -> None:
    one, two = here.nodes
    await records(here, lambda found: len(found) == 1)
    await one.namenode.die()
    await here.active(two)
    first, second = await records(here, lambda found: len(found) == 2)
    assert (first.namenode, first.previous, first.fencing) == ("nn1", None, ())
    assert first.kind is FailoverKind.FIRST
    assert (second.namenode, second.previous) == ("nn2", "nn1")
    assert (second.kind, second.result) == (FailoverKind.AUTO, FailoverResult.SUCCEEDED)
    assert (second.actor, second.failure) == (None, None)
    names = [phase.name for phase in second.phases]
    assert names == ["lock", "fenced", "promoting", "active"]
    assert 0 < second.seconds < DEADLINE_SECONDS
    tries = [(one.method.partition("(")[0], one.result) for one in second.fencing]
    assert tries == [("rpc", "failed"), ("shell", "succeeded")]
    assert all("nn1 at 127.0.0.1" in one.target for one in second.fencing)
    assert second.session == f"{two.keeper.session_id or 0:#x}"
    assert second.lock_czxid is not None
    assert first.lock_czxid is not None
    assert second.lock_czxid > first.lock_czxid


@pytest.mark.zookeeper
async def test_a_switchover_is_recorded_with_who_asked_and_a_refused_one_too(here: World) -> None:
    one, two = here.nodes
    client = await two.rpc()
    await client.graceful_failover(deadline_seconds=DEADLINE_SECONDS)
    await here.standby(one)
    # Two controllers write, each when it comes to it.
    await records(here, lambda found: len(found) == 2)
    two.namenode.healthy, one.namenode.healthy = True, False
    await until(lambda: not one.zkfc.candidacy.joined, "nn1 out")
    back = await one.rpc()
    with pytest.raises(ServiceFailed):
        await back.graceful_failover(deadline_seconds=DEADLINE_SECONDS)
    await client.close()
    await back.close()
    _, done, refused = await records(here, lambda found: len(found) == 3)
    assert (done.kind, done.result) == (FailoverKind.SWITCHOVER, FailoverResult.SUCCEEDED)
    assert done.actor == two.zkfc._settings.user
    assert done.cause == f"asked for by {done.actor} from 127.0.0.1"
    assert (done.previous, done.fencing) == ("nn1", ())
    assert (refused.kind, refused.result) == (FailoverKind.SWITCHOVER, FailoverResult.FAILED)
    assert "not currently healthy" in (refused.failure or "")


@pytest.mark.zookeeper
async def test_failures_are_recorded_without_their_secrets_and_do_not_flood(alone: World) -> None:
    (one,) = alone.nodes
    method = ShellMethod("echo --password hunter2; exit 3")

    def hook(settings: ZkfcSettings) -> ZkfcSettings:
        return replace(settings, fencing={"": FencingPlan(methods=(method,))})

    alone.settings_hook = hook
    two = await alone.add("nn2")
    await alone.start(two)
    await alone.standby(two)
    await one.namenode.die()
    await until(lambda: two.zkfc.attempts.number >= 4, "four attempts")
    found = await records(alone, lambda found: len(found) >= 3)
    failed = [one for one in found if one.result is FailoverResult.FAILED]
    assert "Unable to fence" in (failed[0].failure or "")
    assert failed[0].fencing[-1].result == "failed"
    assert failed[0].fencing[-1].detail == "exit status 3"
    assert "hunter2" not in repr(found)
    assert "hunter2" not in repr(two.zkfc.attempts.last)


async def test_a_failure_that_repeats_itself_does_not_drive_the_others_out() -> None:
    history = History.__new__(History)
    history._failures_in_a_row, history._last_failure = 0, ""
    again = [not history._is_repetition(an_attempt(succeeded=False, text="x")) for _ in range(16)]
    assert [number for number, kept in enumerate(again, 1) if kept] == [1, 2, 4, 8, 16]
    assert not history._is_repetition(an_attempt(succeeded=False, text="y"))
    assert not history._is_repetition(an_attempt())


def test_the_oldest_that_waits_too_long_is_lost_and_named() -> None:
    history = History(cast(Any, "no settings are needed to wait"))
    with captured("history.record.lost") as lines:
        for number in range(MAX_WAITING + 2):
            history.add(an_attempt(number=AttemptNumber(number)))
    assert [(line["attempt"], line["log_level"]) for line in lines] == [(0, "error"), (1, "error")]


async def test_a_history_that_cannot_be_written_delays_nothing_and_is_written_later(
    tmp_path: Path,
) -> None:
    with Supervisor(tmp_path) as supervisor:
        (port,) = free_ports(1)
        server = cluster_zookeeper.start_zookeeper(
            supervisor, java=find_java(wrapper_directory=tmp_path), port=port
        )
        await asyncio.to_thread(cluster_zookeeper.wait_for_zookeeper, server)
        async with world(server.connect, tmp_path, "nn1", session_timeout_seconds=15.0) as here:
            (one,) = here.nodes
            await records(here, lambda found: len(found) == 1)
            server.process.kill()
            begun = asyncio.get_running_loop().time()
            one.zkfc.history.add(an_attempt(previous="nn9"))
            assert asyncio.get_running_loop().time() - begun < 5.0  # the server is gone for good
            await until(lambda: one.zkfc.history._waiting.empty(), "taken up")
            await asyncio.to_thread(local_services.restart_zookeeper, supervisor, server)
            found = await records(here, lambda found: len(found) == 2)
            assert found[-1].previous == "nn9"
            assert one.task is not None
            assert not one.task.done()


@pytest.mark.zookeeper
async def test_a_record_whose_write_had_no_answer_is_not_written_twice(worlds: Worlds) -> None:
    """Play the schedule: the create is done, the answer is lost, and the history tries again."""
    calls = 0

    async def losing(session: Session, settings: ZooKeeperSettings, record: FailoverRecord) -> int:
        nonlocal calls
        calls += 1
        number = await append_history(session, settings, record)
        if calls == 1:
            raise TimeoutError
        return number

    async with worlds("nn1") as here:
        settings = here.nodes[0].zkfc._settings
        history = History(settings, append=losing)
        await records(here, lambda found: len(found) == 1)
        history.add(an_attempt(previous="nn8"))
        history.add(an_attempt(previous="nn9"))
        writing = asyncio.create_task(history.run())
        found = await records(here, lambda found: any(one.previous == "nn9" for one in found))
        writing.cancel()
        assert [one.previous for one in found] == [None, "nn8", "nn9"]


@pytest.mark.zookeeper
async def test_a_lock_that_was_made_after_a_takeover_is_not_called_its_lock(here: World) -> None:
    """Play the schedule: the session ends, and another follows before the history looks."""
    one, _ = here.nodes
    (first,) = await records(here, lambda found: len(found) == 1)
    number = one.zkfc.elector.state.attempt
    one.zkfc.history.add(an_attempt(number=AttemptNumber(number - 1), previous="nn8"))
    one.zkfc.history.add(an_attempt(number=number, previous="nn9"))
    _, late, now = await records(here, lambda found: len(found) == 3)
    assert (late.previous, late.session, late.lock_czxid) == ("nn8", None, None)
    assert (now.previous, now.lock_czxid) == ("nn9", first.lock_czxid)


@pytest.mark.zookeeper
async def test_a_bug_in_the_history_costs_one_record_and_never_the_controller(alone: World) -> None:
    (one,) = alone.nodes
    await records(alone, lambda found: len(found) == 1)
    one.zkfc.history.add(an_attempt(finished_at="no time at all"))
    one.zkfc.history.add(an_attempt(previous="nn9"))
    found = await records(alone, lambda found: len(found) == 2)
    assert found[-1].previous == "nn9"
    one.check()


@pytest.mark.zookeeper
async def test_a_breadcrumb_that_nobody_can_read_is_not_told_as_if_there_were_none(
    alone: World,
) -> None:
    (one,) = alone.nodes
    await one.zkfc.cede(60.0)
    async with connected(alone.zookeeper, deadline_seconds=10.0) as session:
        made = await session.create(alone.zookeeper.breadcrumb, b"garbage")
        assert made == Done(None)
    await one.zkfc.cede(0.0)
    failed = (await records(alone, lambda found: len(found) > 1))[-1]
    assert "what is recorded of an earlier active cannot be read" in failed.cause
    assert failed.failure is not None
    assert "no ActiveNodeInfo" in failed.failure
    assert "--format-zk" in failed.failure


PREDECESSORS: dict[str, tuple[str, str | None, str]] = {
    "the breadcrumb is of our attempt that failed": ("nn1", "nn2", "nn2"),
    "we were active ourselves": ("nn1", "nn1", "nn1"),
    "the history is empty": ("nn1", "", "nn1"),
    "the history cannot be read": ("nn1", None, "nn1"),
    "the other one's breadcrumb": ("nn2", "nn1", "nn2"),
    "no breadcrumb: it ceded": ("", "nn2", ""),
}


@pytest.mark.parametrize("case", PREDECESSORS.values(), ids=PREDECESSORS.keys())
def test_the_predecessor_after_a_failed_attempt_is_the_one_that_was_active(
    case: tuple[str, str | None, str],
) -> None:
    named, before, expected = case
    attempt = an_attempt(previous=named)
    true = predecessor_of(attempt, "nn1", before)
    assert true == expected
    if true != named:
        attempt = replace(attempt, previous=true)
        assert kind_of(attempt, "nn1", before) is FailoverKind.AUTO
        assert cause_of(attempt, "nn1", None) == "the lock was gone: the session of nn2 ended"


KINDS: dict[str, tuple[dict[str, object], str | None, FailoverKind]] = {
    "nobody was ever active": ({}, "", FailoverKind.FIRST),
    "the other one has ceded, and left no breadcrumb": ({}, "nn2", FailoverKind.AUTO),
    "we have ceded, and nobody else came": ({}, "nn1", FailoverKind.REJOINED),
    "our own breadcrumb: a restart in a pause": (
        {"previous": "nn1"}, "nn1", FailoverKind.REJOINED,
    ),
    "the other one was fenced": ({"previous": "nn2"}, "nn2", FailoverKind.AUTO),
    "the history cannot be read": ({}, None, FailoverKind.AUTO),
    "the breadcrumb cannot be read": ({"unreadable": True}, "", FailoverKind.AUTO),
    "the other one was fenced, and we were active before by the history": (
        {"previous": "nn2"}, "nn1", FailoverKind.AUTO,
    ),
    "we have ceded, and its silence was witnessed": (
        {"witnessed": "nn2 is silent"}, "nn1", FailoverKind.REJOINED,
    ),
    "it failed": ({"succeeded": False}, "", FailoverKind.AUTO),
    "an operator asked": ({"asked": HandOverRequest("ann", "ops1")}, "", FailoverKind.SWITCHOVER),
}  # fmt: skip


@pytest.mark.parametrize("case", KINDS.values(), ids=KINDS.keys())
def test_a_failover_is_a_change_of_the_active(
    case: tuple[dict[str, object], str | None, FailoverKind],
) -> None:
    change, before, kind = case
    assert kind_of(an_attempt(**{"previous": "", **change}), "nn1", before) is kind
