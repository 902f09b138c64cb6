"""The keys of a NameNode's storage, tailing and checkpoints.

See docs/reference/operations.md#configuration-keys.
"""

from ha.conf.key import Key, Scope
from ha.conf.units import duration, flag, fraction, size, text, whole, words

_G, _NN = Scope.GLOBAL, Scope.NAMENODE
_ms, _s = duration("ms"), duration("s")
_count = whole(at_least=0)

# --- storage ---------------------------------------------------------------------------------
NAME_DIR = Key(
    "dfs.namenode.name.dir", words, "file://${hadoop.tmp.dir}/dfs/name", _NN, "images, VERSION"
)
EDITS_DIR = Key("dfs.namenode.edits.dir", words, "${dfs.namenode.name.dir}", _NN, "local edits")
EDITS_REQUIRED = Key("dfs.namenode.edits.dir.required", words, "", _NN, "")
EDITS_MINIMUM = Key("dfs.namenode.edits.dir.minimum", _count, "1", _G, "")
NAME_DIR_RESTORE = Key("dfs.namenode.name.dir.restore", flag, "false", _G, "")
STORAGE_PERM = Key("dfs.namenode.storage.dir.perm", text, "700", _G, "octal")
ALLOW_FORMAT = Key("dfs.namenode.support.allow.format", flag, "true", _G, "")
REFORMAT_DISABLED = Key("dfs.reformat.disabled", flag, "false", _G, "never format twice")
ASYNC_LOGGING = Key("dfs.namenode.edits.asynclogging", flag, "true", _G, "")
ASYNC_QUEUE = Key("dfs.namenode.edits.asynclogging.pending.queue.size", _count, "4096", _G, "")
NO_CHANNEL_FLUSH = Key("dfs.namenode.edits.noeditlogchannelflush", flag, "false", _G, "")
MAX_OP_SIZE = Key("dfs.namenode.max.op.size", size, "52428800", _G, "bytes of one edit")
AUTOROLL_MULTIPLIER = Key(
    "dfs.namenode.edit.log.autoroll.multiplier.threshold", fraction, "0.5", _G, "of checkpoint.txns"
)
AUTOROLL_INTERVAL = Key(
    "dfs.namenode.edit.log.autoroll.check.interval.ms", _ms, "300000", _G, "how often to look"
)
RESOURCE_INTERVAL = Key("dfs.namenode.resource.check.interval", _ms, "5000", _G, "disk space")
RESOURCE_RESERVED = Key("dfs.namenode.resource.du.reserved", size, "104857600", _G, "bytes")
RESOURCE_MINIMUM = Key("dfs.namenode.resource.checked.volumes.minimum", _count, "1", _G, "")
RESOURCE_VOLUMES = Key("dfs.namenode.resource.checked.volumes", words, "", _G, "")

# --- checkpoints -----------------------------------------------------------------------------
STANDBY_CHECKPOINTS = Key("dfs.ha.standby.checkpoints", flag, "true", _G, "")
CHECKPOINT_DIR = Key(
    "dfs.namenode.checkpoint.dir", words, "file://${hadoop.tmp.dir}/dfs/namesecondary", _NN, ""
)
CHECKPOINT_EDITS_DIR = Key(
    "dfs.namenode.checkpoint.edits.dir", words, "${dfs.namenode.checkpoint.dir}", _NN, ""
)
CHECKPOINT_CHECK = Key("dfs.namenode.checkpoint.check.period", _s, "60s", _NN, "how often to look")
CHECKPOINT_PERIOD = Key("dfs.namenode.checkpoint.period", _s, "3600s", _NN, "at least so often")
CHECKPOINT_TXNS = Key("dfs.namenode.checkpoint.txns", whole(at_least=1), "1000000", _NN, "")
CHECKPOINT_RETRIES = Key("dfs.namenode.checkpoint.max-retries", _count, "3", _G, "")
CHECKPOINT_QUIET = Key("dfs.namenode.checkpoint.check.quiet-multiplier", fraction, "1.5", _NN, "")
MISSING_CHECKPOINTS = Key(
    "dfs.namenode.missing.checkpoint.periods.before.shutdown", _count, "3", _G, ""
)
CHECKPOINTS_RETAINED = Key(
    "dfs.namenode.num.checkpoints.retained", whole(at_least=1), "2", _G, "images kept"
)
EXTRA_EDITS_RETAINED = Key("dfs.namenode.num.extra.edits.retained", _count, "1000000", _G, "")
EXTRA_SEGMENTS_RETAINED = Key(
    "dfs.namenode.max.extra.edits.segments.retained", _count, "10000", _G, ""
)
IMAGE_COMPRESS = Key("dfs.image.compress", flag, "false", _G, "")
IMAGE_CODEC = Key(
    "dfs.image.compression.codec",
    text,
    "org.apache.hadoop.io.compress.DefaultCodec",
    _G,
    "",
)
IMAGE_TRANSFER_TIMEOUT = Key("dfs.image.transfer.timeout", _ms, "60000", _G, "")
IMAGE_TRANSFER_BANDWIDTH = Key(
    "dfs.image.transfer.bandwidthPerSec", size, "52428800", _G, "bytes a second; 0 = unlimited"
)
IMAGE_BOOTSTRAP_BANDWIDTH = Key(
    "dfs.image.transfer-bootstrap-standby.bandwidthPerSec", size, "0", _G, ""
)
IMAGE_CHUNK = Key("dfs.image.transfer.chunksize", size, "65536", _G, "")
IMAGE_PARALLEL = Key("dfs.image.parallel.load", flag, "false", _G, "")
IMAGE_PARALLEL_INODES = Key("dfs.image.parallel.inode.threshold", _count, "1000000", _G, "")
IMAGE_PARALLEL_SECTIONS = Key("dfs.image.parallel.target.sections", _count, "12", _G, "")
IMAGE_PARALLEL_THREADS = Key("dfs.image.parallel.threads", _count, "4", _G, "")

# --- tailing and rolling ---------------------------------------------------------------------
TAIL_PERIOD = Key("dfs.ha.tail-edits.period", _s, "60s", _NN, "how often a standby looks")
TAIL_BACKOFF = Key("dfs.ha.tail-edits.period.backoff-max", _s, "0", _NN, "0 = no back-off")
TAIL_IN_PROGRESS = Key("dfs.ha.tail-edits.in-progress", flag, "false", _NN, "read open segments")
TAIL_RETRIES = Key("dfs.ha.tail-edits.namenode-retries", _count, "3", _NN, "")
TAIL_ROLL_TIMEOUT = Key("dfs.ha.tail-edits.rolledits.timeout", _s, "60", _NN, "")
TAIL_MAX_TXNS = Key(
    "dfs.ha.tail-edits.max-txns-per-lock", whole(at_least=1), "9223372036854775807", _NN, ""
)
TAIL_RPC_MAX_TXNS = Key(
    "dfs.ha.tail-edits.qjm.rpc.max-txns", whole(at_least=1), "5000", _G, "edits of one answer"
)
LOG_ROLL_PERIOD = Key(
    "dfs.ha.log-roll.period", duration("s", negative=True), "120s", _NN, "negative = never"
)
LOG_ROLL_TIMEOUT = Key("dfs.ha.log-roll.rpc.timeout", _ms, "20000", _NN, "")
ALLOW_STALE_READS = Key("dfs.ha.allow.stale.reads", flag, "false", _NN, "")

# --- safe mode, limits and manners -----------------------------------------------------------
SAFE_MODE_THRESHOLD = Key("dfs.namenode.safemode.threshold-pct", fraction, "0.999", _G, "")
SAFE_MODE_DATANODES = Key("dfs.namenode.safemode.min.datanodes", _count, "0", _G, "")
SAFE_MODE_EXTENSION = Key("dfs.namenode.safemode.extension", _ms, "30000", _G, "")
REPLICATION = Key("dfs.replication", whole(at_least=1), "3", _G, "")
REPLICATION_MIN = Key("dfs.namenode.replication.min", whole(at_least=1), "1", _G, "")
REPLICATION_MAX = Key("dfs.replication.max", whole(at_least=1), "512", _G, "")
BLOCK_SIZE = Key("dfs.blocksize", size, "134217728", _G, "")
MIN_BLOCK_SIZE = Key("dfs.namenode.fs-limits.min-block-size", size, "1048576", _G, "")
MAX_BLOCKS = Key("dfs.namenode.fs-limits.max-blocks-per-file", _count, "10000", _G, "")
MAX_COMPONENT = Key("dfs.namenode.fs-limits.max-component-length", _count, "255", _G, "bytes")
MAX_DIRECTORY = Key("dfs.namenode.fs-limits.max-directory-items", _count, "1048576", _G, "")
MAX_XATTRS = Key("dfs.namenode.fs-limits.max-xattrs-per-inode", _count, "32", _G, "")
MAX_XATTR_SIZE = Key("dfs.namenode.fs-limits.max-xattr-size", size, "16384", _G, "")
ACCESS_TIME = Key("dfs.namenode.accesstime.precision", _ms, "3600000", _G, "0 = never written")
ACLS = Key("dfs.namenode.acls.enabled", flag, "true", _G, "")
ACL_INHERITANCE = Key("dfs.namenode.posix.acl.inheritance.enabled", flag, "true", _G, "")
PERMISSIONS = Key("dfs.permissions.enabled", flag, "true", _G, "")
SUPERGROUP = Key("dfs.permissions.superusergroup", text, "supergroup", _G, "")
RETRY_CACHE = Key("dfs.namenode.enable.retrycache", flag, "true", _G, "")
RETRY_CACHE_EXPIRY = Key("dfs.namenode.retrycache.expirytime.millis", _ms, "600000", _G, "")
LEASE_RECHECK = Key("dfs.namenode.lease-recheck-interval-ms", _ms, "2000", _G, "")
LEASE_HARD_LIMIT = Key("dfs.namenode.lease-hard-limit-sec", _s, "1200", _G, "")
HANDLERS = Key("dfs.namenode.handler.count", whole(at_least=1), "10", _G, "")
SNAPSHOT_LIMIT = Key("dfs.namenode.snapshot.max.limit", _count, "65536", _G, "")
