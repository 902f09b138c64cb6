"""Addresses as Java prints them; scripts look for these lines."""

import asyncio
import ipaddress
import socket

from ha.conf.topology import HostPort


async def java_host(host: str) -> str:
    """The host as ``InetSocketAddress.getHostName`` gives it.

    A name is given as it was configured.  An address gives the name that it belongs to, if that
    name leads back to it, else itself.
    """
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host
    loop = asyncio.get_running_loop()
    try:
        name, _ = await loop.getnameinfo((host, 0), socket.NI_NAMEREQD)
        back = await loop.getaddrinfo(name, None)
    except OSError:
        return host
    return name if any(found[4][0] == host for found in back) else host


async def java_name(address: HostPort) -> str:
    """``NameNode at host/ip:port``."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        resolved = str(found[0][4][0])
    except OSError:
        resolved = "<unresolved>"
    return f"NameNode at {await java_host(address.host)}/{resolved}:{address.port}"
