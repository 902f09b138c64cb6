"""A node ends at every disk operation of an acceptance; then every quorum recovers.

The four rows of the matrix are points among these operations; the test says which it has seen.

See docs/reference/journal-node.md#acceptrecovery.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import pytest

from tests.simulation.journal.platter import Inode
from tests.simulation.journal.recovery_model import majorities
from tests.simulation.journal.staged import Actor, Scene, Stage, perform
from tests.simulation.journal.tags import read_run

NODES = ("jn1", "jn2", "jn3")
QUORUMS = majorities(NODES)
MOST_OPERATIONS = 40
ROWS = {
    "during the download",
    "downloaded, not persisted",
    "persisted, not renamed",
    "renamed",
}


@dataclass(slots=True)
class Seen:
    """What a crash left behind."""

    rows: set[str] = field(default_factory=set)
    ended: bool = False


async def shorter(stage: Stage) -> None:
    """Give jn1 1-2 of segment 1, the others 1-4."""
    writer = await _open_segment(stage)
    assert await writer.write(1, 2)
    await writer.settle()
    writer.lose("jn1")
    assert await writer.write(3, 4)
    await writer.die()


async def stale(stage: Stage) -> None:
    """Give jn1 1-2 of epoch 1, the others 1-2 of epoch 2: as long, but other edits (2.10.6')."""
    writer = await _open_segment(stage)
    writer.lose("jn2", "jn3")
    assert not await writer.write(1, 2)
    await writer.die()
    second = stage.writer(without=["jn1"])
    assert await second.recover() == 0
    assert await second.start(1)
    assert await second.write(1, 2)
    await second.die()


async def alike(stage: Stage) -> None:
    """Give all of them 1-2: nothing to fetch, but a decision to persist."""
    writer = await _open_segment(stage)
    assert await writer.write(1, 2)
    await writer.die()


async def _open_segment(stage: Stage) -> Actor:
    writer = stage.writer()
    assert await writer.recover() == 0
    assert await writer.start(1)
    await writer.settle()
    return writer


def crash(after: int, *, power: bool, alone: bool, seen: Seen) -> Scene:
    async def scene(stage: Stage) -> None:
        stage.arrivals[("jn1", "AcceptRecovery")] = lambda: stage.strike("jn1", after, power=power)
        writer = stage.writer()
        if alone:  # the decision reaches jn1 at most
            writer.lose("jn2", "jn3", method="AcceptRecovery")
        await writer.recover()
        await writer.die()
        seen.ended = not stage.world.machines["jn1"].up
        if seen.ended:
            seen.rows.add(row(stage.world.machines["jn1"].platter.cached))
        stage.restart()

    return scene


def row(names: dict[PurePath, Inode]) -> str:
    """Return which row of the matrix a disk stands for."""
    download = next((names[path] for path in names if ".epoch=" in path.name), None)
    decided = any(path.parent.name == "paxos" and path.name == "1" for path in names)
    if decided:
        return "renamed" if download is None else "persisted, not renamed"
    if download is None:
        return "before or after"
    whole = len(read_run(bytes(download.cached), 1).tags) in {2, 4}
    return "downloaded, not persisted" if whole else "during the download"


def later(quorum: tuple[str, ...]) -> Scene:
    async def scene(stage: Stage) -> None:
        writer = stage.writer(without=[node for node in NODES if node not in quorum])
        last = await writer.recover()
        assert last is not None
        await writer.segment_at(last + 1, last + 2)
        await writer.die()

    return scene


@pytest.mark.row("X6")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("state", [shorter, stale, alike], ids=lambda state: state.__name__)
@pytest.mark.parametrize("power", [False, True], ids=["killed", "power lost"])
def test_x6_a_crash_anywhere_in_an_acceptance(state: Scene, *, power: bool) -> None:
    """Let the oracle judge; then the healed journal is read as a whole.

    Behind each operation one quorum recovers, the next one behind the next.
    """
    crash_anywhere(state, power=power, quorums_at=lambda after: [QUORUMS[after % len(QUORUMS)]])


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("state", [shorter, stale, alike], ids=lambda state: state.__name__)
@pytest.mark.parametrize("power", [False, True], ids=["killed", "power lost"])
def test_every_quorum_recovers_a_crash_anywhere_in_an_acceptance(
    state: Scene, *, power: bool
) -> None:
    crash_anywhere(state, power=power, quorums_at=lambda _: QUORUMS)


def crash_anywhere(
    state: Scene, *, power: bool, quorums_at: Callable[[int], Sequence[tuple[str, ...]]]
) -> None:
    rows: set[str] = set()
    worlds = 0
    for alone in (False, True):
        for after in range(1, MOST_OPERATIONS):
            seen = Seen()
            for quorum in quorums_at(after + alone):
                perform(state, crash(after, power=power, alone=alone, seen=seen), later(quorum))
                worlds += 1
            rows |= seen.rows
            if not seen.ended:
                break
        else:
            pytest.fail("the acceptance never ended")
    if state is not alike:  # the name of an unfinished download is not durable
        expected = ROWS - {"during the download"} if power else ROWS
        assert rows >= expected, f"of the matrix's rows only {rows} came up"
    assert worlds > 20
