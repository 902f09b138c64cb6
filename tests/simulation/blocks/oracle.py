"""What must hold in every world of blocks and failovers.

See docs/reference/invariants.md#blocks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from datanode.model import BeingWritten, Finalized
from datanode.namenodes.claim import ClaimEffect as Heard
from datanode.namenodes.claim import Said
from hadoop.blocks import Block, BlockId
from journal.model import TxId
from namenode_sim.blocks.errors import MapBroken
from namenode_sim.datanode_protocol.keeper import Answer
from namenode_sim.datanodes.commands import Delete
from namenode_sim.edits.ops import Op
from namenode_sim.namespace.namespace import Namespace
from tests.simulation.blocks.comparing import difference
from tests.simulation.blocks.datanode import DELETED, Datanode
from tests.simulation.blocks.datanode import block as named
from tests.simulation.blocks.disks import Stored, is_whole
from tests.simulation.blocks.model_journal import Journal
from tests.simulation.blocks.namenode import RULES, SUPERUSER, NameNodeLife
from tests.simulation.blocks.truth import Known, Truth
from tests.simulation.engine.trace import Trace
from tests.simulation.engine.verdict import Violated

DEAD_SECONDS: Final = RULES.liveness.dead_seconds
SLACK_SECONDS: Final = 8.0
LOOKED_SECONDS: Final = 2.0  # in which an operator sees that a DataNode may go
DEFAULT_REPLICATION: Final = RULES.hosts.replication


@dataclass(slots=True)
class View:
    """Whom a DataNode must obey, by its own rule: the newest claim that it has heard."""

    who: str = ""
    txid: int = -1


class Oracle:
    """Sees what happens, and remembers the first invariant that broke."""

    def __init__(
        self,
        journal: Journal,
        lives: Mapping[str, NameNodeLife],
        datanodes: Mapping[str, Datanode],
        trace: Trace,
        clock: Callable[[], float],
    ) -> None:
        self.violation: Violated | None = None
        self.checks = 0
        self.truth = Truth(Namespace.empty(SUPERUSER), clock)
        self.truth.begin()
        self._journal, self._lives, self._datanodes = journal, lives, datanodes
        self._trace = trace
        self._claims: dict[NameNodeLife, int] = {}
        self._views: dict[str, View] = {}
        self._stamps: dict[int, int] = {}
        self._ids: dict[int, int] = {}
        self._doomed: dict[tuple[str, Block], set[str]] = {}
        """Replicas that a DataNode is about to delete, and the NameNodes that have ordered it."""
        self._ordered: set[tuple[str, Block]] = set()
        """Every replica that a DataNode was ever ordered to delete."""
        self._well_since: dict[str, float] = {}
        self._clock = clock
        journal.on_durable = self.durable

    def violated(self, invariant: str, what: str) -> None:
        """Note a broken invariant; the first one counts."""
        if self.violation is None:
            self.violation = Violated(invariant, what)
            self._trace.add("ORAC", f"VIOLATED {self.violation}")

    # ---- edits ----

    def durable(self, txid: TxId, op: Op) -> None:
        truth = self.truth
        truth.apply(txid, op)
        if self._trace.keep:
            self._trace.add("jn", f"{txid} {op}"[:150])
        for block_id in truth.touched & truth.blocks.keys():
            known = truth.blocks[block_id]
            if known.complete and known.length < known.acked and not known.may_be_lost:
                self.violated(
                    "P2", f"{block_id} was closed with {known.length} of {known.acked} acked bytes"
                )
            self._check_kept(block_id)
        for block_id, known in truth.dropped.items():
            if holders := self._holders(block_id, known):
                self.violated(
                    "P2", f"{block_id} was dropped, and {holders} have {known.acked} acked bytes"
                )

    # ---- claims and commands ----

    def answers(self, who: str, datanode: str, answer: Answer) -> None:
        """Judge a NameNode's answer to a heartbeat: its claim, and its commands."""
        self.checks += 1
        life, standing, overtaken = self._lives[who], answer.standing, False
        if standing.active:
            if standing.durable > self._journal.last:
                self.violated(
                    "P1", f"{who} claims {standing.durable}, durable is {self._journal.last}"
                )
            others = max(
                (txid for one, txid in self._claims.items() if one is not life), default=-1
            )
            if life not in self._claims and standing.durable <= others:
                self.violated(
                    "P1", f"{who} begins with claim {standing.durable}, another had {others}"
                )
            self._claims[life] = max(self._claims.get(life, -1), standing.durable)
            # DataNodes that have heard of the other one drop what this one orders.
            overtaken = standing.durable < others
        for command in answer.commands:
            if self._trace.keep:
                self._trace.add(who, f"orders {datanode}: {command}"[:200])
            if isinstance(command, Delete):
                for block_id, stamp in command.replicas:
                    self._ordered.add((datanode, named(block_id, stamp)))
                    if not overtaken:
                        self._deletes(life, datanode, block_id, stamp)

    def _deletes(self, life: NameNodeLife, datanode: str, block_id: int, stamp: int) -> None:
        known = self.truth.blocks.get(block_id)
        if known is None:
            return
        blocks = life.cluster.blocks
        slot = blocks.map.find(block_id)
        if slot is None:
            if stamp >= known.stamp:  # else it was to be deleted anyway
                what = f"{block_id}, whose end is not durable"
                self.violated("P8", f"{life.name} has {datanode} delete {what}")
            return
        target = [
            one
            for one in self._datanodes[datanode].disks.of(BlockId(block_id))
            if one.replica.block.stamp == stamp and self.truth.is_good(block_id, known, one)
        ]
        self._doomed.setdefault((datanode, named(block_id, stamp)), set()).add(life.name)
        if not target or not known.complete:
            return
        left = self._others(block_id, known)
        expected = known.least_wanted(life.active_since)
        if left + known.lost < expected:
            self.violated(
                "P3",
                f"{life.name} has {datanode} delete its good replica of {block_id}: {left} others "
                f"are neither lost nor to be deleted, {expected} were wanted at least",
            )

    def _others(self, block_id: int, known: Known, least_stamp: int = 0) -> int:
        """Return how many DataNodes have a good replica that they are not ordered to delete."""
        return sum(
            any(
                one.replica.block.stamp >= least_stamp
                and self.truth.is_good(block_id, known, one)
                and not one.doomed
                and (name, one.replica.block) not in self._doomed
                for one in owner.disks.of(BlockId(block_id))
            )
            for name, owner in self._datanodes.items()
        )

    def heard(self, datanode: str, who: str, said: Said, txid: int, verdict: Heard) -> None:
        view = self._views.setdefault(datanode, View())
        if said is Said.ACTIVE and (view.who == who or txid > view.txid):
            if self._trace.keep and view.who != who:
                self._trace.add(datanode, f"hears {who} claim {txid}: {verdict.value}")
            view.who, view.txid = who, txid

    def executes(self, datanode: str, who: str, command: object) -> None:
        self.checks += 1
        view = self._views.get(datanode, View())
        if view.who != who:
            self.violated(
                "P8", f"{datanode} does {command} for {who}, and {view.who} claims {view.txid}"
            )

        # What it deletes is marked itself; a copy that comes afterwards is another replica.
        self._answered(datanode, who, command)

    def drops(self, datanode: str, who: str, command: object) -> None:
        self._answered(datanode, who, command)

    def _answered(self, datanode: str, who: str, command: object) -> None:
        if isinstance(command, Delete):
            for block_id, stamp in command.replicas:
                which = datanode, named(block_id, stamp)
                tellers = self._doomed.get(which, set())
                tellers.discard(who)
                if not tellers:
                    self._doomed.pop(which, None)

    # ---- replicas ----

    def starts(self, datanode: str) -> None:
        """Forget what its former process had not carried out."""
        self._doomed = {one: who for one, who in self._doomed.items() if one[0] != datanode}

    def gone(self, datanode: str, stored: Stored, why: str) -> None:
        block_id = stored.replica.block.block_id
        if self._trace.keep:
            self._trace.add(datanode, f"{stored.replica.block} is {why}")
        which = datanode, stored.replica.block
        self._doomed.pop(which, None)
        if why == DELETED and which not in self._ordered:
            self.violated("P8", f"{datanode} deletes {which[1]}, and nobody has told it to")
        known = self.truth.blocks.get(block_id)
        if known is None:
            return
        if why != DELETED and self.truth.is_good(block_id, known, stored):
            self._count_lost(stored, known)
        self._check_kept(block_id)

    def taken(self, datanode: str, stored: Stored, said: float) -> None:
        """Judge that a replica went with its machine, of which an active ``said`` that it may go.

        Of a block that is written one may be left, of others all but those lost with their disks;
        the active did not speak of a copy that came later.
        """
        block_id, is_late = stored.replica.block.block_id, stored.copied_at > said - LOOKED_SECONDS
        known = None if is_late else self.truth.blocks.get(block_id)
        if known is None or known.may_be_lost or not self.truth.is_good(block_id, known, stored):
            return
        left, least = self._others(block_id, known), 1
        if known.complete and known.complete_since < said - LOOKED_SECONDS:
            least = min(*(n for _, n in known.wanted), DEFAULT_REPLICATION) - known.lost
        elif known.complete or known.acked:
            known.lost += 1  # the pipeline is shorter from now on
        else:
            return
        if left < least:
            others = f"{left} others are neither lost nor to be deleted, {least} were to be"
            self.violated("P9", f"{datanode} was taken away with a good {block_id}: {others}")

    def shortened(self, datanode: str, stored: Stored, length: int) -> None:
        """Note that a DataNode's machine lost its power: ``length`` bytes of a replica are left."""
        replica = stored.replica
        assert isinstance(replica, BeingWritten)
        block_id = replica.block.block_id
        known = self.truth.blocks.get(block_id)
        was_good = known is not None and self.truth.is_good(block_id, known, stored)
        stored.replica = replace(replica, length=length, acked=min(replica.acked, length))
        stored.data = stored.data[:length]
        if self._trace.keep:
            self._trace.add(
                datanode, f"{replica.block} has {length} of {replica.length} bytes left"
            )
        if known is not None and was_good and not self.truth.is_good(block_id, known, stored):
            stored.lost_its_end = True
            self._count_lost(stored, known)
            self._check_kept(block_id)

    def _count_lost(self, stored: Stored, known: Known) -> None:
        block = stored.replica.block
        known.lost += 1
        if not self._others(block.block_id, known):
            known.excused = min(known.excused, known.lost)
        if not self._others(block.block_id, known, block.stamp):
            known.ended.add(block.stamp)

    def whole(self, datanode: str, stored: Stored) -> None:
        self.checks += 1
        replica = stored.replica
        if self._trace.keep:
            self._trace.add(datanode, f"has {replica.block} of {replica.length} whole")
        for name, owner in self._datanodes.items():
            for other in owner.disks.of(replica.block.block_id):
                same = isinstance(other.replica, Finalized) and other.replica.block == replica.block
                if same and other.data != stored.data:
                    self.violated("P4", f"{replica.block} differs on {datanode} and {name}")
        self.truth.note_cut(
            stored,
            [
                (owner.life is not None, other)
                for owner in self._datanodes.values()
                for other in owner.disks.of(replica.block.block_id)
            ],
        )
        self._check_kept(replica.block.block_id)

    def _check_kept(self, block_id: int) -> None:
        """Check that every acknowledged byte is somewhere, if not too many disks were lost."""
        self.checks += 1
        known = self.truth.blocks.get(block_id)
        if known is None or known.may_be_lost or not (known.complete or known.acked):
            return
        if self._holders(block_id, known):
            return
        self.violated(
            "P2",
            f"no DataNode has {block_id}: stamp {known.stamp}, {known.length} bytes, "
            f"{known.acked} acknowledged, {known.lost} replicas lost with their disks",
        )

    def _holders(self, block_id: int, known: Known) -> list[str]:
        """Return the DataNodes with a good replica on their disks, running or not."""
        return [
            name
            for name, owner in self._datanodes.items()
            if any(
                self.truth.is_good(block_id, known, one)
                for one in owner.disks.of(BlockId(block_id))
            )
        ]

    def good_places(self, block_id: int) -> set[str]:
        """Return which running DataNodes have a good replica."""
        known = self.truth.blocks[block_id]
        return {
            name
            for name, owner in self._datanodes.items()
            for stored in owner.replicas().values()
            if stored.replica.block.block_id == block_id
            and self.truth.is_good(block_id, known, stored)
        }

    # ---- clients ----

    def given(self, block: Block, places: int) -> None:
        if not places:
            self.violated("P7", f"{block} was given out with no DataNode to write it to")
        if self._ids.setdefault(block.block_id, block.stamp) != block.stamp:
            self.violated("P4", f"{block} was given out as stamp {self._ids[block.block_id]}")
        self.restamped(block.block_id, block.stamp)

    def restamped(self, block_id: int, stamp: int) -> None:
        if self._stamps.setdefault(stamp, block_id) != block_id:
            self.violated("P4", f"stamp {stamp} was given to {self._stamps[stamp]} and {block_id}")

    def sends(self, block: Block, start: int, payload: bytes, pipeline: Iterable[str]) -> None:
        if any(True for _ in self._of(block, pipeline)):  # else it was recovered, say
            self.truth.note_sent(block.block_id, start, payload)

    def acked(self, block: Block, length: int, pipeline: Iterable[str]) -> None:
        """Note that all DataNodes of the pipeline have ``length`` bytes."""
        known = self.truth.blocks.get(block.block_id)
        if known is not None and not known.complete:
            known.acked = max(known.acked, length)
        for name, stored in self._of(block, pipeline):
            if isinstance(stored.replica, BeingWritten) and stored.replica.length < length:
                what = f"{name} has acknowledged {length} bytes of {block}, and not got them"
                self.violated("P2", what)

    def finished(self, block: Block, length: int, pipeline: Iterable[str]) -> None:
        for name, stored in self._of(block, pipeline):
            if stored.replica.length != length or not is_whole(stored.replica):
                self.violated("P2", f"{name} has acknowledged the end of {block}: {stored.replica}")

    def _of(self, block: Block, pipeline: Iterable[str]) -> Iterator[tuple[str, Stored]]:
        """Yield what running DataNodes of a pipeline have of this very block."""
        for name in pipeline:
            stored = self._datanodes[name].replicas().get(block.block_id)
            if stored is not None and stored.replica.block == block:
                yield name, stored

    def completed(self, path: str) -> None:
        self._trace.add("-", f"{path} is closed")

    def reads(self, block: Block, data: bytes) -> None:
        self.checks += 1
        if not self.truth.content.get(block.block_id, b"").startswith(data):
            self.violated("P5", f"a reader of {block} got other bytes than were written")

    # ---- now and then ----

    def look(self) -> None:
        """Check that the maps agree with themselves, and with each other at equal edits."""
        self.checks += 1
        lives = [life for life in self._lives.values() if life.process.alive]
        for life in lives:
            try:
                life.cluster.blocks.map.check()
            except MapBroken as broken:
                self.violated("P6", f"{life.name}: {broken}")
        self._note_health()
        if len(lives) == 2 and all(life.shows_durable for life in lives):
            one, other = (life.cluster.blocks for life in lives)
            if one.applied == other.applied and (where := difference(one, other)):
                self.violated("P6", where)

    def _note_health(self) -> None:
        for name, owner in self._datanodes.items():
            if owner.is_well:
                self._well_since.setdefault(name, self._clock())
            else:
                self._well_since.pop(name, None)

    def died(self, life: NameNodeLife, datanode: str) -> None:
        since = self._well_since.get(datanode, self._clock())
        if self._clock() > since + DEAD_SECONDS + SLACK_SECONDS:
            self.violated(
                "P7", f"{life.name} takes {datanode} for dead, which is well since {since:.0f}"
            )
