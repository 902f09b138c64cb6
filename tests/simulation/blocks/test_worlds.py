"""A bounded walk through simulated lives of blocks; `./run soak blocks` walks much further."""

import pytest

from tests.pytest_report import SEEDS_PLAYED
from tests.simulation.blocks.nemesis import EVENT_KINDS, MESSAGE_KINDS
from tests.simulation.blocks.simulation import SIMULATION
from tests.simulation.blocks.world import run
from tests.simulation.engine import walks

FOUND = (
    25, 51, 215, 1_249, 5_062, 5_212, 5_440, 200_191, 7_000_192, 7_000_448, 7_000_530, 7_000_577,
    7_000_874, 7_200_016, 8_400_201, 8_400_202, 8_400_311, 8_500_106, 8_500_680,
    8_701_510, 8_701_600, 8_705_032, 8_711_452, 8_712_005, 8_720_140, 8_730_330, 8_740_763,
    8_741_138, 8_741_142, 8_760_323,
)  # fmt: skip
"""Seeds that once broke an invariant.

25: a replica that had fallen out of a pipeline, and was in the next one, stayed corrupt in the map
(has a unit test as well).  1249: an active that was without its read lease for a moment was not
obeyed until its next edit (likewise).  5062: an active that was just started dropped a block that
it took for untouched, before the DataNode that had its bytes registered (likewise). 51 was a flaw
of the model, whose DataNodes reported in full only when they were asked: what a recovery leaves
behind keeps copies off until the next report.  215 was another: while no DataNode was registered,
the model's client appended with an empty pipeline, and restamped the block; Hadoop's client gives
up without locations, before it asks for a stamp.  5212 was one of the oracle, which took a new copy
for the replica that was to be deleted.  5440: a DataNode carried out what the active had ordered in
an earlier term, with another active in between (has a unit test as well). 7000530 and 7000577 were
flaws of the oracle.  In the one every DataNode had begun anew, and one's machine had lost its
power: as Hadoop's, a recovery takes the shortest replica then.  In the other the only DataNode of a
pipeline lost its disk before the NameNode had heard of that pipeline. 7000192: late news of a
replica came after that of its deletion, and the active had others deleted for it (has a unit test
as well); 7000448: to a standby, which need not ask before it is active. 7000874: a DataNode
reported a replica that it was deleting, and the active took that for newer than the full report
that lacked it (likewise). 8400201: a new copy came while the order about an older replica of its
DataNode was on its way, and took that order over (likewise). 8500106: news of an older replica came
late after that of a deletion, and late news of the newer one was then not doubted (likewise).
7200016: the last replica of an open block had got a new stamp, and news of the old one, sent just
before a full report, made the active pass over what that said of it (likewise). 200191: a DataNode
was taken away as a former active had said that it may go, and was asked to serve again before its
successor had come to say so, too: others lost their replicas for those that were gone with the
machine (likewise). 8400202: news of a replica being written came late, and took the place of the
report of the final one, which waited for its edits on a standby (likewise). 8500680: news of the
deletion of an older replica came late, and the new one was forgotten, and ordered to be copied to
its DataNode for hours (likewise). 8400311: a client
went on with a block on a DataNode that a former active had said may go, the other of its pipeline
failed, and that one was taken away (likewise). 8701510: the answer to a registration at a standby
that had just started was lost, and Hadoop's DataNode did not report there for hours (likewise).
8701600 was a flaw of the oracle: an older replica may be deleted, whatever becomes of its block.
8705032 was one of the strikes: the end of a short freeze ended a long one of the same process.
8712005: a DataNode carried out what a NameNode had ordered before it was killed and started again,
after it had reported all replicas to the new process (has unit tests). 8711452: a heartbeat from
before a DataNode lost a volume came after that loss was known, and the standby waited for a report
of that volume for ever (likewise). 8720140 and 8730330 were flaws of the oracle: what a NameNode
ordered in an answer that was lost, or that its DataNode did not wait for, is not carried out.
8740763: a machine that had been taken away was asked into maintenance before its death was known,
and another one was let go because of its replicas (likewise). 8741138 was a flaw of the oracle: a
writer whose block had been recovered reaches no DataNode. 8741142: an active became a standby and
active again, a DataNode heard nothing of the other one, and deleted after its report what it had
been ordered in the first term (likewise). 8760323 was a flaw of the oracle: a copy came to a
DataNode that the active had said may go, and nothing counted on it.
"""


@pytest.mark.row("B5", "B9")
def test_no_acknowledged_byte_is_lost_and_maps_come_to_say_what_is_true(
    record_property: walks.Record,
) -> None:
    """Seeds until the time is up; on a failure the trace is the message."""
    closed = walks.walk(SIMULATION, 1, record_property, least=14, most=100, cpu_seconds=5.0)
    assert closed > 2, "hardly any file is written in these worlds"


@pytest.mark.parametrize("seed", FOUND)
def test_a_world_that_once_broke_stays_whole(seed: int, record_property: walks.Record) -> None:
    outcome = run(seed)
    assert outcome.violation is None, outcome.violation
    record_property(SEEDS_PLAYED, 1)


RICH = (1, 7, 8, 11, 18, 21, 28, 31, 38, 39, 42, 46, 50, 52, 55, 143)
"""Seeds that between them had each kind, to be played before others."""


def test_every_kind_of_fault_strikes_somewhere() -> None:
    walks.every_kind_strikes(run, {*MESSAGE_KINDS, *EVENT_KINDS}, (*RICH, *range(1, 100)))
