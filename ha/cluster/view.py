"""What one look at the cluster has shown.  Pure; ``problems`` says what is wrong with it."""

from collections.abc import Mapping
from datetime import datetime

from ha.cluster.daemon_fields import CheckpointView, DaemonView, HealthChange, TakeoverView
from ha.cluster.files_view import FilesView
from ha.cluster.last_hour import LastHour
from ha.cluster.unreachable import is_silence, is_unknown
from ha.cluster.zookeeper_view import LockView, NoticesView, ZooKeeperRow
from ha.notices.model import Drain, FailoverResult, HistoryEntry, Pause
from ha.record import dataclass, field, replace

HADOOP = "Hadoop"


@dataclass(frozen=True, slots=True)
class NameNodeRow:
    """One NameNode.  ``error`` is why it did not answer; then nothing else is known."""

    namenode: str
    address: str
    state: str | None = None
    software: str | None = None
    """``nnha``, or Hadoop with its version; None: it was not reported."""
    ready: bool | None = None
    not_ready_reason: str | None = None
    epoch: int | None = None
    last_txid: int | None = None
    journal: tuple["JournalView", ...] = ()
    files: FilesView | None = None
    activity: str | None = None
    """What it is doing: ``loading``, ``catching up``, ``active`` and the like."""
    progress: float | None = None
    """How far the loading of the image is, 0 to 1."""
    read_lease_valid: bool | None = None
    """Of the active: whether it may answer reads."""
    checkpoint: CheckpointView | None = None
    daemon: DaemonView | None = None
    clock_ahead_seconds: float | None = None
    """How far its clock is ahead of ours, by the Date of its page."""
    error: str | None = None
    note: str | None = None

    @property
    def silent(self) -> bool:
        """It did not answer in time: it is slow or hangs, or the network is broken."""
        return is_silence(self.error)

    @property
    def of_hadoop(self) -> bool:
        """Whether it is Hadoop's NameNode."""
        return (self.software or "").startswith(HADOOP)

    @property
    def may_be_active(self) -> bool:
        """Whether the NameNode says that it is active, or its state is unknown."""
        return self.state == "active" or is_unknown(self.error)


@dataclass(frozen=True, slots=True)
class JournalView:
    """One JournalNode as the active NameNode sees it."""

    node: str
    in_sync: bool
    last_error: str | None


@dataclass(frozen=True, slots=True)
class ZkfcRow:
    """One failover controller."""

    namenode: str
    address: str
    health: str | None = None
    health_reason: str | None = None
    elector: str | None = None
    zookeeper: str | None = None
    session_timeout_seconds: float | None = None
    in_election: bool | None = None
    out_because: str | None = None
    fencing_methods: tuple[str, ...] = ()
    last_failure: str | None = None
    """Why its last takeover failed; None when it did not, or there was none."""
    page_only: bool = False
    """Only its status page does not answer us; its RPC port does."""
    takeover: TakeoverView | None = None
    """The takeover that is under way."""
    handing_over_from: str | None = None
    """The NameNode from which it takes the role by request."""
    flapping: bool | None = None
    """The role has moved so often that a slow active is kept for a while."""
    fail_back_in_seconds: float | None = None
    """When it asks for the role back, as its NameNode is preferred; None: it does not."""
    health_changes: tuple[HealthChange, ...] = ()
    """Its newest judgements of its NameNode, the newest first."""
    daemon: DaemonView | None = None
    clock_ahead_seconds: float | None = None
    note: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class JournalNodeRow:
    """What one JournalNode reports of the journal."""

    node: str
    formatted: bool | None = None
    learner: bool | None = None
    """It copies what the others have, and has no vote."""
    cluster_id: str | None = None
    stranger: str | None = None
    promised_epoch: int | None = None
    writer_epoch: int | None = None
    committed_txid: int | None = None
    last_txid: int | None = None
    disk_free_bytes: int | None = None
    disk_total_bytes: int | None = None
    disk_warning: str | None = None
    damaged_segments: tuple[int, ...] = ()
    """First transactions of segments that a scan found damaged, until they are repaired."""
    daemon: DaemonView | None = None
    failed_because: str | None = None
    error: str | None = None


def row_from_znode(row: ZkfcRow, notices: NoticesView) -> ZkfcRow:
    """Complete the row of a controller whose page cannot be read from here from its znode.

    A silent page is another matter: the process is frozen, and its znode will vanish.
    """
    member = notices.members.get(row.namenode)
    if not row.page_only or row.error is None or is_silence(row.error):
        return row
    if member is None:
        # Hadoop's ZKFC has neither, and hands over all the same.
        note = "its RPC port is open; it has no page and no znode of nnha's, as Hadoop's ZKFC"
        return replace(row, note=note, error=None)
    return replace(
        row,
        health=member.health,
        in_election=member.in_election,
        out_because=member.out_because or None,
        elector="in" if member.in_election else "out",
        note=f"from its znode; status page: {row.error}",
        error=None,
    )


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Everything that was seen in one look."""

    nameservice: str
    taken_at: str
    seconds: float
    automatic_failover: bool
    namenodes: tuple[NameNodeRow, ...]
    zkfcs: tuple[ZkfcRow, ...]
    journalnodes: tuple[JournalNodeRow, ...]
    zookeepers: tuple[ZooKeeperRow, ...]
    lock: LockView
    notices: NoticesView = NoticesView()
    hours: Mapping[str, LastHour] = field(default_factory=dict)
    """The last hour of each NameNode, where the page shows it."""
    certificates: tuple[str, ...] = ()
    """What is to be said of certificates that end soon or have ended."""
    limit_seconds: float = 0.0
    """How long each process had for its answer."""
    own_delay_seconds: float = 0.0
    """For how long our own process stood still during the look; the limit was that much longer."""
    own_start_seconds: float = 0.0
    """How long our own process took until it could ask."""

    @property
    def moment(self) -> datetime:
        return datetime.fromisoformat(self.taken_at)

    @property
    def pause(self) -> Pause | None:
        """The pause that is in force; one that has expired, and that no ZKFC obeys, is none."""
        found, seen = self.notices.pause, [m.pause_seen for m in self.notices.members.values()]
        return None if found and found.over(self.moment) and found.since not in seen else found

    @property
    def drains(self) -> Mapping[str, Drain]:
        """The drains that are in force, by NameNode."""
        now = self.moment
        return {name: one for name, one in self.notices.drains.items() if not one.over(now)}

    @property
    def pause_seen_by(self) -> tuple[str, ...]:
        """The NameNodes whose ZKFCs obey the pause that is in force."""
        since, members = self.pause and self.pause.since, self.notices.members
        return tuple(name for name, one in members.items() if since and one.pause_seen == since)

    def drain_seen(self, namenode: str) -> bool:
        """Return whether the NameNode's ZKFC obeys the drain that is in force."""
        drain, member = self.drains.get(namenode), self.notices.members.get(namenode)
        return drain is not None and member is not None and member.drain_seen == drain.since

    def zkfc(self, namenode: str) -> ZkfcRow | None:
        """Return the ZKFC of a NameNode, or None if there is none."""
        return next((row for row in self.zkfcs if row.namenode == namenode), None)

    def namenode(self, name: str) -> NameNodeRow | None:
        return next((row for row in self.namenodes if row.namenode == name), None)

    @property
    def actives(self) -> tuple[str, ...]:
        """The NameNodes that say that they are active: one, unless something is wrong."""
        return tuple(row.namenode for row in self.namenodes if row.state == "active")

    @property
    def active(self) -> NameNodeRow | None:
        """The active NameNode, if exactly one says that it is."""
        return self.namenode(self.actives[0]) if len(self.actives) == 1 else None

    @property
    def silent_lock_holder(self) -> NameNodeRow | None:
        """The lock's holder, if it gives no answer and no NameNode says that it is active.

        It was active when it was last heard.  Its ZKFC keeps the lock until it gives it up: when it
        has been silent for too long, and in a pause not even when it is gone.
        """
        if self.actives or self.lock.holder is None:
            return None
        row = self.namenode(self.lock.holder)
        return row if row is not None and row.error is not None else None

    @property
    def elected_by(self) -> HistoryEntry | None:
        """The record of how the active became so: the newest success, if it is of the active.

        A lock that was lost and won again by the active (a ZooKeeper session ended) is in the
        history, too; it changed no role and took no new epoch, and what came before it counts.
        """
        found: HistoryEntry | None = None
        epoch: int | None = None
        for one in self.notices.history:
            record = one.record
            if record is None or record.result is not FailoverResult.SUCCEEDED:
                continue
            if self.active is None or record.namenode != self.active.namenode:
                break
            if found is not None and (record.epoch is None or record.epoch != epoch):
                break
            found, epoch = one, record.epoch
            if record.previous != record.namenode:
                break
        return found

    @property
    def election(self) -> tuple[datetime | None, str]:
        """When the active became so, and why, as far as the history records it."""
        found = self.elected_by
        record = None if found is None else found.record
        return (None, "") if record is None else (record.at, record.cause)

    def wanted(self, row: NameNodeRow) -> str | None:
        """Return the state that a NameNode should have: the lock's holder should be active."""
        if not self.automatic_failover or self.lock.error is not None or self.lock.holder is None:
            return None
        return "active" if row.namenode == self.lock.holder else "standby"

    @property
    def epoch(self) -> int | None:
        """The epoch of the active, or the newest that a JournalNode has promised."""
        if self.active is not None and self.active.epoch is not None:
            return self.active.epoch
        promised = [row.promised_epoch for row in self.journalnodes]
        return max((epoch for epoch in promised if epoch is not None), default=None)

    @property
    def newest_txid(self) -> int | None:
        """The newest transaction that the active, or without one a JournalNode, knows of."""
        if self.active is not None and self.active.last_txid is not None:
            return self.active.last_txid
        seen = [row.last_txid for row in self.journalnodes]
        return max((txid for txid in seen if txid is not None), default=None)

    def lag(self, row: NameNodeRow) -> int | None:
        """Return how many transactions a NameNode is behind the newest; None for the active."""
        return None if row.state == "active" else self._behind(row.last_txid)

    def behind(self, row: JournalNodeRow) -> int | None:
        """Return how many transactions a JournalNode lacks."""
        return self._behind(row.last_txid)

    def _behind(self, txid: int | None) -> int | None:
        newest = self.newest_txid
        return None if newest is None or txid is None else max(0, newest - txid)

    def state_of(self, row: JournalNodeRow) -> str:
        """Return in one or two words whether a JournalNode takes part, or why not."""
        if row.error is not None:
            return row.error
        if row.failed_because is not None:
            return "FAILED"
        if row.formatted is False:
            return "NOT FORMATTED"
        if row.stranger is not None:
            return "STRANGER"
        if row.learner:
            return "LEARNER"
        in_sync = self._in_sync(row)
        return "up" if in_sync is None else "in sync" if in_sync else "OUT OF SYNC"

    def _in_sync(self, row: JournalNodeRow) -> bool | None:
        """Return whether the active's writer reaches the node; None if no active reports it."""
        views = self.active.journal if self.active is not None else ()
        return next((view.in_sync for view in views if view.node == row.node), None)

    def takes_part(self, row: JournalNodeRow) -> bool | None:
        """Return whether an edit can count on the node; None if that is unknown.

        The active may have contact with a node that gave us no answer, as long as a majority
        answers it.
        """
        if is_unknown(row.error):
            in_sync, active = self._in_sync(row), self.active
            return None if in_sync and active and active.read_lease_valid is False else in_sync
        return self.state_of(row) in ("in sync", "up")

    @property
    def spares(self) -> tuple[int, int]:
        """How many more JournalNodes may fail before no edit can be written: at least, at most.

        Below 0 there are too few.  The two differ by the number of nodes whose state is unknown.
        """
        parts = [self.takes_part(row) for row in self.journalnodes]
        needed = len(parts) // 2 + 1
        well = parts.count(True)
        return well - needed, well + parts.count(None) - needed

    @property
    def spare_journalnodes(self) -> int | None:
        least, most = self.spares
        return least if least == most else None

    @property
    def journal_lost(self) -> bool:
        """No edit can be written, whatever the silent JournalNodes do."""
        return bool(self.journalnodes) and self.spares[1] < 0

    @property
    def journal_unknown(self) -> bool:
        """Whether edits can be written depends on JournalNodes whose state is unknown."""
        least, most = self.spares
        return bool(self.journalnodes) and least < 0 <= most

    @property
    def errors(self) -> Mapping[str, str | None]:
        found = {f"NameNode {row.namenode}": row.error for row in self.namenodes}
        found |= {f"ZKFC of {row.namenode}": row.error for row in self.zkfcs}
        found |= {f"JournalNode {row.node}": row.error for row in self.journalnodes}
        return found | {f"ZooKeeper {row.server}": row.error for row in self.zookeepers}

    @property
    def silent(self) -> tuple[str, ...]:
        return tuple(name for name, error in self.errors.items() if is_silence(error))

    @property
    def is_silent(self) -> bool:
        """Nothing at all came back, so nothing is known of the cluster."""
        return len(self.silent) == len(self.errors) > 0
