"""Hadoop's keys of Kerberos: the names of daemons, and what protects their connections."""

from typing import Final

from ha.conf.errors import BadValue
from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import optional_text, text, words

_G, _NN = Scope.GLOBAL, Scope.NAMENODE
_PROTECTIONS: Final = ("authentication", "integrity", "privacy")


def _protections(value: str) -> tuple[str, ...]:
    found = tuple(word.lower() for word in words(value))
    if not found or not set(found) <= set(_PROTECTIONS):
        raise BadValue(f"must be a list of {', '.join(_PROTECTIONS)}")
    return found


NAMENODE_PRINCIPAL = Key(
    "dfs.namenode.kerberos.principal", optional_text, "", _NN,
    "the principal of NameNodes and ZKFCs; _HOST stands for the host of the RPC address",
)  # fmt: skip
NAMENODE_KEYTAB = Key(
    "dfs.namenode.keytab.file", optional_text, "", _NN, "the keys of a NameNode and its ZKFC"
)
PRINCIPAL_PATTERN = Key(
    "dfs.namenode.kerberos.principal.pattern", optional_text, "", _NN,
    "which principals clients accept of a NameNode, as a glob; unset: the configured one alone",
)  # fmt: skip
JOURNALNODE_PRINCIPAL = Key(
    "dfs.journalnode.kerberos.principal", optional_text, "", _G, "the principal of JournalNodes"
)
JOURNALNODE_KEYTAB = Key(
    "dfs.journalnode.keytab.file", optional_text, "", _G, "the keys of a JournalNode"
)
DATANODE_PRINCIPAL = Key(
    "dfs.datanode.kerberos.principal", optional_text, "", _G, "the principal of DataNodes"
)
DATANODE_KEYTAB = Key("dfs.datanode.keytab.file", optional_text, "", _G, "the keys of a DataNode")
RPC_PROTECTION = Key(
    "hadoop.rpc.protection", _protections, "authentication", _G,
    "what protects connections that Kerberos or a token authenticates: authentication, integrity, "
    "privacy; of a list a server offers all, and a client takes the first that is offered",
)  # fmt: skip
AUTH_TO_LOCAL = Key(
    "hadoop.security.auth_to_local", text, "", _G, "rules: short names; unset: DEFAULT"
)
AUTH_TO_LOCAL_MECHANISM = Key(
    "hadoop.security.auth_to_local.mechanism", text, "hadoop", _G,
    "hadoop (short names have no / and @) or mit",
)  # fmt: skip
SASL_RESOLVER = Key(
    "hadoop.security.saslproperties.resolver.class", optional_text, "", _G,
    "a Java class that chooses the protection of each connection",
)  # fmt: skip
