"""When a successor may take over without waiting for the old active's read lease."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from fencing.model import JournalEpochMethod, MethodSpec, ShellMethod
from ha.daemon.identity import machine, started_ticks
from ha.elector.model import Term
from ha.elector.term import TermRecord, decode_term, encode_term
from ha.elector.zookeeper.znodes import connected
from ha.service.model import ProcessIdentity
from ha.zkfc.settings.settings import FencingPlan
from ha.zkfc.takeover.former_active import Proof, former_gone_until, predecessor_gone
from ha.zkfc.takeover.namenode_process import NameNodeProcess
from tests.ha.zkfc.zkfc_world import Node, World, Worlds, until

P, T = Proof, Term
RULES: dict[str, tuple[Term, list[Proof], bool]] = {
    "it answered, and was active": (T.SETTLED, [P.STANDS_BY], True),
    "it was killed, and was active": (T.SETTLED, [P.KILLED], True),
    "its controller saw it end, and nobody listens": (T.ENDED, [P.PORT_CLOSED], True),
    "nobody listens, but nobody saw it end": (T.SETTLED, [P.PORT_CLOSED], False),
    "it was seen to end, but somebody is there": (T.ENDED, [P.NOTHING], False),
    "it answered, but was never active itself": (T.UNKNOWN, [P.STANDS_BY], False),
    "it was killed before it was active": (T.UNKNOWN, [P.KILLED], False),
    "one of its two addresses is silent": (T.ENDED, [P.STANDS_BY, P.NOTHING], False),
    "both of its addresses": (T.ENDED, [P.KILLED, P.PORT_CLOSED], True),
    "who wrote of it is not known": (T.DOUBTED, [P.STANDS_BY], False),
    "nothing was asked": (T.ENDED, [], False),
}


@pytest.mark.parametrize(("term", "proofs", "gone"), RULES.values(), ids=RULES.keys())
def test_the_rule(term: Term, proofs: list[Proof], gone: bool) -> None:
    assert predecessor_gone(term, proofs) is gone


@dataclass(frozen=True, slots=True)
class Session:
    last_contact: float | None
    session_timeout_seconds: float | None


def test_we_vouch_for_little_longer_than_winning_an_epoch_takes() -> None:
    """Play the schedule: our NameNode hangs in its promotion, we give the lock up, it is thawed.

    What was said of our predecessor is then false of our successor, which may serve reads.
    """
    assert former_gone_until(Session(99.9, 10.0), now=100.0) == 100.5
    assert former_gone_until(Session(91.2, 10.0), now=100.0) == pytest.approx(100.2)
    assert former_gone_until(Session(None, 10.0), now=100.0) == 0.0
    assert former_gone_until(Session(99.9, None), now=100.0) == 0.0


def test_a_record_speaks_of_one_write_of_the_breadcrumb_only() -> None:
    data = encode_term(TermRecord(7, Term.ENDED, "pid 1"))
    assert decode_term(7, data) is Term.ENDED
    assert decode_term(8, data) is Term.UNKNOWN
    # What raises here would leave the lock with an attempt that never goes on.
    dead = b'{"breadcrumb": 7, "term": "dead"}'
    doubted = b'{"breadcrumb": 7, "term": "doubted"}'  # that is never recorded
    for bad in (None, doubted, b"", b"{}", b"[1]", b"\xff", dead, b"[" * 100_000):
        assert decode_term(7, bad) is Term.UNKNOWN


def a_process() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


def identity(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    started = started_ticks(process.pid)
    assert started is not None
    return ProcessIdentity(process.pid, started, machine())


def test_only_the_very_process_on_this_very_machine_is_seen_to_end() -> None:
    with a_process() as process:
        watched, elsewhere, other = NameNodeProcess(), NameNodeProcess(), NameNodeProcess()
        known = identity(process)
        watched.watch(known)
        elsewhere.watch(replace(known, machine="another"))
        other.watch(replace(known, started_ticks=known.started_ticks - 1))
        assert watched.describe_end() == ""
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert f"pid {known.pid}" in watched.describe_end()  # a zombie has ended
        assert elsewhere.describe_end() == other.describe_end() == ""
        watched.forget()
        assert watched.describe_end() == ""


def test_two_processes_that_served_in_one_term_prove_nothing() -> None:
    with a_process() as one, a_process() as two:
        watched = NameNodeProcess()
        watched.watch(identity(one))
        watched.watch(identity(two))
        watched.watch(identity(one))
        one.kill()
        two.kill()
        assert watched.describe_end() == ""


@asynccontextmanager
async def fenced_by(worlds: Worlds, method: MethodSpec) -> AsyncIterator[World]:
    """Two nodes, the first active and settled, whose fencing method is this one."""
    async with worlds() as made:
        plan = FencingPlan(methods=(method,))
        made.settings_hook = lambda settings: replace(settings, fencing={"": plan})
        one, two = await made.add("one"), await made.add("two")
        await made.start(one)
        await made.active(one)
        await made.start(two)
        await made.standby(two)
        await settled(made)
        yield made


async def settled(made: World) -> None:
    async with connected(made.zookeeper, deadline_seconds=5.0) as session:
        async with asyncio.timeout(30):
            while (await recorded(made, session)) is not Term.SETTLED:
                await asyncio.sleep(0.01)


async def recorded(made: World, session: object) -> Term:
    crumb = await session.read(made.zookeeper.breadcrumb)  # type: ignore[attr-defined]
    record = await session.read(made.zookeeper.term)  # type: ignore[attr-defined]
    data = record.value[0] if hasattr(record, "value") else None
    return decode_term(crumb.value[1].written_by, data)


async def taken_over(made: World) -> Node:
    two = made.nodes[1]
    await made.active(two)
    return two


HARMLESS = ShellMethod("/bin/true")


@pytest.mark.zookeeper
async def test_one_that_answers_the_polite_fence_is_gone(worlds: Worlds) -> None:
    async with fenced_by(worlds, JournalEpochMethod()) as made:
        one = made.nodes[0]
        await one.stop()  # its controller only; the NameNode answers
        two = await taken_over(made)
        assert two.namenode.told_gone == [True]


@pytest.mark.zookeeper
@pytest.mark.parametrize(
    ("method", "gone"),
    [
        (HARMLESS, False),
        (JournalEpochMethod(), False),
        (ShellMethod("kill-it() { :; }; kill-it"), True),
    ],
    ids=["/bin/true", "journal-epoch", "a script of the operator's"],
)
async def test_a_dead_one_is_gone_if_a_method_proves_it(
    worlds: Worlds, method: MethodSpec, gone: bool
) -> None:
    async with fenced_by(worlds, method) as made:
        await made.nodes[0].namenode.die()
        two = await taken_over(made)
        assert two.namenode.told_gone == [gone]


@pytest.mark.zookeeper
async def test_a_killed_one_is_gone_when_its_own_controller_saw_the_process_end(
    worlds: Worlds,
) -> None:
    with a_process() as process:
        async with fenced_by(worlds, HARMLESS) as made:
            one = made.nodes[0]
            one.namenode.process = identity(process)
            await until(lambda: one.zkfc.local_process.watching, "the process watched")
            process.kill()
            await one.namenode.die()
            two = await taken_over(made)
            assert two.namenode.told_gone == [True]
            # The record is of that term: it does not excuse the next active.
            await settled(made)
            two.namenode.process = None
            await two.namenode.die()
            await one.namenode.start()
            await made.active(one)
            assert one.namenode.told_gone[-1] is False


@pytest.mark.zookeeper
async def test_a_process_that_lives_on_behind_closed_sockets_is_waited_for(worlds: Worlds) -> None:
    with a_process() as process:
        async with fenced_by(worlds, HARMLESS) as made:
            one = made.nodes[0]
            one.namenode.process = identity(process)
            await until(lambda: one.zkfc.local_process.watching, "the process watched")
            await one.namenode.die()
            two = await taken_over(made)
            assert two.namenode.told_gone == [False]
        process.kill()


@pytest.mark.zookeeper
async def test_a_hand_over_waits_for_nobody(worlds: Worlds) -> None:
    async with fenced_by(worlds, HARMLESS) as made:
        two = made.nodes[1]
        client = await two.rpc()
        await client.graceful_failover(deadline_seconds=10.0)
        await client.close()
        await made.active(two)
        assert two.namenode.told_gone == [True]
