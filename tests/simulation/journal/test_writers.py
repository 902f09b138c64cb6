"""An edit's writer, in small plays: an older edit never passes for a newer writer's."""

import pytest

from tests.simulation.journal.recovery_model import majorities
from tests.simulation.journal.staged import Stage, perform

NODES = ("jn1", "jn2", "jn3")
QUORUMS = [quorum for quorum in majorities(NODES) if "jn1" in quorum]
MOST_OPERATIONS = 30


@pytest.mark.parametrize("power", [False, True], ids=["killed", "power lost"])
def test_x14_a_crash_in_a_start_over_an_older_edit(*, power: bool) -> None:
    """jn1 ends at each operation of a start; what it holds then must not outrank the newer edit.

    Its one edit is of epoch 1, and was never acknowledged; epoch 2 begins the segment anew, and
    has another edit acknowledged by the other two.
    """
    for after in range(1, MOST_OPERATIONS):
        ended = False
        for quorum in QUORUMS:

            async def play(
                stage: Stage, after: int = after, quorum: tuple[str, ...] = quorum
            ) -> None:
                nonlocal ended
                first = stage.writer()
                assert await first.recover() == 0
                assert await first.start(1)
                await first.settle()
                first.lose("jn2", "jn3")
                assert not await first.write(1, 1)
                await first.die()
                second = stage.writer()
                second.lose("jn1", method="GetJournalState")
                second.lose("jn1", method="NewEpoch")
                assert await second.recover() == 0
                stage.arrivals[("jn1", "StartLogSegment")] = lambda: stage.strike(
                    "jn1", after, power=power
                )
                assert await second.start(1)
                assert await second.write(1, 1)
                await second.die()
                ended = not stage.world.machines["jn1"].up
                stage.restart()
                third = stage.writer(without=[node for node in NODES if node not in quorum])
                assert await third.recover() == 1
                await third.die()

            perform(play)
        if not ended:
            break
    else:
        pytest.fail("the start never ended")
    assert after > 5
