"""Names in certificates: ``nnha://CLUSTER/ROLE/NAME``, the only names that decide about rights.

Hosts are shared by daemons of several roles, so neither DNS names nor the common name count.
"""

import re
from typing import Final

from ha.record import dataclass
from ha.security.caller import Role

SCHEME: Final = "nnha://"
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class BadName(ValueError):
    """A name that no certificate of ours has; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class CertifiedName:
    """A daemon, a person or a program, in one cluster."""

    cluster: str
    role: Role
    name: str

    def __post_init__(self) -> None:
        """Refuse what could be read as something else."""
        for what, word in (("cluster id", self.cluster), ("name", self.name)):
            if not _WORD.fullmatch(word):
                raise BadName(
                    f"{word!r} is no {what}: letters, digits and . _ - after the first, at most 63"
                )

    @property
    def uri(self) -> str:
        """As the certificate has it."""
        return f"{SCHEME}{self.cluster}/{self.role}/{self.name}"

    def __str__(self) -> str:
        return f"{self.role} {self.name}"


def named_by(uris: list[str]) -> CertifiedName:
    """Return the one name among the URIs of a certificate.

    Raises:
        BadName: there is none, or more than one, or it has another shape.
    """
    ours = [uri for uri in uris if uri.startswith(SCHEME)]
    if len(ours) != 1:
        raise BadName(f"this certificate has {len(ours)} names {SCHEME}CLUSTER/ROLE/NAME, not one")
    parts = ours[0].removeprefix(SCHEME).split("/")
    if len(parts) != 3:
        raise BadName(f"{ours[0]!r} is no name: it must be {SCHEME}CLUSTER/ROLE/NAME")
    return CertifiedName(parts[0], role_of(parts[1]), parts[2])


def role_of(word: str) -> Role:
    """Return the role of that name; raise ``BadName``."""
    try:
        return Role(word)
    except ValueError:
        raise BadName(f"{word!r} is no role: it must be one of {', '.join(Role)}") from None
