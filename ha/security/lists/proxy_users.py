"""Which users may act for which others, and from where: ``hadoop.proxyuser.*``."""

import asyncio
import ipaddress
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from ha.security.lists.access_list import AccessList, GroupsOf

PREFIX: Final = "hadoop.proxyuser."


async def includes(hosts: str, address: str) -> bool:
    """Return whether an address is among machines: names, addresses, networks, or ``*``."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return hosts.strip() == "*"
    if isinstance(found, ipaddress.IPv6Address):
        found = found.ipv4_mapped or found
    for word in filter(None, (one.strip() for one in hosts.split(","))):
        try:
            if word == "*" or found in ipaddress.ip_network(word, strict=False):
                return True
        except ValueError:
            with suppress(OSError, UnicodeError):
                known = await asyncio.get_running_loop().getaddrinfo(word, None)
                if str(found) in {one[4][0] for one in known}:
                    return True
    return False


async def impersonation_refusal(
    settings: Mapping[str, str], real: tuple[str, str], effective: str, address: str,
    groups_of: GroupsOf,
) -> str | None:  # fmt: skip
    """Return why ``real`` (short and full name) may not act for another; None: it may.

    ``settings`` are the texts of a configuration by key.
    """
    short, full = real
    users, groups, hosts = (
        settings.get(f"{PREFIX}{short}.{kind}", "") for kind in ("users", "groups", "hosts")
    )
    if not await AccessList.of(users, groups).admits(effective, groups_of):
        return f"User: {full} is not allowed to impersonate {effective}"
    if not await includes(hosts, address):
        return f"Unauthorized connection for super-user: {full} from IP {address}"
    return None
