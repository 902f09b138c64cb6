"""Addresses as Java prints them; scripts look for these lines."""

import asyncio
import contextlib
import ipaddress
import socket
import threading
from typing import Final

from ha.conf.topology import HostPort
from ha.names import NAMES

NAMING_SECONDS: Final = 2.0
"""How long a name server may take; the address is as good, if not as Java prints it."""


async def java_host(host: str) -> str:
    """Return the host as ``InetSocketAddress.getHostName`` gives it.

    A name is returned as it was configured.  For an address it is the name that it resolves to, if
    that name resolves back to it, else the address itself.
    """
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def found(name: str) -> None:
        if not answer.done():
            answer.set_result(name)

    def look() -> None:
        name = _name_of(host)
        with contextlib.suppress(RuntimeError):  # the loop is closed: no caller waits any more
            loop.call_soon_threadsafe(found, name)

    # In a thread that nothing has to wait for, not even the end of this command.
    threading.Thread(target=look, daemon=True).start()
    try:
        async with asyncio.timeout(NAMING_SECONDS):
            return await answer
    except TimeoutError:
        return host


def _name_of(address: str) -> str:
    try:
        name, _ = socket.getnameinfo((address, 0), socket.NI_NAMEREQD)
        back = NAMES.addresses(name, 0, NAMING_SECONDS)
    except OSError:
        return address
    return name if any(found[4][0] == address for found in back) else address


async def java_name(address: HostPort) -> str:
    """Return ``NameNode at host/ip:port``."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(NAMING_SECONDS):
            found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        resolved = str(found[0][4][0])
    except OSError:  # TimeoutError is one
        resolved = "<unresolved>"
    return f"NameNode at {await java_host(address.host)}/{resolved}:{address.port}"
