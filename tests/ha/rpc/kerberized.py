"""A server of Hadoop RPC that demands tickets, and clients with tickets of a KDC of the test."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.keys.security import Mode
from ha.daemon.exposure import let_in_by_lists
from ha.rpc.client import RpcConnection
from ha.rpc.java_names import (
    CLIENT_PROTOCOL,
    DATANODE_PROTOCOL,
    HA_SERVICE_PROTOCOL,
    ZKFC_PROTOCOL,
)
from ha.rpc.limits import DEFAULT_LIMITS, RpcLimits
from ha.rpc.protocol import Call, Method, RpcProtocol
from ha.rpc.server import RpcServer
from ha.security.access_control import AccessControl
from ha.security.caller import Role
from ha.security.kerberos.own import OwnKerberos, log_in
from ha.security.kerberos.settings import daemon_login, login, name_rules
from tests.ha.rpc.wire import Echo
from tests.ha.security.kdc import REALM, Kdc
from tests.ha.security.test_unproven import Lines

QJOURNAL = "org.apache.hadoop.hdfs.qjournal.protocol.QJournalProtocol"
_SITE = "<configuration><property><name>a</name><value>b</value></property></configuration>"
_NN = f"nn/localhost@{REALM}"


def configuration(realm: Kdc, folder: Path, more: Mapping[str, str]) -> Configuration:
    (folder / "core-site.xml").write_text(_SITE)
    keys = {
        "hadoop.security.authentication": "kerberos",
        "dfs.nameservices": "ns1",
        "dfs.ha.namenodes.ns1": "nn1",
        "dfs.namenode.rpc-address.ns1.nn1": "localhost:8020",
        "dfs.namenode.kerberos.principal": _NN,
        "dfs.namenode.keytab.file": str(realm.keytab("nn/localhost")),
        "dfs.journalnode.kerberos.principal": f"jn/localhost@{REALM}",
        "dfs.journalnode.keytab.file": str(realm.keytab("jn/localhost")),
        "dfs.datanode.kerberos.principal": f"dn/_HOST@{REALM}",
        **more,
    }
    return load_configuration(folder, [f"{name}={value}" for name, value in keys.items()])


async def who(call: Call, request: Echo) -> Echo:
    return Echo(context=f"{call.user} {call.real_user} {call.proof.value} {len(request.context)}")


PROTOCOLS = (
    RpcProtocol(CLIENT_PROTOCOL, {"getListing": Method(Echo, who)}),
    RpcProtocol(
        HA_SERVICE_PROTOCOL,
        {"monitorHealth": Method(Echo, who), "transitionToObserver": Method(Echo, who)},
    ),
    RpcProtocol(QJOURNAL, {"newEpoch": Method(Echo, who), "getEditLogManifest": Method(Echo, who)}),
    RpcProtocol(ZKFC_PROTOCOL, {"cedeActive": Method(Echo, who)}),
    RpcProtocol(DATANODE_PROTOCOL, {"sendHeartbeat": Method(Echo, who)}),
)


@asynccontextmanager
async def secured_server(
    conf: Configuration, mode: Mode = Mode.AUTO, *, limits: RpcLimits = DEFAULT_LIMITS
) -> AsyncIterator[tuple[int, Lines, AccessControl]]:
    own = daemon_login(conf, Role.NAMENODE)
    lines = Lines()
    access = AccessControl(mode, target="t", audit=lines)
    let_in_by_lists(access, conf, own)
    server = RpcServer(PROTOCOLS, access=access, limits=limits)
    port = await server.start("127.0.0.1", 0)
    try:
        yield port, lines, access
    finally:
        await server.stop()


def alice(conf: Configuration, realm: Kdc, name: str = "alice") -> OwnKerberos:
    """Return a login with the keytab of a person or a service."""
    own = login(conf, name_rules(conf))
    own.principal, own.keytab = f"{name}@{REALM}", str(realm.keytab(name))
    return own


@contextmanager
def logged_in(own: OwnKerberos | None) -> Iterator[None]:
    log_in(own)
    try:
        yield
    finally:
        log_in(None)


async def asked(
    port: int,
    *,
    user: str | None = None,
    protocol: str = CLIENT_PROTOCOL,
    method: str = "getListing",
    of: str | None = None,
    text: str = "",
    times: int = 1,
) -> str:
    """Call as whoever is logged in; return what the last answer says."""
    connection = await RpcConnection.open(
        "localhost", port, protocol=protocol, user=user, deadline_seconds=20
    )
    connection._protocol = of or protocol
    try:
        calls = [
            connection.call(method, Echo(context=text), Echo, deadline_seconds=20)
            for _ in range(times)
        ]
        return (await asyncio.gather(*calls))[-1].context
    finally:
        await connection.close()
