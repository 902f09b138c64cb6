"""Hadoop's keys of Kerberos: the names of daemons, and what protects their connections."""

from typing import Final

from ha.conf.errors import BadValue
from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import one_of, optional, optional_text, text, words

_G, _NN = Scope.GLOBAL, Scope.NAMENODE
_PROTECTIONS: Final = ("authentication", "integrity", "privacy")


def _protections(value: str) -> tuple[str, ...]:
    found = tuple(word.lower() for word in words(value))
    if not found or not set(found) <= set(_PROTECTIONS):
        raise BadValue(f"must be a list of {', '.join(_PROTECTIONS)}")
    return found


def _key_bits(value: str) -> int:
    return int(one_of("128", "192", "256")(value))


def _text(name: str, doc: str, scope: Scope = _G) -> Key[str | None]:
    return Key(name, optional_text, "", scope, doc)


NAMENODE_PRINCIPAL = _text(
    "dfs.namenode.kerberos.principal", "of NameNodes and ZKFCs; _HOST: the RPC address's host", _NN
)
NAMENODE_KEYTAB = _text("dfs.namenode.keytab.file", "the keys of a NameNode and its ZKFC", _NN)
PRINCIPAL_PATTERN = _text(
    "dfs.namenode.kerberos.principal.pattern", "a glob: which principals NameNodes may have", _NN
)
JOURNALNODE_PRINCIPAL = _text("dfs.journalnode.kerberos.principal", "of JournalNodes")
JOURNALNODE_KEYTAB = _text("dfs.journalnode.keytab.file", "the keys of a JournalNode")
DATANODE_PRINCIPAL = _text("dfs.datanode.kerberos.principal", "of DataNodes")
DATANODE_KEYTAB = _text("dfs.datanode.keytab.file", "the keys of a DataNode")
WEB_PRINCIPAL = _text(
    "dfs.web.authentication.kerberos.principal",
    "of pages, and of those that we ask: HTTP/_HOST, which * means, too; unset: no tickets there",
)
WEB_KEYTAB = _text(
    "dfs.web.authentication.kerberos.keytab", "the keys of pages; unset: the daemon's own keytab"
)
NAMENODE_WEB_PRINCIPAL = _text(
    "dfs.namenode.kerberos.internal.spnego.principal",
    "of a NameNode's pages, where it is not dfs.web.authentication.kerberos.principal", _NN,
)  # fmt: skip
JOURNALNODE_WEB_PRINCIPAL = _text(
    "dfs.journalnode.kerberos.internal.spnego.principal", "the same of a JournalNode's pages"
)
PAGES_PRINCIPAL = Key(
    "hadoop.http.authentication.kerberos.principal", optional_text, "HTTP/_HOST@LOCALHOST", _G,
    "of all pages where none of the others is set and hadoop.http.authentication.type is kerberos",
)  # fmt: skip
PAGES_KEYTAB = Key(
    "hadoop.http.authentication.kerberos.keytab", optional_text, "${user.home}/hadoop.keytab", _G,
    "the keys of that principal",
)  # fmt: skip
RPC_PROTECTION = Key(
    "hadoop.rpc.protection", _protections, "authentication", _G,
    "authentication, integrity, privacy; a server offers all of a list, a client takes the first",
)  # fmt: skip
DATA_PROTECTION = Key(
    "dfs.data.transfer.protection", optional(_protections), "", _G,
    "the same of connections to DataNodes, with Kerberos; unset: they begin without a handshake",
)  # fmt: skip
CIPHER_SUITES = Key(
    "dfs.encrypt.data.transfer.cipher.suites", optional(one_of("AES/CTR/NoPadding")), "", _G,
    "encrypts private connections to DataNodes; unset: what DIGEST-MD5 has, which is slow",
)  # fmt: skip
CIPHER_KEY_BITS = Key(
    "dfs.encrypt.data.transfer.cipher.key.bitlength", _key_bits, "128", _G,
    "of that cipher's keys: 128, 192 or 256",
)  # fmt: skip
AUTH_TO_LOCAL = Key("hadoop.security.auth_to_local", text, "", _G, "rules for short names")
AUTH_TO_LOCAL_MECHANISM = Key(
    "hadoop.security.auth_to_local.mechanism", text, "hadoop", _G, "hadoop or mit"
)
SASL_RESOLVER = _text("hadoop.security.saslproperties.resolver.class", "a Java class")
