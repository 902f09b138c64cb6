"""The keys of a NameNode's storage, tailing and checkpoints.

See docs/reference/operations.md#configuration-keys.
"""

from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import duration, flag, fraction, size, text, whole, words

_G, _NN = Scope.GLOBAL, Scope.NAMENODE
_ms, _s = duration("ms"), duration("s")
_ms_above_zero = duration("ms", zero=False)
_count = whole(at_least=0)

# --- storage ---------------------------------------------------------------------------------
NAME_DIR = Key(
    "dfs.namenode.name.dir", words, "file://${hadoop.tmp.dir}/dfs/name", _NN, "images, VERSION"
)
EDITS_DIR = Key("dfs.namenode.edits.dir", words, "${dfs.namenode.name.dir}", _NN, "local edits")
EDITS_REQUIRED = Key("dfs.namenode.edits.dir.required", words, "", _NN, "")
NAME_DIR_RESTORE = Key("dfs.namenode.name.dir.restore", flag, "false", _G, "")
ALLOW_FORMAT = Key("dfs.namenode.support.allow.format", flag, "true", _G, "")
REFORMAT_DISABLED = Key("dfs.reformat.disabled", flag, "false", _G, "never format twice")
AUTOROLL_MULTIPLIER = Key(
    "dfs.namenode.edit.log.autoroll.multiplier.threshold", fraction, "0.5", _G, "of checkpoint.txns"
)
AUTOROLL_INTERVAL = Key(
    "dfs.namenode.edit.log.autoroll.check.interval.ms",
    _ms_above_zero,
    "300000",
    _G,
    "how often to look",
)
RESOURCE_RESERVED = Key("dfs.namenode.resource.du.reserved", size, "104857600", _G, "bytes")
RESOURCE_VOLUMES = Key(
    "dfs.namenode.resource.checked.volumes",
    words,
    "",
    _G,
    "directories that must have room besides the name directories",
)


# --- checkpoints -----------------------------------------------------------------------------
STANDBY_CHECKPOINTS = Key("dfs.ha.standby.checkpoints", flag, "true", _G, "")
CHECKPOINT_CHECK = Key("dfs.namenode.checkpoint.check.period", _s, "60s", _NN, "how often to look")
CHECKPOINT_PERIOD = Key("dfs.namenode.checkpoint.period", _s, "3600s", _NN, "at least so often")
CHECKPOINT_TXNS = Key("dfs.namenode.checkpoint.txns", whole(at_least=1), "1000000", _NN, "")
CHECKPOINT_QUIET = Key("dfs.namenode.checkpoint.check.quiet-multiplier", fraction, "1.5", _NN, "")
CHECKPOINTS_RETAINED = Key(
    "dfs.namenode.num.checkpoints.retained", whole(at_least=1), "2", _G, "images kept"
)
EXTRA_EDITS_RETAINED = Key("dfs.namenode.num.extra.edits.retained", _count, "1000000", _G, "")
EXTRA_SEGMENTS_RETAINED = Key(
    "dfs.namenode.max.extra.edits.segments.retained", _count, "10000", _G, ""
)
IMAGE_COMPRESS = Key("dfs.image.compress", flag, "false", _G, "images that a NameNode saves")
IMAGE_CODEC = Key(
    "dfs.image.compression.codec",
    text,
    "org.apache.hadoop.io.compress.DefaultCodec",
    _G,
    "",
)
IMAGE_TRANSFER_TIMEOUT = Key("dfs.image.transfer.timeout", _ms, "60000", _G, "")
IMAGE_ACCEPT_SHRINK = Key(
    "nnha.image.accept-shrink",
    flag,
    "false",
    _G,
    "take an uploaded image that has less than half of the inodes of the newest one",
)
IMAGE_TRANSFER_BANDWIDTH = Key(
    "dfs.image.transfer.bandwidthPerSec", size, "52428800", _G, "bytes a second; 0 = unlimited"
)
IMAGE_BOOTSTRAP_BANDWIDTH = Key(
    "dfs.image.transfer-bootstrap-standby.bandwidthPerSec", size, "0", _G, ""
)
IMAGE_PARALLEL = Key(
    "dfs.image.parallel.load",
    flag,
    "false",
    _G,
    "an image is saved in parts, which Hadoop's NameNode then loads at once; nnha's loads them in "
    "turn",
)
IMAGE_PARALLEL_INODES = Key(
    "dfs.image.parallel.inode.threshold", _count, "1000000", _G, "inodes from which it has parts"
)
IMAGE_PARALLEL_SECTIONS = Key(
    "dfs.image.parallel.target.sections", whole(at_least=1), "12", _G, "how many parts"
)

# --- tailing and rolling ---------------------------------------------------------------------
TAIL_PERIOD = Key("dfs.ha.tail-edits.period", _s, "60s", _NN, "how often a standby looks")
TAIL_IN_PROGRESS = Key("dfs.ha.tail-edits.in-progress", flag, "false", _NN, "read open segments")
TAIL_RPC_MAX_TXNS = Key(
    "dfs.ha.tail-edits.qjm.rpc.max-txns", whole(at_least=1), "5000", _G, "edits of one answer"
)
LOG_ROLL_PERIOD = Key(
    "dfs.ha.log-roll.period", duration("s", negative=True), "120s", _NN, "negative = never"
)
