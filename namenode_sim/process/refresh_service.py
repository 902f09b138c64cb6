"""What ``dfsadmin -refresh…`` calls outside of ClientProtocol: groups, proxy users, ACLs."""

from collections.abc import Callable

import structlog
from google.protobuf.empty_pb2 import Empty

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import REFRESH_AUTHORIZATION_POLICY, REFRESH_USER_MAPPINGS
from ha.rpc.protocol import Call, Method, RpcProtocol
from namenode_sim.process.client_service import ClientService

log = structlog.get_logger()

_NOT_AUTHORIZED = "org.apache.hadoop.security.authorize.AuthorizationException"


def refresh_protocols(
    service: ClientService, forget_groups: Callable[[], None]
) -> tuple[RpcProtocol, RpcProtocol]:
    """Return both protocols; each call is for the superuser, on a standby as on the active."""
    check = service.check_superuser

    async def groups(call: Call, _: Empty) -> Empty:
        await check(call)
        forget_groups()
        log.info("groups.refreshed", user=call.user)
        return Empty()

    async def proxy_users(call: Call, _: Empty) -> Empty:
        """Do nothing: no caller is authenticated here, so there is no list of proxy users."""
        await check(call)
        return Empty()

    async def service_acls(call: Call, _: Empty) -> Empty:
        """Answer as a Hadoop without service-level authorization: here is none."""
        await check(call)
        raise RemoteFault(_NOT_AUTHORIZED, "Service Level Authorization not enabled!")

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
