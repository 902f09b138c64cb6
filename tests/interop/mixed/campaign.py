"""Kills, hand-overs and a migration of a mixed cluster under one writing client."""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.demo.screen import Screen
from deploy.local.workload.trial import CLIENT_SECONDS, WRITES_AFTER
from tests.interop.mixed import migration
from tests.interop.mixed.client import Writing
from tests.interop.mixed.cluster import MixedCluster
from tests.interop.mixed.failovers import Change, hand_over, kill
from tests.interop.mixed.migration import play
from tests.interop.mixed.programs import Kind
from tests.interop.mixed.roles import RoleWatch

WIPED = "jn2"
LOOK_EVERY = 25
"""The number of kills between two look-ups of all acknowledged writes in the active's listing."""


@dataclass(slots=True)
class Campaign:
    """One run.  Everything raises LocalClusterError where a part does not come back."""

    cluster: MixedCluster
    writing: Writing
    roles: RoleWatch
    screen: Screen
    kills: list[Change] = field(default_factory=list)
    hand_overs: list[Change] = field(default_factory=list)
    steps: dict[str, float] = field(default_factory=dict)
    """What was done to the cluster, and the client's longest call during it in seconds."""
    lost: list[str] = field(default_factory=list)

    def play(self, *, kills: int, hand_overs: int, until: float = math.inf) -> None:
        """Kill and hand over, as evenly mixed as can be; begin none after ``until`` (monotonic)."""
        done = len(self.hand_overs)
        for number in range(1, kills + 1):
            if time.monotonic() > until:
                self.screen.say(f"the time for kills is over: {number - 1} of {kills} were played")
                return
            self.screen.title(f"kill {number} of {kills}")
            self._keep(self.kills, kill(self.cluster, self.writing.workload))
            if number % LOOK_EVERY == 0:
                self.lost += self.writing.missing_now()
            if number * hand_overs // kills > len(self.hand_overs) - done:
                self._keep(self.hand_overs, hand_over(self.cluster, self.writing.workload))

    def move_journalnodes(self, kind: Kind) -> None:
        """Move JournalNodes to this kind one after another; no NameNode may lose its role."""
        active = self.cluster.active()
        for step in migration.journal_steps(kind):
            self._step(step)
            if (now := self.cluster.active()) != active:
                raise LocalClusterError(f"{step}: {now} is active instead of {active}")

    def move_zkfcs(self, kind: Kind) -> None:
        """Move the standby's first; then a hand-over, and the other one."""
        for step in migration.zkfc_steps(self.cluster, kind):
            self._step(step)

    def move_namenodes(self, kind: Kind) -> None:
        """Move the standby first; then a hand-over, and the other one."""
        for step in migration.namenode_steps(self.cluster, kind):
            self._step(step)

    def wipe(self) -> None:
        """Wipe a JournalNode of ours, which must vote again without a stop of anything."""
        self._timed(
            f"{WIPED} is wiped and formatted",
            lambda: migration.wipe_journalnode(self.cluster, WIPED),
        )

    def facts(self) -> dict[str, object]:
        """End the writing and give the findings as one object; times are seconds."""
        verdict = self.writing.verdict()
        errors = self.writing.workload.errors()
        missing = list(dict.fromkeys((*self.lost, *verdict.missing)))
        return {
            "kills": len(self.kills),
            "hand_overs": len(self.hand_overs),
            "acknowledged": verdict.acknowledged,
            "missing": len(missing),
            "duplicated": len(verdict.duplicated),
            "client_errors": len(errors),
            "gaps": verdict.gaps,
            "diverging": verdict.diverging,
            "looks": self.roles.looks,
            "both_active": len(self.roles.both_active),
            **_times("kill", self.kills),
            **_times("hand_over", self.hand_overs),
            "steps": {words: round(longest, 3) for words, longest in self.steps.items()},
            "missing_writes": missing,
            "duplicated_writes": list(verdict.duplicated),
            "errors": [f"{each.kind} {each.path}: {each.error}" for each in errors],
            "both_active_looks": self.roles.both_active,
            "well": verdict.clean and not (missing or errors or self.roles.both_active),
        }

    def _keep(self, changes: list[Change], change: Change) -> None:
        changes.append(change)
        self.screen.say(
            f"{change.old} -> {change.new}: active after {change.active_seconds:.3f} s, "
            f"the client's longest call {change.longest_call_seconds:.3f} s"
        )

    def _step(self, step: migration.Step) -> None:
        self._timed(str(step), lambda: play(self.cluster, step))

    def _timed(self, words: str, act: Callable[[], None]) -> None:
        self.screen.say(words)
        workload = self.writing.workload
        began = time.monotonic()
        act()
        workload.wait_for_more(WRITES_AFTER, deadline_seconds=CLIENT_SECONDS)
        self.steps[words] = workload.longest_call_seconds(began)
        self.screen.say(f"  done; the client's longest call {self.steps[words]:.3f} s")


def _times(what: str, changes: list[Change]) -> dict[str, object]:
    if not changes:
        return {}
    active = [change.active_seconds for change in changes]
    longest = [change.longest_call_seconds for change in changes]
    return {
        f"{what}_seconds_median": round(statistics.median(active), 4),
        f"{what}_seconds_max": round(max(active), 4),
        f"{what}_longest_call_seconds_median": round(statistics.median(longest), 4),
        f"{what}_longest_call_seconds_max": round(max(longest), 4),
    }
