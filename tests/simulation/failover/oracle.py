"""Watches a simulated cluster for breaches of docs/reference/invariants.md#control-plane."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import Message

from ha.elector.zookeeper.breadcrumb import decode
from ha.notices.model import decode_record
from ha.notices.store import history_path
from ha.rpc.proto.ha_service_pb2 import HARequestSource, TransitionToActiveRequestProto
from ha.service.model import ServiceState
from tests.simulation.engine.trace import Trace
from tests.simulation.engine.verdict import Violated
from tests.simulation.failover.cluster import ZOOKEEPER, Cluster
from tests.simulation.failover.conduct import Conduct
from tests.simulation.failover.lasting import Lasting
from tests.simulation.failover.removals import Removals
from tests.simulation.failover.unasked import Unasked
from tests.simulation.failover.zk_tree import Change, Create, Delete, EndSession, SetData

LOCKLESS_SECONDS: Final = 20.0
"""How long a NameNode may be active next to the lock's owner, its controller being well."""
_HISTORY: Final = f"{history_path(ZOOKEEPER)}/"
_CHANGES_ROLE: Final = ("transitionToStandby", "transitionToActive")


@dataclass(slots=True)
class Told:
    """What is known of one NameNode's chance of being active."""

    may_be_active: bool = False
    """It was asked to become active, and neither it nor a fencer has said since that it is not."""
    was_before: bool = False
    """The same when it was last asked: a call that it refuses changes nothing."""
    lied_about: bool = False
    """A fencer that did nothing has sworn that it is gone."""
    by_epoch: bool = False
    """It was only declared harmless: its lease runs on, which must not be forgotten."""
    overtaken: int = 0
    """The last call to become active that was sent before it was called harmless, not by itself."""
    lockless: Lasting = field(default_factory=Lasting)
    told_by: int = 0
    """The number of the last call that asked it to become active."""
    obeyed: int = 0
    """The number of the last such call that it has carried out."""
    active_and_owner_at: float = -1.0
    """When it was last seen active under its controller's lock, or one that it had lost unseen."""


@dataclass(slots=True)
class Counts:
    """How much was seen, so that an idle world is not mistaken for a safe one."""

    promotions: int = 0
    takeovers: int = 0
    switchovers: int = 0
    reads: int = 0
    checks: int = 0
    role_changes: int = 0
    struck: int = 0
    """NameNodes that were ended by the controllers next to them."""
    late: int = 0
    """Promotions that came about after somebody else had taken over."""


@dataclass(eq=False)
class Oracle:
    """Compares what happens with what may."""

    cluster: Cluster
    trace: Trace
    told: Mapping[str, Told] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    violation: Violated | None = None
    _lock_sessions: dict[int, float] = field(default_factory=dict)
    """Sessions that have created the lock, and when each lost it (or infinity)."""
    _newest_write: int = 0
    _last_active: str = ""
    _last_promoted: str = ""
    _late_epoch: int = -1
    """The newest epoch that belongs to an overtaken promotion."""

    def __post_init__(self) -> None:
        self.told = {name: Told() for name in self.cluster.hosts}
        self.conduct = Conduct(self.cluster, self._check)
        self.unasked = Unasked(self.cluster, self.conduct, self._check)
        self.removals = Removals(self.cluster, self._check)
        self.on_promotion: Callable[[str], None] = lambda _name: None

    # ---- ZooKeeper -------------------------------------------------------------------------

    def committed(self, change: Change, number: int, who: str) -> None:
        lock, breadcrumb = self.cluster.lock, self.cluster.breadcrumb
        now = self.cluster.loop.now
        # A pause may end and another begin between two looks, and the lock be won in between.
        self.unasked.look()
        match change:
            case Create(path=path, owner=owner) if path == lock:
                self._lock_sessions[owner] = float("inf")
                self.conduct.took_lock(who, number)
                self.removals.made(number, who)
                self.unasked.took_lock(who)
                self.trace.add("zk", f"{who} has the lock")
            case Delete(path=path) if path == lock:
                self._lock_lost(now)
                self.unasked.lost_lock(self.removals.owner)
                self.removals.deleted(who)
            case EndSession(session=session):
                if self._lock_sessions.get(session) == float("inf"):
                    self._lock_sessions[session] = now
                    self.unasked.lost_lock(who)
                    self.trace.add("zk", f"{who}'s session ends, and its lock goes")
            case Create(path=path, data=data) if path.startswith(_HISTORY):
                self.conduct.recorded(decode_record(data))
            case Create(path=path, data=data) | SetData(path=path, data=data):
                if path == breadcrumb:
                    self._named(decode(data).namenode, who)
            case Delete(path=path) if path == breadcrumb:
                self._named("nobody", who)
            case _:
                pass
        self._note_owner()

    def _lock_lost(self, now: float) -> None:
        for session, lost in self._lock_sessions.items():
            if lost == float("inf"):
                self._lock_sessions[session] = now
        self.trace.add("zk", "the lock is gone")

    def _named(self, name: str, who: str) -> None:
        """Check the new breadcrumb: no other node than the one it names may be active."""
        self.trace.add("zk", f"{who} writes the breadcrumb: {name}")
        others = [one for one, told in self.told.items() if told.may_be_active and one != name]
        self._check(not others, "I7", f"{who} lets the breadcrumb name {name}, and {others} may "
                                      f"be active, unfenced")  # fmt: skip

    # ---- NameNodes -------------------------------------------------------------------------

    def called(
        self, sender: str, receiver: str, method: str, request: Message, number: int
    ) -> None:
        self.conduct.called(receiver, method, number)
        self._asks_another(sender, receiver, method)
        if method != "transitionToActive" or not isinstance(
            request, TransitionToActiveRequestProto
        ):
            return
        if request.reqInfo.reqSource != HARequestSource.REQUEST_BY_ZKFC:
            return
        self.counts.promotions += 1
        self.trace.add(sender, f"tells {receiver} to become active")
        self._check(sender == receiver, "I7", f"{sender} promotes {receiver}")
        session = self.cluster.session_of(sender)
        lost = self._lock_sessions.get(session or 0)
        self._check(lost is not None, "I7", f"{sender} promotes without ever having had the lock")
        assert lost is not None
        if lost == float("inf"):
            self._fair(sender)
        else:
            late = self.cluster.noticing_seconds
            free = self.cluster.free_since(sender)
            overdue = self.cluster.loop.now - max(lost, free) > late
            self._check(not overdue, "I7", f"{sender} promotes long after its lock was lost")
        self.unasked.promotes(sender)
        told = self.told[sender]
        told.was_before, told.may_be_active = told.may_be_active, True
        told.told_by = number
        self._last_promoted = sender
        self.on_promotion(sender)

    def _asks_another(self, sender: str, receiver: str, method: str) -> None:
        """Check that a controller has had the lock that orders another's NameNode, to fence it."""
        if sender == receiver or sender not in self.told or method not in _CHANGES_ROLE:
            return
        session = self.cluster.session_of(sender)
        had = session in self._lock_sessions
        self._check(had, "I7", f"{sender} fences {receiver} without ever having had the lock")

    def _fair(self, name: str) -> None:
        named = self.cluster.named()
        self._check(named == name, "I7", f"{name} promotes, and the breadcrumb names {named}")
        others = [one for one, told in self.told.items() if told.may_be_active and one != name]
        self._check(not others, "I7", f"{name} promotes, and {others} may be active, unfenced")

    def fenced(self, victim: str, by: str, true: bool | None) -> None:
        """Note a method that vouches for the victim; None: without proof, the journal holds it."""
        told = self.told[victim]
        told.may_be_active = False
        told.by_epoch = true is None
        told.lied_about = true is False
        told.overtaken = 0 if true else told.told_by

    def struck(self, name: str) -> None:
        self.counts.struck += 1
        replaced = self._last_active not in ("", name)
        self._check(replaced, "I17", f"{name} is ended by its controller, and no other NameNode "
                                     f"has become active since it did")  # fmt: skip

    def ended(self, name: str) -> None:
        self.told[name].may_be_active = False
        self.told[name].lied_about = self.told[name].by_epoch = False
        self.told[name].overtaken = 0
        self._note_owner()

    def became(self, namenode: str, state: ServiceState, asked: int | None) -> None:
        told = self.told[namenode]
        if state is ServiceState.ACTIVE:
            self.confirmed(namenode, asked or 0)
            self.unasked.active(namenode)
            if not told.may_be_active:
                self._late(namenode, asked or 0)
        elif asked is None or asked > told.told_by or told.obeyed == told.told_by:
            if told.may_be_active:
                self.unasked.deposed(namenode)
            told.may_be_active = told.lied_about = told.by_epoch = False
        # else: thawed, it obeys an old request to stand by, and the one to become active that was
        # sent after that is still on its way (seeds 27284, 38242).
        self.counts.role_changes += 1
        self._note_owner()

    def confirmed(self, namenode: str, asked: int) -> None:
        """Note that a NameNode is active by the call of this number, or was so already."""
        self.told[namenode].obeyed = max(self.told[namenode].obeyed, asked)
        self.conduct.obeyed(namenode, asked)

    def ended_call(
        self, receiver: str, request: Message, number: int, sent_at: float | None
    ) -> None:
        """Note that a call has ended at its receiver; ``sent_at`` is None where it failed."""
        self.conduct.ended_call(receiver, request, number, sent_at)
        told, node = self.told.get(receiver), self.cluster.namenode(receiver)
        refused = sent_at is None and isinstance(request, TransitionToActiveRequestProto)
        stands_by = node is not None and node.state is ServiceState.STANDBY
        if told is not None and refused and stands_by and number == told.told_by:
            # A late one for instance, sent when it had stood by for another (seed 49206146).
            told.may_be_active = told.may_be_active and told.was_before

    def answered(self, sender: str, receiver: str, method: str) -> None:
        """Note that a call has ended well, and its sender has the answer."""
        if method == "transitionToActive" and sender == receiver == self.cluster.lock_owner():
            self.removals.promoted(sender, wished=self.unasked.is_wished(sender))

    def _late(self, namenode: str, asked: int) -> None:
        """Check a NameNode that becomes active after it was called harmless.

        Where it was only called so, nothing can help but the journal.  Where it has said so itself
        to a later owner, it must refuse now; what it says to its own controller helps no successor,
        and several requests may arrive behind that (seeds 212716, 414804).
        """
        told = self.told[namenode]
        harmless = told.by_epoch or told.lied_about or asked <= told.overtaken
        excused = harmless or self._last_promoted == namenode
        what = f"{namenode} becomes active by a late request, after it stood by for another"
        self._check(excused, "I7", f"{what}: {self._last_promoted}")
        told.by_epoch = False

    def wrote(self, namenode: str, epoch: int) -> None:
        """Check that the journal accepts only the newest epoch: the last line of defence."""
        self._check(epoch >= self._newest_write, "I5", f"{namenode} writes in epoch {epoch} after "
                                                       f"{self._newest_write}")  # fmt: skip
        if epoch > self._newest_write:
            self._newest_write = epoch
            if not self.told[namenode].may_be_active:
                self._late_epoch = epoch
            self.counts.takeovers += 1
            self._last_active = namenode
            self.unasked.wrote(namenode)
            self._check_leases(namenode, "writes")

    def served_read(self, namenode: str, epoch: int) -> None:
        """Check an active's answer from its memory: no writer may have written past it."""
        self.counts.reads += 1
        told, overtaken = self.told[namenode], self._late_epoch == self._newest_write
        counts = (told.may_be_active or told.by_epoch) and not (told.lied_about or overtaken)
        if epoch < self._newest_write and counts:
            self._check(False, "I6", f"{namenode} serves a read of epoch {epoch} after a write in "
                                     f"{self._newest_write}")  # fmt: skip

    def told_that_predecessor_is_gone(self, namenode: str) -> None:
        """Check the leases: this NameNode will not wait for any."""
        self._check_leases(namenode, "is told that its predecessor is gone")

    def _check_leases(self, namenode: str, what: str) -> None:
        if not self.told[namenode].may_be_active:
            # Its promotion was overtaken: a successor has fenced it (or heard it stand by), and
            # the request arrives only now.  Its epoch ends the successor's, whose lease it must
            # wait for like anybody's.
            self.counts.late += 1
        for other in self.cluster.namenodes():
            told = self.told[other.name]
            counts = told.may_be_active or told.by_epoch
            if other.name == namenode or told.lied_about or not counts:
                continue
            may_read = (
                other.state is ServiceState.ACTIVE
                and other.lease_until > self.cluster.loop.now * other.life.process.rate
            )
            self._check(not may_read, "I6", f"{namenode} {what}, and {other.name} may serve reads")

    # ---- operators -------------------------------------------------------------------------

    def asks(self) -> float:
        """Note how things stand just before an operator asks for a hand-over; return the time."""
        self._note_owner()
        return self.cluster.loop.now

    def switched(self, namenode: str, began: float) -> None:
        """Check gracefulFailover's claim that this NameNode was made active since then."""
        self.counts.switchovers += 1
        self._note_owner()
        true = self.told[namenode].active_and_owner_at >= began
        self._check(true, "I12", f"the hand-over to {namenode} is called a success, and it was "
                                 f"never active meanwhile")  # fmt: skip

    def refused(self, namenode: str, why: str, *, orderly: bool) -> None:
        """Check that gracefulFailover fails only where something is wrong."""
        self._check(not orderly, "L3", f"the hand-over to {namenode} fails, and nothing is wrong: "
                                       f"{why}")  # fmt: skip

    # ---- now and then ----------------------------------------------------------------------

    def look(self) -> None:
        """Check for what must not last."""
        self._note_owner()
        now = self.cluster.loop.now
        owner = self.cluster.lock_owner()
        self.cluster.look()
        self.unasked.look()
        self.conduct.look()
        for node in self.cluster.namenodes():
            told = self.told[node.name]
            beside = node.state is ServiceState.ACTIVE and owner is not None and owner != node.name
            beside = beside and self.cluster.unhindered(node.name)
            lasts = told.lockless.seconds(now, holds=beside)
            if lasts is not None:
                self._check(lasts < LOCKLESS_SECONDS, "I7", f"{node.name} stays active for "
                            f"{lasts:.0f} s while {owner} has the lock")  # fmt: skip
        if self.violation is not None:
            raise self.violation

    def _note_owner(self) -> None:
        self.removals.look()
        for node in self.cluster.namenodes():
            if node.state is not ServiceState.ACTIVE:
                continue
            if self._holds_lock(node.name) or self._lost_it_unseen(node.name):
                self.told[node.name].active_and_owner_at = self.cluster.loop.now

    def _holds_lock(self, name: str) -> bool:
        lost = self._lock_sessions.get(self.cluster.session_of(name) or 0)
        if lost is None:
            return False
        since = max(lost, self.cluster.free_since(name))
        return lost == float("inf") or self.cluster.loop.now - since < self.cluster.noticing_seconds

    def _lost_it_unseen(self, name: str) -> bool:
        """Return whether its lagging ZooKeeper shows it the lock, and no other fenced it.

        Others may have had the lock; until one of them has fenced it, it alone is active.
        """
        session = self.cluster.session_of(name) or 0
        shown = self.cluster.ensemble.shows_as_own(session, self.cluster.lock)
        return shown and self.told[name].may_be_active

    def _check(self, holds: bool, invariant: str, what: str) -> None:
        self.counts.checks += 1
        if holds or self.violation is not None:
            return
        self.violation = Violated(invariant, what)
        self.trace.add("ORAC", f"VIOLATED {self.violation}")
        raise self.violation
