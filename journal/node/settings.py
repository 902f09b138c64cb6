"""The settings of a JournalNode, which are read at its start."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ha.conf.keys import journal as keys
from ha.conf.keys.key import Key
from ha.conf.keys.units import HostPort
from ha.record import dataclass, field

FRAME_ROOM_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Addresses, folders and limits of one node.

    ``folders`` has the folder of each nameservice that has its own; ``folder`` is for the others.
    A port of 0 means any.  Without a ``hadoop_host`` no Hadoop RPC is served, and without a
    ``lane_host`` no write lanes.
    ``peers`` has the nodes of each journal that is synced in the background, with or without this
    node.  With a ``hadoop_port_of_peers`` they may be Hadoop's JournalNodes.  A learner may get its
    vote from them after ``claim_seconds`` at the earliest; it tries each ``admission_seconds``.
    ``edits_cache_bytes`` is the size for each journal; 0 means no cache.
    A request over gRPC waits ``read_request_seconds`` for room, and must come within as long again.
    ``nodes`` has the nodes of each journal, synced or not: segments are fetched only from them.
    ``journal_ids`` are the journals that the configuration names; no others can be formatted.  If
    it names none, ``max_unnamed_journals`` can be.
    With ``https`` the HTTP port takes only TLS.
    ``addresses_because`` has the reasons for the addresses of ``rpc`` and ``http``, for the log.
    """

    folder: Path
    folders: Mapping[str, Path] = field(default_factory=dict)
    folder_mode: int = 0o700
    rpc_host: str = "127.0.0.1"
    rpc_port: int = 0
    hadoop_host: str | None = None
    hadoop_port: int = 0
    lane_host: str | None = None
    lane_port: int = 0
    http_host: str = "127.0.0.1"
    http_port: int = 0
    https: bool = False
    addresses_because: Mapping[str, str] = field(default_factory=dict)
    edits_cache_bytes: int = 0
    max_journals: int = 64
    nodes: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    journal_ids: frozenset[str] = frozenset()
    max_unnamed_journals: int = 8
    max_message_bytes: int = 64 * 1024 * 1024
    max_concurrent_calls: int = 256
    read_request_seconds: float = 10.0
    min_ping_millis: int = 5000
    max_segment_bytes: int = 64 * 1024 * 1024 * 1024
    fetch_connect_seconds: float = 10.0
    fetch_stall_seconds: float = 30.0
    stop_grace_seconds: float = 2.0
    peers: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    disk_warn_free_bytes: int = 0
    serve_bytes_per_second: int = 0
    scrub_interval_seconds: float = 0.0
    scrub_bytes_per_second: int = 8 * 1024 * 1024
    max_read_lease_seconds: float = 60.0
    claim_seconds: float = 120.0
    admission_seconds: float = 5.0
    hadoop_port_of_peers: int = 0
    http_port_of_peers: int = 0
    sync_interval_seconds: float = 120.0
    sync_quick_seconds: float = 1.0
    sync_call_seconds: float = 20.0
    sync_stall_seconds: float = 30.0
    sync_bytes_per_second: int = 0

    @property
    def http_key(self) -> Key[HostPort]:
        """The configuration key of the HTTP or HTTPS address."""
        return keys.HTTPS if self.https else keys.HTTP

    @property
    def max_frame_bytes(self) -> int:
        """The largest message for gRPC: above the limit of a batch, so that the node refuses a
        batch that is too large with BadRequest; gRPC's error could also mean a busy node."""
        return self.max_message_bytes + FRAME_ROOM_BYTES

    def folder_of(self, nameservice_id: str) -> Path:
        """Return the folder of a nameservice's journals.

        See docs/reference/journal-node.md#directory-of-a-journal.
        """
        return self.folders.get(nameservice_id, self.folder)

    def all_folders(self) -> tuple[Path, ...]:
        """Return the folders that may contain journals, without duplicates."""
        return tuple(dict.fromkeys((*self.folders.values(), self.folder)))
