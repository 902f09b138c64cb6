"""What one look at the cluster has shown, and what is wrong with it.  Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from ha.notices.model import Drain, FailoverResult, HistoryEntry, Member, Pause, time_text

BEHIND_WORTH_TELLING = 1000
"""Transactions that a JournalNode which is in sync may seem to lack, as all are asked in turn."""


def is_silence(error: str | None) -> bool:
    """Nothing came back at all; a closed port is an answer."""
    return error is not None and error.startswith("no answer")


@dataclass(frozen=True, slots=True)
class NameNodeRow:
    """One NameNode.  ``error`` is why it did not answer; then nothing else is known."""

    namenode: str
    address: str
    state: str | None = None
    ready: bool | None = None
    not_ready_reason: str | None = None
    epoch: int | None = None
    last_txid: int | None = None
    journal: tuple["JournalView", ...] = ()
    error: str | None = None
    note: str | None = None

    @property
    def silent(self) -> bool:
        """It did not answer in time: it hangs or the network is broken, and it may be active."""
        return is_silence(self.error)


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
    note: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class JournalNodeRow:
    """What one JournalNode reports of the journal."""

    node: str
    formatted: bool | None = None
    promised_epoch: int | None = None
    writer_epoch: int | None = None
    committed_txid: int | None = None
    last_txid: int | None = None
    disk_free_bytes: int | None = None
    disk_total_bytes: int | None = None
    failed_because: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ZooKeeperRow:
    """One server of the ensemble; ``mode`` is leader, follower, observer or standalone."""

    server: str
    mode: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LockView:
    """The holder of the election's lock: a NameNode id, or none, or why it is not known."""

    holder: str | None = None
    error: str | None = None
    session_timeout_seconds: float | None = None
    """What ZooKeeper has granted to our own session."""


@dataclass(frozen=True, slots=True)
class NoticesView:
    """The notices of operators and ZKFCs in ZooKeeper, or why they are not known."""

    pause: Pause | None = None
    drains: Mapping[str, Drain] = field(default_factory=dict)
    members: Mapping[str, Member] = field(default_factory=dict)
    namesakes: tuple[Member, ...] = ()
    """Running ZKFCs that may not join the election, because another ZKFC of their NameNode runs."""
    history: tuple[HistoryEntry, ...] = ()
    """The newest records, newest first."""
    unreadable: tuple[str, ...] = ()
    error: str | None = None


def in_excess(one: Member) -> str:
    """A ZKFC of a NameNode that has another one, by what an operator needs to find it."""
    since = time_text(one.started)
    return f"a second ZKFC of {one.namenode} runs: process {one.pid} on {one.host}, since {since}"


def by_its_member(row: ZkfcRow, notices: NoticesView) -> ZkfcRow:
    """A controller whose page cannot be read from here, as it shows itself in ZooKeeper.

    A silent page is another matter: the process is frozen, and its member will vanish.
    """
    member = notices.members.get(row.namenode)
    if not row.page_only or row.error is None or member is None or is_silence(row.error):
        return row
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

    @property
    def moment(self) -> datetime:
        """When it was taken."""
        return datetime.fromisoformat(self.taken_at)

    @property
    def pause(self) -> Pause | None:
        """The pause that is in force; an expired one is none."""
        found = self.notices.pause
        return None if found is None or found.over(self.moment) else found

    @property
    def drains(self) -> Mapping[str, Drain]:
        """The drains that are in force, by NameNode."""
        now = self.moment
        return {name: one for name, one in self.notices.drains.items() if not one.over(now)}

    def zkfc(self, namenode: str) -> ZkfcRow | None:
        """This NameNode's ZKFC, if there are ZKFCs."""
        return next((row for row in self.zkfcs if row.namenode == namenode), None)

    def namenode(self, name: str) -> NameNodeRow | None:
        """This NameNode."""
        return next((row for row in self.namenodes if row.namenode == name), None)

    @property
    def active(self) -> NameNodeRow | None:
        """The active NameNode, if exactly one says that it is."""
        found = [row for row in self.namenodes if row.state == "active"]
        return found[0] if len(found) == 1 else None

    @property
    def unheard_holder(self) -> NameNodeRow | None:
        """The lock's holder, if it gives no answer and no NameNode says that it is active.

        It was active when it was last heard.  Its ZKFC keeps the lock until it gives it up: when it
        has been silent for too long, and in a pause not even when it is gone.
        """
        if any(row.state == "active" for row in self.namenodes) or self.lock.holder is None:
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
        """When the active became so, and why, as far as the history tells."""
        found = self.elected_by
        if found is None or found.record is None:
            return None, ""
        return found.record.at, found.record.cause

    def wanted(self, row: NameNodeRow) -> str | None:
        """What the election wants of a NameNode: the lock's holder is to be active."""
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
        """Transactions that a NameNode is behind the newest; None for the active."""
        return None if row.state == "active" else self._behind(row.last_txid)

    def behind(self, row: JournalNodeRow) -> int | None:
        """Transactions that a JournalNode lacks."""
        return self._behind(row.last_txid)

    def _behind(self, txid: int | None) -> int | None:
        newest = self.newest_txid
        return None if newest is None or txid is None else max(0, newest - txid)

    def state_of(self, row: JournalNodeRow) -> str:
        """One word or two for a JournalNode: does it take part?"""
        if row.error is not None:
            return row.error
        if row.failed_because is not None:
            return "FAILED"
        if row.formatted is False:
            return "NOT FORMATTED"
        views = self.active.journal if self.active is not None else ()
        for view in views:
            if view.node == row.node:
                return "in sync" if view.in_sync else "OUT OF SYNC"
        return "up"

    @property
    def spare_journalnodes(self) -> int:
        """How many more JournalNodes may fail before no edit can be written; -1 or less: too few.

        A node counts as lost when it does not answer, has failed, or is out of sync.
        """
        well = sum(self.state_of(row) in ("in sync", "up") for row in self.journalnodes)
        return well - (len(self.journalnodes) // 2 + 1)

    def problems(self) -> tuple[str, ...]:
        """Everything that should not be so, the worst first; empty means healthy."""
        return (
            *self._problems_of_the_looker(),
            *self.problems_of_roles(),
            *self._problems_of_the_journal(),
            *self._problems_of_processes(),
            *(f"{in_excess(one)}; it may not join the election" for one in self.notices.namesakes),
        )

    def _problems_of_the_looker(self) -> Iterator[str]:
        """Where nothing at all answers, the fault is more likely here than in all of it."""
        errors = [row.error for row in self.namenodes] + [row.error for row in self.zkfcs]
        errors += [row.error for row in self.journalnodes] + [row.error for row in self.zookeepers]
        if len(errors) > 1 and all(map(is_silence, errors)):
            yield "no daemon answers: check this machine's network and load first"

    def problems_of_roles(self) -> Iterator[str]:
        """Not exactly one is active, or the lock is another's."""
        actives = [row.namenode for row in self.namenodes if row.state == "active"]
        if len(actives) > 1:
            yield f"{' and '.join(actives)} both say that they are active"
        elif self.unheard_holder is not None and self.unheard_holder.silent:
            name = self.unheard_holder.namenode
            yield f"no NameNode says that it is active; {name} holds the lock and gives no answer"
        elif not actives:
            yield "no NameNode is active"
        elif self.lock.holder is not None and self.lock.holder != actives[0]:
            yield f"{actives[0]} is active, but {self.lock.holder} holds the lock"
        elif self.automatic_failover and self.lock.holder is None and self.lock.error is None:
            yield f"{actives[0]} is active, but no ZKFC holds the lock"

    def _problems_of_the_journal(self) -> Iterator[str]:
        if not self.journalnodes:
            return
        if self.spare_journalnodes < 0:
            yield "the journal has no quorum: nothing can be written"
        elif self.spare_journalnodes == 0 and len(self.journalnodes) > 1:
            yield "the quorum can lose 0 more JournalNodes"
        for row in self.journalnodes:
            state = self.state_of(row)
            if state not in ("in sync", "up"):
                because = f": {row.failed_because}" if row.failed_because else ""
                yield f"JournalNode {row.node}: {state}{because}"
            elif (self.behind(row) or 0) > BEHIND_WORTH_TELLING:
                yield f"JournalNode {row.node} is {self.behind(row):,} transactions behind"

    def _problems_of_processes(self) -> Iterator[str]:
        for node in self.namenodes:
            if node.error is not None:
                yield f"NameNode {node.namenode}: {node.error}"
        if not self.automatic_failover:
            return
        for zkfc in self.zkfcs:
            if zkfc.error is not None:
                yield f"ZKFC of {zkfc.namenode}: {zkfc.error}"
        serving = sum(row.error is None for row in self.zookeepers)
        for server in self.zookeepers:
            if server.error is not None:
                yield f"ZooKeeper {server.server}: {server.error}"
        if self.zookeepers and serving < len(self.zookeepers) // 2 + 1:
            yield "ZooKeeper has no quorum: no failover is possible until it is back"
        elif self.lock.error is not None:
            yield f"who holds the lock is not known: {self.lock.error}"
