"""The keys of a NameNode about DataNodes, their reports and safe mode."""

from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import duration, flag, java_float, optional, text, whole

_G = Scope.GLOBAL
_ms = duration("ms", zero=False)

# --- DataNodes ---------------------------------------------------------------------------------
OLDEST_VERSION = Key(
    "dfs.namenode.min.supported.datanode.version",
    text,
    "2.1.0-beta",
    _G,
    "DataNodes with older software are refused",
)
STALE_AFTER = Key(
    "dfs.namenode.stale.datanode.interval", _ms, "30000", _G, "a silent DataNode is avoided"
)
RECHECK = Key(
    "dfs.namenode.heartbeat.recheck-interval",
    _ms,
    "300000",
    _G,
    "twice this and ten heartbeats: a silent DataNode counts as dead",
)
REPORT_LEASES = Key(
    "dfs.namenode.max.full.block.report.leases",
    whole(at_least=1),
    "6",
    _G,
    "so many DataNodes report all their blocks at once",
)
REPORT_LEASE_LENGTH = Key(
    "dfs.namenode.full.block.report.lease.length.ms",
    _ms,
    "300000",
    _G,
    "how long a DataNode may take for such a report",
)
DELETIONS = Key(
    "dfs.block.invalidate.limit",
    optional(whole(at_least=1)),
    "",
    _G,
    "replicas that one heartbeat's answer has deleted; as in Hadoop at least 20 a second of "
    "dfs.heartbeat.interval, and 1000 if it is not set",
)
DRAIN_CHECK = Key(
    "nnha.blocks.drain-check",
    flag,
    "true",
    _G,
    "after a takeover a report of a Hadoop DataNode counts only once its /jmx shows that it has "
    "carried out the deletions of the former active; false = at once, as with Hadoop's NameNodes",
)
QUIET_PERIOD = Key(
    "nnha.blocks.quiet-period",
    duration("s"),
    "600",
    _G,
    "where that /jmx cannot be read: so long the DataNode must have deleted nothing by itself",
)

# --- safe mode ---------------------------------------------------------------------------------
SAFE_SHARE = Key(
    "dfs.namenode.safemode.threshold-pct",
    java_float,
    "0.999f",
    _G,
    "this share of the blocks must be reported before edits are taken; 0 = none, above 1 = never",
)
SAFE_DATANODES = Key(
    "dfs.namenode.safemode.min.datanodes", whole(), "0", _G, "and so many DataNodes must live"
)
SAFE_EXTENSION = Key(
    "dfs.namenode.safemode.extension", duration("ms"), "30000", _G, "and this time must pass"
)
SAFE_REPLICATION = Key(
    "dfs.namenode.safemode.replication.min",
    whole(at_least=1),
    "${dfs.namenode.replication.min}",
    _G,
    "with so many replicas a block counts as reported",
)
NOT_ACTIVE_IN_SAFE_MODE = Key(
    "dfs.ha.nn.not-become-active-in-safemode",
    flag,
    "false",
    _G,
    "a NameNode in safe mode is unhealthy and does not become active",
)

# --- redundancy --------------------------------------------------------------------------------
COPIES_A_ROUND = Key(
    "dfs.namenode.replication.work.multiplier.per.iteration",
    whole(at_least=1),
    "2",
    _G,
    "so many blocks for each live DataNode are looked at for a copy, every 3 s",
)
COPY_TIMEOUT = Key(
    "dfs.namenode.reconstruction.pending.timeout-sec",
    duration("s", zero=False),
    "300",
    _G,
    "a copy that takes longer is given up, and the block is judged anew",
)
EXCESS_TIMEOUT = Key(
    "dfs.namenode.excess.redundancy.timeout-sec",
    duration("s", zero=False),
    "3600",
    _G,
    "an order to delete an excess replica is repeated after this",
)
LATE_HEARTBEATS = Key(
    "dfs.namenode.tolerate.heartbeat.multiplier",
    whole(at_least=1),
    "4",
    _G,
    "a DataNode that misses so many loses its excess replicas before others",
)
CORRUPT_AT_ONCE = Key(
    "dfs.namenode.corrupt.block.delete.immediately.enabled",
    flag,
    "false",
    _G,
    "after a takeover corrupt replicas are deleted before all DataNodes have reported; Hadoop's "
    "default is true",
)

# --- centralized cache -------------------------------------------------------------------------
CACHING = Key("dfs.namenode.caching.enabled", flag, "true", _G, "cache directives are carried out")
CACHE_SCAN = Key(
    "dfs.namenode.path.based.cache.refresh.interval.ms",
    _ms,
    "30000",
    _G,
    "so often all cache directives are looked through; after a change of one at once",
)
