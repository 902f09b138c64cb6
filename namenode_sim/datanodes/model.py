"""The words about DataNodes and their storages.

See docs/reference/datanodes.md#nodes.
"""

from collections import deque
from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import Final, NamedTuple, Protocol

from ha.record import dataclass, field
from journal.model import TxId
from namenode_sim.blocks.model import Storage, StorageNumber

DEFAULT_RACK: Final = "/default-rack"


class Draw(Protocol):
    """Where chance comes from; ``random.Random`` is one."""

    def random(self) -> float:
        """Return a number of [0, 1)."""
        ...

    def randrange(self, stop: int, /) -> int:
        """Return a number of [0, stop)."""
        ...


class StorageType(IntEnum):
    """What a storage is made of, as numbered on the wire (StorageTypeProto)."""

    DISK = 1
    SSD = 2
    ARCHIVE = 3
    RAM_DISK = 4
    PROVIDED = 5
    NVDIMM = 6


class StorageState(Enum):
    """Whether a storage's replicas count; a shared or failed one takes no new ones."""

    NORMAL = "normal"
    READ_ONLY_SHARED = "read-only shared"
    FAILED = "failed"


class AdminState(IntEnum):
    """Whether a DataNode serves, leaves, or is in maintenance (AdminState of DatanodeInfoProto)."""

    NORMAL = 0
    DECOMMISSION_INPROGRESS = 1
    DECOMMISSIONED = 2
    ENTERING_MAINTENANCE = 3
    IN_MAINTENANCE = 4

    @property
    def is_maintained(self) -> bool:
        return self >= AdminState.ENTERING_MAINTENANCE


OUR_VERSIONS_END: Final = "-nnha"


def is_hadoops(software_version: str) -> bool:
    """Return whether a DataNode of this version keeps to Hadoop's order of things, and not to ours.

    Ours removes a replica from its map before it reports, and obeys its last NameNode again without
    a newer transaction.
    """
    return not software_version.endswith(OUR_VERSIONS_END)


@dataclass(frozen=True, slots=True)
class DatanodeId:
    """A DataNode as it registered: its uuid, and where it listens."""

    uuid: str
    ip: str
    host: str
    transfer_port: int
    info_port: int
    ipc_port: int
    info_secure_port: int = 0

    @property
    def transfer_address(self) -> str:
        """The address that data goes to, ip:port."""
        return f"{self.ip}:{self.transfer_port}"


class Room(NamedTuple):
    """Sizes of a storage, in bytes, as its DataNode reported them last; or the sums of several."""

    capacity: int = 0
    used: int = 0
    remaining: int = 0
    pool_used: int = 0
    non_dfs_used: int = 0


def total(rooms: Iterable[Room]) -> Room:
    return Room(*map(sum, zip(*rooms, strict=True)))


@dataclass(slots=True, eq=False)
class NodeStorage:
    """A storage of a DataNode; ``held`` is its place in the map of blocks."""

    uuid: str
    held: Storage
    type: StorageType = StorageType.DISK
    state: StorageState = StorageState.NORMAL
    room: Room = field(default_factory=Room)


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """A replica is to be sent to other storages, once the edits up to ``cause`` are durable."""

    block_id: int
    targets: tuple[StorageNumber, ...]
    cause: TxId


@dataclass(frozen=True, slots=True)
class RecoveryOrder:
    """A DataNode is to make the replicas of a block agree, under the recovery's stamp."""

    block_id: int
    recovery_stamp: int
    cause: TxId


@dataclass(slots=True)
class Drain:
    """How far a DataNode is with what a former active has ordered; times are monotonic seconds.

    ``done``: nothing of it is left. ``commands_done``: no command of it runs or waits.
    ``first_heartbeats``: how many its page showed first. ``ask_from``: the page is not to be read
    before. ``quiet_since``: from then on it has deleted only what was ``asked`` of it.
    """

    done: bool = False
    commands_done: bool = False
    first_heartbeats: int | None = None
    page_unreadable: bool = False
    ask_from: float = 0.0
    quiet_since: float = 0.0
    asked: set[int] = field(default_factory=set)


RESEND_SECONDS: Final = 30.0
"""Orders that no cache report shows done are given again (path.based.cache.retry.interval.ms)."""


@dataclass(slots=True)
class NodeCache:
    """The memory of one DataNode: sizes in bytes, blocks by id.

    ``cached`` is what its last cache report says.  ``to_cache``, with the blocks' lengths whose sum
    is ``promised``, and ``to_uncache`` are its orders, which leave once the edits up to ``cause``
    are durable, and from ``send_at`` on, in monotonic seconds.
    """

    capacity: int = 0
    used: int = 0
    cached: frozenset[int] = frozenset()
    to_cache: dict[int, int] = field(default_factory=dict)
    to_uncache: set[int] = field(default_factory=set)
    promised: int = 0
    cause: TxId = TxId(0)
    send_at: float = 0.0

    def room(self) -> int:
        return self.capacity - self.used - self.promised

    def ask_for(self, block_id: int, length: int, cause: TxId) -> None:
        """Order a block to be cached, with the next heartbeat."""
        self.to_cache[block_id] = length
        self.promised += length
        self.cause, self.send_at = cause, 0.0

    def ask_to_drop(self, block_id: int, cause: TxId) -> None:
        """Order a block to be uncached, with the next heartbeat, if it is not ordered yet."""
        if block_id in self.to_uncache:
            return
        self.to_uncache.add(block_id)
        self.cause, self.send_at = cause, 0.0

    def withdraw(self, block_id: int) -> None:
        """Take the order back to cache a block, if there is one."""
        self.promised -= self.to_cache.pop(block_id, 0)

    def report(self, cached: frozenset[int]) -> bool:
        """Take in what is cached now; return whether that is news."""
        is_news = cached != self.cached
        self.cached = cached
        for block_id in cached & self.to_cache.keys():
            self.withdraw(block_id)
        self.to_uncache &= cached
        return is_news

    def forget_orders(self) -> None:
        self.to_cache.clear()
        self.to_uncache.clear()
        self.promised = 0


FIRST_REPORT_SECONDS: Final = 120.0
"""A DataNode may wait as long with its first full report: not all are to come at once."""


@dataclass(slots=True, eq=False)
class Node:
    """A DataNode that has registered.

    ``last_heard`` is monotonic time, in seconds; so are ``registered_at`` and ``last_report``, when
    its last full block report was taken in, None if none was. ``broken``: its last connection ended
    as that of a process which died, and it was not heard since. ``transceivers`` and ``copies`` are
    what it says that it is busy with. ``obeys``: it got an answer that this NameNode is the active,
    and has called again. Orders wait for its next heartbeat; a recovery goes before copies.
    ``admin`` is changed by ``Cluster.set_admin`` alone; ``blocks_left`` are not safe yet without
    this one.
    ``block_key`` is the id of the newest key of block tokens that it was sent.
    ``bandwidth_order`` is how many bytes of moves it is to let pass in a second, 0 for no order.
    """

    id: DatanodeId
    software_version: str
    last_heard: float
    last_report: float | None = field(default=None, kw_only=True)
    rack: str = DEFAULT_RACK
    admin: AdminState = field(default=AdminState.NORMAL, kw_only=True)
    alive: bool = True
    broken: bool = False
    must_register: bool = False
    told_active: bool = False
    obeys: bool = False
    transceivers: int = 0
    copies: int = 0
    blocks_left: int | None = None
    failed_volumes: int = 0
    bandwidth_order: int = 0
    block_key: int = 0
    registrations: int = 0
    registered_at: float = 0.0
    copy_orders: deque[CopyOrder] = field(default_factory=deque)
    recovery_orders: deque[RecoveryOrder] = field(default_factory=deque)
    storages: dict[str, NodeStorage] = field(default_factory=dict)
    drain: Drain = field(default_factory=Drain)
    cache: NodeCache = field(default_factory=NodeCache)
    shown: tuple[object, bytes, bytes] | None = None
    """What clients were shown of it last: what it was then, and parts of an answer."""

    def lacks_first_report(self, now: float) -> bool:
        """Return whether it has registered a while ago, and no full report of it has come since.

        The bad schedule: the answer to its registration is lost.  Hadoop's DataNode goes on with
        heartbeats then, and reports after hours.
        """
        return now >= self.registered_at + FIRST_REPORT_SECONDS and any(
            storage.held.reports == 0
            for storage in self.storages.values()
            if storage.state is not StorageState.FAILED
        )

    def room(self) -> Room:
        """Return the sizes of all its storages together, in bytes."""
        return total(storage.room for storage in self.storages.values())

    @property
    def is_retired(self) -> bool:
        """Return whether it is dead, and may be so."""
        return not self.alive and self.admin >= AdminState.DECOMMISSIONED

    @property
    def is_readable(self) -> bool:
        """Return whether clients may be sent here: not once it may be switched off any moment."""
        return self.admin is not AdminState.IN_MAINTENANCE and (
            self.alive or not self.admin.is_maintained
        )

    def forget_orders(self) -> None:
        """Forget the claim and all orders: it is dead, or this NameNode's role has changed."""
        self.forget_claim()
        self.copy_orders.clear()
        self.recovery_orders.clear()
        self.bandwidth_order = 0
        self.cache.forget_orders()

    def forget_claim(self) -> None:
        """Forget which NameNode it obeys, and what it is still to do."""
        self.told_active = self.obeys = False
        self.drain = Drain()
