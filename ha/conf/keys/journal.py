"""The keys of the journal: JournalNodes, their writer and their readers.

See docs/reference/operations.md#configuration-keys.
"""

from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import (
    duration,
    flag,
    fraction,
    host_port,
    host_port_or_off,
    one_of,
    optional_host_port,
    optional_text,
    size,
    text,
    whole,
)

_G, _NS, _NN = Scope.GLOBAL, Scope.NAMESERVICE, Scope.NAMENODE
_ms = duration("ms")
_call = duration("ms", zero=False)

# --- the node --------------------------------------------------------------------------------
SHARED_EDITS = Key(
    "dfs.namenode.shared.edits.dir",
    text,
    "",
    _NN,
    "qjournal://host:port;host:port;host:port/journal",
)
EDITS_DIR = Key(
    "dfs.journalnode.edits.dir", text, "/tmp/hadoop/dfs/journalnode/", _NS, "the node's storage"
)
EDITS_DIR_PERM = Key("dfs.journalnode.edits.dir.perm", text, "700", _G, "octal")
RPC = Key("dfs.journalnode.rpc-address", host_port(default_port=8485), "0.0.0.0:8485", _G, "")
RPC_BIND = Key("dfs.journalnode.rpc-bind-host", optional_text, "", _G, "listen here")
HADOOP_RPC = Key(
    "nnha.journalnode.hadoop-rpc-address",
    optional_host_port(),
    "",
    _G,
    "Java NameNodes write here, and ours with nnha.journal.transport=hadoop-rpc; "
    "off where it is not set",
)
HADOOP_RPC_BIND = Key("nnha.journalnode.hadoop-rpc-bind-host", optional_text, "", _G, "listen here")
WRITE_LANES = Key(
    "nnha.journalnode.write-lane-address",
    host_port_or_off,
    "",
    _G,
    "where writers may have a connection of their own for batches; empty = the RPC host and any "
    "free port, off = nowhere",
)
HTTP = Key("dfs.journalnode.http-address", host_port(default_port=8480), "0.0.0.0:8480", _G, "")
HTTP_BIND = Key("dfs.journalnode.http-bind-host", optional_text, "", _G, "listen here")
HTTPS = Key(
    "dfs.journalnode.https-address",
    host_port(default_port=8481),
    "0.0.0.0:8481",
    _G,
    "with dfs.http.policy=HTTPS_ONLY, instead of dfs.journalnode.http-address",
)
HTTPS_BIND = Key("dfs.journalnode.https-bind-host", optional_text, "", _G, "listen here")
SYNC = Key("dfs.journalnode.enable.sync", flag, "true", _G, "fetch missed segments from peers")
SYNC_INTERVAL = Key("dfs.journalnode.sync.interval", _call, "120000", _G, "")
DISK_WARN_FREE = Key(
    "nnha.journalnode.disk.warn-free-bytes", size, "1g", _G, "warn when less is free; 0 = never"
)
SCRUB_INTERVAL = Key(
    "nnha.journalnode.scrub.interval", duration("s"), "1d", _G, "read all again so often; 0 = never"
)
SCRUB_BANDWIDTH = Key(
    "nnha.journalnode.scrub.bandwidthPerSec", size, "8m", _G, "bytes a second; 0 = unlimited"
)
MAX_READ_LEASE = Key(
    "nnha.journalnode.max-read-lease",
    duration("s", zero=False),
    "60s",
    _G,
    "a writer with a longer read lease is refused",
)
CACHE_SIZE = Key(
    "dfs.journalnode.edit-cache-size.bytes", size, "16777216", _G, "newest edits of a journal"
)
CACHE_FRACTION = Key(
    "dfs.journalnode.edit-cache-size.fraction", fraction, "0.5", _G, "of memory, if set; bytes win"
)

# --- the writer's and readers' calls ---------------------------------------------------------
GET_STATE_TIMEOUT = Key("dfs.qjournal.get-journal-state.timeout.ms", _call, "120000", _G, "")
NEW_EPOCH_TIMEOUT = Key("dfs.qjournal.new-epoch.timeout.ms", _call, "120000", _G, "")
PREPARE_TIMEOUT = Key("dfs.qjournal.prepare-recovery.timeout.ms", _call, "120000", _G, "")
ACCEPT_TIMEOUT = Key("dfs.qjournal.accept-recovery.timeout.ms", _call, "120000", _G, "")
FINALIZE_TIMEOUT = Key("dfs.qjournal.finalize-segment.timeout.ms", _call, "120000", _G, "")
START_SEGMENT_TIMEOUT = Key("dfs.qjournal.start-segment.timeout.ms", _call, "20000", _G, "")
WRITE_TIMEOUT = Key("dfs.qjournal.write-txns.timeout.ms", _call, "20000", _G, "")
SELECT_TIMEOUT = Key("dfs.qjournal.select-input-streams.timeout.ms", _call, "20000", _G, "")
HTTP_OPEN_TIMEOUT = Key("dfs.qjournal.http.open.timeout.ms", _call, "60000", _G, "")
HTTP_READ_TIMEOUT = Key("dfs.qjournal.http.read.timeout.ms", _call, "60000", _G, "")
OPERATIONS_TIMEOUT = Key("dfs.qjm.operations.timeout", _call, "60s", _G, "format and upgrade")
QUEUED_EDITS_LIMIT_MB = Key(
    "dfs.qjournal.queued-edits.limit.mb", whole(at_least=1), "10", _G, "MiB for one node"
)
READ_LEASE = Key(
    "nnha.read-lease.duration",
    duration("s"),
    "1s",
    _G,
    "an active serves reads so long without hearing of a majority; a successor waits for its own "
    "or its predecessor's, whichever is longer; 0 = for ever, on no NameNode or on all",
)
TRANSPORT = Key(
    "nnha.journal.transport",
    one_of("grpc", "hadoop-rpc"),
    "grpc",
    _G,
    "how a NameNode writes; with hadoop-rpc to the port of nnha.journalnode.hadoop-rpc-address",
)
EDIT_TRANSFER_TIMEOUT = Key("dfs.edit.log.transfer.timeout", _call, "30000", _G, "")
EDIT_TRANSFER_BANDWIDTH = Key(
    "dfs.edit.log.transfer.bandwidthPerSec", size, "0", _G, "bytes a second; 0 = unlimited"
)
