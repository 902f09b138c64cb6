"""The keys of the file system that a NameNode serves: its limits, defaults and permissions."""

from ha.conf.keys import units
from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import duration, flag, group_overrides, one_of, size, text, whole, words

_G = Scope.GLOBAL
_ms, _s = duration("ms"), duration("s")
_count, _int = whole(at_least=0), whole(at_least=1, at_most=units.INT)

MOST_REPLICAS = 512
"""Hadoop's default of ``dfs.replication.max``, up to which a replayed edit counts."""
MOST_ITEMS = 6_400_000
"""FSDirectory.MAX_DIR_ITEMS: more would not fit into one message of an image."""
LARGEST_XATTR = 32768
"""DFSConfigKeys.DFS_NAMENODE_MAX_XATTR_SIZE_HARD_LIMIT."""

# --- the server defaults that a client asks for ------------------------------------------------
BLOCK_SIZE = Key("dfs.blocksize", size, "134217728", _G, "of new files")
_copies = whole(at_least=1, at_most=MOST_REPLICAS)
REPLICATION = Key("dfs.replication", _copies, "3", _G, "of new files")
BYTES_PER_CHECKSUM = Key("dfs.bytes-per-checksum", _int, "512", _G, "of new files")
CHECKSUM_TYPE = Key(
    "dfs.checksum.type", one_of("CRC32C", "CRC32", "NULL"), "CRC32C", _G, "of new files"
)
PACKET_SIZE = Key(
    "dfs.client-write-packet-size", _int, "65536", _G, "bytes from client to DataNode"
)
BUFFER_SIZE = Key("io.file.buffer.size", _int, "4096", _G, "of a client's streams")
UMASK = Key(
    "fs.permissions.umask-mode", text, "022", _G, "what nnha fs takes from the rights of new files"
)
TRASH_INTERVAL = Key(
    "fs.trash.interval",
    _count,
    "0",
    _G,
    "minutes for which clients keep what they delete in their trash; 0 = no trash.  The NameNode "
    "tells it to clients and empties no trash itself: hdfs dfs -expunge does",
)

# --- limits ------------------------------------------------------------------------------------
REPLICATION_MIN = Key(
    "dfs.namenode.replication.min", whole(at_least=1, at_most=MOST_REPLICAS), "1", _G, "of a file"
)
REPLICATION_MAX = Key(
    "dfs.replication.max", whole(at_least=1, at_most=MOST_REPLICAS), "512", _G, "of a file"
)
MIN_BLOCK_SIZE = Key("dfs.namenode.fs-limits.min-block-size", size, "1048576", _G, "of a new file")
MAX_BLOCKS = Key(
    "dfs.namenode.fs-limits.max-blocks-per-file", _count, "10000", _G, "a new block is refused"
)
MAX_COMPONENT = Key(
    "dfs.namenode.fs-limits.max-component-length",
    _count,
    "255",
    _G,
    "bytes of one name on a path; 0 = no limit",
)
MAX_DIRECTORY = Key(
    "dfs.namenode.fs-limits.max-directory-items",
    whole(at_least=1, at_most=MOST_ITEMS),
    "1048576",
    _G,
    "entries of one directory",
)
MAX_XATTRS = Key(
    "dfs.namenode.fs-limits.max-xattrs-per-inode", _count, "32", _G, "that users can see"
)
MAX_XATTR_SIZE = Key(
    "dfs.namenode.fs-limits.max-xattr-size",
    whole(at_least=1, at_most=LARGEST_XATTR),
    "16384",
    _G,
    "bytes of name and value",
)
LISTING_LIMIT = Key(
    "dfs.ls.limit", whole(), "1000", _G, "entries of one answer; Hadoop's default if not above 0"
)
BATCHED_LISTING_LIMIT = Key(
    "dfs.batched.ls.limit", _int, "100", _G, "the most directories that one call may list"
)
SNAPSHOTS_OF_ONE = Key(
    "dfs.namenode.snapshot.max.limit", _count, "65536", _G, "snapshots of one directory"
)
SNAPSHOTS_OF_ALL = Key(
    "dfs.namenode.snapshot.filesystem.limit", _count, "65536", _G, "snapshots of the file system"
)
ACCESS_TIME = Key(
    "dfs.namenode.accesstime.precision", _ms, "3600000", _G, "of access times; 0 = none are kept"
)

# --- permissions and the superuser -------------------------------------------------------------
PERMISSIONS = Key(
    "dfs.permissions.enabled",
    flag,
    "true",
    _G,
    "false: nobody is asked for permission but for chmod, chown, chgrp and ACLs",
)
OWNERS_SET_QUOTAS = Key(
    "dfs.permissions.allow.owner.set.quota",
    flag,
    "false",
    _G,
    "the owner of a directory sets the quotas of those that are in it, not the superuser alone",
)
SUPERGROUP = Key(
    "dfs.permissions.superusergroup", text, "supergroup", _G, "the group whose users may do all"
)
STATIC_GROUPS = Key(
    "hadoop.user.group.static.mapping.overrides",
    group_overrides,
    "dr.who=;",
    _G,
    "user=group,group;user=... : these users' groups, whatever the machine says",
)
GROUPS_CACHE = Key(
    "hadoop.security.groups.cache.secs",
    duration("s"),
    "300",
    _G,
    "how long a NameNode goes by what the machine said about a user's groups",
)
ACLS = Key("dfs.namenode.acls.enabled", flag, "true", _G, "false: calls about ACLs are refused")
XATTRS = Key(
    "dfs.namenode.xattrs.enabled",
    flag,
    "true",
    _G,
    "false: calls about extended attributes are refused",
)
ACL_INHERITANCE = Key(
    "dfs.namenode.posix.acl.inheritance.enabled",
    flag,
    "true",
    _G,
    "below a default ACL the mode that was asked for counts, not what the client's umask left",
)
PROTECTED = Key(
    "fs.protected.directories",
    words,
    "",
    _G,
    "absolute paths that nobody deletes or renames while they are not empty",
)
PROTECTED_BELOW = Key(
    "dfs.protected.subdirectories.enable", flag, "false", _G, "nor what lies below them"
)

# --- writers and repeated calls ----------------------------------------------------------------
RETRY_CACHE = Key(
    "dfs.namenode.enable.retrycache", flag, "true", _G, "a repeated call gets its first answer"
)
RETRY_CACHE_EXPIRY = Key(
    "dfs.namenode.retrycache.expirytime.millis",
    duration("ms", zero=False),
    "600000",
    _G,
    "how long answers are kept",
)
LEASE_RECHECK = Key(
    "dfs.namenode.lease-recheck-interval-ms",
    duration("ms", zero=False),
    "2000",
    _G,
    "how often silent writers are looked for",
)
LEASE_HARD_LIMIT = Key(
    "dfs.namenode.lease-hard-limit-sec",
    _s,
    "1200",
    _G,
    "after which a silent writer's empty file is closed",
)
