"""Which users may use which protocol, and from where: ``hadoop-policy.xml``."""

from collections.abc import Mapping
from typing import Final

from ha.security.lists.access_list import AccessList, GroupsOf
from ha.security.lists.proxy_users import includes

_DEFAULT: Final = "security.service.authorization.default"
_NAMES: Final = """
client.protocol ClientProtocol client.datanode.protocol ClientDatanodeProtocol
datanode.protocol DatanodeProtocol datanode.lifeline.protocol DatanodeLifelineProtocol
inter.datanode.protocol InterDatanodeProtocol namenode.protocol NamenodeProtocol
qjournal.service.protocol QJournalProtocol interqjournal.service.protocol InterQJournalProtocol
ha.service.protocol HAServiceProtocol zkfc.protocol ZKFCProtocol
refresh.policy.protocol RefreshAuthorizationPolicyProtocol
refresh.user.mappings.protocol RefreshUserMappingsProtocol
reconfiguration.protocol ReconfigurationProtocol
"""
KEYS: Final = dict(zip(_NAMES.split()[1::2], _NAMES.split()[::2], strict=True))
"""Of Hadoop's protocols; our own have none and are left to the table of rights."""


async def acl_refusal(
    policy: Mapping[str, str], said: str, user: str, protocol: str, address: str,
    groups_of: GroupsOf,
) -> str | None:  # fmt: skip
    """Return why a user may not use a protocol, in Java's words; None: it may.

    ``policy``: the texts of hadoop-policy.xml by key.  ``said``: how the text names the user.
    ``protocol`` is the whole name of the interface.
    """
    key = KEYS.get(protocol.rpartition(".")[2])
    if key is None:
        return None

    def text(kind: str, default: str) -> str:
        return policy.get(f"security.{key}.{kind}", policy.get(f"{_DEFAULT}.{kind}", default))

    users, blocked = AccessList.parse(text("acl", "*")), AccessList.parse(text("acl.blocked", ""))
    if not await users.admits(user, groups_of) or await blocked.admits(user, groups_of):
        what = f"User {said} is not authorized for protocol interface {protocol}"
        return f"{what}: denied by configured ACL"
    hosts, blocked_hosts = text("hosts", "*"), text("hosts.blocked", "")
    if not await includes(hosts, address) or await includes(blocked_hosts, address):
        return f"Host {address} is not authorized for protocol interface {protocol} for user {said}"
    return None
