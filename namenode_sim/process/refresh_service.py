"""What ``dfsadmin -refresh…`` calls outside of ClientProtocol: groups, proxy users, ACLs."""

from collections.abc import Callable

import structlog
from google.protobuf.empty_pb2 import Empty

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import (
    AUTHORIZATION,
    REFRESH_AUTHORIZATION_POLICY,
    REFRESH_USER_MAPPINGS,
)
from ha.rpc.protocol import Call, Method, RpcProtocol
from namenode_sim.process.client_service import ClientService

log = structlog.get_logger()


def refresh_protocols(
    service: ClientService,
    forget_groups: Callable[[], None],
    refresh_lists: Callable[[], bool] = lambda: False,
) -> tuple[RpcProtocol, RpcProtocol]:
    """Return both protocols; each call is for the superuser, on a standby as on the active.

    ``refresh_lists`` reads proxy users and access lists, and returns whether there are such lists.
    """
    check = service.check_superuser

    async def groups(call: Call, _: Empty) -> Empty:
        await check(call)
        forget_groups()
        log.info("groups.refreshed", user=call.user)
        return Empty()

    async def proxy_users(call: Call, _: Empty) -> Empty:
        await check(call)
        refresh_lists()
        return Empty()

    async def service_acls(call: Call, _: Empty) -> Empty:
        await check(call)
        if not refresh_lists():
            raise RemoteFault(AUTHORIZATION, "Service Level Authorization not enabled!")
        log.info("access_lists.refreshed", user=call.user)
        return Empty()

    return (
        RpcProtocol(
            REFRESH_USER_MAPPINGS,
            {
                "refreshUserToGroupsMappings": Method(Empty, groups),
                "refreshSuperUserGroupsConfiguration": Method(Empty, proxy_users),
            },
        ),
        RpcProtocol(
            REFRESH_AUTHORIZATION_POLICY, {"refreshServiceAcl": Method(Empty, service_acls)}
        ),
    )
