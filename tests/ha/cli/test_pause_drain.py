"""nnha pause, resume and drain in a real ZooKeeper, with ZKFCs that obey or do not."""

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.outcome import Done, Refusal, Refused
from ha.elector.zookeeper.znodes import connected
from ha.notices import store
from ha.notices.model import Member, Pause, encode_member
from tests.ha.cli import schema
from tests.ha.cli.nnha_run import Told, nnha
from tests.ha.cli.zookeeper_scope import Scope
from tests.ha.notices.test_model import MEMBER, NOON

pytestmark = pytest.mark.zookeeper

AUTO = ("-D", "dfs.ha.automatic-failover.enabled=true")
FOR = ("--for", "2h", "--reason", "new switch")


async def run(scope: Scope, command: str, *words: str) -> Told:
    told = await nnha(command, *scope.words, *AUTO, "-o", "json", *words)
    if told.out:
        assert schema.faults("ending", told.document) == []
    return told


@asynccontextmanager
async def zkfc(scope: Scope, *, obeys: bool) -> AsyncIterator[None]:
    """Play a member of nn1 that shows the notices that it sees, or never sees any."""
    member = dataclasses.replace(MEMBER, pause_seen=None, in_election=obeys)
    async with connected(scope.settings, deadline_seconds=30.0) as session:
        await session.create(store.members_path(scope.settings))
        path = f"{store.members_path(scope.settings)}/nn1"
        assert await session.create(path, encode_member(member), ephemeral=True) == Done(None)
        task = asyncio.create_task(_obey(session, scope, member)) if obeys else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


async def _obey(session: Session, scope: Scope, member: Member) -> None:
    while True:
        pause = await store.read_pause(session, scope.settings)
        drain = await store.read_drain(session, scope.settings, "nn1")
        shown = dataclasses.replace(
            member,
            pause_seen=None if pause is None else pause.value.since,
            drain_seen=None if drain is None else drain.value.since,
            in_election=drain is None,
        )
        path = f"{store.members_path(scope.settings)}/nn1"
        await session.write(path, encode_member(shown), version=-1)
        await asyncio.sleep(0.02)


async def test_a_pause_is_there_once_the_zkfc_shows_it_and_gone_after_resume(scope: Scope) -> None:
    async with zkfc(scope, obeys=True):
        told = await run(scope, "pause", *FOR)
        assert told.code == 0
        assert "the only running ZKFC has seen it" in told.document["message"]
        async with connected(scope.settings, deadline_seconds=30.0) as session:
            noted = await store.read_pause(session, scope.settings)
        assert noted is not None
        assert noted.value.reason == "new switch"
        assert noted.value.until is not None
        assert (noted.value.until - noted.value.since).total_seconds() == 7200
        again = await run(scope, "pause", "--until-ended", "--reason", "longer")
        assert "in place of the one by " in again.document["message"]
        told = await run(scope, "resume")
        assert (told.code, told.document["code"]) == (0, "DONE")
        told = await run(scope, "resume")
        assert (told.code, told.document["code"]) == (0, "ALREADY_SO")


async def test_a_zkfc_that_does_not_show_it_is_named(scope: Scope) -> None:
    async with zkfc(scope, obeys=False):
        told = await run(scope, "pause", *FOR, "--wait", "0.3")
    assert (told.code, told.document["code"]) == (4, "NOT_SEEN_BY_ALL")
    assert [one["node"] for one in told.document["reasons"]] == ["nn1"]


@pytest.mark.parametrize(
    "words",
    [("pause", *FOR), ("drain", "nn1", *FOR), ("pause", "--for", "1ms", "--reason", "short")],
    ids=["another pause", "the end of the drain", "its own time"],
)
async def test_nobody_waits_for_what_no_longer_holds(scope: Scope, words: tuple[str, ...]) -> None:
    async with (
        zkfc(scope, obeys=False),
        connected(scope.settings, deadline_seconds=30.0) as session,
    ):
        asked = asyncio.create_task(run(scope, *words, "--wait", "600"))
        if words[0] == "drain":
            await _written(lambda: store.read_drain(session, scope.settings, "nn1"))
            await store.clear_drain(session, scope.settings, "nn1")
        else:
            first = await _written(lambda: store.read_pause(session, scope.settings))
            if FOR[1] in words:
                later = dataclasses.replace(first.value, since=NOON)
                await store.write_pause(session, scope.settings, later)
        told = await asked
    assert (told.code, told.document["code"]) == (4, "NOT_SEEN_BY_ALL")
    assert "it is over, or another request has taken its place" in told.document["message"]
    assert told.document["hint"] == "see what holds now: nnha status"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("pause", *FOR), "the pause may be written, and stays then"),
        (("drain", "nn1", *FOR), "the drain of nn1 may be written, and stays then"),
    ],
    ids=["pause", "drain"],
)
async def test_who_interrupts_the_wait_is_told_that_it_stays_written(
    scope: Scope, tmp_path: Path, words: tuple[str, ...], text: str
) -> None:
    # A shell that runs the tests in the background has us ignore SIGINT, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    audit = ("-D", f"nnha.audit.file={tmp_path / 'audit.log'}")
    async with (
        zkfc(scope, obeys=False),
        connected(scope.settings, deadline_seconds=30.0) as session,
    ):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "ha.cli.main", *words, *scope.words, *AUTO, *audit,
            "--wait", "600", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            if words[0] == "drain":
                await _written(lambda: store.read_drain(session, scope.settings, "nn1"))
            else:
                await _written(lambda: store.read_pause(session, scope.settings))
            process.send_signal(signal.SIGINT)
            _, err = await asyncio.wait_for(process.communicate(), 30)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert process.returncode == 130
    assert f"INTERRUPTED: {text}; look with: nnha status" in err.decode()
    line = json.loads((tmp_path / "audit.log").read_text())
    assert (line["action"], line["outcome"]) == (words[0], "unknown")


async def _written(read: Callable[[], Awaitable[store.Noted[Pause] | None]]) -> store.Noted[Pause]:
    async with asyncio.timeout(30):
        while (found := await read()) is None:
            await asyncio.sleep(0.02)
    return found


async def test_what_became_of_each_is_in_the_audit_log(scope: Scope, tmp_path: Path) -> None:
    audit = ("-D", f"nnha.audit.file={tmp_path / 'audit.log'}")
    async with zkfc(scope, obeys=False):
        await run(scope, "pause", *FOR, "--wait", "0.3", *audit)
        await run(scope, "pause", *FOR, "--dry-run", *audit)
    await run(scope, "resume", *audit)
    await run(scope, "drain", "nn9", *FOR, *audit)
    lines = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    assert [(one["action"], one["outcome"]) for one in lines] == [
        ("pause", "failed"), ("resume", "done"), ("drain", "refused"),
    ]  # fmt: skip
    assert "new switch" in lines[0]["reason"]
    assert {(one["proto"], one["uid"]) for one in lines} == {("command", os.getuid())}
    elsewhere = ("-D", f"nnha.audit.file={tmp_path / 'no/audit.log'}")
    told = await run(scope, "resume", *elsewhere)
    assert told.code == 0, "the deed stands"
    assert "the audit log was not written" in told.err


async def test_without_a_zkfc_it_is_written_for_those_that_start(scope: Scope) -> None:
    told = await run(scope, "pause", *FOR)
    assert told.code == 0
    assert "no ZKFC is running" in told.document["message"]


async def test_a_dry_run_writes_nothing(scope: Scope) -> None:
    assert (await run(scope, "pause", *FOR, "--dry-run")).document["outcome"] == "planned"
    assert (await run(scope, "drain", "nn1", *FOR, "--dry-run")).document["outcome"] == "planned"
    async with connected(scope.settings, deadline_seconds=30.0) as session:
        assert await store.read_pause(session, scope.settings) is None
        assert await store.read_drain(session, scope.settings, "nn1") is None


async def test_resume_takes_junk_away_too(scope: Scope) -> None:
    async with connected(scope.settings, deadline_seconds=30.0) as session:
        assert await session.create(store.pause_path(scope.settings), b"junk") == Done(None)
        told = await run(scope, "resume")
        assert (told.code, told.document["code"]) == (0, "DONE")
        outcome = await session.read(store.pause_path(scope.settings))
    assert isinstance(outcome, Refused)
    assert outcome.why is Refusal.NO_NODE


async def test_a_drain_is_there_once_its_zkfc_is_out_and_ends(scope: Scope) -> None:
    async with zkfc(scope, obeys=True):
        told = await run(scope, "drain", "nn1", *FOR)
        assert (told.code, told.document["target"]) == (0, "nn1")
        told = await run(scope, "drain", "nn1", "--end")
        assert (told.code, told.document["code"]) == (0, "DONE")
        told = await run(scope, "drain", "nn1", "--end")
        assert (told.code, told.document["code"]) == (0, "ALREADY_SO")


async def test_a_drain_that_its_zkfc_does_not_show_is_no_success(scope: Scope) -> None:
    async with zkfc(scope, obeys=False):
        told = await run(scope, "drain", "nn1", *FOR, "--wait", "0.3")
    assert (told.code, told.document["code"]) == (4, "NOT_SEEN_BY_ALL")


async def test_a_drain_that_cannot_hand_over_says_why(scope: Scope) -> None:
    """ZKFCs of different users: the drain is obeyed, and the hand-over denied by the other one."""
    denied = "Access denied for user hdfs: gracefulFailover"
    async with connected(scope.settings, deadline_seconds=30.0) as session:
        await session.create(store.members_path(scope.settings))

        async def show() -> None:
            while True:
                drain = await store.read_drain(session, scope.settings, "nn1")
                since = None if drain is None else drain.value.since
                member = dataclasses.replace(MEMBER, drain_seen=since, hand_over_failure=denied)
                path = f"{store.members_path(scope.settings)}/nn1"
                await session.create(path, encode_member(member), ephemeral=True)
                await session.write(path, encode_member(member), version=-1)
                await asyncio.sleep(0.02)

        showing = asyncio.create_task(show())
        told = await run(scope, "drain", "nn1", *FOR, "--wait", "2")
        showing.cancel()
    assert (told.code, told.document["code"]) == (4, "NOT_SEEN_BY_ALL")
    assert (
        f"its last try to hand over failed, and it tries again: {denied}"
        in (told.document["message"])
    )
    assert "nnha doctor" in told.document["hint"]


@pytest.mark.parametrize(
    "words",
    [
        ("pause", "--for", "2h"),
        ("pause", "--reason", "x"),
        ("pause", "--reason", "x", "--for", "2h", "--until-ended"),
        ("pause", "--reason", "x", "--for", "3x"),
        ("drain", "nn1", "--for", "2h"),
        ("drain", "nn1", "--end", "--for", "2h"),
    ],
)
async def test_a_wish_without_time_or_reason_is_a_usage_error(
    scope: Scope, words: tuple[str, ...]
) -> None:
    assert (await run(scope, *words)).code == 2


async def test_a_pause_that_anybody_could_have_written_is_told_as_not_obeyed(scope: Scope) -> None:
    settings = scope.settings  # open, as it was before
    async with connected(settings, deadline_seconds=30.0) as session:
        lasting = Pause(owner="ann", reason="older", since=NOON, until=None)
        await store.write_pause(session, settings, lasting)
    obeyed = await nnha("status", *scope.words, *AUTO, "-o", "json")
    assert obeyed.document["pause"]["reason"] == "older"
    (scope.conf_dir / "auth").write_text("digest:me:word")
    keys = ("ha.zookeeper.acl=auth::rwcda", f"ha.zookeeper.auth=@{scope.conf_dir / 'auth'}")
    closed = [word for key in keys for word in ("-D", key)]
    told = await nnha("status", *scope.words, *AUTO, *closed, "-o", "json")
    assert told.document["pause"] is None
    shown = await nnha("status", *scope.words, *AUTO, *closed)
    assert "NnhaPause is not obeyed: anybody could do everything" in " ".join(shown.out.split())
    for command in (("pause",), ("drain", "nn1")):
        refused = await run(scope, *command, *FOR, *closed)
        assert refused.code != 0
        assert "the ZKFCs would not obey a" in refused.document["message"]
