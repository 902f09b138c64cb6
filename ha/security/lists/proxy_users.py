"""Which users may act for which others, and from where: ``hadoop.proxyuser.*``."""

import asyncio
import ipaddress
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from ha.security.lists.access_list import AccessList, GroupsOf

PREFIX: Final = "hadoop.proxyuser."


@dataclass(frozen=True, slots=True)
class Hosts:
    """Machines by name, address or network; ``everywhere`` for a ``*``."""

    names: frozenset[str] = frozenset()
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()
    everywhere: bool = False

    @classmethod
    def parse(cls, text: str) -> "Hosts":
        """Read names, addresses and networks between commas."""
        names, networks = set(), []
        for word in filter(None, (one.strip() for one in text.split(","))):
            if word == "*":
                return cls(everywhere=True)
            try:
                networks.append(ipaddress.ip_network(word, strict=False))
            except ValueError:
                names.add(word)
        return cls(frozenset(names), tuple(networks))

    async def include(self, address: str) -> bool:
        """Return whether an address is one of these machines; look names up if need be."""
        if self.everywhere:
            return True
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        if any(found in network for network in self.networks):
            return True
        loop = asyncio.get_running_loop()
        for name in sorted(self.names):
            with suppress(OSError, UnicodeError):
                if str(found) in {one[4][0] for one in await loop.getaddrinfo(name, None)}:
                    return True
        return False


@dataclass(frozen=True, slots=True)
class ProxyRule:
    """For whom one user may act, and from which machines."""

    users: AccessList
    hosts: Hosts


@dataclass(frozen=True, slots=True)
class ProxyUsers:
    """The rules by the short name of the real user."""

    rules: Mapping[str, ProxyRule] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "ProxyUsers":
        """Read the rules out of a configuration's texts by key; other keys are left out."""
        found: dict[str, dict[str, str]] = {}
        for key, text in settings.items():
            user, _, kind = key.removeprefix(PREFIX).rpartition(".")
            if key.startswith(PREFIX) and user and kind in ("users", "groups", "hosts"):
                found.setdefault(user, {})[kind] = text
        return cls(
            {
                user: ProxyRule(
                    AccessList.of(rule.get("users", ""), rule.get("groups", "")),
                    Hosts.parse(rule.get("hosts", "")),
                )
                for user, rule in found.items()
            }
        )

    async def refusal(
        self, real: tuple[str, str], effective: str, address: str, groups_of: GroupsOf
    ) -> str | None:
        """Return why ``real`` (short and full name) may not act for another; None: it may."""
        short, full = real
        rule = self.rules.get(short)
        if rule is None or not await rule.users.admits(effective, groups_of):
            return f"User: {full} is not allowed to impersonate {effective}"
        if not await rule.hosts.include(address):
            return f"Unauthorized connection for super-user: {full} from IP {address}"
        return None
