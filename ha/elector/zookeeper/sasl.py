"""The SASL options for kazoo, which needs an optional package for them."""

import importlib.util

from ha.conf.errors import ConfigurationError
from ha.record import dataclass, field

GSSAPI = "GSSAPI"
DIGEST = "DIGEST-MD5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    """The identity of this process for ZooKeeper: a Kerberos ticket, or a name and a password."""

    mechanism: str
    service: str = "zookeeper"
    principal: str | None = None
    user: str | None = None
    password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.mechanism not in (GSSAPI, DIGEST):
            raise ConfigurationError(
                f"nnha.zookeeper.sasl.mechanism is {self.mechanism!r}; "
                f"it must be {GSSAPI} or {DIGEST}"
            )
        if self.mechanism == DIGEST and not self.user:
            raise ConfigurationError(
                f"nnha.zookeeper.sasl.mechanism is {DIGEST}; it needs nnha.zookeeper.sasl.user "
                f"and nnha.zookeeper.sasl.password"
            )

    def options(self) -> dict[str, str]:
        """Return kazoo's ``sasl_options``.  Raises ConfigurationError if a package is missing.

        Else kazoo's thread would end with an error, and report a lost connection.
        """
        _require("puresasl", "pure-sasl")
        if self.mechanism == DIGEST:
            named = {"username": self.user or "", "password": self.password}
        else:
            _require("kerberos", "kerberos")
            named = {"principal": self.principal} if self.principal else {}
        return {"mechanism": self.mechanism, "service": self.service, **named}


def _require(module: str, package: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise ConfigurationError(
            f"nnha.zookeeper.sasl.mechanism is set, and the Python package {package} is not "
            f"installed; run: pip install 'nnha[sasl]'"
        )
