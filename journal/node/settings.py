"""The settings of a JournalNode at start; read once, checked once."""

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

    ``folders`` has the folder of each nameservice that has its own; ``folder`` is for the rest.
    Ports may be 0, for any.  Without a ``hadoop_host`` no Hadoop RPC is served, and without a
    ``lane_host`` no write lane is taken.
    ``peers`` has the nodes of each journal that is to be synced in the background, this node
    among them or not.  With a ``hadoop_port_of_peers`` they may be Hadoop's.  A learner may vote by
    their word after ``claim_seconds`` at the earliest, and then looks each ``admission_seconds``.
    ``edits_cache_bytes`` is for each journal; 0 keeps nothing.
    A request over gRPC waits ``read_request_seconds`` for room, and has as long again to come.
    ``nodes`` has the nodes of each journal, synced or not: segments come from nowhere else.
    ``journal_ids`` are the journals that the configuration names, and no other is made; where it
    names none, only a few are.
    With ``https`` the port of ``http`` takes TLS and nothing else.
    ``addresses_because`` says of ``rpc`` and ``http`` why they are these addresses.
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
        """The key of the pages' address."""
        return keys.HTTPS if self.https else keys.HTTP

    @property
    def max_frame_bytes(self) -> int:
        """What gRPC lets through: a little more than a batch may have, so that one that is too
        large is refused by the node, by kind, and not by an error that may mean a busy node."""
        return self.max_message_bytes + FRAME_ROOM_BYTES

    def folder_of(self, nameservice_id: str) -> Path:
        """Return the folder of a nameservice's journals.

        See docs/reference/journal-node.md#directory-of-a-journal.
        """
        return self.folders.get(nameservice_id, self.folder)

    def all_folders(self) -> tuple[Path, ...]:
        """Return every folder that may hold journals, each once."""
        return tuple(dict.fromkeys((*self.folders.values(), self.folder)))
