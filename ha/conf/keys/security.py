"""Whom daemons believe, and the keys of Hadoop's security that nnha does not support."""

from typing import Final

from ha.conf.errors import BadValue
from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import flag, optional_text, text

_G, _NN = Scope.GLOBAL, Scope.NAMENODE

AUTOMATIC: Final = "auto"
INSECURE: Final = "insecure-i-know"
_NOT_YET: Final = ("permissive", "strict")


def _mode(value: str) -> str:
    found = value.strip()
    if found in (AUTOMATIC, INSECURE):
        return found
    why = " (which needs certificates or Kerberos, and nnha has neither yet)"
    raise BadValue(
        f"must be {AUTOMATIC} (listen on loopback only) or {INSECURE} (listen anywhere, and "
        f"believe whoever calls){', not ' + found + why if found in _NOT_YET else ''}"
    )


SECURITY_MODE = Key(
    "nnha.security.mode",
    _mode,
    AUTOMATIC,
    _G,
    "auto: daemons listen on loopback only; insecure-i-know: anywhere, and believe whoever calls",
)

AUTHENTICATION = Key("hadoop.security.authentication", text, "simple", _G, "simple or kerberos")
AUTHORIZATION = Key("hadoop.security.authorization", flag, "false", _G, "service-level ACLs")
HTTP_AUTHENTICATION = Key(
    "hadoop.http.authentication.type", text, "simple", _G, "who may see the pages"
)
HTTP_POLICY = Key("dfs.http.policy", text, "HTTP_ONLY", _G, "HTTP_ONLY, HTTPS_ONLY or both")
ENCRYPT_DATA_TRANSFER = Key(
    "dfs.encrypt.data.transfer", flag, "false", _G, "blocks are encrypted on the wire"
)
KEY_PROVIDER = Key(
    "hadoop.security.key.provider.path", optional_text, "", _G, "the keys of encryption zones"
)
GROUP_MAPPING = Key(
    "hadoop.security.group.mapping",
    text,
    "org.apache.hadoop.security.JniBasedUnixGroupsMappingWithFallback",
    _G,
    "the class that knows the groups of a user",
)
RESOLVE_JOURNAL_NODES = Key(
    "dfs.namenode.edits.qjournals.resolution-enabled",
    flag,
    "false",
    _NN,
    "a host in dfs.namenode.shared.edits.dir stands for all addresses of that name",
)
