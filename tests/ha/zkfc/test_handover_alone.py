"""A hand-over by itself: each way in which it ends, whom it lets go, and a fault at each await."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from ha.elector.zookeeper.errors import ZooKeeperUnavailable
from ha.rpc.client import RpcConnection
from ha.rpc.java_names import ZKFC_PROTOCOL
from ha.service.errors import ServiceError, ServiceFailed
from ha.service.model import ServiceState
from ha.zkfc.handover import graceful_failover
from ha.zkfc.handover.graceful_failover import Situation
from ha.zkfc.record.takeover_record import HandOverRequest
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.ha.zkfc.handover_scene import CEDE_MILLIS, SECONDS, Peer, Scene, scene
from tests.ha.zkfc.toy_namenode import HOST
from tests.ha.zkfc.zkfc_world import until

ASKED = HandOverRequest("alice", "h1", "a test")
LETTING_GO = {"HandOver._release"}
KEPT = frozenset({"socket:", "RpcServer", "_Session", "ha.rpc", "_asyncio."})
"""The other ends of connections, in this process, end a little later."""


async def test_the_others_stand_back_the_active_cedes_and_all_are_let_go() -> None:
    async with scene() as made:
        await made.hand_over.make_active(ASKED)
        assert made.all_asked == [[CEDE_MILLIS, 0], [CEDE_MILLIS, 0]]
        assert (made.ended_cedes, made.failures) == (1, [])
        assert (made.hand_over.request, made.hand_over.ceding_namenode) == (None, "")


Change = Callable[[Scene], None]


def waits_then(change: Callable[[Scene], object]) -> Change:
    """Have the holder cede, and something happen instead of our takeover."""

    def prepare(made: Scene) -> None:
        def do() -> None:
            change(made)
            made.attempts.wake()

        made.holder.does = do

    return prepare


def third(made: Scene, *, error: Exception | None = None) -> None:
    made.situation = replace(made.situation, lock_holder="nn3")
    made.active = error or made.named(made.other)
    if error is not None:
        asyncio.get_running_loop().call_later(0.05, made.tried)


def unfit(made: Scene) -> None:
    made.situation = Situation("it is ill", serving=False)


def refuse() -> None:
    raise ServiceFailed("not now")


FAILS: dict[str, tuple[Change, str, bool]] = {
    "our NameNode is not fit": (unfit, "Cannot be failover target: it is ill", False),
    "no ZooKeeper answers": (
        lambda made: setattr(made, "active", ZooKeeperUnavailable("no ZooKeeper")),
        "cannot tell who is active: no ZooKeeper", False,
    ),
    "nobody is active": (
        lambda made: setattr(made, "active", None), "No other node is currently active", False,
    ),
    "the active does not cede": (
        lambda made: setattr(made.holder, "does", refuse),
        f"the zkfc of the active NameNode nn1 at {HOST}:[0-9]+ did not cede: .*not now", True,
    ),
    "our takeover fails": (
        lambda made: setattr(made.holder, "does", lambda: made.tried("fencing failed")),
        "fencing failed", True,
    ),
    "our NameNode falls ill": (
        waits_then(unfit), "our NameNode became unhealthy meanwhile: it is ill", True,
    ),
    "a third takes the lock": (waits_then(third), "nn3 took the lock meanwhile", True),
    "another hand-over is asked for": (
        waits_then(lambda made: made.hand_over.yield_to_cede_request(has_lock=True)),
        "this controller was asked to cede meanwhile", True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", FAILS)
async def test_a_hand_over_that_fails_says_why_is_recorded_and_lets_all_go(how: str) -> None:
    prepare, why, begun = FAILS[how]
    async with scene() as made:
        made.tried("an earlier one")
        prepare(made)
        with pytest.raises(ServiceFailed, match=why) as failed:
            await made.hand_over.make_active(ASKED)
        assert made.all_asked == [[CEDE_MILLIS, 0] if begun else []] * 2
        recorded = [(one.asked, one.previous, one.text) for one in made.failures]
        expected = (ASKED, "nn1" if begun else "", str(failed.value))
        assert recorded == ([] if how == "our takeover fails" else [expected])
        assert made.hand_over.request is None


async def test_a_lock_of_which_zookeeper_does_not_say_whose_it_is_is_waited_for() -> None:
    """The notices name a third; they may be older than this hand-over."""
    async with scene() as made:
        waits_then(lambda made: third(made, error=ZooKeeperUnavailable("gone")))(made)
        await made.hand_over.make_active(ASKED)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (ServiceState.ACTIVE, ""),
        (ServiceState.STANDBY, "our NameNode was made active and says now that it is standby"),
        (None, "cannot tell whether our NameNode is still active"),
    ],
    ids=["active", "standby", "silent"],
)
async def test_who_holds_the_lock_asks_its_namenode(state: ServiceState | None, why: str) -> None:
    async with scene() as made:
        made.active, made.situation = made.ours(), Situation(None, serving=True)
        if state is None:
            await made.namenode.die()
        else:
            made.namenode.state = state
        if why:
            with pytest.raises(ServiceFailed, match=why):
                await made.hand_over.make_active(ASKED)
        else:
            await made.hand_over.make_active(ASKED)
        assert len(made.failures) == bool(why)
        assert made.all_asked == [[], []]
        made.situation = replace(made.situation, in_transition=True)
        with pytest.raises(ServiceFailed, match="just being made standby"):
            await made.hand_over.make_active(ASKED)


@pytest.mark.parametrize("failure", ["", "fencing failed"])
async def test_a_takeover_that_is_under_way_is_waited_for(failure: str) -> None:
    async with scene() as made:
        made.tried("an earlier one")
        made.active = made.ours()
        asking = asyncio.create_task(made.hand_over.make_active(ASKED))
        await until(lambda: made.hand_over.request == ASKED, "it is under way")
        made.attempts.wake()
        await asyncio.sleep(0)
        made.tried(failure)
        if failure:
            with pytest.raises(ServiceFailed, match=failure):
                await asking
        else:
            await asking


async def test_a_hand_over_that_takes_too_long_is_given_up_and_recorded() -> None:
    async with scene() as made:
        made.new_active_seconds = 0.3 - CEDE_MILLIS / 1000
        made.begin()
        made.holder.does = lambda: None
        with pytest.raises(ServiceFailed, match=r"no opportunity to become active within 0\.3 s"):
            await made.hand_over.make_active(ASKED)
        assert [one.text.partition(":")[0] for one in made.failures] == ["given up"]
        assert made.all_asked == [[CEDE_MILLIS, 0], [CEDE_MILLIS, 0]]


async def ready_to(peer: Peer) -> RpcConnection:
    return await RpcConnection.open(
        HOST, peer.port, protocol=ZKFC_PROTOCOL, deadline_seconds=SECONDS
    )


async def test_a_ready_connection_that_is_lost_is_made_good_by_another() -> None:
    async with scene() as made:
        made.ready = await ready_to(made.other)
        assert made.other.server is not None
        made.other.server.abort_connections()
        await made.hand_over.make_active(ASKED)
        assert made.all_asked == [[CEDE_MILLIS, 0], [CEDE_MILLIS, 0]]


@pytest.mark.parametrize("ready", [False, True])
async def test_who_was_asked_to_cede_and_does_not_answer_is_not_asked_again(ready: bool) -> None:
    """Over a fresh connection that breaks, and over a ready one that is silent for too long."""
    async with scene() as made:
        server = made.holder.server
        assert server is not None
        if ready:
            made.cede_seconds, made.holder.silent = 0.1, True
            made.begin()
            made.holder.does = lambda: None
            made.other.does = lambda: asyncio.get_running_loop().call_soon(take)
            ready_connection = await ready_to(made.holder)

            def take() -> None:
                made.ready = ready_connection

        else:
            made.holder.does = server.abort_connections
        with pytest.raises(ServiceFailed, match="did not cede"):
            await made.hand_over.make_active(ASKED)
        assert [millis > 0 for millis in made.holder.asked] == [True, False]


async def test_a_silent_one_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PEER_PATIENCE_SECONDS", "RELEASE_SECONDS"):
        monkeypatch.setattr(graceful_failover, name, 0.1)
    async with scene() as made:
        made.cede_seconds, made.other.silent = 600, True
        made.begin()
        await made.hand_over.make_active(ASKED)
        assert made.all_asked == [[600_000, 0], [600_000, 0]]
        assert not awaits.tasks_left() & LETTING_GO


async def test_a_stop_waits_until_those_are_let_go_for_whom_none_waits_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graceful_failover, "RELEASE_SECONDS", 0.5)
    async with scene() as made:
        made.holder.does = lambda: None
        asking = asyncio.create_task(made.hand_over.make_active(ASKED))
        await until(lambda: made.holder.asked, "it is under way")
        made.other.silent = True
        asking.cancel()
        await until(lambda: LETTING_GO & awaits.tasks_left(), "they are being let go")
        await made.hand_over.stop()
        assert not awaits.tasks_left() & LETTING_GO


@pytest.mark.parametrize("where", ["the lock's holder is read", "all are let go"])
async def test_a_fault_of_ours_is_no_reason_to_go_on(where: str) -> None:
    async with scene() as made:
        if where == "all are let go":

            def cede() -> None:
                made.tried()
                made.broken = True

            made.holder.does = cede
        else:
            waits_then(lambda made: third(made, error=KeyError("a fault of ours")))(made)
        with pytest.raises(KeyError):
            await made.hand_over.make_active(ASKED)
        assert made.failures == []


async def test_a_request_to_cede_that_comes_while_the_lock_is_looked_at_is_seen() -> None:
    async with scene() as made:

        def cede() -> None:
            made.situation = replace(made.situation, lock_holder="nn3")
            made.at_read = lambda: made.hand_over.yield_to_cede_request(has_lock=True)
            made.attempts.wake()

        made.holder.does = cede
        with pytest.raises(ServiceFailed, match="asked to cede meanwhile"):
            await made.hand_over.make_active(ASKED)


async def test_a_stop_gives_up_what_is_under_way_and_waits_until_all_are_let_go() -> None:
    async with scene() as made:
        made.holder.does = lambda: None
        asking = asyncio.create_task(made.hand_over.make_active(ASKED))
        await until(lambda: made.holder.asked, "it is under way")
        await made.hand_over.stop()
        assert made.all_asked == [[CEDE_MILLIS, 0], [CEDE_MILLIS, 0]]
        assert asking.cancelled()
        assert [one.text.partition(":")[0] for one in made.failures] == ["given up"]
        with pytest.raises(ServiceFailed, match="its zkfc is being stopped"):
            await made.hand_over.make_active(ASKED)


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.FAIL, Fault.BREAK])
@pytest.mark.parametrize("held", [False, True], ids=["", "the lock is ours"])
async def test_a_hand_over_that_is_cut_short_lets_all_go(fault: Fault, *, held: bool) -> None:
    """A connection that fails is an error of the service; any other error of ours comes out."""
    async with scene() as made:
        if held:
            made.active, made.situation = made.ours(), Situation(None, serving=True)
            made.namenode.state = ServiceState.ACTIVE

        async def life() -> None:
            for peer in (made.holder, made.other):
                peer.asked.clear()
            await made.hand_over.make_active(ASKED)

        async def after(_: int) -> None:
            await until(lambda: not LETTING_GO & awaits.tasks_left(), "all are let go")
            for asked in made.all_asked:
                assert not asked or asked[-1] == 0, made.all_asked
            assert made.hand_over.request is None
            assert not made.failures or fault is not Fault.BREAK
            made.failures.clear()

        fails = () if fault is Fault.BREAK else ("test_", "HandOver._cede")
        cuts = Cuts(life, fault, typed=(ServiceError, ConnectionError), fails=fails, kept=KEPT)
        assert await awaits.cut_at_each_await(cuts, after) > (1 if held else 4)
