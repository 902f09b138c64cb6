"""Calls to NameNodes of which one is active: real sockets, the NameNode's own client face."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from files.errors import Denied, NotFound, OutcomeUnknown, Unreachable
from files.namenodes import CallLimits, Namenodes
from ha.conf.configuration import load_configuration
from ha.conf.topology import HostPort
from ha.rpc import packets
from ha.rpc.errors import RemoteFault
from ha.rpc.frames import FrameSplitter, take_delimited
from ha.rpc.java_names import CLIENT_PROTOCOL, RETRIABLE, STANDBY_EXCEPTION
from ha.rpc.proto.rpc_header_pb2 import IpcConnectionContextProto
from ha.rpc.protocol import Call, Method
from ha.rpc.server import RpcServer
from hadoop.proto import client_namenode_pb2 as pb
from hadoop.proto.hdfs_types_pb2 import FsPermissionProto
from tests.namenode_sim.client_protocol import namenode_in_memory as memory
from tests.stand_in import stand_in

LIMITS = CallLimits(connect_seconds=5, attempt_seconds=20, total_seconds=30)
Handle = Callable[[Call, Any], Awaitable[Message]]


@dataclass(slots=True)
class NameNode:
    """A NameNode over sockets.

    ``meddle`` may do something before or after a call.  ``asked`` lists the calls.
    """

    served: memory.Served
    server: RpcServer
    port: int
    active: bool
    asked: list[Call] = field(default_factory=list)
    meddle: Callable[[Handle, Call, Any], Awaitable[Message]] | None = None

    @property
    def address(self) -> HostPort:
        return HostPort("127.0.0.1", self.port)


@asynccontextmanager
async def namenode(served: memory.Served, *, active: bool = True) -> AsyncIterator[NameNode]:
    protocol = served.face.protocol()
    server = RpcServer([])
    one = NameNode(served, server, await server.start("127.0.0.1", 0), active)

    def through(handle: Handle) -> Handle:
        async def call(of: Call, request: Message) -> Message:
            one.asked.append(of)
            if not one.active:
                raise RemoteFault(STANDBY_EXCEPTION, "Operation category WRITE is not supported")
            return await (one.meddle(handle, of, request) if one.meddle else handle(of, request))

        return call

    methods = {
        name: Method(method.request, through(method.handle))
        for name, method in protocol.methods.items()
    }
    server.serve([replace(protocol, methods=methods)])
    try:
        yield one
    finally:
        await server.stop()


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[NameNode, NameNode, Namenodes]]:
    """Yield a standby, the active, and a client of both that asks the standby first."""
    first = memory.serve()
    async with (
        namenode(first, active=False) as standby,
        namenode(memory.serve(namespace=first.namespace)) as active,
        Namenodes([standby.address, active.address], user="hdfs", limits=LIMITS) as client,
    ):
        yield standby, active, client


def mkdirs(src: str) -> pb.MkdirsRequestProto:
    return pb.MkdirsRequestProto(src=src, masked=FsPermissionProto(perm=0o755), createParent=True)


async def made(client: Namenodes, src: str) -> bool:
    return (await client.call("mkdirs", mkdirs(src), pb.MkdirsResponseProto)).result


async def test_the_active_is_found_and_remembered() -> None:
    async with pair() as (standby, active, client):
        assert await made(client, "/a")
        assert await made(client, "/b")
        assert [call.retry_count for call in standby.asked + active.asked] == [0, 1, 0]
        assert {call.user for call in active.asked} == {"hdfs"}


async def test_a_namenode_that_does_not_run_is_passed_over() -> None:
    async with pair() as (standby, _, client):
        await standby.server.stop()
        assert await made(client, "/a")


async def test_a_call_whose_answer_is_lost_is_done_once() -> None:
    """The active carries a delete out and dies; its successor knows the number of the call."""
    async with pair() as (standby, active, client):
        assert await made(client, "/a/b")

        async def then_die(handle: Handle, of: Call, request: Message) -> Message:
            answer = await handle(of, request)
            active.active, standby.active = False, True
            active.server.abort_connections()
            return answer

        active.meddle = then_die
        request = pb.DeleteRequestProto(src="/a", recursive=True)
        assert (await client.call("delete", request, pb.DeleteResponseProto)).result
        first, second = active.asked[-1], standby.asked[-1]
        assert (first.client_id, first.call_id) == (second.client_id, second.call_id)
        assert second.retry_count > first.retry_count
        request = pb.DeleteRequestProto(src="/a", recursive=True)
        assert not (await client.call("delete", request, pb.DeleteResponseProto)).result


async def test_a_namenode_that_asks_for_patience_gets_it() -> None:
    async with pair() as (standby, active, client):
        assert await made(client, "/a")
        refusals = [RemoteFault(RETRIABLE, "in safe mode")] * 2

        async def twice_later(handle: Handle, of: Call, request: Message) -> Message:
            if refusals:
                raise refusals.pop()
            return await handle(of, request)

        active.meddle = twice_later
        asked = len(standby.asked)
        assert await made(client, "/b")
        assert [call.retry_count for call in active.asked[-3:]] == [0, 1, 2]
        assert len(standby.asked) == asked, "it has not said that it is no longer active"


async def test_refusals_are_raised_at_once() -> None:
    async with pair() as (_, active, client):
        listing = pb.GetListingRequestProto(src="/none", startAfter=b"", needLocation=False)
        answer = await client.call("getListing", listing, pb.GetListingResponseProto)
        assert not answer.HasField("dirList")
        with pytest.raises(NotFound, match="File does not exist: /none"):
            await client.call(
                "getBlockLocations",
                pb.GetBlockLocationsRequestProto(src="/none", offset=0, length=1),
                pb.GetBlockLocationsResponseProto,
            )
        async with Namenodes([active.address], user="bob") as bob:
            with pytest.raises(Denied, match="Permission denied: user=bob"):
                await made(bob, "/bob")


async def test_without_an_active_it_ends_in_time_and_says_what_each_said() -> None:
    async with pair() as (_, active, client):
        active.active = False
        with pytest.raises(Unreachable, match=f"{active.address}: .*StandbyException.*nnha status"):
            await client.call("mkdirs", mkdirs("/a"), pb.MkdirsResponseProto, seconds=2)


async def test_what_an_attempt_found_is_said_though_a_later_one_is_cut_off() -> None:
    never = asyncio.Event()
    async with pair() as (_, active, client):

        async def once_later(handle: Handle, of: Call, request: Message) -> Message:
            if len(active.asked) == 1:
                raise RemoteFault(RETRIABLE, "in safe mode")
            await never.wait()
            return await handle(of, request)

        active.meddle = once_later
        with pytest.raises(OutcomeUnknown, match=f"{active.address}: .*in safe mode"):
            await client.call("mkdirs", mkdirs("/a"), pb.MkdirsResponseProto, seconds=3)
        assert len(active.asked) > 1
        never.set()


async def test_an_active_that_stands_still_leaves_the_outcome_open() -> None:
    limits = CallLimits(connect_seconds=0.2, attempt_seconds=0.2, total_seconds=0.6)
    never, connections = asyncio.Event(), []

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        connections.append(reader)
        await never.wait()

    async with (
        stand_in(silent) as port,
        Namenodes([HostPort("127.0.0.1", port)], limits=limits) as client,
    ):
        with pytest.raises(OutcomeUnknown, match="may have been carried out"):
            await made(client, "/a")
        assert len(connections) > 1, "it may never read from the first one again"
        never.set()


async def test_many_calls_share_a_connection_and_end_with_it() -> None:
    async with pair() as (_, active, client):
        assert all(await asyncio.gather(*(made(client, f"/{n}") for n in range(50))))
        assert active.server.connection_count == 1
        assert {call.retry_count for call in active.asked} <= {0, 1}, "all moved as one"
        held, reached = asyncio.Event(), asyncio.Event()

        async def wait(handle: Handle, of: Call, request: Message) -> Message:
            reached.set()
            await held.wait()
            return await handle(of, request)

        active.meddle = wait
        under_way = asyncio.create_task(made(client, "/held"))
        await reached.wait()
        await client.close()
        with pytest.raises(OutcomeUnknown):
            await under_way
        with pytest.raises(Unreachable):
            await made(client, "/late")
        held.set()


async def test_the_users_name_is_shown() -> None:
    contexts: asyncio.Queue[IpcConnectionContextProto] = asyncio.Queue()

    async def speak(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(packets.PREAMBLE))
        splitter = FrameSplitter()
        while (frame := splitter.take_frame(1 << 20)) is None:
            splitter.feed(await reader.read(1000))
        _header, offset = take_delimited(frame, 0)
        data, _end = take_delimited(frame, offset)
        contexts.put_nowait(IpcConnectionContextProto.FromString(data))

    async with (
        stand_in(speak) as port,
        Namenodes([HostPort("127.0.0.1", port)], user="ann") as client,
    ):
        under_way = asyncio.create_task(made(client, "/a"))
        context = await contexts.get()
        under_way.cancel()
        assert (context.userInfo.effectiveUser, context.protocol) == ("ann", CLIENT_PROTOCOL)


def test_the_configuration_lists_them(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    values = (
        "dfs.nameservices=ns",
        "dfs.ha.namenodes.ns=nn1,nn2",
        "dfs.namenode.rpc-address.ns.nn1=one:8020",
        "dfs.namenode.rpc-address.ns.nn2=two:8021",
    )
    found = Namenodes.of(load_configuration(tmp_path, values, environment={}), user="ann")
    assert [str(address) for address in found.addresses] == ["one:8020", "two:8021"]


@pytest.mark.parametrize("seconds", [(0, 1, 1), (2, 1, 1), (1, 2, 1)])
def test_limits_fit_each_other(seconds: tuple[float, float, float]) -> None:
    connect, attempt, total = seconds
    with pytest.raises(ValueError, match="part"):
        CallLimits(connect_seconds=connect, attempt_seconds=attempt, total_seconds=total)
