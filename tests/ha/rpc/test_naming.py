"""A caller is named in a thread, and what it sends in the meantime waits."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import REGISTRY

from ha.conf.keys.security import Mode
from ha.conf.own_user import own_user
from ha.rpc.call_access import CallAccess
from ha.rpc.connection import ServerConnection
from ha.rpc.dispatcher import Dispatcher
from ha.rpc.frame_budget import FrameBudget
from ha.rpc.java_names import CLIENT_PROTOCOL, HA_SERVICE_PROTOCOL
from ha.rpc.limits import DEFAULT_LIMITS
from ha.rpc.packets import PREAMBLE, encode_context
from ha.rpc.protocol import Catalogue
from ha.security.access_control import AccessControl
from ha.security.kerberos.admission import Admission
from tests.ha.daemon.test_readers import until
from tests.ha.rpc.wire import until_closed
from tests.ha.security.test_unproven import HOST, Lines

NO_USERS_UID = 60_123
SECONDS = 20.0


def access_of(uid: int) -> AccessControl:
    return AccessControl(Mode.AUTO, target="t", audit=Lines(), uid_of=lambda *_: uid)


def dispatcher_of(access: AccessControl) -> Dispatcher:
    return Dispatcher(Catalogue(), DEFAULT_LIMITS, FrameBudget(), CallAccess(access))


def open_connections() -> float | None:
    return REGISTRY.get_sample_value("nnha_rpc_connections")


async def test_nothing_is_heard_of_a_caller_before_it_has_a_name() -> None:
    """Bad schedule: uvloop reads on though reading was paused as the connection was made.

    The claim to be root was then compared with no name at all.
    """
    loop, directory_answers = asyncio.get_running_loop(), threading.Event()
    lookups = ThreadPoolExecutor(1)
    loop.set_default_executor(lookups)
    lookups.submit(directory_answers.wait)
    owner = dispatcher_of(access_of(NO_USERS_UID))
    made: list[tuple[ServerConnection, float]] = []

    def connection() -> ServerConnection:
        new = ServerConnection(DEFAULT_LIMITS, owner)
        made.append((new, new.heard_at))
        return new

    server = await loop.create_server(connection, HOST, 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(PREAMBLE + encode_context(bytes(16), HA_SERVICE_PROTOCOL, "root", None))
    await until(lambda: any(one.heard_at > born for one, born in made), "something was received")
    directory_answers.set()
    said = await until_closed(reader)
    server.close()
    writer.close()
    assert f"Call under your own name, {NO_USERS_UID} (".encode() in said


async def test_a_caller_that_gives_way_while_it_is_admitted_takes_no_seat_again() -> None:
    loop, asked, answered = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    async def groups_of(_: str) -> frozenset[str]:
        asked.set()
        await answered.wait()
        return frozenset({"users"})

    before = open_connections()
    access, policy = access_of(os.getuid()), {"security.client.protocol.acl": " users"}
    access.admission = Admission(groups_of=groups_of, policy=policy)
    owner = dispatcher_of(access)
    server = await loop.create_server(lambda: ServerConnection(DEFAULT_LIMITS, owner), HOST, 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(PREAMBLE + encode_context(bytes(16), CLIENT_PROTOCOL, own_user(), None))
    await asyncio.wait_for(asked.wait(), SECONDS)
    (admitting,) = (one for one in asyncio.all_tasks() if one.get_name() == "identify a caller")
    (connection,) = owner.connections
    connection.give_way()
    answered.set()
    await admitting
    assert open_connections() == before
    server.close()
    writer.close()
