"""The checker: its own model of what was promised, acknowledged and read (qjm 9.2).

It sees the disks at every point of durability, what callers were told, and nothing else.
"""

from collections.abc import Callable, Mapping

from tests.simulation.platter import Platter
from tests.simulation.recovery_model import Log, majorities, recovered
from tests.simulation.tags import Run, Tag
from tests.simulation.trace import Trace
from tests.simulation.verdict import Violated
from tests.simulation.views import Accepted, FileReader, View, digest


class Oracle:
    """Checks the invariants of one run; the first breach is kept, as ``violation``.

    ``must`` has every edit that may never change again: acknowledged to a caller, or adopted by
    a recovery that returned.  ``settled`` is up to where a majority has them finalized.
    """

    def __init__(self, platters: Mapping[str, Platter], trace: Trace) -> None:
        self.violation: Violated | None = None
        self.must: Log = {}
        self.history: Log = {}
        self.settled = 0
        self.acknowledged = 0
        self.checks = 0
        self._trace = trace
        self._platters = platters
        self._names = tuple(platters)
        self._readers = {name: FileReader(name) for name in platters}
        self._majorities = majorities(self._names)
        self._least = len(self._names) // 2 + 1
        self._views = {name: View() for name in platters}
        self._winners: dict[int, str] = {}
        self._decided: dict[tuple[int, int], tuple[int, bytes]] = {}
        self._finals: dict[int, Run] = {}
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
        """A writer claims an epoch."""

        def check() -> None:
            if self._winners.setdefault(epoch, writer) != writer:
                raise Violated("I2", f"{self._winners[epoch]} and {writer} both won epoch {epoch}")
            granted = sum(view.promised >= epoch for view in self._views.values())
            if granted < self._least:
                raise Violated("I2", f"{writer} won epoch {epoch} from {granted} nodes")

        self.guarded(check)

    def adopted(self, writer: str, epoch: int, last: int) -> None:
        """A recovery has returned: everything up to ``last`` stands from now on."""

        def check() -> None:
            log = self._common_log(last, f"{writer} recovered up to {last}", "I13")
            for txid in range(last + 1, max(self.must, default=self.settled) + 1):
                lost = self.must.get(txid, self.history.get(txid))
                if lost is not None and lost[0] < epoch:
                    raise Violated("I13", f"{writer} recovered up to {last} and forgets {lost}")
            for txid, tag in log.items():
                self._require(txid, tag, f"{writer} adopted")
            self._settle()

        self.guarded(check)

    def acked(self, writer: str, first: int, tags: tuple[Tag, ...]) -> None:
        """A write has returned to its caller."""

        def check() -> None:
            self.acknowledged += len(tags)
            for txid, tag in enumerate(tags, start=first):
                self._require(txid, tag, f"{writer} acknowledged")
            self._check_durability(f"{writer} acknowledged {first}-{first + len(tags) - 1}")
            self._settle()

        self.guarded(check)

    def started(self, writer: str, first: int) -> None:
        """A segment was started at a quorum."""

        def check() -> None:
            ended = sum(
                any(run.last == first - 1 for run in view.finalized.values())
                for view in self._views.values()
            )
            if first > 1 and ended < self._least:
                raise Violated("I8", f"{writer} started {first}; {ended} finalized {first - 1}")

        self.guarded(check)

    def closed(self, writer: str, first: int, last: int) -> None:
        """A segment was closed at a quorum."""

        def check() -> None:
            closed = [view.finalized.get(first) for view in self._views.values()]
            if sum(run is not None and run.last == last for run in closed) < self._least:
                raise Violated("I8", f"{writer} closed {first}-{last} without a majority")

        self.guarded(check)

    def read(self, reader: str, expected: int, run: Run) -> None:
        """A reader handed out these edits."""

        def check() -> None:
            if run.first != expected:
                raise Violated("I12", f"{reader} got {run.first} where {expected} belongs")
            for txid, tag in enumerate(run.tags, start=run.first):
                self._remember(txid, tag, f"{reader} read")

        self.guarded(check)

    def conclude(self, last: int, tags: list[Tag]) -> None:
        """The healed journal was read from 1 to ``last``: it has all that was ever promised."""

        def check() -> None:
            if len(tags) != last or max(self.must, default=0) > last:
                raise Violated("I12", f"the healed journal reads up to {len(tags)} of {last}")
            for txid, tag in {**self.history, **self.must}.items():
                if tags[txid - 1 : txid] != [tag]:
                    raise Violated("I5", f"the healed journal has no {tag} at {txid}")

        self.guarded(check)

    def differences(self) -> str | None:
        """How the nodes' finalized segments differ, or None."""
        for first, run in sorted(self._finals.items()):
            for node, view in self._views.items():
                if first not in view.finalized:
                    return f"{node} has not finalized {first}-{run.last}"
        return None

    # ---- what the disks say ----

    def compare_loaded(
        self, node: str, promised: int, segments: Mapping[int, tuple[int, bool]]
    ) -> None:
        """What a node says it loaded must be what the oracle reads there."""

        def check() -> None:
            view = self._readers[node].view(self._platters[node].cached, cached=True)
            ours = {f: (r.last, False) for f, r in view.live.items()}
            ours |= {f: (r.last, True) for f, r in view.finalized.items()}
            if (promised, dict(segments)) != (view.promised, ours):
                raise Violated(
                    "I14",
                    f"{node} loaded promise {promised}, {dict(segments)};"
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
        self._check_durability(f"{node} changed")

    def _check_decisions(self, node: str, old: View, new: View) -> None:
        for first, decision in new.accepted.items():
            if old.accepted.get(first) == decision:
                continue
            before = old.accepted.get(first, Accepted(0, 0, False, b""))
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

    def _choose(self, node: str, first: int, decision: Accepted) -> None:
        """What a majority accepted in one epoch is chosen for ever, whether anybody knows or not.

        This is I13 at the earliest moment, as in Paxos: the writer may die before it can tell.
        """
        same = sum(view.accepted.get(first) == decision for view in self._views.values())
        run = self._views[node].run(first)
        if same < self._least or run is None:
            return
        for txid, tag in enumerate(run.tags, start=first):
            if txid > self.settled:
                self._require(txid, tag, f"a majority accepted in epoch {decision.epoch}")

    def _check_finals(self, node: str, old: View, new: View) -> None:
        for first, run in old.finalized.items():
            if new.finalized.get(first) != run:
                raise Violated("I7", f"{node} changed its finalized segment {first}-{run.last}")
        for first, run in new.finalized.items():
            if first in old.finalized:
                continue
            known = self._finals.setdefault(first, run)
            if known.tags != run.tags:
                raise Violated("I6", f"segment {first}: {known.tags} and, on {node}, {run.tags}")
            for txid, tag in enumerate(run.tags, start=first):
                self._remember(txid, tag, f"{node} finalized")
            stored = sum(
                (held := view.run(first)) is not None and held.tags[: len(run.tags)] == run.tags
                for view in self._views.values()
            )
            if stored < self._least:
                raise Violated("I8", f"{node} finalized {first}-{run.last}, {stored} nodes have it")

    def _check_edits(self, node: str, old: View, new: View) -> None:
        """I3: only the promised writer adds edits.  I20: its edits never go away again."""
        for first in old.live.keys() | new.live.keys():
            before, after = old.live.get(first), new.live.get(first)
            if before == after:
                continue
            kept = after or new.finalized.get(first)
            had = before.tags if before else ()
            has = kept.tags if kept else ()
            for offset, tag in enumerate(had):
                if tag not in has and tag[0] >= new.promised:
                    raise Violated(
                        "I20", f"{node} dropped {first + offset} of its promised writer, {tag}"
                    )
            if after is None:
                continue  # what is finalized is compared with its first copy
            accepted = new.accepted.get(first)
            if accepted is not None and digest(after) == accepted.digest:
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

    # ---- durability ----

    def _check_durability(self, when: str) -> None:
        """I5, I13: every majority, after a power cut now, recovers all that must stand."""
        for group in self._majorities:
            log = recovered(group, self._views, self.settled)
            for txid, tag in self.must.items():
                if txid > self.settled and log.get(txid) != tag:
                    raise Violated(
                        "I5",
                        f"{when}: {', '.join(group)} would recover {log.get(txid)} at {txid},"
                        f" and {tag} was acknowledged or adopted",
                    )

    def _common_log(self, last: int, when: str, invariant: str) -> Log:
        logs = [recovered(group, self._views, self.settled) for group in self._majorities]
        agreed = {txid: logs[0].get(txid) for txid in range(self.settled + 1, last + 1)}
        common: Log = {}
        for txid, tag in agreed.items():
            if tag is None or any(log.get(txid) != tag for log in logs):
                raise Violated(invariant, f"{when}, but majorities differ about {txid}")
            common[txid] = tag
        return common

    def _require(self, txid: int, tag: Tag, who: str) -> None:
        self._remember(txid, tag, who)
        self.must[txid] = tag

    def _remember(self, txid: int, tag: Tag, who: str) -> None:
        known = self.history.setdefault(txid, tag)
        if known != tag:
            raise Violated("I9", f"{who} {tag} at {txid}, where {known} was settled")

    def _settle(self) -> None:
        """Move on past segments that a majority has finalized: I7 watches over them."""
        while True:
            run = self._finals.get(self.settled + 1)
            if run is None:
                return
            holders = sum(run.first in view.finalized for view in self._views.values())
            if holders < self._least:
                return
            for txid, tag in enumerate(run.tags, start=run.first):
                if self.must.pop(txid, tag) != tag:
                    raise Violated("I9", f"finalized {tag} at {txid}, another was acknowledged")
            self.settled = run.last
