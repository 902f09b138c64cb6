"""The keys of failover and of the whole cluster.

See docs/reference/operations.md#configuration-keys.
"""

from ha.conf.keys import units
from ha.conf.keys.key import Key, Scope

_G, _NS, _NN = Scope.GLOBAL, Scope.NAMESERVICE, Scope.NAMENODE
_ms, _s = units.duration("ms"), units.duration("s")
_ms_above_zero = units.duration("ms", zero=False)
_port = units.whole(at_least=0, at_most=65535)

# --- the file system and who runs it ---------------------------------------------------------
FS_DEFAULT = Key("fs.defaultFS", units.text, "file:///", _G, "the file system that clients use")
TMP_DIR = Key(
    "hadoop.tmp.dir", units.text, "/tmp/hadoop-${user.name}", _G, "base of default folders"
)
NAMESERVICES = Key("dfs.nameservices", units.words, "", _G, "all nameservices")
INTERNAL_NAMESERVICES = Key(
    "dfs.internal.nameservices", units.words, "", _G, "the nameservices of this cluster"
)
NAMESERVICE_ID = Key("dfs.nameservice.id", units.optional_text, "", _G, "the local nameservice")
NAMENODES = Key("dfs.ha.namenodes", units.words, "", _NS, "the NameNode ids of a nameservice")
NAMENODE_ID = Key("dfs.ha.namenode.id", units.optional_text, "", _G, "the local NameNode")
CLIENT_PROXY = Key(
    "dfs.client.failover.proxy.provider",
    units.optional_text,
    "",
    _NS,
    "the class by which Hadoop's clients find the active; they read it with the suffix of the "
    "nameservice only, and without it take the nameservice for the name of a host",
)
NAMENODE_RPC = Key(
    "dfs.namenode.rpc-address", units.optional_host_port(default_port=8020), "", _NN, "client RPC"
)
NAMENODE_RPC_BIND = Key("dfs.namenode.rpc-bind-host", units.optional_text, "", _NN, "listen here")
NAMENODE_SERVICE_RPC = Key(
    "dfs.namenode.servicerpc-address",
    units.optional_host_port(default_port=8020),
    "",
    _NN,
    "RPC for the ZKFC, the CLI and fencing; the client RPC address when not set",
)
NAMENODE_SERVICE_RPC_BIND = Key(
    "dfs.namenode.servicerpc-bind-host", units.optional_text, "", _NN, "listen here"
)
NAMENODE_LIFELINE_RPC = Key(
    "dfs.namenode.lifeline.rpc-address",
    units.optional_host_port(default_port=8050),
    "",
    _NN,
    "RPC for health probes only",
)
NAMENODE_LIFELINE_BIND = Key(
    "dfs.namenode.lifeline.rpc-bind-host", units.optional_text, "", _NN, "listen here"
)
NAMENODE_HTTP = Key(
    "dfs.namenode.http-address", units.host_port(default_port=9870), "0.0.0.0:9870", _NN, "HTTP"
)
NAMENODE_HTTP_BIND = Key("dfs.namenode.http-bind-host", units.optional_text, "", _NN, "listen here")
ADMINISTRATORS = Key("dfs.cluster.administrators", units.text, " ", _G, "users, blank, groups")
ZKFC_PROTOCOL_ACL = Key("security.zkfc.protocol.acl", units.text, "*", _G, "service-level ACL")

# --- ZooKeeper and the election --------------------------------------------------------------
ZOOKEEPER_QUORUM = Key(
    "ha.zookeeper.quorum",
    units.ensemble,
    "",
    _NN,
    "the ensemble, perhaps with a chroot at the end: zk1:2181,zk2:2181/hadoop",
)
ZOOKEEPER_SESSION_TIMEOUT = Key(
    "ha.zookeeper.session-timeout.ms",
    units.duration("ms", zero=False, at_most=units.INT / 1000),
    "10000",
    _NN,
    "asked of the server",
)
ZOOKEEPER_PARENT = Key(
    "ha.zookeeper.parent-znode", units.text, "/hadoop-ha", _NN, "the nameservice is appended"
)
ZOOKEEPER_ACL = Key(
    "ha.zookeeper.acl",
    units.text,
    "world:anyone:rwcda",
    _NN,
    "scheme:id:perms list, or @file; not set, and we prove who we are: auth::rwcda",
)
ZOOKEEPER_AUTH = Key("ha.zookeeper.auth", units.text, "", _NN, "scheme:secret list, or @file")

# --- health ----------------------------------------------------------------------------------
HEALTH_CONNECT_RETRY = Key(
    "ha.health-monitor.connect-retry-interval.ms", _ms, "1000", _G, "between connects"
)
HEALTH_CHECK_INTERVAL = Key(
    "ha.health-monitor.check-interval.ms", _ms_above_zero, "1000", _G, "between probes"
)
HEALTH_SLEEP_AFTER_DISCONNECT = Key(
    "ha.health-monitor.sleep-after-disconnect.ms", _ms, "1000", _G, "before reconnecting"
)
HEALTH_RPC_TIMEOUT = Key(
    "ha.health-monitor.rpc-timeout.ms", _ms_above_zero, "45000", _G, "one probe"
)

# --- failover --------------------------------------------------------------------------------
AUTO_FAILOVER = Key("dfs.ha.automatic-failover.enabled", units.flag, "false", _NS, "use ZKFCs")
NEW_ACTIVE_TIMEOUT = Key(
    "ha.failover-controller.new-active.rpc-timeout.ms",
    _ms_above_zero,
    "60000",
    _G,
    "transitionToActive; also how long the CLI waits for a graceful failover",
)
GRACEFUL_FENCE_TIMEOUT = Key(
    "ha.failover-controller.graceful-fence.rpc-timeout.ms",
    _ms_above_zero,
    "5000",
    _G,
    "asking a NameNode to become standby, and ceding",
)
CLI_CHECK_TIMEOUT = Key(
    "ha.failover-controller.cli-check.rpc-timeout.ms",
    _ms_above_zero,
    "20000",
    _G,
    "read-only calls of haadmin",
)
ZKFC_PORT = Key("dfs.ha.zkfc.port", _port, "8019", _NN, "RPC port of the ZKFC; 0 = any")
ZKFC_THREAD_DUMP_TIMEOUT = Key(
    "dfs.ha.zkfc.nn.http.timeout.ms", _ms, "20000", _G, "thread dump; 0 = off"
)
FENCING_METHODS = Key("dfs.ha.fencing.methods", units.text, "", _NN, "one method a line")
SSH_CONNECT_TIMEOUT = Key(
    "dfs.ha.fencing.ssh.connect-timeout", _ms_above_zero, "30000", _G, "sshfence"
)
SSH_KEY_FILES = Key("dfs.ha.fencing.ssh.private-key-files", units.words, "", _G, "sshfence")

# --- RPC -------------------------------------------------------------------------------------
IPC_MAXIMUM_DATA_LENGTH = Key(
    "ipc.maximum.data.length",
    units.whole(at_least=1),
    "134217728",
    _G,
    "bytes of one request to a NameNode",
)

RPC_MAX_BUFFERED = Key(
    "nnha.rpc.max-buffered",
    units.size,
    "256m",
    _G,
    "bytes of all requests to a NameNode that are half received, a quarter of it kept for "
    "failover; at least four thirds of ipc.maximum.data.length",
)

RPC_MAX_OF_USER = Key(
    "nnha.rpc.max-connections-of-user",
    units.whole(at_least=1),
    "256",
    _G,
    "connections of clients that one user may have to a NameNode; beyond it its longest idle one "
    "is closed, and where none is idle the newest",
)
RPC_MAX_OF_ADDRESS = Key(
    "nnha.rpc.max-connections-of-address",
    units.whole(at_least=1),
    "128",
    _G,
    "the same for one address, but not for loopback",
)

# --- ours ------------------------------------------------------------------------------------
ZKFC_HTTP = Key(
    "nnha.zkfc.http-address",
    units.host_port(),
    "127.0.0.1:8119",
    _NN,
    "/status, /metrics and /health of the ZKFC",
)
ZKFC_HAND_OVER_ON_STOP = Key(
    "nnha.zkfc.stop.hand-over",
    units.flag,
    "true",
    _NN,
    "a ZKFC that is stopped (SIGTERM) first hands over from its active NameNode to one that is "
    "fit; not in a pause",
)
ZKFC_STOP_TIMEOUT = Key(
    "nnha.zkfc.stop.timeout", units.duration("s", zero=False), "10s", _NN, "for that hand-over"
)
PARK_TIMEOUT = Key(
    "nnha.standby.park-timeout",
    units.optional(units.duration("s")),
    "",
    _NN,
    "how long a NameNode keeps a client's call while nobody is active, instead of refusing it; "
    "when not set, 3 s longer than ha.zookeeper.session-timeout.ms, which a dead host's lock lasts",
)
FORMAT_LAYOUT = Key(
    "nnha.namenode.format-layout-version",
    units.whole(at_least=-67, at_most=-65),
    "-67",
    _G,
    "layout of a new file system: -67 for Hadoop 3.4 and later, -66 for 3.3.1, -65 for 3.2",
)
HEALTH_REFUSALS = Key(
    "nnha.zkfc.health.refusals",
    units.whole(at_least=1),
    "1",
    _NN,
    "refused or broken connections in a row until a NameNode counts as gone",
)
HEALTH_TIMEOUTS = Key(
    "nnha.zkfc.health.timeouts",
    units.whole(at_least=1),
    "1",
    _NN,
    "unanswered probes in a row until a NameNode counts as not responding",
)
FENCING_METHOD_TIMEOUT = Key(
    "nnha.fencing.method-timeout", units.duration("s", zero=False), "30s", _NN, "one fencing method"
)
FENCING_TOTAL_TIMEOUT = Key(
    "nnha.fencing.total-timeout",
    units.duration("s", zero=False),
    "60s",
    _NN,
    "all methods together",
)
SSH_KNOWN_HOSTS = Key(
    "nnha.fencing.ssh.known-hosts", units.text, "~/.ssh/known_hosts", _G, "host keys for sshfence"
)
SSH_HOST_KEYS = Key(
    "nnha.fencing.ssh.host-keys", units.text, "strict", _G, "strict, accept-new or off (as Hadoop)"
)
SSH_AGENT = Key(
    "nnha.fencing.ssh.use-agent", units.flag, "false", _G, "sshfence may ask an ssh-agent"
)
SSH_PASSPHRASE_FILE = Key(
    "nnha.fencing.ssh.passphrase-file", units.optional_text, "", _G, "for encrypted private keys"
)
SSH_COMMAND_TIMEOUT = Key(
    "nnha.fencing.ssh.command-timeout",
    units.duration("s", zero=False),
    "10s",
    _G,
    "one remote command",
)
POLITE_ANSWER_TIMEOUT = Key(
    "nnha.zkfc.polite-fence.answer-timeout",
    units.duration("s", zero=False),
    "250ms",
    _G,
    "an old active that does not connect, or says nothing, for so long is fenced without waiting "
    "for ha.failover-controller.graceful-fence.rpc-timeout.ms",
)
