"""The keys of Hadoop's security that nnha does not support; daemons do not start with them."""

from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import flag, optional_text, text

_G, _NN = Scope.GLOBAL, Scope.NAMENODE

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
