"""The keys of a DataNode.

See docs/reference/datanode.md#volumes.
"""

from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import (
    duration,
    flag,
    host_port,
    optional,
    optional_text,
    size,
    whole,
    words,
)

_G = Scope.GLOBAL

DATA_DIR = Key(
    "dfs.datanode.data.dir",
    words,
    "file://${hadoop.tmp.dir}/dfs/data",
    _G,
    "where blocks are kept; [SSD]file:///path names the storage type",
)
DU_RESERVED = Key("dfs.datanode.du.reserved", size, "0", _G, "bytes of each volume that stay free")
FAILED_VOLUMES_TOLERATED = Key(
    "dfs.datanode.failed.volumes.tolerated", whole(at_least=0), "0", _G, "more end the DataNode"
)
DATA = Key(
    "dfs.datanode.address", host_port(default_port=9866), "0.0.0.0:9866", _G, "blocks come and go"
)
RPC = Key("dfs.datanode.ipc.address", host_port(default_port=9867), "0.0.0.0:9867", _G, "")
HTTP = Key("dfs.datanode.http.address", host_port(default_port=9864), "0.0.0.0:9864", _G, "")
HOST_NAME = Key("dfs.datanode.hostname", optional_text, "", _G, "the name that NameNodes are told")
MAX_CONNECTIONS = Key(
    "dfs.datanode.max.transfer.threads", whole(at_least=1), "4096", _G, "connections for blocks"
)
KEEP_ALIVE = Key(
    "dfs.datanode.socket.reuse.keepalive",
    duration("ms"),
    "4000",
    _G,
    "how long a connection may wait for its next operation",
)
HEARTBEAT_INTERVAL = Key(
    "dfs.heartbeat.interval", duration("s", zero=False), "3s", _G, "of DataNodes to NameNodes"
)
REPORT_INTERVAL = Key(
    "dfs.blockreport.intervalMsec",
    duration("ms", zero=False),
    "21600000",
    _G,
    "DataNodes report all their blocks so often",
)
REPORT_SPLIT = Key(
    "dfs.blockreport.split.threshold",
    whole(at_least=0),
    "1000000",
    _G,
    "from so many blocks on, each volume is reported in a call of its own",
)
SCAN_BANDWIDTH = Key(
    "dfs.block.scanner.volume.bytes.per.second",
    size,
    "1048576",
    _G,
    "how fast blocks are read again; 0 = never",
)
SCAN_PERIOD_HOURS = Key(
    "dfs.datanode.scan.period.hours",
    whole(),
    "504",
    _G,
    "all blocks are read again so often; negative = never, 0 = 504",
)
LOCKED_MEMORY = Key(
    "dfs.datanode.max.locked.memory",
    size,
    "0",
    _G,
    "bytes of memory for blocks of cache directives; 0 = none are cached here",
)
CACHE_REPORT_INTERVAL = Key(
    "dfs.cachereport.intervalMsec",
    duration("ms", zero=False),
    "10000",
    _G,
    "DataNodes report so often which blocks they have in memory",
)
BALANCE_BANDWIDTH = Key(
    "dfs.datanode.balance.bandwidthPerSec",
    size,
    "100m",
    _G,
    "bytes a second of all moves that a balancer or mover has ordered here",
)
BALANCE_MOVES = Key(
    "dfs.datanode.balance.max.concurrent.moves",
    whole(at_least=1),
    "100",
    _G,
    "so many of these moves at once; more are refused",
)
BLOCK_PINNING = Key(
    "dfs.datanode.block-pinning.enabled",
    flag,
    "false",
    _G,
    "replicas on a DataNode that their writer named as a favored one are not moved away from it",
)
BLOCK_TOKENS = Key(
    "dfs.block.access.token.enable",
    optional(flag),
    "",
    _G,
    "DataNodes let a caller use a block only with a token of a NameNode; unset: as long as none of "
    "Hadoop's DataNodes registers, which are without by default",
)
BLOCK_KEY_INTERVAL = Key(
    "dfs.block.access.key.update.interval",
    duration("m", zero=False),
    "600",
    _G,
    "how often a NameNode signs block tokens with a new key",
)
BLOCK_TOKEN_LIFETIME = Key(
    "dfs.block.access.token.lifetime",
    duration("m", zero=False),
    "600",
    _G,
    "how long a block token is good for",
)
