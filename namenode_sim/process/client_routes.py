"""What a NameNode's clients ask over HTTP: WebHDFS and fsck; loaded with aiohttp."""

import socket
from collections.abc import Sequence

from aiohttp import web

from ha.conf.configuration import Configuration
from ha.conf.keys import web as keys
from ha.daemon.http.hosts import allowed_hosts
from ha.security.access_control import AccessControl
from namenode_sim.datanodes.redundancy import Redundancy
from namenode_sim.process.client_service import ClientService
from namenode_sim.process.fsck_route import FsckRoute
from namenode_sim.startup.identity import NameNodeIdentity
from namenode_sim.token_login import holder_of
from namenode_sim.webhdfs.route import WebHdfsRoutes


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
