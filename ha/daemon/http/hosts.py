"""Under which names a daemon may be asked: else a stranger's page could read it by its own name.

The bad schedule is DNS rebinding: a browser on this machine loads a page of evil.example, whose
name then resolves to 127.0.0.1, and lets that page read what comes from there.  Pure.
"""

import ipaddress
from collections.abc import Iterable


def allowed_hosts(own: str, machine: str, more: Iterable[str]) -> frozenset[str]:
    """Return all names that may stand in a request, in lower case, without ports."""
    return frozenset(name.lower() for name in ("localhost", own, machine, *more) if name)


def may_be_asked(host: str | None, allowed: frozenset[str]) -> bool:
    """Return whether the value of a Host header is an address, or one of the names."""
    if host is None:
        return False
    name = _without_port(host).lower()
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in allowed or name.removesuffix(".") in allowed
    return True


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
