"""Whose call is next: no user has more than a share while others wait."""

import asyncio
import gc
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
from prometheus_client import REGISTRY

from ha.rpc.call_share import CallQueue
from ha.rpc.client import RpcConnection
from ha.rpc.connection import ServerConnection
from ha.rpc.errors import ConnectionLost
from ha.rpc.java_names import CLIENT_PROTOCOL, HA_SERVICE_PROTOCOL
from ha.rpc.limits import RpcLimits
from ha.rpc.protocol import Call
from tests.ha.rpc.wire import Echo, ask, echo_protocol, eventually, serving

LIMITS = RpcLimits(max_calls=16, max_calls_per_connection=16)
"""Of which one is kept for failover; a share is four."""


@dataclass(eq=False)
class Peer:
    user: str
    privileged: bool = False

    def pump(self) -> None: ...


def busy(**running: int) -> CallQueue:
    share = CallQueue(LIMITS)
    for user, count in running.items():
        for _ in range(count):
            share.began(user)
    return share


CASES: dict[str, tuple[dict[str, int], list[str], Peer, bool]] = {
    "there is room": ({"a": 3}, [], Peer("a"), True),
    "more than a share while nobody waits": ({"a": 14}, [], Peer("a"), True),
    "more than a share while somebody waits": ({"a": 14}, ["b"], Peer("a"), False),
    "more than a share while its like waits": ({"a": 14}, ["a"], Peer("a"), True),
    "two who have more wait for nobody": ({"a": 7, "c": 7}, ["c"], Peer("a"), True),
    "clients leave the last one": ({"a": 15}, [], Peer("b"), False),
    "to failover": ({"a": 15}, [], Peer("b", privileged=True), True),
    "failover waits where all are taken": ({"a": 16}, [], Peer("b", privileged=True), False),
    "who has not said who it is may say so": ({"a": 16}, [], Peer(""), True),
}


@pytest.mark.parametrize("case", CASES)
def test_who_may_call(case: str) -> None:
    running, waiting, peer, may = CASES[case]
    share = busy(**running)
    for user in waiting:
        share.waiting[Peer(user)] = user
    assert share.has_room(peer) is may
    assert (peer in share.waiting) is not may


def test_the_first_of_those_that_may_is_next() -> None:
    share = busy(a=15)
    peers = [Peer("a"), Peer("a"), Peer("b"), Peer("c")]
    for peer in peers:
        assert not share.has_room(peer)
    assert share.next_one() is None, "nobody has ended"
    share.ended("a")
    assert share.next_one() is peers[2]
    share.began("b")
    assert share.next_one() is None
    share.ended("a")
    assert share.next_one() is peers[3]
    assert share.next_one() is peers[0], "nobody else waits any more"


def test_a_name_that_changes_while_it_waits_leaves_nothing_behind() -> None:
    share, peer = busy(a=16), Peer("b")
    assert not share.has_room(peer)
    peer.user = "c"
    share.leave(peer)
    for _ in range(16):
        share.ended("a")
    assert share.waiting == {}
    assert share.has_room(Peer("a"))


async def test_one_users_crowd_keeps_neither_others_nor_failover_waiting() -> None:
    started: list[str] = []
    ends = asyncio.Semaphore(0)

    async def handle(_: Call, request: Echo) -> Echo:
        started.append(request.context)
        if request.context != "quick":
            await ends.acquire()
        return request

    protocols = [echo_protocol(handle, one) for one in (CLIENT_PROTOCOL, HA_SERVICE_PROTOCOL)]
    before, most = met("kept_calls"), LIMITS.calls_of_clients
    async with serving(*protocols, limits=LIMITS) as (_, port), AsyncExitStack() as stack:
        crowd = [asyncio.create_task(ask(await opened(stack, port, "crowd"), f"{n}", seconds=60))
                 for n in range(30)]  # fmt: skip
        await eventually(lambda: met("kept_calls") == before + 30 - most, seconds=30)
        controller = await opened(stack, port, "hdfs", HA_SERVICE_PROTOCOL)
        assert await ask(controller, "quick", seconds=30) == "quick"
        other = asyncio.create_task(ask(await opened(stack, port, "other"), "other", seconds=60))
        await eventually(lambda: met("kept_calls") == before + 31 - most)
        ends.release()
        await eventually(lambda: len(started) == most + 2)
        assert started[-1] == "other", "although fifteen have waited longer"
        for _ in range(31):
            ends.release()
        await asyncio.gather(other, *crowd)


async def test_callers_that_are_sent_away_while_they_wait_are_forgotten() -> None:
    """As the door does where it is full: each kept would hold its connection and its turn."""
    under_way, ends = 0, asyncio.Semaphore(0)

    async def handle(_: Call, request: Echo) -> Echo:
        nonlocal under_way
        under_way += 1
        await ends.acquire()
        return request

    async def call(user: str) -> str:
        return await ask(await opened(stack, port, user), seconds=60)

    before, most = met("kept_calls"), LIMITS.calls_of_clients
    protocol = echo_protocol(handle, CLIENT_PROTOCOL)
    async with serving(protocol, limits=LIMITS) as (_, port), AsyncExitStack() as stack:
        crowd = [asyncio.create_task(call("crowd")) for _ in range(most)]
        await eventually(lambda: under_way == most, seconds=30)
        gone = [asyncio.create_task(call("gone")) for _ in range(5)]
        await eventually(lambda: met("kept_calls") >= before + 5, seconds=30)
        await eventually(lambda: sent_away("gone"), seconds=30)
        for _ in range(most):
            ends.release()
        await asyncio.gather(*crowd)
        ended = await asyncio.gather(*gone, return_exceptions=True)
        assert all(isinstance(one, ConnectionLost) for one in ended), ended


def connections_of(user: str) -> list[ServerConnection]:
    """Return what a server here still holds of a user's connections."""
    gc.collect()
    held = [one for one in gc.get_objects() if isinstance(one, ServerConnection)]
    return [one for one in held if one.user == user]


def sent_away(user: str) -> bool:
    """Send a user's connections away, and return whether none is held any more."""
    for connection in connections_of(user):
        connection.give_way()
    return not connections_of(user)


def met(limit: str) -> float:
    return REGISTRY.get_sample_value("nnha_rpc_limits_met_total", {"limit": limit}) or 0.0


async def opened(
    stack: AsyncExitStack, port: int, user: str, protocol: str = CLIENT_PROTOCOL
) -> RpcConnection:
    connection = await RpcConnection.open(
        "127.0.0.1", port, protocol=protocol, user=user, deadline_seconds=30
    )
    stack.push_async_callback(connection.close)
    return connection
