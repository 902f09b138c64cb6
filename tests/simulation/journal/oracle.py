"""The checker of docs/reference/invariants.md#journal: it sees disks, and what callers heard."""

from collections.abc import Callable, Mapping
from functools import partial

from tests.simulation.engine.trace import Trace
from tests.simulation.engine.verdict import Violated
from tests.simulation.journal import views
from tests.simulation.journal.platter import Platter
from tests.simulation.journal.recovery_model import Log, common, majorities, recovered
from tests.simulation.journal.tags import Run, Tag
from tests.simulation.journal.views import holds


class Oracle:
    """Checks the invariants of one run; the first breach is kept, as ``violation``.

    ``must`` has every edit that may never change again: acknowledged to a caller, or adopted by
    a recovery that returned.  ``settled`` is up to where a majority has them finalized.
    """

    def __init__(self, platters: Mapping[str, Platter], trace: Trace) -> None:
        self.violation: Violated | None = None
        self.must, self.history = Log(), Log()
        self.settled = self.acknowledged = self.checks = 0
        self._chosen_in: dict[int, int] = {}
        self._trace = trace
        self._platters = platters
        self.names = tuple(platters)
        self._readers = {name: views.FileReader(name) for name in platters}
        self._majorities = majorities(self.names)
        self._least = len(self.names) // 2 + 1
        self._views = {name: views.View() for name in platters}
        self._winners: dict[int, str] = {}
        self._decided: dict[tuple[int, int], tuple[int, bytes]] = {}
        self._finals: dict[int, Run] = {}
        self._past_lives: dict[str, list[views.View]] = {name: [] for name in platters}
        self._settled_before = dict.fromkeys(platters, 0)
        self._stores: dict[Tag, set[str]] = {}
        self.purged_below = 1
        self.on_quorum = self.stored = self.seen_by_callers = 0
        self.positions: dict[str, int] = {}
        for name, platter in platters.items():
            self._views[name] = self._readers[name].view(platter.durable)
            platter.watcher = self._watcher(name)

    def guarded(self, check: Callable[[], None]) -> None:
        """Run a check; a breach is noted, and the world ends at its next look."""
        if self.violation is not None:
            return
        try:
            check()
        except Violated as violation:
            self.violation = violation
            self._trace.add("ORAC", f"VIOLATED {violation}")

    # ---- what callers saw ----

    def won(self, writer: str, epoch: int) -> None:
        def check() -> None:
            if self._winners.setdefault(epoch, writer) != writer:
                raise Violated("I2", f"{self._winners[epoch]} and {writer} both won epoch {epoch}")
            if (granted := self._count(lambda view: view.promised >= epoch)) < self._least:
                raise Violated("I2", f"{writer} won epoch {epoch} from {granted} nodes")

        self.guarded(check)

    def adopted(self, writer: str, epoch: int, last: int) -> None:
        """Note that a recovery has returned: everything up to ``last`` stands from now on."""

        def check() -> None:
            logs = [recovered(group, self._views, self.settled) for group in self._voting()]
            log = common(logs, range(self.settled + 1, last + 1), f"{writer} recovered {last}")
            for txid in range(last + 1, max(self.must, default=self.settled) + 1):
                lost = self.must.get(txid, self.history.get(txid))
                # What a later recovery made of an older writer's edits, a superseded one that
                # hears its promises late need not know: nothing that it begins is taken.
                stored = lost is not None and len(self._stores.get(lost, ())) >= self._least
                if lost and (lost[0] if stored else self._chosen_in.get(txid, lost[0])) < epoch:
                    raise Violated("I13", f"{writer} recovered up to {last} and forgets {lost}")
            for txid, tag in log.items():
                self._require(txid, tag, epoch, f"{writer} adopted")
            self._settle()

        self.guarded(check)

    def acked(self, writer: str, first: int, tags: tuple[Tag, ...]) -> None:
        def check() -> None:
            self.acknowledged += len(tags)
            for txid, tag in enumerate(tags, start=first):
                self._require(txid, tag, tag[0], f"{writer} acknowledged")
                if len(held := self._stores.get(tag, set())) < self._least:
                    raise Violated("I10", f"{writer} acknowledged {txid}; stored by {sorted(held)}")
            self.seen_by_callers = max(self.seen_by_callers, first + len(tags) - 1)
            self._check_durability(f"{writer} acknowledged {first}-{first + len(tags) - 1}")
            self._settle()

        self.guarded(check)

    def started(self, writer: str, first: int) -> None:
        def check() -> None:
            ended = self._count(
                lambda view: any(run.last == first - 1 for run in view.finalized.values())
            )
            if first > self.purged_below and ended < self._least:
                raise Violated("I8", f"{writer} started {first}; {ended} finalized {first - 1}")

        self.guarded(check)

    def closed(self, writer: str, first: int, last: int) -> None:
        """Check that a quorum closed a segment, unless a newer writer has let go of it since."""

        def check() -> None:
            holders = self._count(partial(views.closed_at, first, last))
            if last >= self.purged_below and holders < self._least:
                raise Violated("I8", f"{writer} closed {first}-{last} without a majority")
            self._settle()

        self.guarded(check)

    def served(self, writer: str, asked_when: int, shown: int) -> None:
        """Check a read under a writer's lease: what callers saw before it began is in it."""

        def check() -> None:
            if shown < asked_when:
                raise Violated("P3", f"{writer} showed {shown}, a caller had seen {asked_when}")
            self.seen_by_callers = max(self.seen_by_callers, shown)

        self.guarded(check)

    def may_purge_below(self, last_closed: int) -> int:
        """Return how far a writer may let go: every reader has it, a majority has finalized it."""
        return min([last_closed + 1, self.settled + 1, *self.positions.values()])

    def read(self, reader: str, expected: int, run: Run) -> None:
        def check() -> None:
            if run.first != expected:
                raise Violated("I12", f"{reader} got {run.first} where {expected} belongs")
            for txid, tag in enumerate(run.tags, start=run.first):
                self._remember(txid, tag, f"{reader} read")
            self.positions[reader] = run.last + 1

        self.guarded(check)

    def conclude(self, first: int, last: int, tags: list[Tag]) -> None:
        """Check that the healed journal, read up to ``last``, has all that was ever promised."""

        def check() -> None:
            if len(tags) != last + 1 - first or max(self.must, default=0) > last:
                raise Violated("I12", f"the healed journal reads {len(tags)} of {first}-{last}")
            for txid, tag in {**self.history, **self.must}.items():
                if txid >= first and tags[txid - first : txid - first + 1] != [tag]:
                    raise Violated("I5", f"the healed journal has no {tag} at {txid}")

        self.guarded(check)

    def differences(self) -> str | None:
        """Return how the nodes' finalized segments differ, or None."""
        for first, run in sorted(self._finals.items()):
            for node, view in self._views.items():
                if run.last >= self.purged_below and first not in view.finalized:
                    return f"{node} has not finalized {first}-{run.last}"
        for node, view in self._views.items():
            if view.learner:
                return f"{node} has no vote"
            for first in sorted(self._readers[node].rotten(self._platters[node].cached)):
                if first in self._finals and self._finals[first].last >= self.purged_below:
                    return f"{node} has not repaired {first}"
        return None

    def learners(self) -> set[str]:
        """Return which nodes have no vote, by what lies on their disks."""
        return {node for node, view in self._views.items() if view.learner}

    def reborn(self, node: str) -> None:
        """Note a disk's new life: nothing that it promised or held before counts."""
        if not self._views[node].learner:
            self._past_lives[node].append(self._views[node])
        self._views[node] = self._readers[node].view(self._platters[node].durable)
        self._settled_before[node] = self.settled
        self.guarded(lambda: self._check_durability(f"{node} begins a new life"))

    # ---- what the disks say ----

    def compare_loaded(self, node: str, promised: int, segments: views.Segments) -> None:
        def check() -> None:
            reader, names = self._readers[node], self._platters[node].cached
            view = reader.view(names, cached=True)
            ours, theirs = views.as_loaded(
                view, reader.rotten(names), views.noted_committed(names), segments
            )
            if (promised, theirs) != (view.promised, ours):
                raise Violated(
                    "I14",
                    f"{node} loaded promise {promised}, {theirs};"
                    f" its disk says {view.promised}, {ours}",
                )

        self.guarded(check)

    def _watcher(self, node: str) -> Callable[[], None]:
        return lambda: self.guarded(lambda: self._look(node))

    def _look(self, node: str) -> None:
        old = self._views[node]
        new = self._readers[node].view(self._platters[node].durable)
        if new == old:
            return
        self.checks += 1
        self._views[node] = new
        if new.promised < old.promised:
            raise Violated("I1", f"{node} promised {old.promised}, and now {new.promised}")
        if new.writer > new.promised or new.writer < old.writer:
            raise Violated("I3", f"{node}: writer {old.writer} -> {new.writer} of {new.promised}")
        self._check_decisions(node, old, new)
        self._check_finals(node, old, new)
        self._check_edits(node, old, new)
        self._check_admission(node, old, new)
        self._note_stores(node, old, new)
        self._check_durability(f"{node} changed")

    def _check_decisions(self, node: str, old: views.View, new: views.View) -> None:
        for first, decision in new.accepted.items():
            if old.accepted.get(first) == decision:
                continue
            before = old.accepted.get(first, views.Accepted(0, 0, False, b""))
            if decision.epoch < before.epoch or decision.epoch != new.promised:
                raise Violated(
                    "I4",
                    f"{node} accepted {first} in {decision.epoch} after {before.epoch},"
                    f" promised {new.promised}",
                )
            what = (decision.last, decision.digest)
            if self._decided.setdefault((first, decision.epoch), what) != what:
                raise Violated("I4", f"epoch {decision.epoch} decided twice about {first}")
            self._choose(node, first, decision)

    def _choose(self, node: str, first: int, decision: views.Accepted) -> None:
        """Note what a majority accepted in one epoch: chosen for ever, whether known or not.

        As in Paxos, from the earliest moment on: the writer may die before it can report it.
        """
        same = self._count(lambda view: view.accepted.get(first) == decision)
        run = self._views[node].run(first)
        if same < self._least or run is None:
            return
        for txid, tag in enumerate(run.tags, start=first):
            if txid > self.settled:
                who = f"a majority accepted in epoch {decision.epoch}"
                self._require(txid, tag, decision.epoch, who)

    def _check_finals(self, node: str, old: views.View, new: views.View) -> None:
        for first, run in old.finalized.items():
            now = new.finalized.get(first)
            if now is None and run.last < self.purged_below:
                continue  # some writer has let go of it
            if now != run:
                raise Violated("I7", f"{node} changed its finalized segment {first}-{run.last}")
        for first, run in new.finalized.items():
            if first in old.finalized:
                continue
            known = self._finals.setdefault(first, run)
            if known.tags != run.tags:
                raise Violated("I6", f"segment {first}: {known.tags} and, on {node}, {run.tags}")
            for txid, tag in enumerate(run.tags, start=first):
                self._remember(txid, tag, f"{node} finalized")
            stored = self._count(partial(holds, run))
            if run.last >= self.purged_below and stored < self._least:
                raise Violated("I8", f"{node} finalized {first}-{run.last}, {stored} nodes have it")

    def _check_edits(self, node: str, old: views.View, new: views.View) -> None:
        """Check that only the promised writer adds edits, which never go away again."""
        for first in old.live.keys() | new.live.keys():
            before, after = old.live.get(first), new.live.get(first)
            if before == after:
                continue
            if after is None and first in new.finalized:
                continue  # compared with its first copy; what a recovery left out goes
            had = before.tags if before else ()
            has = after.tags if after else ()
            for offset, tag in enumerate(had):
                gone = tag not in has and first + offset >= self.purged_below
                if gone and tag[0] >= new.promised:
                    raise Violated(
                        "I20", f"{node} dropped {first + offset} of its promised writer, {tag}"
                    )
            if after is None:
                continue  # what is finalized is compared with its first copy
            accepted = new.accepted.get(first)
            if accepted is not None and views.digest(after) == accepted.digest:
                continue  # a recovery's bytes: many epochs' edits
            # A node that caught up gets the file first and its own last writer behind it.
            caught_up = new.files.get(first) != old.files.get(first)
            writer = new.promised if caught_up else new.writer
            for offset, tag in enumerate(has[len(had) :], start=len(had)):
                if not tag[0] == writer == new.promised == new.writers.get(first):
                    raise Violated(
                        "I3",
                        f"{node} stored {first + offset} of epoch {tag[0]} under writer"
                        f" {new.writer}, promised {new.promised}, recorded"
                        f" {new.writers.get(first)}",
                    )

    def _check_admission(self, node: str, old: views.View, new: views.View) -> None:
        """Under the newest writer only who holds all that may count its lost votes gets a vote.

        What is final since then has a majority without it, as when any voter missed it.
        """
        if new.learner or not old.learner or new.promised < max(self._winners, default=0):
            return
        settled = self._settled_before[node]
        for first, run in self._finals.items():
            if self.purged_below <= run.last <= settled and first not in new.finalized:
                raise Violated("I21", f"{node} has a vote, and lacks {first}-{run.last}")

    def _note_stores(self, node: str, old: views.View, new: views.View) -> None:
        """Note an edit as stored for its writer by voters that promised no newer one."""
        before = () if old.learner else (*old.live.values(), *old.finalized.values())
        for run in () if new.learner else (*new.live.values(), *new.finalized.values()):
            for txid, tag in enumerate(run.tags, run.first) if run not in before else ():
                if tag[0] == new.promised:
                    self.stored = max(self.stored, txid)
                    self._stores.setdefault(tag, set()).add(node)
                    if len(self._stores[tag]) >= self._least:
                        self.on_quorum = max(self.on_quorum, txid)

    def _count(self, holds: Callable[[views.View], bool]) -> int:
        """Count the nodes' votes for it: in this life, or in one that a disk has lost since."""
        return sum(
            any(holds(view) for view in (self._views[node], *lives) if not view.learner)
            for node, lives in self._past_lives.items()
        )

    # ---- durability ----

    def _voting(self) -> list[tuple[str, ...]]:
        """Return the majorities that may recover: a learner refuses to take part."""
        learners = self.learners()
        return [group for group in self._majorities if learners.isdisjoint(group)]

    def _check_durability(self, when: str) -> None:
        """Check that every majority, after a power cut now, recovers all that must stand."""
        for group in self._voting():
            log = recovered(group, self._views, self.settled)
            for txid, tag in self.must.items():
                if txid > self.settled and log.get(txid) != tag:
                    raise Violated(
                        "I5",
                        f"{when}: {', '.join(group)} would recover {log.get(txid)} at {txid},"
                        f" and {tag} was acknowledged or adopted",
                    )

    def _require(self, txid: int, tag: Tag, epoch: int, who: str) -> None:
        self._remember(txid, tag, who)
        self.must[txid] = tag
        self._chosen_in.setdefault(txid, epoch)

    def _remember(self, txid: int, tag: Tag, who: str) -> None:
        known = self.history.setdefault(txid, tag)
        if known != tag:
            raise Violated("I9", f"{who} {tag} at {txid}, where {known} was settled")

    def _settle(self) -> None:
        """Move on past segments that a majority has finalized: they are watched from then on."""
        while True:
            run = self._finals.get(self.settled + 1)
            if run is None:
                return
            holders = self._count(partial(views.holds_final, run.first))
            if run.last >= self.purged_below and holders < self._least:
                return
            for txid, tag in enumerate(run.tags, start=run.first):
                if self.must.pop(txid, tag) != tag:
                    raise Violated("I9", f"finalized {tag} at {txid}, another was acknowledged")
            self.settled = run.last
