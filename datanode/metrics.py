"""What a DataNode counts."""

from prometheus_client import Counter, Gauge

OPERATIONS = Counter("nnha_datanode_operations", "Operations of clients and DataNodes", ["op"])
TOKENS_REFUSED = Counter(
    "nnha_datanode_tokens_refused",
    "Operations refused for want of a block token that proves them, by what they would do",
    ["mode"],
)
HANDSHAKES = Counter(
    "nnha_datanode_handshakes",
    "Callers that proved that they hold a block token, by what protects their connections",
    ["protection"],
)
BYTES_WRITTEN = Counter("nnha_datanode_written_bytes", "Bytes of blocks that came in")
BYTES_READ = Counter("nnha_datanode_read_bytes", "Bytes of blocks that were sent to readers")
REPLICAS = Gauge("nnha_datanode_replicas", "Replicas on this DataNode")
SHARED_BYTES = Gauge(
    "nnha_datanode_shared_bytes", "Memory that connections share, and have taken now"
)
LOCKED_BYTES = Gauge("nnha_datanode_locked_bytes", "Memory that cached replicas take, or will")
FAILED_VOLUMES = Gauge("nnha_datanode_failed_volumes", "Data directories that cannot be used")
HEARTBEATS = Counter(
    "nnha_datanode_heartbeats", "Heartbeats to NameNodes, by what came of them", ["outcome"]
)
COMMANDS = Counter(
    "nnha_datanode_commands", "Commands of NameNodes, by kind and outcome", ["kind", "outcome"]
)
REPORTS = Counter("nnha_datanode_reports", "Reports that NameNodes took, by kind", ["kind"])
SCANS = Counter(
    "nnha_datanode_scans", "Replicas that were read again, by what was found", ["found"]
)
SCANNED_BYTES = Counter("nnha_datanode_scanned_bytes", "Bytes that the scanner has read")
