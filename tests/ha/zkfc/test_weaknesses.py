"""Weaknesses of Hadoop's controller and scenarios that its tests lack."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ha.cli.operate.handover import SERVER_SLACK_SECONDS
from ha.elector.model import AttemptNumber, Role
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.outcome import Done
from ha.elector.zookeeper.znodes import connected
from ha.rpc.client import RpcConnection
from ha.rpc.java_names import ZKFC_PROTOCOL
from ha.rpc.proto.zkfc_pb2 import CedeActiveRequestProto, CedeActiveResponseProto
from ha.service.errors import ServiceFailed
from ha.service.model import ServiceState
from ha.zkfc.handover.graceful_failover import RELEASE_SECONDS, HandOver, Situation
from ha.zkfc.record.takeover_record import AttemptRecord, HandOverRequest
from tests.ha.zkfc.impostors import OddController, serving, tar_pit
from tests.ha.zkfc.test_rows_8_1 import hand_over_to, transitions
from tests.ha.zkfc.toy_namenode import HOST
from tests.ha.zkfc.zkfc_world import Node, World, Worlds

pytestmark = pytest.mark.zookeeper


def record(number: int, *, succeeded: bool, text: str = "") -> AttemptRecord:
    return AttemptRecord(
        number=AttemptNumber(number), succeeded=succeeded, text=text, fenced="",
        duration_seconds=0.0, finished_at=datetime.now(UTC).isoformat(),
    )  # fmt: skip


def hand_over_from(node: Node, holder_port: int, **settings: float) -> HandOver:
    """Hand over to this node from an active whose controller listens at the port."""

    async def active() -> ActiveNodeInfo:
        return ActiveNodeInfo("ns", "odd", HOST, 1, holder_port)

    return HandOver(
        replace(node.zkfc._settings, **settings),  # type: ignore[arg-type]
        node.zkfc.attempts,
        read_active=active,
        situation=lambda: Situation(obstacle=None, serving=False),
        end_cede=lambda: None,
    )


async def asked(hand_over: HandOver) -> None:
    await hand_over.make_active(HandOverRequest("ann", "h"))


@pytest.mark.row("8.13 6", "W7")
async def test_w7_8_13_6_an_election_that_is_over_before_the_cede_is_answered_counts(
    alone: World,
) -> None:
    """Play the schedule: the active cedes, we win and are active, and only then it answers.

    Hadoop's notes the time after the cede, takes our success for an older one, and reports a
    failure 70 s later.
    """
    (one,) = alone.nodes

    async def win_first(millis: int) -> None:
        if millis > 0:
            one.zkfc.attempts.add(record(7, succeeded=True))

    async with serving(OddController(win_first)) as port:
        begun = asyncio.get_running_loop().time()
        await asked(hand_over_from(one, port))
        assert asyncio.get_running_loop().time() - begun < 5.0


@pytest.mark.row("8.13 6")
async def test_8_13_6_a_record_older_than_the_request_is_no_answer_to_it(alone: World) -> None:
    """Play the schedule: the record has a success of last week; this hand-over gets nothing."""
    (one,) = alone.nodes
    assert one.zkfc.attempts.last is not None
    assert one.zkfc.attempts.last.succeeded

    async def obey(millis: int) -> None:
        del millis

    async with serving(OddController(obey)) as port:
        hand_over = hand_over_from(
            one, port, new_active_timeout_seconds=0.3, graceful_fence_timeout_seconds=0.2
        )
        with pytest.raises(ServiceFailed, match="no opportunity"):
            await asked(hand_over)


async def test_it_is_active_already_only_if_it_says_so_itself(alone: World) -> None:
    """Play the schedule: a slow old demotion is obeyed after the promotion (seed 70531).

    Until the next look at its health the controller takes its NameNode for active, and called a
    hand-over to it done.
    """
    (one,) = alone.nodes
    await one.stop()  # or it might notice, and promote again

    async def ours() -> ActiveNodeInfo:
        return ActiveNodeInfo("ns", one.name, HOST, 1, 1)

    hand_over = HandOver(
        one.zkfc._settings,
        one.zkfc.attempts,
        read_active=ours,
        situation=lambda: Situation(obstacle=None, serving=True),
        end_cede=lambda: None,
    )
    assert one.namenode.state is ServiceState.ACTIVE
    await asked(hand_over)
    one.namenode.state = ServiceState.STANDBY
    with pytest.raises(ServiceFailed, match="says now that it is standby"):
        await asked(hand_over)
    await one.namenode.die()
    with pytest.raises(ServiceFailed, match="cannot tell whether our NameNode is still active"):
        await asked(hand_over)


@pytest.mark.row("8.13 8", "W8")
async def test_w8_8_13_8_an_error_at_the_release_leaves_a_success_a_success(alone: World) -> None:
    """Play the schedule: the role has moved; then a controller asked to stand back breaks.

    Hadoop's reports the whole as failed.
    """
    (one,) = alone.nodes

    async def break_at_release(millis: int) -> None:
        if millis <= 0:
            raise ServiceFailed("broken")
        one.zkfc.attempts.add(record(7, succeeded=True))

    controller = OddController(break_at_release)
    async with serving(controller) as port:
        await asked(hand_over_from(one, port))
    assert controller.asked == [4000, 0]


@pytest.mark.row("W8")
async def test_w8_everybody_is_let_go_when_the_takeover_fails(alone: World) -> None:
    (one,) = alone.nodes

    async def lose(millis: int) -> None:
        if millis > 0:
            one.zkfc.attempts.add(record(7, succeeded=False, text="nobody could be fenced"))

    controller = OddController(lose)
    async with serving(controller) as port:
        with pytest.raises(ServiceFailed, match="nobody could be fenced"):
            await asked(hand_over_from(one, port))
    assert controller.asked == [4000, 0]


@pytest.mark.row("W9", "W17")
async def test_w9_w17_a_hand_over_has_one_limit_which_the_cli_outlasts(worlds: Worlds) -> None:
    """Play the schedule: the active's controller takes the call and never answers."""
    async with worlds("nn1") as here, tar_pit() as port:
        (one,) = here.nodes
        hand_over = hand_over_from(
            one, port, new_active_timeout_seconds=1.0, graceful_fence_timeout_seconds=0.5
        )
        assert hand_over.limit_seconds == 2.0
        loop = asyncio.get_running_loop()
        begun = loop.time()
        with pytest.raises(ServiceFailed):
            await asked(hand_over)
        assert loop.time() - begun < 2.0 + RELEASE_SECONDS + 4.0
    assert RELEASE_SECONDS < SERVER_SLACK_SECONDS  # what haadmin waits beyond the limit


@pytest.mark.row("W8", "W17")
async def test_w8_w17_a_silent_third_controller_costs_a_planned_failover_little(
    worlds: Worlds,
) -> None:
    """Play the schedule: nn3's controller is stopped (SIGSTOP) while nn1 hands over to nn2."""
    async with worlds() as here, tar_pit() as port:
        one, two, three = [await here.add(name) for name in ("nn1", "nn2", "nn3")]
        three.zkfc_port = port
        await here.start(one)
        await here.active(one)
        await here.start(two)
        await here.standby(two)
        begun = asyncio.get_running_loop().time()
        await hand_over_to(two)
        assert asyncio.get_running_loop().time() - begun < 10.0
        await here.active(two)
        assert here.fenced() == []
        here.nodes.remove(three)
        await three.namenode.die()


@pytest.mark.row("W17")
async def test_w17_a_former_active_that_never_answers_does_not_hold_up_its_successor(
    worlds: Worlds,
) -> None:
    """Play the schedule: the host of the breadcrumb takes connections and says nothing.

    Hadoop's connect retries alone can take 15 minutes (45 x 20 s).
    """
    async with worlds("nn1") as here, tar_pit() as port:
        (one,) = here.nodes
        await one.zkfc.cede(60.0)
        silent = encode(ActiveNodeInfo(here.nameservice, "nn9", HOST, port, 8019))
        async with connected(here.zookeeper, deadline_seconds=10.0) as session:
            assert await session.create(here.zookeeper.breadcrumb, silent) == Done(None)
        begun = asyncio.get_running_loop().time()
        await one.zkfc.cede(0.0)
        await here.active(one)
        assert asyncio.get_running_loop().time() - begun < 6.0
        assert here.fenced() == ["nn9"]


@pytest.mark.row("W18")
async def test_w18_a_namenode_that_does_not_stand_by_is_asked_again_and_is_no_candidate(
    here: World,
) -> None:
    """Play the schedule: nn1 loses its session, nn2 takes over, nn1 refuses to become standby.

    Hadoop's takes it for standby all the same, and would have it stand for election as one.
    """
    one, two = here.nodes
    one.namenode.fail_to_become_standby = True
    one.gate.shut()
    await here.expire(one)
    await here.active(two)
    assert here.fenced() == ["nn1"]
    one.gate.open()
    await here.until(
        lambda: "did not confirm that it is standby" in one.zkfc.candidacy.out_because,
        "nn1 is out, and says why",
    )
    assert one.zkfc.believed is not ServiceState.STANDBY
    assert one.namenode.seen.count("standby by ZKFC") >= 3
    one.namenode.fail_to_become_standby = False
    await here.standby(one)
    assert one.namenode.state is ServiceState.STANDBY
    assert two.namenode.active_transitions == 1


@pytest.mark.row("8.13 14")
async def test_8_13_14_a_promotion_that_succeeds_late_ends_with_a_polite_request(
    worlds: Worlds,
) -> None:
    """Play the schedule: nn2's promotion outlasts its limit; nn1 takes over; nn2 is promoted.

    The breadcrumb named nn2 before it was promoted, so nn1 asks it first, and a NameNode does one
    transition after the other: the late promotion is over before its demotion is answered.
    """
    async with worlds() as here:
        one, two = await _late_promotion(here, new_active_seconds=0.5)
        await here.until(
            lambda: two.namenode.seen[-1] == "standby by ZKFC", "nn1 asks nn2 to stand by"
        )
        assert two.namenode.hold_promotion is not None
        two.namenode.hold_promotion.set()
        await here.active(one)
        assert two.namenode.state is ServiceState.STANDBY
        assert here.fence_count("nn2") == 0


@pytest.mark.row("8.13 14")
async def test_8_13_14_a_promotion_that_succeeds_after_the_fencing_is_undone(
    worlds: Worlds,
) -> None:
    """Play the same, but nn2 comes to life when nn1 has fenced it and is active already."""
    async with worlds() as here:
        one, two = await _late_promotion(here, new_active_seconds=0.5)
        await here.active(one)
        assert here.fence_count("nn2") >= 1
        assert two.namenode.hold_promotion is not None
        two.namenode.hold_promotion.set()
        await here.until(
            lambda: two.namenode.promoted_at > 0 and two.namenode.state is ServiceState.STANDBY,
            "nn2 was active for a moment, and its own controller has undone it",
        )
        assert one.namenode.state is ServiceState.ACTIVE
        assert here.resource.holder == "nn1"


async def _late_promotion(here: World, *, new_active_seconds: float) -> tuple[Node, Node]:
    """nn1 was active and is dead; nn2's promotion hangs and is given up; nn1 comes back."""
    here.settings_hook = lambda settings: replace(
        settings, new_active_timeout_seconds=new_active_seconds
    )
    one, two = await here.add("nn1"), await here.add("nn2")
    await here.start(one)
    await here.active(one)
    await here.start(two)
    await here.standby(two)
    two.namenode.hold_promotion = asyncio.Event()
    await one.namenode.die()
    await here.until(lambda: two.zkfc.attempts.number >= 1, "nn2's attempt has failed")
    assert two.zkfc.attempts.last is not None
    assert "Couldn't make NameNode" in two.zkfc.attempts.last.text
    # Nothing stands in nn1's way: that is another story (the back-off).
    await two.zkfc.cede(30.0)
    await one.namenode.start()
    return one, two


@pytest.mark.row("8.13 15")
async def test_8_13_15_javas_minus_one_lets_a_controller_come_back(alone: World) -> None:
    (one,) = alone.nodes
    connection = await RpcConnection.open(
        HOST, one.zkfc.port, protocol=ZKFC_PROTOCOL, deadline_seconds=10.0
    )
    await connection.call(
        "cedeActive",
        CedeActiveRequestProto(millisToCede=600_000),
        CedeActiveResponseProto,
        deadline_seconds=10.0,
    )
    assert one.zkfc.elector.state.role is Role.INIT
    request = CedeActiveRequestProto()
    request.ParseFromString(bytes.fromhex("08ffffffff0f"))
    await connection.call("cedeActive", request, CedeActiveResponseProto, deadline_seconds=10.0)
    await connection.close()
    await alone.active(one)


@pytest.mark.row("8.13 19")
async def test_8_13_19_a_fence_that_lies_leaves_the_old_active_to_its_own_controller(
    here: World,
) -> None:
    """Play the schedule: nn1 refuses to stand by, the method says "fenced", nn1 serves on.

    No controller can see through that.  The journal refuses nn1's edits; nn1's own controller,
    which has lost the lock, goes on asking until nn1 stands by, and says so all the time.
    """
    one, two = here.nodes
    one.namenode.fail_to_become_standby = True
    await hand_over_to(two)
    await here.active(two)
    assert here.fenced() == ["nn1"]
    assert one.namenode.state is ServiceState.ACTIVE
    await here.until(
        lambda: "did not confirm" in one.zkfc.candidacy.out_because, "nn1's controller tells"
    )
    trouble = one.zkfc.failover_obstacle()
    assert trouble is not None
    assert "did not confirm that it is standby" in trouble
    one.namenode.fail_to_become_standby = False
    await here.standby(one)
    assert transitions(here) == [1, 1]


@pytest.mark.row("8.13 20")
async def test_8_13_20_a_clock_that_jumps_changes_no_delay(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Play the schedule: NTP sets the machine's clock a day ahead, then two days back."""
    true_time, shift = time.time, 0.0
    monkeypatch.setattr(time, "time", lambda: true_time() + shift)
    async with worlds("nn1", "nn2") as here:
        one, two = here.nodes
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await one.zkfc.cede(1.5)
        shift = 86_400.0
        await here.active(two)
        await here.standby(one)
        assert 1.4 < loop.time() - begun < 12.0
        shift = -86_400.0
        await hand_over_to(one)
        await here.active(one)
        await here.standby(two)
        assert transitions(here) == [2, 1]
        assert here.fenced() == []
