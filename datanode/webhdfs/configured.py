"""The routes of WebHDFS as the configuration has them; loaded with aiohttp."""

import socket
from collections.abc import Sequence

from aiohttp import web

from datanode.webhdfs.route import DataRoutes
from files.namenodes import Namenodes
from ha.conf import topology
from ha.conf.configuration import Configuration
from ha.conf.keys import datanode as keys
from ha.conf.keys.web import WEB_HOSTS, WEBHDFS, WEBHDFS_USERS
from ha.daemon.http.hosts import allowed_hosts
from ha.security.access_control import AccessControl


def data_routes(conf: Configuration, access: AccessControl | None) -> Sequence[web.RouteDef]:
    """Return the routes of a DataNode; none where WebHDFS is switched off."""
    if not conf.get(WEBHDFS):
        return ()
    nameservice = topology.nameservice_of(conf)
    known = frozenset(str(one.rpc) for one in topology.namenodes(conf, nameservice))
    more = [*conf.get(WEB_HOSTS), conf.get(keys.HOST_NAME) or ""]
    return DataRoutes(
        namenodes=lambda user: Namenodes.of(conf, user=user),
        nameservice=nameservice,
        known=known,
        access=access,
        names=allowed_hosts(conf.get(keys.HTTP).host, socket.gethostname(), more),
        user_pattern=conf.get(WEBHDFS_USERS),
    ).routes()
