"""How many connections one user and one address may have, before and after a proof."""

import asyncio
from contextlib import AsyncExitStack

from prometheus_client import REGISTRY

from ha.rpc.connection_table import ConnectionTable
from ha.rpc.java_names import CLIENT_PROTOCOL, HA_SERVICE_PROTOCOL
from ha.rpc.limits import RpcLimits
from ha.rpc.packets import PREAMBLE, encode_context
from ha.security.caller import Caller, Role, local_caller, unproven
from tests.ha.rpc.wire import CLIENT, Bench, ask, calling, echo_protocol, eventually, raw, serving

LIMITS = RpcLimits(
    max_connections=64, max_unproven=8, max_unproven_of_address=3, max_of_user=6, max_of_address=4
)


class Peer:
    def __init__(
        self,
        seats: ConnectionTable,
        caller: Caller | None = None,
        *,
        host: str = "10.0.0.1",
        at: float = 0,
    ) -> None:
        self._seats = seats
        self.caller = caller
        self.host = host
        self.user = self.protocol = ""
        self.idle = True
        self.born_at = self.heard_at = at
        self.open = seats.admit(self)

    def says(self, user: str, protocol: str = CLIENT_PROTOCOL) -> bool:
        self.user, self.protocol = user, protocol
        return self._seats.greeted(self)

    def give_way(self) -> None:
        self.open = False
        self._seats.leave(self)


def seats() -> ConnectionTable:
    return ConnectionTable(LIMITS, {HA_SERVICE_PROTOCOL})


def met(limit: str) -> float:
    return REGISTRY.get_sample_value("nnha_rpc_limits_met_total", {"limit": limit}) or 0.0


def open_ones(peers: list[Peer]) -> list[int]:
    return [number for number, peer in enumerate(peers) if peer.open]


LOCAL = local_caller(1000, 0, "127.0.0.1:5")


def test_a_newcomer_beyond_the_limit_is_counted_whether_it_finds_a_seat_or_not() -> None:
    here, before = ConnectionTable(RpcLimits(max_connections=1), ()), met("max_connections")
    first = Peer(here)
    assert (first.open, met("max_connections")) == (True, before)
    second = Peer(here)
    assert (first.open, second.open, met("max_connections")) == (False, True, before + 1)
    second.idle = False
    third = Peer(here)
    assert (second.open, third.open, met("max_connections")) == (True, False, before + 2)
    assert here.taken == {second}


def test_of_those_that_say_nothing_an_address_has_few() -> None:
    here, before = seats(), met("unproven_of_address")
    peers = [Peer(here, at=n / 1000) for n in range(6)]
    other = Peer(here, host="10.0.0.2")
    here.close_unidentified()
    assert len(open_ones(peers)) == 6, "what they have said may not have been read yet"
    late = [Peer(here, at=1) for n in range(6)]
    here.close_unidentified()
    assert open_ones(late) == list(range(6))
    assert open_ones(peers) == [3, 4, 5], "the longest there go first"
    assert other.open
    assert met("unproven_of_address") == before + 3


def test_of_those_that_say_nothing_there_are_few_in_all() -> None:
    here, before = seats(), met("unproven")
    peers = [Peer(here, host=f"10.0.0.{n}", at=n) for n in range(12)]
    here.close_unidentified()
    here.close_unidentified()
    assert open_ones(peers) == list(range(4, 12))
    assert met("unproven") == before + 4


def test_who_has_said_or_proved_who_it_is_is_none_of_those() -> None:
    here = seats()
    said = [Peer(here, host=f"10.0.1.{n}") for n in range(10)]
    assert all(peer.says("a" + peer.host) for peer in said)
    proved = [Peer(here, LOCAL, host="127.0.0.1") for _ in range(20)]
    here.close_unidentified()
    here.close_unidentified()
    assert all(peer.open for peer in (*said, *proved))


def test_an_address_has_its_share_of_clients_and_the_longest_idle_one_gives_way() -> None:
    here, before = seats(), met("of_address")
    peers = [Peer(here, at=n) for n in range(5)]
    assert all(peer.says(f"user{n}") for n, peer in enumerate(peers))
    assert open_ones(peers) == [1, 2, 3, 4]
    assert Peer(here, host="10.0.0.2").says("x"), "others have theirs"
    assert met("of_address") == before + 1


def test_a_user_has_its_share_from_everywhere() -> None:
    here, before = seats(), met("of_user")
    peers = [Peer(here, host=f"10.0.0.{n}", at=n) for n in range(7)]
    assert all(peer.says("alice") for peer in peers)
    assert open_ones(peers) == [1, 2, 3, 4, 5, 6]
    assert met("of_user") == before + 1


def test_a_newcomer_is_refused_where_all_of_its_like_work() -> None:
    here = seats()
    peers = [Peer(here) for _ in range(5)]
    for peer in peers:
        peer.idle = False
    assert [peer.says("alice") for peer in peers] == [True, True, True, True, False]


def test_on_this_machine_a_uid_has_the_share_of_a_user() -> None:
    """Spark's executors and drivers all come from one address."""
    here = seats()
    peers = [Peer(here, LOCAL, host="127.0.0.1", at=n) for n in range(7)]
    others = [Peer(here, local_caller(0, 0, "127.0.0.1:5"), host="127.0.0.1") for _ in range(6)]
    assert all(peer.says(f"user{n}") for n, peer in enumerate((*peers, *others)))
    assert open_ones(peers) == [1, 2, 3, 4, 5, 6]
    assert open_ones(others) == [0, 1, 2, 3, 4, 5]


def test_controllers_are_in_no_share() -> None:
    here = seats()
    peers = [Peer(here) for _ in range(20)]
    assert all(peer.says("hdfs", HA_SERVICE_PROTOCOL) for peer in peers)
    assert all(peer.open for peer in peers)


def test_a_mere_client_has_no_seat_that_is_kept() -> None:
    here = seats()
    root = local_caller(0, 0, "127.0.0.1:5")
    peers = {who: Peer(here, who) for who in (LOCAL, root, unproven("10.0.0.1:1"))}
    for peer in peers.values():
        peer.says("hdfs", HA_SERVICE_PROTOCOL)
    assert [here.is_privileged(peer) for peer in peers.values()] == [False, True, True]
    assert LOCAL.roles == {Role.CLIENT}


async def test_a_silent_crowd_is_cut_down_and_a_caller_served() -> None:
    limits = RpcLimits(handshake_seconds=30)
    async with serving(echo_protocol(), limits=limits) as (server, port), AsyncExitStack() as stack:
        for _ in range(60):
            await stack.enter_async_context(raw(port))
        await eventually(lambda: server.connection_count == limits.max_unproven_of_address)
        async with calling(port) as client:
            assert await ask(client) == "hello"


async def test_dozens_of_local_clients_at_once_are_all_served() -> None:
    bench = Bench()
    protocol = echo_protocol(bench.handle, CLIENT_PROTOCOL)
    async with serving(protocol) as (_, port), AsyncExitStack() as stack:
        opening = (stack.enter_async_context(calling(port, CLIENT_PROTOCOL)) for _ in range(200))
        clients = await asyncio.gather(*opening)
        waiting = [asyncio.create_task(ask(one, f"{n}", seconds=60))
                   for n, one in enumerate(clients)]  # fmt: skip
        await eventually(lambda: len(bench.started) == 200, seconds=30)
        bench.finish.set()
        assert len(await asyncio.gather(*waiting)) == 200


async def test_one_users_crowd_gives_way_to_itself() -> None:
    limits = RpcLimits(max_of_user=10)
    said = PREAMBLE + encode_context(CLIENT, CLIENT_PROTOCOL, "mallory", None)
    protocol = echo_protocol(name=CLIENT_PROTOCOL)
    async with (
        serving(protocol, limits=limits) as (server, port),
        AsyncExitStack() as stack,
        calling(port, CLIENT_PROTOCOL) as alice,
    ):
        for _ in range(50):
            _, writer = await stack.enter_async_context(raw(port))
            writer.write(said)
        await eventually(lambda: server.connection_count == limits.max_of_user + 1)
        assert await ask(alice) == "hello"


def test_a_proven_controller_stays_whatever_crowd_comes() -> None:
    here = ConnectionTable(RpcLimits(max_connections=16), {HA_SERVICE_PROTOCOL})
    controller = Peer(here, local_caller(0, 0, "127.0.0.1:5"), host="127.0.0.1", at=0)
    assert controller.says("root", HA_SERVICE_PROTOCOL)
    crowd = [Peer(here, LOCAL, host="127.0.0.1", at=n) for n in range(1, 40)]
    for number, peer in enumerate(crowd):
        if peer.open:
            peer.says(f"user{number}", CLIENT_PROTOCOL if number % 2 else HA_SERVICE_PROTOCOL)
    claims = [Peer(here, host=f"10.0.0.{n}", at=50 + n) for n in range(40)]
    for peer in claims:
        peer.says("root", HA_SERVICE_PROTOCOL)
    assert controller.open
    assert len(here.taken) == 16


def test_a_site_has_the_share_of_an_address() -> None:
    here = seats()
    peers = [Peer(here, host=f"2001:db8::{n}", at=n) for n in range(5)]
    assert all(peer.says(f"user{n}") for n, peer in enumerate(peers))
    assert open_ones(peers) == [1, 2, 3, 4]
