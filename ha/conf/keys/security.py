"""Whom daemons believe, and the keys of Hadoop's security that nnha does not support."""

from enum import StrEnum
from typing import Final

from ha.conf.errors import BadValue
from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import (
    duration,
    flag,
    one_of,
    optional,
    optional_text,
    text,
    whole,
    words,
)

_G, _NN = Scope.GLOBAL, Scope.NAMENODE
_ms = duration("ms", zero=False)


class Mode(StrEnum):
    """What a daemon demands of whoever calls it."""

    AUTO = "auto"
    PERMISSIVE = "permissive"
    STRICT = "strict"
    INSECURE = "insecure-i-know"


class AuditFormat(StrEnum):
    """How a line of the audit log looks."""

    HADOOP = "hadoop"
    JSON = "json"
    BOTH = "both"


_MODES: Final = {
    Mode.AUTO: "loopback only, and the kernel tells who calls",
    Mode.STRICT: "the same, and it stays so whatever else will prove callers",
    Mode.PERMISSIVE: "anywhere; who proves nothing is let in, and counted",
    Mode.INSECURE: "anywhere, and whoever calls is believed",
}


def _mode(value: str) -> Mode:
    try:
        return Mode(value.strip())
    except ValueError:
        modes = "; ".join(f"{mode} ({what})" for mode, what in _MODES.items())
        raise BadValue(f"must be one of: {modes}") from None


def _audit_format(value: str) -> AuditFormat:
    try:
        return AuditFormat(value.strip())
    except ValueError:
        raise BadValue(f"must be one of {', '.join(AuditFormat)}") from None


def https_only(policy: str) -> bool:
    """Return whether pages are to be served by HTTPS and by nothing else."""
    return policy.upper() == "HTTPS_ONLY"


def _clients(value: str) -> bool:
    if value.strip() not in ("proven", "simple-i-know"):
        raise BadValue("must be proven or simple-i-know")
    return value.strip() == "simple-i-know"


SECURITY_MODE = Key(
    "nnha.security.mode",
    _mode,
    Mode.AUTO,
    _G,
    "what a daemon demands of callers: " + "; ".join(f"{m}: {w}" for m, w in _MODES.items()),
)
AUDIT_FORMAT = Key(
    "nnha.audit.format",
    _audit_format,
    AuditFormat.JSON,
    _G,
    "how the audit log is written: json, hadoop (as FSNamesystem.audit) or both",
)
AUDIT_FILE = Key(
    "nnha.audit.file",
    optional_text,
    "",
    _G,
    "a file to which each daemon of this host appends its audit lines; unset: to its log alone",
)
AUDIT_CLIENT = Key(
    "nnha.audit.client", optional_text, "", _G,
    "a file to which a NameNode appends a line of each client call, as FSNamesystem.audit; unset: "
    "none is written, as by Hadoop's own log4j.properties",
)  # fmt: skip
AUDIT_LEFT_OUT = Key(
    "dfs.namenode.audit.log.debug.cmdlist", words, "", _G,
    "commands of which nnha.audit.client gets no line, comma separated: getfileinfo, open, ...",
)  # fmt: skip
CALLER_CONTEXT = Key(
    "hadoop.caller.context.enabled", flag, "false", _G,
    "whether lines of nnha.audit.client have what callers say of why they call",
)  # fmt: skip
CALLER_CONTEXT_SIZE = Key(
    "hadoop.caller.context.max.size", whole(at_least=1), "128", _G,
    "how many characters of it; more than 200 are never kept",
)  # fmt: skip

TLS_DIR = Key(
    "nnha.security.tls.dir",
    optional_text,
    "",
    _G,
    "certificates: ca.pem, cert.pem, key.pem and perhaps revoked.txt, in a folder for each role "
    "(namenode, zkfc, journalnode, datanode, checkpointer, admin) or in this one for all; unset: "
    "no TLS",
)
TLS_CHECK_INTERVAL = Key(
    "nnha.security.tls.check-interval",
    duration("s", zero=False),
    "10s",
    _G,
    "how often the files of certificates are looked at; a revocation takes effect within it",
)
SIMPLE_CLIENTS = Key(
    "nnha.security.clients",
    _clients,
    "proven",
    _G,
    "proven, or simple-i-know: clients of HDFS from other machines are believed, as Java's speak "
    "no TLS; for what clients call, everything else needs a certificate all the same",
)

AUTHENTICATION = Key("hadoop.security.authentication", text, "simple", _G, "simple or kerberos")
TOKEN_MAX_LIFETIME = Key(
    "dfs.namenode.delegation.token.max-lifetime", _ms, "604800000", _G, "until a token ends anyway"
)
TOKEN_RENEW_INTERVAL = Key(
    "dfs.namenode.delegation.token.renew-interval",
    _ms,
    "86400000",
    _G,
    "until a token ends that is not renewed",
)
TOKEN_KEY_INTERVAL = Key(
    "dfs.namenode.delegation.key.update-interval",
    _ms,
    "86400000",
    _G,
    "for how long one key signs delegation tokens",
)
TOKEN_ALWAYS = Key(
    "dfs.namenode.delegation.token.always-use",
    flag,
    "false",
    _G,
    "delegation tokens without Kerberos, too",
)
AUTHORIZATION = Key("hadoop.security.authorization", flag, "false", _G, "service-level ACLs")
HTTP_AUTHENTICATION = Key(
    "hadoop.http.authentication.type", text, "simple", _G, "who may see the pages"
)
HTTP_POLICY = Key("dfs.http.policy", text, "HTTP_ONLY", _G, "HTTP_ONLY, HTTPS_ONLY or both")
SERVER_STORE_FILE = Key(
    "dfs.https.server.keystore.resource", text, "ssl-server.xml", _G,
    "where ssl.server.keystore.location and .password are: PKCS#12, for a JournalNode's HTTPS",
)  # fmt: skip
CLIENT_STORE_FILE = Key(
    "hadoop.ssl.client.conf", text, "ssl-client.xml", _G,
    "where ssl.client.truststore.location and .password are: PKCS#12, for HTTPS of JournalNodes",
)  # fmt: skip
HTTPS_NEEDS_CERTIFICATE = Key(
    "dfs.client.https.need-auth", flag, "false", _G, "HTTPS for callers with a certificate only"
)
ENCRYPT_DATA_TRANSFER = Key(
    "dfs.encrypt.data.transfer", flag, "false", _G,
    "all connections to DataNodes are encrypted by keys of the NameNode, with Kerberos or without",
)  # fmt: skip
DATA_ALGORITHM = Key(
    "dfs.encrypt.data.transfer.algorithm", optional(one_of("3des", "rc4")), "", _G,
    "by which, where AES is not agreed on; unset: 3des",
)  # fmt: skip
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
