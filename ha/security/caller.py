"""The caller: proven by the kernel, a certificate or Kerberos, or unknown."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final


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
    """

    name: str
    method: Method
    roles: frozenset[Role]
    address: str
    uid: int | None = None
    provable: bool = False
    refused: str = ""
    certified: str = ""

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
