"""What the bench of blocks asks a NameNode as a client, whosever it is."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from google.protobuf.message import Message

from deploy.local.cluster.errors import LocalClusterError
from ha.conf.topology import HostPort
from ha.rpc.client import RpcConnection
from ha.rpc.errors import RemoteFault, RpcError
from ha.rpc.java_names import CLIENT_PROTOCOL
from ha.service.client import ServiceClient
from ha.service.errors import ServiceError
from ha.service.model import ServiceState
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as hdfs

CALL_SECONDS: Final = 60.0
M = TypeVar("M", bound=Message)


async def connected(address: HostPort) -> RpcConnection:
    """Return a client's connection; each is a client of its own.  Raise ConnectFailed."""
    return await RpcConnection.open(
        address.host,
        address.port,
        protocol=CLIENT_PROTOCOL,
        deadline_seconds=CALL_SECONDS,
        client_id=uuid.uuid4().bytes,
    )


async def ask(connection: RpcConnection, method: str, request: Message, answer: type[M]) -> M:
    """Make one call.  Raise RpcError, RemoteFault."""
    return await connection.call(method, request, answer, deadline_seconds=CALL_SECONDS)


async def in_safe_mode(connection: RpcConnection) -> bool:
    """Return whether the NameNode is; a standby answers, too."""
    request = calls.SetSafeModeRequestProto(action=hdfs.SAFEMODE_GET, checked=False)
    answer = await ask(connection, "setSafeMode", request, calls.SetSafeModeResponseProto)
    return answer.result


async def until_out_of_safe_mode(address: HostPort) -> None:
    async def out() -> bool:
        connection = await connected(address)
        try:
            return not await in_safe_mode(connection)
        finally:
            await connection.close()

    await until(out, f"the NameNode at {address} to leave safe mode", 120.0)


async def state_of(address: HostPort) -> ServiceState:
    """Return what a NameNode says that it is, over a new connection.  Raise ServiceError."""
    client = await ServiceClient.open(address, deadline_seconds=2.0)
    try:
        return (await client.status(deadline_seconds=2.0)).state
    finally:
        await client.close()


async def until_active(address: HostPort, poll_seconds: float = 0.01) -> float:
    """Wait until a NameNode is active; return the monotonic time of the answer that said so."""

    async def active() -> bool:
        return await state_of(address) is ServiceState.ACTIVE

    await until(active, f"the NameNode at {address} to be active", 180.0, poll_seconds)
    return time.monotonic()


async def until(
    holds: Callable[[], Awaitable[bool]], what: str, seconds: float, poll_seconds: float = 0.05
) -> None:
    """Ask until it holds; a call that fails says no.  Raise LocalClusterError."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if await holds():
                return
        except (RpcError, RemoteFault, ServiceError) as failure:
            why = str(failure)
        else:
            why = "it answered no"
        if time.monotonic() > deadline:
            raise LocalClusterError(f"Waited {seconds:g} s for {what}; at last: {why}")
        await asyncio.sleep(poll_seconds)
