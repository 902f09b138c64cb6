"""The caller: proven by the kernel, a certificate or Kerberos, or unknown."""

from collections.abc import Hashable
from enum import StrEnum
from ipaddress import IPv6Address, ip_address
from typing import Final

from ha.record import dataclass, replace


class Role(StrEnum):
    """What a caller is in the cluster; a right names roles, never users."""

    NAMENODE = "namenode"
    JOURNALNODE = "journalnode"
    ZKFC = "zkfc"
    ADMIN = "admin"
    OPERATOR = "operator"
    CHECKPOINTER = "checkpointer"
    CLIENT = "client"
    DATANODE = "datanode"


ALL_ROLES: Final = frozenset(Role)


class Method(StrEnum):
    """How a caller has proved who it is."""

    SIMPLE = "simple"
    """It has not: it only says so."""
    PEER_UID = "peer-uid"
    """The kernel says whose socket is at the other end of a connection on this machine."""
    TLS = "tls"
    KERBEROS = "kerberos"
    TOKEN = "token"


@dataclass(frozen=True, slots=True)
class Caller:
    """The other end of one connection.

    ``name`` is the user's, empty while it is not known.  ``address`` is host:port.  ``provable``:
    the kernel would have identified it, if it had not closed its end.  ``refused``: why its proof
    counts for nothing, for instance that its certificate was revoked.  ``certified``: the name in
    its certificate, whatever user it acts for.
    ``principal``: what a ticket or token names.  ``real``: the short name of the user that acts for
    ``name``.  ``barred``: protocols that an access list closes to it.
    """

    name: str
    method: Method
    roles: frozenset[Role]
    address: str
    uid: int | None = None
    provable: bool = False
    refused: str = ""
    certified: str = ""
    principal: str = ""
    real: str = ""
    barred: frozenset[str] = frozenset()

    @property
    def proven(self) -> bool:
        """Whether anything but the caller's own word says who it is."""
        return self.method is not Method.SIMPLE

    @property
    def trusted(self) -> bool:
        """Whether it may act for any user: root and the daemon's own user could anyway."""
        return self.proven and self.roles == ALL_ROLES

    @property
    def host(self) -> str:
        """The address without the port."""
        return self.address.rpartition(":")[0]

    @property
    def owner(self) -> Hashable:
        """What has a share of what callers use up: a uid, a certificate, a ticket, or a network."""
        if self.certified or self.principal:
            return str(self)
        return network_of(self.address) if self.uid is None else self.uid

    @property
    def in_full(self) -> str:
        """How Hadoop names the caller, in refusals and in its audit log."""
        known = self.principal if self.method is Method.KERBEROS else self.real or self.name
        proven = f"{known} (auth:{self.method.name})"
        return f"{self.name} (auth:PROXY) via {proven}" if self.real else proven

    def named(self, name: str) -> "Caller":
        """Return a copy under the name of a user."""
        return replace(self, name=name)

    def __str__(self) -> str:
        """Return how refusals name the caller."""
        if not self.proven:
            said = f" (it says that it is {self.name})" if self.name else ""
            return f"unproven, from {self.address}{said}"
        if self.method is Method.TLS:
            return f"{next(iter(self.roles), 'nobody')} {self.certified or self.name}"
        if self.method is not Method.PEER_UID:
            return self.in_full
        return f"{self.name} (uid {self.uid})" if self.name else f"uid {self.uid}"


def unproven(address: str, *, provable: bool = False) -> Caller:
    """Return a caller of which nothing is known but where it calls from."""
    return Caller("", Method.SIMPLE, frozenset(), address, provable=provable)


def certified_caller(role: Role, name: str, address: str) -> Caller:
    """Return a caller with a certificate, which names one role."""
    return Caller(name, Method.TLS, frozenset({role}), address, certified=name)


def refused_caller(reason: str, address: str) -> Caller:
    """Return a caller whose certificate counts for nothing."""
    return Caller("", Method.TLS, frozenset(), address, refused=reason)


def local_caller(uid: int, own_uid: int, address: str) -> Caller:
    """Return a caller on this machine: root and the daemon's own user have every role."""
    roles = ALL_ROLES if uid in (0, own_uid) else frozenset({Role.CLIENT})
    return Caller("", Method.PEER_UID, roles, address, uid)


_PREFIX: Final = 64
"""Of an IPv6 address: one host may have all addresses behind it."""


def network_of(address: str) -> str:
    """Return what callers cannot change at will of an address, with or without a port.

    All of 127.0.0.0/8 is one, as is an IPv6 /64.  What is no address is returned as it is.
    """
    for text in (address, address.rpartition(":")[0]):
        try:
            found = ip_address(text.strip("[]").partition("%")[0])
        except ValueError:
            continue
        if isinstance(found, IPv6Address):
            if found.ipv4_mapped is None:
                return str(IPv6Address(int(found) >> _PREFIX << _PREFIX))
            found = found.ipv4_mapped
        return "127.0.0.0" if found.is_loopback else str(found)
    return address
