"""What a NameNode's clients ask over HTTP: WebHDFS and fsck; loaded with aiohttp."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

from aiohttp import web

from ha.conf.configuration import Configuration
from ha.conf.keys import web as keys
from ha.daemon.http.hosts import allowed_hosts
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import STANDBY_EXCEPTION
from ha.security.access_control import AccessControl
from ha.security.caller import Caller, Method
from hadoop.proto.hdfs_types_pb2 import TokenProto
from hadoop.webhdfs.callers import HolderOf
from namenode_sim.datanodes.redundancy import Redundancy
from namenode_sim.namespace.state import Secrets
from namenode_sim.process.answers import Gate
from namenode_sim.process.client_service import ClientService
from namenode_sim.process.fsck_route import FsckRoute
from namenode_sim.startup.identity import NameNodeIdentity
from namenode_sim.token_login import TokenLogins
from namenode_sim.webhdfs.route import WebHdfsRoutes

MOST_UNKNOWN: Final = 64
"""Requests with tokens that a standby does not know, and that it holds back at once."""


def client_routes(
    conf: Configuration,
    place: NameNodeIdentity,
    service: ClientService,
    redundancy: Redundancy,
    access: AccessControl | None,
) -> Sequence[web.RouteDef]:
    """Return the routes; WebHDFS calls what RPC calls."""
    fsck = FsckRoute(service, redundancy, access).route()
    if not conf.get(keys.WEBHDFS):
        return (fsck,)
    at, more = place.address, conf.get(keys.WEB_HOSTS)
    webhdfs = WebHdfsRoutes(
        protocol=service.protocol("webhdfs"),
        scene=service.scene,
        access=access,
        names=allowed_hosts(at.http.host, socket.gethostname(), [*more, at.rpc.host]),
        address=at.nameservice if place.peers else str(at.rpc),
        user_pattern=conf.get(keys.WEBHDFS_USERS),
        holder_of=holder_of(access, lambda: service.namespace.secrets, service.gate),
    )
    return (fsck, *webhdfs.routes())


def holder_of(
    access: AccessControl | None, secrets: Callable[[], Secrets], gate: Gate
) -> HolderOf | None:
    """Return what finds the caller of a token in a request; None where none are taken.

    A standby holds requests back as it does calls, until it knows whether the token is good: it may
    not have read the edit of a new one when the active dies.  Of tokens that it does not know only
    a few wait, so that strangers cannot fill it; the others are sent on.
    """
    logins, unknown_ones = TokenLogins(secrets), asyncio.Semaphore(MOST_UNKNOWN)

    async def found(token: TokenProto) -> Caller:
        if gate.is_open():
            return logins.caller(token)
        holding: AbstractAsyncContextManager[None] = nullcontext()
        try:
            logins.caller(token)
        except RemoteFault as unknown:
            if unknown_ones.locked():
                said = f"Operation category READ is not supported in state standby ({unknown})"
                raise RemoteFault(STANDBY_EXCEPTION, said) from unknown
            holding = unknown_ones
        async with holding:
            await gate.admit("delegation", writes=False)
        return logins.caller(token)

    ways = () if access is None else access.ways
    return found if any(way.method is Method.TOKEN for way in ways) else None
