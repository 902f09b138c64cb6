"""What planning a call needs to know, and what it gives back."""

from collections.abc import Callable
from typing import Final, NoReturn

from google.protobuf.message import Message

from ha.record import dataclass, field, record
from ha.security.caller import Method as Proof
from journal.model import LAYOUT_VERSION
from namenode_sim.client_protocol.words.errors import FsError
from namenode_sim.client_protocol.words.leases import LeaseTimes
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import RpcIds
from namenode_sim.namespace.namespace import Namespace

_DAY_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class TokenRules:
    """How long tokens and keys last; ``issued``: whether there are tokens at all.

    ``proven_only``: callers who only say who they are get none.  ``short_name`` is that of a
    principal; it raises NoShortName.
    """

    issued: bool = False
    proven_only: bool = False
    lifetime_ms: int = 7 * _DAY_MS
    renewal_ms: int = _DAY_MS
    key_ms: int = _DAY_MS
    short_name: Callable[[str], str] = field(default=str, kw_only=True, compare=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits and defaults, with Hadoop's values; sizes are bytes, times are as named.

    Each field has a key, by which ``configured`` fills it.
    """

    block_size: int = 128 * 1024 * 1024
    bytes_per_checksum: int = 512
    checksum_type: str = "CRC32C"
    write_packet_size: int = 64 * 1024
    replication: int = 3
    file_buffer_size: int = 4096
    trash_interval_minutes: int = 0
    listing_limit: int = 1000
    batched_listing_limit: int = 100
    min_replication: int = 1
    max_replication: int = 512
    min_block_size: int = 1024 * 1024
    max_blocks: int = 10_000
    max_component_bytes: int = 255
    max_directory_items: int = 1024 * 1024
    access_time_precision_ms: int = 3_600_000
    hard_lease_seconds: float = 1200.0
    block_recovery_seconds: float = 90.0
    permissions_enabled: bool = True
    owners_set_quotas: bool = False
    acls_enabled: bool = True
    posix_acl_inheritance: bool = True
    xattrs_enabled: bool = True
    max_xattrs: int = 32
    max_xattr_bytes: int = 16384
    max_snapshots: int = 65536
    max_snapshots_of_one: int = 65536
    protected: frozenset[str] = frozenset()
    protected_below: bool = False
    tokens: TokenRules = TokenRules()
    data_algorithm: str | None = None


DEFAULT_SETTINGS = Settings()


@record
class Caller:
    """The caller: the name that the client claims, and its groups as the NameNode knows them.

    ``exempt``: asked for no permission, being the superuser or because permissions are switched
    off; only the owner's calls (chmod, chown, ACLs) then still look at ``is_super``.
    """

    user: str
    groups: frozenset[str]
    is_super: bool
    exempt: bool
    host: str
    rpc: RpcIds
    real_user: str = ""
    """The one who acts for the user; empty for most."""
    proof: Proof = Proof.SIMPLE


def _refuse_draw(_: int) -> bytes:
    raise RuntimeError("a plan wants random bytes, and was given no source of them")


@record
class Scene:
    """Everything a call is planned from.  ``now_ms`` is wall time, ``now`` monotonic seconds."""

    namespace: Namespace
    caller: Caller
    now_ms: int
    now: float
    leases: LeaseTimes
    cluster: Cluster
    settings: Settings = field(default=DEFAULT_SETTINGS)
    layout: int = LAYOUT_VERSION
    """That of the edits which are written."""
    changes: bool = False
    """Whether the call may change something: then paths into snapshots are refused."""
    random: Callable[[int], bytes] = _refuse_draw
    """Returns that many bytes for a new key."""


@record
class EditPlan:
    """Edits to log and apply in order, and the answer to build from what they made."""

    ops: tuple[Op, ...]
    answer: Callable[[], Message]


def refused(ops: tuple[Op, ...], error: FsError) -> EditPlan:
    """Return a plan that refuses the call, and yet has edits: a lease that was released."""

    def answer() -> NoReturn:
        raise error

    return EditPlan(ops, answer)


def no_edits(answer: Message) -> EditPlan:
    return EditPlan((), lambda: answer)
