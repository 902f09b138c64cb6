"""What a lane's thread still holds when everybody else has gone on, in small plays."""

import asyncio

import pytest

from journal.model import NodeName
from tests.simulation.journal.staged import Actor, Stage, perform

PAST_PATIENCE_SECONDS = 4.0
LANES = pytest.mark.parametrize("beside", [False, True], ids=["at once", "beside a stream"])


def via(writer: Actor) -> set[str]:
    return {status.via for status in writer.quorum.node_statuses()}


def acked(writer: Actor, node: str) -> int:
    name = NodeName(f"{node}:8485")
    return next(s.acked_txid for s in writer.quorum.node_statuses() if s.node == name)


async def writing(stage: Stage) -> Actor:
    """Return a writer of epoch 1 whose first edit is everywhere, over lanes."""
    writer = stage.writer()
    assert await writer.recover() == 0
    assert await writer.start(1)
    assert await writer.write(1, 1)
    await writer.settle()
    await over_lanes(writer)
    return writer


async def over_lanes(writer: Actor) -> set[str]:
    """Open the lanes of a segment by heartbeats, or go over to those that are open."""
    nodes = set[str]()
    while via(writer) != {"lane"} or not nodes:
        nodes = await beat(writer)
    return nodes


async def beat(writer: Actor) -> set[str]:
    """Send one heartbeat to each node; return the nodes."""
    channels = writer.quorum._channels
    for channel in channels:
        await writer.process.spawn(channel.heartbeat())
    await asyncio.sleep(0.1)
    return {channel.name for channel in channels}


@LANES
def test_a_message_that_is_late_for_a_resume_takes_no_effect_twice(beside: bool) -> None:
    """jn1's batch is held up; the writer gives the lane up, resumes, and sends the edit again."""

    async def play(stage: Stage) -> None:
        writer = await writing(stage)
        stage.holding.add((writer.name, "jn1"))
        assert await writer.write(2, 2)
        await asyncio.sleep(PAST_PATIENCE_SECONDS)
        assert stage.held
        assert acked(writer, "jn1") == 2, "it has rejoined"
        assert beside or via(writer) == {"lane"}
        await over_lanes(writer)
        stage.let_go()
        assert await writer.write(3, 4)
        await writer.settle()
        assert acked(writer, "jn1") == 4, "the late twin has done no harm"
        assert await writer.finalize(4)

    perform(play, lanes=True, beside=beside)


@LANES
def test_a_message_that_is_late_but_first_is_not_written_again(beside: bool) -> None:
    """Hold a batch that arrives before ResumeSegment does: the node has the edit already."""

    async def play(stage: Stage) -> None:
        writer = await writing(stage)
        stage.holding.add((writer.name, "jn1"))
        stage.arrivals[("jn1", "ResumeSegment")] = stage.let_go
        assert await writer.write(2, 2)
        await asyncio.sleep(PAST_PATIENCE_SECONDS)
        assert not stage.held
        assert await writer.write(3, 3)
        await writer.settle()
        assert acked(writer, "jn1") == 3
        assert await writer.finalize(3)

    perform(play, lanes=True, beside=beside)


def test_a_message_that_is_late_for_a_newer_writer_is_fenced() -> None:
    """Hold an edit that would be the first of the newer writer's segment as well."""

    async def play(stage: Stage) -> None:
        old = stage.writer()
        assert await old.recover() == 0
        assert await old.start(1)
        await old.settle()
        lanes = await over_lanes(old)
        for node in ("jn1", "jn2", "jn3"):
            stage.holding.add((old.name, node))
        assert not await old.write(1, 1)
        assert len(stage.held) == len(lanes)
        new = stage.writer()
        assert await new.recover() == 0
        assert await new.start(1)
        await new.settle()
        stage.let_go()
        await asyncio.sleep(PAST_PATIENCE_SECONDS)
        assert await new.write(1, 2)
        await new.settle()
        assert stage.ends(1) == ("2", "2", "2")
        assert await new.finalize(2)

    perform(play, lanes=True)


@LANES
def test_a_message_that_is_late_for_a_restart_reaches_nobody(beside: bool) -> None:
    async def play(stage: Stage) -> None:
        writer = await writing(stage)
        stage.holding.add((writer.name, "jn1"))
        assert await writer.write(2, 2)
        stage.world.machines["jn1"].kill("in the play")
        stage.restart()
        stage.let_go()
        await asyncio.sleep(PAST_PATIENCE_SECONDS)
        assert await writer.write(3, 3)
        await writer.settle()
        assert stage.ends(1) == ("3", "3", "3")
        assert beside or via(writer) == {"lane"}, "the restarted node has offered a lane of its own"
        await over_lanes(writer)
        assert await writer.finalize(3)

    perform(play, lanes=True, beside=beside)


@LANES
def test_what_a_lane_has_acknowledged_survives_a_power_cut(beside: bool) -> None:
    async def play(stage: Stage) -> None:
        writer = await writing(stage)
        assert await writer.write(2, 5)
        await writer.settle()
        for machine in stage.world.machines.values():
            machine.cut_power("in the play")
        stage.restart()
        again = stage.writer()
        assert await again.recover() == 5

    perform(play, lanes=True, beside=beside)


@LANES
def test_a_stream_carries_nothing_while_a_lane_is_open(beside: bool) -> None:
    """Lanes that break and come back again and again; the board sees who uses what."""

    async def play(stage: Stage) -> None:
        writer = await writing(stage)
        for first in range(2, 8):
            stage.holding.add((writer.name, "jn2"))
            assert await writer.write(first, first)
            await asyncio.sleep(PAST_PATIENCE_SECONDS)
            stage.let_go()
            stage.world.look()
        assert await writer.finalize(7)

    perform(play, lanes=True, beside=beside)


def test_beside_a_stream_no_lane_is_opened_before_the_first_edits_are_written() -> None:
    """Save three handshakes, which would delay the takeover that waits for those edits."""

    async def play(stage: Stage) -> None:
        writer = stage.writer()
        assert await writer.recover() == 0
        assert await writer.start(1)
        for _ in range(3):
            await beat(writer)
        assert via(writer) == {"stream"}
        assert await writer.write(1, 1)
        await writer.settle()
        assert via(writer) == {"stream"}
        await over_lanes(writer)
        assert await writer.write(2, 3)
        assert await writer.finalize(3)

    perform(play, lanes=True, beside=True)
