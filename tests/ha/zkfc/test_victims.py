"""Whom a takeover makes harmless, how often, and which turn its requests carry."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fencing.model import FencingOutcome, ShellMethod, Target
from ha.conf.topology import HostPort
from ha.elector.actions import WriteBreadcrumb
from ha.elector.events import BreadcrumbRead, LockGone, LockSeen
from ha.elector.model import Role, SessionNumber, Stage, Term
from ha.elector.state import ElectorState
from ha.elector.takeover import advance_takeover
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.errors import TakeoverImpossible
from ha.notices.model import FencingAttempt
from ha.rpc.client import RpcConnection
from ha.rpc.java_names import HA_SERVICE_PROTOCOL
from ha.service.client import ServiceClient
from ha.service.model import ServiceState
from ha.zkfc.settings.settings import FencingPlan
from ha.zkfc.surroundings.surroundings import Surroundings
from ha.zkfc.takeover.former_active import require_recent_contact
from ha.zkfc.takeover.planned_fence import fence_as_planned
from ha.zkfc.takeover.takeover import DEMOTION_PAUSES_SECONDS, Takeover
from tests.ha.zkfc import victims
from tests.ha.zkfc.toy_namenode import HOST
from tests.ha.zkfc.victims import NN2S_PLAN, Methods, crumb, settings, toy
from tests.ha.zkfc.zkfc_world import free_port
from tests.stand_in import say_nothing, stand_in

LATER = SessionNumber(8)
NOW = SessionNumber(7)


VICTIMS = {
    # nameservice and name in the breadcrumb, whether its port is the configured one, who is fenced
    "where it is configured": ("ns1", "nn2", True, ["there"]),
    "it has moved": ("ns1", "nn2", False, ["old", "there"]),
    "nobody knows it": ("ns1", "nn9", False, ["old"]),
    "its namesake of another nameservice": ("ns2", "nn2", False, ["old"]),
}


@pytest.mark.parametrize("case", VICTIMS)
async def test_all_addresses_at_which_the_named_one_may_live_are_fenced(case: str) -> None:
    nameservice, name, at_home, expected = VICTIMS[case]
    old, there, methods = free_port(), free_port(), Methods()
    taking = Takeover(settings(1, nn2=there), around=Surroundings(fence=methods))
    fenced = await taking.fence(crumb(name, there if at_home else old, nameservice), Term.SETTLED)
    ports = {"old": old, "there": there}
    assert [(each.nameservice, each.namenode, each.port) for each in methods.given] == [
        (nameservice, name, ports[which]) for which in expected
    ]
    assert fenced.how.count("was fenced by m0") == len(expected)


@pytest.mark.parametrize(
    ("silent", "proves", "term", "gone"),
    [
        (False, False, Term.ENDED, True),
        (False, False, Term.SETTLED, False),
        (True, False, Term.ENDED, False),
        (True, True, Term.SETTLED, True),
        (True, True, Term.UNKNOWN, False),
    ],
)
async def test_what_is_known_of_the_former_actives_end(
    *, silent: bool, proves: bool, term: Term, gone: bool
) -> None:
    """Check that a refused connection proves no end that was not seen; silence never does."""
    tried: list[FencingAttempt] = []
    methods = Methods(FencingOutcome.FAILED, FencingOutcome.SUCCEEDED, proves_gone=proves)
    async with stand_in(say_nothing) as silent_port:
        port = silent_port if silent else free_port()
        taking = Takeover(
            settings(1, nn2=port), measure=tried.append, around=Surroundings(fence=methods)
        )
        fenced = await taking.fence(crumb("nn2", port), term)
    assert fenced.gone is gone
    assert fenced.how.endswith("was fenced by m1")
    assert [(one.method, one.result) for one in tried] == [
        ("rpc", "failed"), ("m0", "failed"), ("m1", "succeeded")]  # fmt: skip
    assert [(one.detail, one.seconds) for one in tried[1:]] == [
        ("it says 0", 1.234568), ("it says 1", 1.234568)]  # fmt: skip


async def test_one_that_answers_is_told_as_such_and_no_method_runs() -> None:
    tried, methods = list[FencingAttempt](), Methods()
    clock = asyncio.get_running_loop().time
    async with toy("nn2") as former:
        around = Surroundings(fence=methods)
        taking = Takeover(settings(1, nn2=former.port), measure=tried.append, around=around)
        began = clock()
        assert (await taking.fence(crumb("nn2", former.port), Term.SETTLED)).gone
        took = clock() - began
    assert [(one.method, one.result, methods.given) for one in tried] == [("rpc", "succeeded", [])]
    assert tried[0].detail == "it answered that it is standby"
    assert tried[0].seconds is not None
    assert 0.0 <= tried[0].seconds <= took + 1e-6  # it is reported in microseconds


async def test_one_that_refuses_lives_whatever_its_controller_has_seen() -> None:
    tried, methods = list[FencingAttempt](), Methods()
    async with toy("nn2") as former:
        former.fail_to_become_standby = True
        around = Surroundings(fence=methods)
        taking = Takeover(settings(1, nn2=former.port), measure=tried.append, around=around)
        assert not (await taking.fence(crumb("nn2", former.port), Term.ENDED)).gone
    assert "injected failure" in tried[0].detail


async def test_a_takeover_ends_where_no_method_succeeds() -> None:
    methods = Methods(FencingOutcome.FAILED, FencingOutcome.TIMED_OUT)
    port = free_port()
    taking = Takeover(settings(1, nn2=port), around=Surroundings(fence=methods))
    with pytest.raises(TakeoverImpossible, match=r"Unable to fence ns1\.nn2"):
        await taking.fence(crumb("nn2", port), Term.ENDED)


OURSELVES = {
    # where the breadcrumb says that we are, and whether a takeover may go on
    "at our address, where nobody listens": ("here", "dead", False),
    "at a former address, where nobody listens": ("moved", "dead", True),
    "at a former address, which is silent": ("moved", "silent", False),
    "at a former address, where one refuses": ("moved", "refusing", False),
}


@pytest.mark.parametrize("case", OURSELVES)
async def test_no_method_ever_strikes_our_own_namenode(case: str) -> None:
    where, state, goes_on = OURSELVES[case]
    methods = Methods()
    async with stand_in(say_nothing) as silent, toy("nn1") as alive, toy("nn1") as refusing:
        refusing.fail_to_become_standby = True
        port = {"silent": silent, "refusing": refusing.port, "dead": free_port()}[state]
        own = port if where == "here" else alive.port
        taking = Takeover(settings(own), around=Surroundings(fence=methods))
        if goes_on:
            fenced = await taking.fence(crumb("nn1", port), Term.ENDED)
            assert "nobody listens at our former address" in fenced.how
            assert not fenced.gone
        else:
            with pytest.raises(TakeoverImpossible, match="names our own NameNode"):
                await taking.fence(crumb("nn1", port), Term.ENDED)
    assert methods.given == []


async def test_in_doubt_every_other_is_asked_and_the_named_one_fenced_once() -> None:
    async with toy("nn2") as second, toy("nn3") as third:
        taking = Takeover(settings(1, nn2=second.port, nn3=third.port))
        fenced = await taking.fence(crumb("nn2", second.port), Term.DOUBTED)
        assert (second.seen, third.seen) == (["standby by ZKFC"],) * 2
        settled = await taking.fence(crumb("nn2", second.port), Term.SETTLED)
        assert (len(second.seen), len(third.seen)) == (2, 1), "without a doubt nobody else is asked"
    assert "ns1.nn3" in fenced.how
    assert "breadcrumb is in doubt, went standby" in fenced.how
    assert "ns1.nn3" not in settled.how


async def test_in_doubt_the_one_that_is_named_is_fenced_all_the_same() -> None:
    port, methods = free_port(), Methods()
    taking = Takeover(settings(1, nn2=port), around=Surroundings(fence=methods))
    await taking.fence(crumb("nn2", port), Term.DOUBTED)
    assert [each.port for each in methods.given] == [port]


OPEN = parse_acl("world:anyone:rwcda")
ON_OUR_OWN_HOST = {
    # nameservice, name and port in the breadcrumb -> which are fenced, at configured ports
    "it is where it is configured": ("ns1", "nn2", "nn2", ["nn2"]),
    "it has moved, or the port is a DataNode's": ("ns1", "nn2", "strange", ["nn2"]),
    "its port is that of the third": ("ns1", "nn2", "nn3", ["nn2"]),
    "nobody knows the name": ("ns1", "nn9", "strange", ["nn2", "nn3"]),
    "nobody knows the name, which has the port of one": ("ns1", "nn9", "nn2", ["nn2", "nn3"]),
    "its namesake of another nameservice": ("ns2", "nn2", "nn2", ["nn2", "nn3"]),
    "it is ourselves elsewhere": ("ns1", "nn1", "strange", []),
}


@pytest.mark.parametrize("case", ON_OUR_OWN_HOST)
@pytest.mark.parametrize("doubt", ["its ACL is in doubt", "the configured ACL is open"])
async def test_where_others_could_have_named_it_only_configured_addresses_are_touched(
    case: str, doubt: str
) -> None:
    """Let a stranger write the address of a DataNode: it is neither spoken to nor killed."""
    nameservice, name, where, expected = ON_OUR_OWN_HOST[case]
    methods, asked = Methods(proves_gone=True), list[int]()
    ports = {one: free_port() for one in ("nn2", "nn3", "strange")}

    async def note(host: str, port: int, **how: Any) -> RpcConnection:  # noqa: ANN401 - as it is
        asked.append(port)
        return await RpcConnection.open(host, port, **how)

    async with toy("nn1") as own:
        site = settings(own.port, nn2=ports["nn2"], nn3=ports["nn3"])
        is_open = doubt == "the configured ACL is open"
        if is_open:
            site = replace(site, zookeeper=replace(site.zookeeper, acl=OPEN))
        term = Term.SETTLED if is_open else Term.DOUBTED
        taking = Takeover(site, around=Surroundings(connect=note, fence=methods))
        fenced = await taking.fence(crumb(name, ports[where], nameservice), term)
    assert [(each.nameservice, each.namenode, each.port) for each in methods.given] == [
        ("ns1", which, ports[which]) for which in expected
    ]
    assert ports["strange"] not in asked
    assert fenced.gone is (is_open and case == "it is where it is configured")


async def test_bytes_that_name_nobody_stand_for_all_others_in_doubt_alone() -> None:
    methods, ports = Methods(), [free_port(), free_port()]
    taking = Takeover(settings(1, nn2=ports[0], nn3=ports[1]), around=Surroundings(fence=methods))
    await taking.fence(b"scribble", Term.DOUBTED)
    assert [each.port for each in methods.given] == ports
    with pytest.raises(TakeoverImpossible, match="cannot tell whom to fence"):
        await taking.fence(b"scribble", Term.SETTLED)


PLANS = {
    "it has one of its own": ("ns1", "nn2", NN2S_PLAN),
    "nobody knows it": ("ns1", "nn9", victims.UNKNOWN_ONES_PLAN),
    "its namesake of another nameservice": ("ns2", "nn2", victims.UNKNOWN_ONES_PLAN),
}


@pytest.mark.parametrize(("nameservice", "name", "plan"), PLANS.values(), ids=PLANS)
async def test_each_is_fenced_as_its_own_configuration_plans_it(
    nameservice: str, name: str, plan: FencingPlan
) -> None:
    methods, port = Methods(), free_port()
    taking = Takeover(settings(1, nn2=port, nn3=2), around=Surroundings(fence=methods))
    await taking.fence(crumb(name, port, nameservice), Term.SETTLED)
    assert methods.plans == [plan]


async def test_only_some_of_the_planned_methods_run_where_they_are_named() -> None:
    methods, target = Methods(), Target("ns1", "nn2", HOST, 1)
    only = (ShellMethod("off"),)
    await fence_as_planned(NN2S_PLAN, target, only=only, by=methods)
    assert methods.plans == [replace(NN2S_PLAN, methods=only)]


WANTED = {
    # whether it is wanted, before each try; whether the NameNode refuses then; how often it is
    # asked, and what is answered
    "it confirms at once": ([True], [False], 1, None),
    "it confirms at the second time": ([True, True], [True, False], 2, None),
    "it never confirms": ([True, True, True], [True, True, True], 3, "injected failure"),
    "it is not wanted any more": ([True, False], [True, True], 1, "injected failure"),
    "it was never wanted": ([False], [True], 0, "nobody asked it"),
}


@pytest.mark.parametrize("case", WANTED)
async def test_a_demotion_is_asked_for_again_while_it_is_wanted(case: str) -> None:
    wanted, refuses, asked, answer = WANTED[case]
    turns = iter(zip(wanted, refuses, strict=True))

    def next_turn() -> bool:
        is_wanted, one.fail_to_become_standby = next(turns)
        return is_wanted

    async with toy("nn1") as one:
        began = asyncio.get_running_loop().time()
        told = await Takeover(settings(one.port)).demote_with_retries(next_turn)
        assert len(one.seen) == asked
        waited = asyncio.get_running_loop().time() - began
        assert waited >= sum(DEMOTION_PAUSES_SECONDS[: len(wanted)])
    assert (told is None) if answer is None else (answer in (told or ""))


async def test_a_demotion_that_was_not_confirmed_is_told() -> None:
    async with toy("nn1") as one:
        taking = Takeover(settings(one.port))
        assert await taking.demote()
        one.fail_to_become_standby = True
        assert not await taking.demote()


async def test_a_request_carries_the_number_of_the_lock_that_it_is_asked_under() -> None:
    """Refuse a promotion under an older lock than that of the NameNode's demotion."""
    standby = ElectorState(session=NOW, role=Role.STANDBY)
    taking_over = ElectorState(session=NOW, role=Role.TAKING_OVER)
    async with toy("nn1") as one:
        demoting, promoting = Takeover(settings(one.port)), Takeover(settings(one.port))
        demoting.observe_step(LockSeen(NOW, ours=True, made=7), taking_over, taking_over)
        assert await demoting.demote()
        late = "made under 0x5, and under 0x7"
        promoting.observe_step(LockSeen(NOW, ours=True, made=5), taking_over, taking_over)
        with pytest.raises(TakeoverImpossible, match=late):
            await promoting.promote(predecessor_gone_until=0.0)
        of_another_session = LockSeen(LATER, ours=True, made=9)
        promoting.observe_step(of_another_session, taking_over, taking_over)
        promoting.observe_step(LockGone(NOW), taking_over, taking_over)
        promoting.observe_step(LockGone(NOW), taking_over, standby)
        promoting.observe_step(LockGone(NOW), standby, standby)
        with pytest.raises(TakeoverImpossible, match=late):
            await promoting.promote(predecessor_gone_until=0.0)
        promoting.observe_step(LockGone(NOW), standby, taking_over)  # a new lock, not looked at yet
        await promoting.promote(predecessor_gone_until=0.0)
        assert one.active_transitions == 1
        await Takeover(settings(one.port)).promote(predecessor_gone_until=0.0)


async def test_a_promotion_takes_the_connection_that_is_open_and_a_demotion_never() -> None:
    """End a demotion that got no answer in time with its connection (seed 49052928)."""
    async with toy("nn1") as one:
        address = HostPort(HOST, one.port)
        async with ServiceClient.connected(address, deadline_seconds=30.0) as client:
            asked = settings(free_port())
            probed = replace(asked, own=replace(asked.own, lifeline=asked.own.service))
            elsewhere = Takeover(probed, monitor_client=lambda: client)
            await elsewhere.promote(predecessor_gone_until=0.0)
            assert one.active_transitions == 1
            assert not await elsewhere.demote()
            assert one.state is ServiceState.ACTIVE


async def test_a_demotion_takes_what_is_ready_and_ends_with_it() -> None:
    async with toy("nn1") as one:
        opened = await RpcConnection.open(
            HOST, one.port, protocol=HA_SERVICE_PROTOCOL, deadline_seconds=30.0
        )
        demoting = Takeover(settings(free_port()), around=Surroundings(take_ready=lambda _: opened))
        assert await demoting.demote()
        assert one.state is ServiceState.STANDBY
        assert opened.closed


async def test_a_demotion_is_asked_again_where_what_was_ready_is_lost() -> None:
    """Start the NameNode anew, when nothing has shown it yet."""
    async with toy("nn1") as one:
        lost = await RpcConnection.open(
            HOST, one.port, protocol=HA_SERVICE_PROTOCOL, deadline_seconds=30.0
        )
        await lost.close()
        around = Surroundings(take_ready=lambda _: lost)
        assert await Takeover(settings(one.port), around=around).demote()
        assert one.state is ServiceState.STANDBY


async def test_a_connection_to_the_port_of_probes_changes_no_role() -> None:
    """Hadoop's lifeline port takes nothing but questions about health."""
    async with toy("nn1") as one, toy("nn1") as probes:
        watched = HostPort(HOST, probes.port)
        asked = settings(one.port)
        apart = replace(asked, own=replace(asked.own, lifeline=watched))
        async with ServiceClient.connected(watched, deadline_seconds=30.0) as client:
            await Takeover(apart, monitor_client=lambda: client).promote(predecessor_gone_until=0.0)
        assert (one.active_transitions, probes.active_transitions) == (1, 0)


@dataclass
class Contact:
    """What is known of a session."""

    last_contact: float | None
    session_timeout_seconds: float | None


def test_a_session_may_be_silent_for_exactly_its_timeout() -> None:
    for sent, timeout in ((90.0, 10.0), (None, 10.0), (1.0, None), (None, None)):
        require_recent_contact(Contact(sent, timeout), now=100.0)
    with pytest.raises(TakeoverImpossible, match="no ZooKeeper has answered us for"):
        require_recent_contact(Contact(89.5, 10.0), now=100.0)


def test_without_a_breadcrumb_one_is_made_and_none_replaced() -> None:
    """Expect no version: one of an earlier term would make the write fail for ever."""
    reading = ElectorState(
        session=NOW, role=Role.TAKING_OVER, stage=Stage.READING, breadcrumb_version=4)  # fmt: skip
    asked = advance_takeover(reading, BreadcrumbRead(NOW, reading.attempt, None))
    assert asked.actions == (WriteBreadcrumb(NOW, reading.attempt, b"", None),)
    assert asked.state.breadcrumb_version is None
