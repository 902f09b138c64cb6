"""A bounded walk through simulated failovers; `./run soak failover` walks much further."""

import pytest

from tests.pytest_report import SEEDS_PLAYED
from tests.simulation.engine import walks
from tests.simulation.failover import nemesis
from tests.simulation.failover.simulation import SIMULATION
from tests.simulation.failover.world import run

FOUND = (
    18_045, 1_510, 70_531, 60_031, 110_596, 100_195, 103_289, 102_843, 103_470, 202_603, 25_355,
    39_992, 27_284, 38_242, 82, 83, 212_716, 414_804, 206_857, 301, 3_009_478, 4_002_725,
    5_006_452, 44_003_819, 44_012_886, 44_022_420, 44_023_487, 44_025_017, 44_028_433, 48_000_155,
    49_000_252, 49_000_487, 49_011_010, 49_012_169, 49_013_953, 49_022_969, 49_027_923, 49_032_475,
    49_042_655, 49_043_341, 49_072_236, 49_050_244, 49_052_928, 49_103_581, 49_103_739, 49_105_821,
    49_105_879, 49_106_641, 49_206_146, 49_207_640, 49_213_744, 49_240_228,
)  # fmt: skip
"""Seeds that once broke an invariant.

18045: a demotion that was slow ended behind the next promotion (a unit test shows it as well).
1510, 70531: the same on its way to the NameNode, and a hand-over to it was called done before its
controller knew (likewise).
60031: a hand-over to an active that was just being made standby was called a success (likewise).
110596, 100195: a cede that was agreed was cut short by a shorter one, or by the release of an
earlier one, that a slow NameNode had kept.  103289: the claim that no other serves outlived the
lock that it rested on.  102843: a lock was deleted by hand, and who had held it deleted the next
one's as it left.
44012886: a pause was seen between the decision to remove a silent owner's lock and the request to.
44023487: of two requests to become active under one lock, the first was read after the lock was
given up, when a successor was at work (a unit test shows it as well).
The others were flaws of the oracle. 25355, 39992: it took a drain, or another pause, that came
after the end of a pause for one bar. 103470, 202603: in a pause or drain it forgot who had just
been active, or had got the lock back in it and was cut off since. 27284, 38242: a thawed NameNode
obeyed an old request to stand by, and the oracle took back the one to become active that was sent
after it. 82: the owner of a lock by a hand-over that failed after all is not active by itself.
83: it was active and the owner when it was asked, and lost the lock before the oracle looked.
212716, 414804: the journal alone held a node off, which then stood by for its own controller ahead
of older requests that were still on their way to it.
301: a hand-over to a node that had just ceded waited for the lock that its rival got.
206857 was a flaw of the model: with two of three servers down it ended sessions.
3009478: a fencing command that hung killed the last NameNode after the faults had ended, and no
supervisor started it.
4002725: of two hand-overs, the one that gave up let go whom the other had asked to stand back, and
a third NameNode took the lock from both (a unit test shows it as well).
5006452 was a flaw of the oracle: a controller that was frozen takes the lock in a pause by its
NameNode's last report, which says active and is as old as the freeze.
44003819 was another: a request to remove a lock was carried out when its process had ended, and the
oracle asked the next process which lock was meant.
44022420 was another: an active had lost its lock, and its lagging ZooKeeper server showed it still;
it was the active all the same, for no node had fenced it.
44025017 was another: behind a ZooKeeper server that lagged, a controller asked for the removal of a
dead host's lock that was gone already, which is refused, and the oracle took it for the lock that
stood by then.
48000155 was a flaw of the nemesis: an ambush that had met no promotion cut a NameNode off from the
journal after all faults had ended, and the trial's hand-over to it failed.
49000252: the history looked for the lock of a takeover when its session had ended and the next one
had a lock, and wrote that one down (a unit test shows it as well).
49000487 was a flaw of the trials: a request of before the faults' end was still unanswered, and the
controller had not read the pause that its rival's session was ended in.
49072236 was one of the oracle: a NameNode was active for a moment, since its promotion had won over
the cede that it was asked for, and the oracle took back that it had given way.
49050244, 49052928: a demotion went over the connection of the health monitor, which stays open when
no answer comes in time, and was obeyed behind the next promotion (a unit test shows it as well).
49103581, 49103739, 49105821, 49106641 were flaws of the trials: a promotion of twelve seconds, a
fencing command that hung, and two slow demotions had begun before the faults' end, and struck in
the middle of the trial.
49105879 was a flaw of the oracle: that the lock was gone was heard in the same moment as the look
at it was answered that led to the request for its removal, and the oracle saw a removal of nothing.
49206146 was another: a call to become active that a NameNode had refused, being late, counted as
one that may have made it active.
49207640 was another: a controller that had stood still for seven seconds heard first that it was to
cede, and then that its lock was gone; it had given the lock away as far as it knew.
49213744 was another: a session that could not send its request for the lock, and saw another's lock
when it was connected again, counted as one that does not stand in the election.
49240228: a NameNode whose lock had gone unheard was asked to cede when another was active already;
it counted the lock as given away, and came back in a drain half a minute later.
"""


@pytest.mark.parametrize("first", [1, 50_000])
def test_one_active_at_a_time_and_service_returns(
    first: int, record_property: walks.Record
) -> None:
    """Seeds until the time is up; on a failure the trace is the message."""
    takeovers = walks.walk(SIMULATION, first, record_property, least=25, most=200, cpu_seconds=3.0)
    assert takeovers > 1.5, "hardly anything fails over in these worlds"


@pytest.mark.parametrize("seed", FOUND)
def test_a_world_that_once_broke_stays_whole(seed: int, record_property: walks.Record) -> None:
    outcome = run(seed)
    assert outcome.violation is None, outcome.violation
    record_property(SEEDS_PLAYED, 1)


def test_a_session_asks_each_server_before_one_again() -> None:
    """Seed 11736: with one of three servers down, bad luck alone kept a session out for 4 s."""
    outcome = run(11_736, only=frozenset({"zk-away@21.8039", "zk-restart@32.5969"}))
    assert outcome.violation is None, outcome.violation


RICH = (24, 28, 43, 59, 70, 82, 174)
"""Seeds that between them had each kind, to be played before others."""


def test_every_kind_of_fault_strikes_somewhere() -> None:
    drawn = (
        *nemesis.MESSAGE_KINDS,
        *nemesis.ZOOKEEPER_KINDS,
        *nemesis.NODE_KINDS,
        *nemesis.EVENT_KINDS,
        *nemesis.OPERATOR_KINDS,
    )
    kinds = {*drawn, *nemesis.AIMED_KINDS, *nemesis.SILENT_KINDS}
    walks.every_kind_strikes(run, kinds, (*RICH, *range(1, 300)))


def test_without_faults_nothing_fails_over() -> None:
    outcome = run(7, only=frozenset())
    assert outcome.violation is None
    assert not outcome.fired
    assert outcome.acknowledged == 1
