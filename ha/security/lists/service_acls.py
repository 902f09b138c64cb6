"""Which users may use which protocol, and from where: ``hadoop-policy.xml``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ha.security.lists.access_list import AccessList, GroupsOf
from ha.security.lists.proxy_users import Hosts

_DEFAULT: Final = "security.service.authorization.default"
KEYS: Final[Mapping[str, str]] = {
    "ClientProtocol": "security.client.protocol",
    "ClientDatanodeProtocol": "security.client.datanode.protocol",
    "DatanodeProtocol": "security.datanode.protocol",
    "DatanodeLifelineProtocol": "security.datanode.lifeline.protocol",
    "InterDatanodeProtocol": "security.inter.datanode.protocol",
    "NamenodeProtocol": "security.namenode.protocol",
    "QJournalProtocol": "security.qjournal.service.protocol",
    "InterQJournalProtocol": "security.interqjournal.service.protocol",
    "HAServiceProtocol": "security.ha.service.protocol",
    "ZKFCProtocol": "security.zkfc.protocol",
    "RefreshAuthorizationPolicyProtocol": "security.refresh.policy.protocol",
    "RefreshUserMappingsProtocol": "security.refresh.user.mappings.protocol",
    "ReconfigurationProtocol": "security.reconfiguration.protocol",
}
"""Of Hadoop's protocols; our own have none and are left to the table of rights."""


@dataclass(frozen=True, slots=True)
class ProtocolAcl:
    """The users and machines that may use one protocol."""

    users: AccessList
    blocked: AccessList
    hosts: Hosts
    blocked_hosts: Hosts


@dataclass(frozen=True, slots=True)
class ServiceAcls:
    """The lists by the last name of a protocol."""

    by_protocol: Mapping[str, ProtocolAcl] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "ServiceAcls":
        """Read the lists out of the texts of hadoop-policy.xml by key."""

        def text(key: str, kind: str, default: str) -> str:
            return settings.get(f"{key}.{kind}", settings.get(f"{_DEFAULT}.{kind}", default))

        return cls(
            {
                protocol: ProtocolAcl(
                    AccessList.parse(text(key, "acl", "*")),
                    AccessList.parse(text(key, "acl.blocked", "")),
                    Hosts.parse(text(key, "hosts", "*")),
                    Hosts.parse(text(key, "hosts.blocked", "")),
                )
                for protocol, key in KEYS.items()
            }
        )

    async def refusal(
        self, said: str, user: str, protocol: str, address: str, groups_of: GroupsOf
    ) -> str | None:
        """Return why a user may not use a protocol, in Java's words; None: it may.

        ``said``: how the text names the user.  ``protocol`` is the whole name of the interface.
        """
        acl = self.by_protocol.get(protocol.rpartition(".")[2])
        if acl is None:
            return None
        if not await acl.users.admits(user, groups_of) or await acl.blocked.admits(user, groups_of):
            return (
                f"User {said} is not authorized for protocol interface {protocol}: denied by "
                "configured ACL"
            )
        if not await acl.hosts.include(address) or await acl.blocked_hosts.include(address):
            return (
                f"Host {address} is not authorized for protocol interface {protocol} for user "
                f"{said}"
            )
        return None
