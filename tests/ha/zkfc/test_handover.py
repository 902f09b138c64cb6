"""Planned hand-overs, without Hadoop's false failures."""

import asyncio
import os
from dataclasses import replace

import pytest

from ha.conf.topology import HostPort
from ha.daemon.identity import machine, started_ticks
from ha.service.errors import AccessDenied, ServiceFailed
from ha.service.model import ProcessIdentity, ServiceState
from ha.service.zkfc_client import ZkfcClient
from ha.zkfc.settings.settings import ZkfcSettings
from tests.ha.zkfc.zkfc_world import Node, World, Worlds, until
from tests.stand_in import stand_in

pytestmark = pytest.mark.zookeeper


async def _to(node: Node) -> None:
    client = await node.rpc()
    try:
        await client.graceful_failover(deadline_seconds=30.0)
    finally:
        await client.close()


def _transitions(here: World) -> list[int]:
    return [node.namenode.active_transitions for node in here.nodes]


@pytest.mark.row("8.13 7", "W8")
async def test_w8_8_13_7_a_dead_third_controller_does_not_block_it(worlds: Worlds) -> None:
    # In Hadoop any silent controller fails a planned failover.
    async with worlds("nn1", "nn2", "nn3") as here:
        _, two, three = here.nodes
        await three.stop()
        await _to(two)
        await here.active(two)
        assert here.fenced() == []


async def test_it_waits_for_no_process_to_end_and_opens_no_session(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both cost 20 ms, a quarter of a whole hand-over, and the first of it every task's time."""
    monkeypatch.setattr("ha.zkfc.surroundings.process_watch.EXIT_MILLIS", 60_000)
    async with worlds("nn1", "nn2") as here:
        one, two = here.nodes
        started = started_ticks(os.getpid())
        assert started is not None
        one.namenode.process = ProcessIdentity(os.getpid(), started, machine())
        await until(lambda: one.zkfc.local_process.watching, "the process watched")
        await here.standby(two)

        async def refuse(*_: object, **__: object) -> None:
            raise AssertionError("a session for one question")

        monkeypatch.setattr("ha.zkfc.takeover.takeover.read_active", refuse)
        async with asyncio.timeout(30):
            await _to(two)
        await here.active(two)


async def test_one_that_is_just_being_made_standby_is_not_called_active(alone: World) -> None:
    """Play seed 60031 of `./run soak failover`: a success that was none.

    nn1 is asked to cede, and its NameNode has become standby or is about to; the lock is still its
    own.  A request for nn1 in this moment was answered that it is active.
    """
    (one,) = alone.nodes
    async with one.namenode.busy:  # the demotion takes its time
        ceding = asyncio.create_task(one.zkfc.cede(0.1))
        await until(lambda: "standby by ZKFC" in one.namenode.seen, "it is asked to stand by")
        with pytest.raises(ServiceFailed, match="just being made standby"):
            await _to(one)
    await ceding
    await alone.active(one)


async def test_of_two_operators_at_once_one_succeeds_and_the_other_is_told_at_once(
    here: World,
) -> None:
    """nn1 is just being promoted for the one, and asked to cede for the other.

    It left the election, and the first operator waited for the whole limit, 70 s.
    """
    one, two = here.nodes
    await here.active(one)
    async with two.namenode.busy:  # the promotion takes its time
        first = asyncio.create_task(_to(two))
        await until(lambda: "active by ZKFC" in two.namenode.seen, "nn2 is being promoted")
        second = asyncio.create_task(_to(one))
        with pytest.raises(ServiceFailed, match="asked to cede meanwhile"):
            async with asyncio.timeout(30):
                await first
    await second
    await here.active(one)


async def test_who_waits_for_the_lock_does_not_stand_back_for_another_hand_over(
    worlds: Worlds,
) -> None:
    """Refuse it: if each of two targets did so for the other's sake, none would take the lock."""
    async with worlds("nn1", "nn2", "nn3") as here:
        one, two, three = here.nodes
        await here.active(one)
        async with one.namenode.busy:  # the cede takes its time
            outcomes = [asyncio.create_task(_to(node)) for node in (two, three)]
            targets = [node.zkfc.hand_over for node in (two, three)]
            await until(
                lambda: all(target.ceding_namenode for target in targets), "both are under way"
            )
            with pytest.raises(ServiceFailed, match="a hand-over to nn2 is under way"):
                await two.zkfc.cede(60.0)
        async with asyncio.timeout(30):
            told = await asyncio.gather(*outcomes, return_exceptions=True)
        failures = [str(one) for one in told if one is not None]
        assert len(failures) == 1
        assert "took the lock meanwhile" in failures[0]
        await here.active(three if told[0] is not None else two)


async def test_strangers_may_not_ask(alone: World) -> None:
    (one,) = alone.nodes
    address = HostPort("127.0.0.1", one.zkfc.port)
    client = await ZkfcClient.open(address, deadline_seconds=5.0, user="mallory")
    with pytest.raises(AccessDenied, match=r"mallory"):
        await client.cede_active(1000, deadline_seconds=5.0)
    await client.close()
    assert one.namenode.state is ServiceState.ACTIVE


async def test_who_is_let_go_while_its_namenode_is_slow_to_stand_by_comes_back_at_once(
    here: World,
) -> None:
    """Come back, or the only other candidate stands back long after the hand-over is over."""
    one, two = here.nodes
    async with two.namenode.busy:
        ceding = asyncio.create_task(two.zkfc.cede(600.0))
        await here.until(lambda: two.zkfc.candidacy.in_transition, "nn2 is asked to stand by")
        await two.zkfc.cede(0.0)
    await ceding
    await here.standby(two)
    await one.namenode.die()
    await here.active(two)


async def test_a_hand_over_that_is_given_up_asks_nobody_any_more(worlds: Worlds) -> None:
    """Ask no peer: one that hears it only when all were released would stand back in vain."""
    asked, hung_up = asyncio.Event(), asyncio.Event()

    async def never_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = not asked.is_set()  # the second one lets it go
        asked.set()
        while await reader.read(1024):
            pass
        if first:
            hung_up.set()
        writer.close()

    def patient(settings: ZkfcSettings) -> ZkfcSettings:
        return replace(settings, graceful_fence_timeout_seconds=300.0)

    async with worlds("nn1", "nn2", "nn3", settings_hook=patient) as here:
        _, two, three = here.nodes
        await three.stop()
        async with stand_in(never_answers, three.zkfc_port):
            asking = asyncio.create_task(_to(two))
            await until(asked.is_set, "nn3's controller is asked to stand back")
            await two.zkfc.hand_over.stop()
            await until(hung_up.is_set, "the question is given up")
            asking.cancel()


async def test_a_hand_over_that_waits_for_its_turn_is_refused_by_a_controller_that_stops(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refuse it: after the first was given up, the active would cede, and none take over."""
    one, two = here.nodes
    hand_over = two.zkfc.hand_over
    really = hand_over._read_active

    async def hangs() -> None:
        monkeypatch.setattr(hand_over, "_read_active", really)
        await asyncio.Event().wait()

    monkeypatch.setattr(hand_over, "_read_active", hangs)
    first = asyncio.create_task(_to(two))
    await until(lambda: hand_over.request is not None, "the first under way")
    second = asyncio.create_task(_to(two))
    await until(lambda: two.zkfc.candidacy.standing.hand_overs == 2, "the second waits")
    await hand_over.stop()
    with pytest.raises(ServiceFailed, match="its zkfc is being stopped"):
        await second
    assert "standby by ZKFC" not in one.namenode.seen[-1]
    first.cancel()
