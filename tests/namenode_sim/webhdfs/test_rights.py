"""WebHDFS gives no caller more than RPC does: each operation, in each mode, for each caller."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace

import pytest
from google.protobuf.message import Message

from ha.conf.keys.security import Mode
from ha.rpc.client import RpcConnection
from ha.rpc.errors import ConnectionLost, RemoteFault
from ha.rpc.java_names import CLIENT_PROTOCOL
from ha.rpc.server import RpcServer
from ha.security.access_control import AccessControl
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import client_snapshots_pb2 as snapshots
from namenode_sim.client_protocol.words.model import Settings, TokenRules
from namenode_sim.webhdfs.operations import OPERATIONS, Operation, asked_for
from tests.ha.rpc.test_tls import Unwritten
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve
from tests.namenode_sim.webhdfs.test_operations import GIVEN
from tests.namenode_sim.webhdfs.web_client import WebClient, web_client

NOBODY = 65534
UNPROVEN = None
#   the mode, whose socket the kernel says it is, and the name that the caller gives itself
CALLERS: Mapping[str, tuple[Mode, int | None, str]] = {
    "insecure, as the superuser": (Mode.INSECURE, UNPROVEN, "hdfs"),
    "insecure, as a user": (Mode.INSECURE, UNPROVEN, "alice"),
    "permissive, without proof": (Mode.PERMISSIVE, UNPROVEN, "alice"),
    "permissive, as another": (Mode.PERMISSIVE, NOBODY, "hdfs"),
    "auto, without proof": (Mode.AUTO, UNPROVEN, "hdfs"),
    "auto, as itself": (Mode.AUTO, NOBODY, "nobody"),
    "auto, as another": (Mode.AUTO, NOBODY, "hdfs"),
    "auto, root as another": (Mode.AUTO, 0, "alice"),
    "strict, without proof": (Mode.STRICT, UNPROVEN, "hdfs"),
    "strict, as itself": (Mode.STRICT, NOBODY, "nobody"),
    "strict, as another": (Mode.STRICT, NOBODY, "hdfs"),
    "strict, root as another": (Mode.STRICT, 0, "hdfs"),
}
OPS = [
    (method, op, row)
    for method, rows in OPERATIONS.items()
    for op, row in rows.items()
    if isinstance(row, Operation)
]
DONE = "done"


async def world() -> Served:
    served = serve()
    await served.mkdirs("/p", mode=0o777)
    await served.mkdirs("/p/closed", mode=0o700)
    return served


def given(op: str) -> Mapping[str, str]:
    return {**GIVEN, "aclspec": "user:bob:"} if op == "REMOVEACLENTRIES" else GIVEN


async def over_rpc(port: int, user: str, method: str, op: str) -> str:
    """Return Java's name of the refusal, or that there was none."""
    query = {"op": [op], **{name: [value] for name, value in given(op).items()}}
    row, asked = asked_for(method, query, "/p/closed", user, "")
    assert isinstance(row, Operation)
    connection = await RpcConnection.open(
        "127.0.0.1",
        port,
        protocol=CLIENT_PROTOCOL,
        user=user,
        deadline_seconds=10,
        client_id=os.urandom(16),  # or a call would be a repetition of one before
    )
    try:
        await connection.call(
            row.call, row.request(asked), answer_of(row.call), deadline_seconds=10
        )
    except RemoteFault as fault:
        return fault.java_class.rpartition(".")[2].rpartition("$")[2]
    except ConnectionLost as lost:
        return "AccessControlException" if "AccessControl" in str(lost) else str(lost)
    finally:
        await connection.close()
    return DONE


def answer_of(call: str) -> type[Message]:
    name = f"{call[0].upper()}{call[1:]}ResponseProto"
    found: type[Message] = getattr(calls, name, None) or getattr(snapshots, name)
    return found


async def over_http(client: WebClient, user: str, method: str, op: str) -> str:
    words = {name.replace(".", "_"): value for name, value in given(op).items()}
    answer = await client.ask(method, "/p/closed", op, user_name=user, **words)
    return DONE if answer.status == 200 else answer.refusal[1]


@pytest.mark.parametrize("who", CALLERS)
async def test_webhdfs_and_rpc_decide_alike(who: str) -> None:
    mode, uid, user = CALLERS[who]
    access = AccessControl(
        mode, target="nn1", audit=Unwritten(), own_uid=1, uid_of=lambda *_: uid,
        kernel_reports_uids=uid is not UNPROVEN,
    )  # fmt: skip
    found, wanted = {}, {}
    rpc_world = await world()
    server = RpcServer([rpc_world.face.protocol()], access=access)
    port = await server.start("127.0.0.1", 0)
    try:
        async with asyncio.timeout(60), web_client(await world(), access) as client:
            for method, op, _ in OPS:
                wanted[op] = await over_rpc(port, user, method, op)
                found[op] = await over_http(client, user, method, op)
    finally:
        await server.stop()
    assert found == wanted
    assert (DONE in wanted.values()) == (who not in REFUSED)


REFUSED = {
    "permissive, as another", "auto, without proof", "auto, as another", "strict, without proof",
    "strict, as another",
}  # fmt: skip


async def test_a_caller_without_a_name_is_who_the_kernel_says_it_is() -> None:
    for mode, uid, name in ((Mode.STRICT, NOBODY, "nobody"), (Mode.INSECURE, UNPROVEN, "dr.who")):
        access = AccessControl(
            mode, target="nn1", audit=Unwritten(), own_uid=1, uid_of=lambda *_, uid=uid: uid
        )
        async with web_client(await world(), access) as client:
            home = await client.ask("GET", "/", "GETHOMEDIRECTORY", user_name=None)
            assert home.json == {"Path": f"/user/{name}"}


@pytest.mark.parametrize(("mode", "uid"), [(Mode.STRICT, NOBODY), (Mode.INSECURE, UNPROVEN)])
async def test_a_token_is_for_callers_that_have_proved_themselves(
    mode: Mode, uid: int | None
) -> None:
    served = serve(settings=Settings(tokens=TokenRules(issued=True, proven_only=True)))
    access = AccessControl(mode, target="nn1", audit=Unwritten(), own_uid=1, uid_of=lambda *_: uid)
    async with web_client(served, access) as client:
        answer = await client.ask("GET", "/", "GETDELEGATIONTOKEN", user_name="nobody")
    if uid is NOBODY:
        assert answer.json["Token"]
    else:
        assert answer.refusal == (403, "IOException")
        assert "only with kerberos or web authentication" in answer.message


DATA = (("GET", "OPEN"), ("GET", "GETFILECHECKSUM"), ("PUT", "CREATE"), ("POST", "APPEND"))


@pytest.mark.parametrize(("method", "op"), DATA)
async def test_with_certificates_data_are_refused_with_what_serves_them(
    method: str, op: str
) -> None:
    """A DataNode could not prove for which user it asks."""
    access = AccessControl(
        Mode.STRICT, target="nn1", audit=Unwritten(), own_uid=1, uid_of=lambda *_: NOBODY
    )
    access.policy = replace(access.policy, certificates=True)
    async with web_client(await world(), access) as client:
        answer = await client.ask(method, "/p/closed", op, user_name="nobody")
        assert answer.refusal == (403, "AccessControlException")
        assert "use nnha fs" in answer.text
        there = await client.ask("GET", "/p", "GETFILESTATUS", user_name="nobody")
        assert there.status == 200
