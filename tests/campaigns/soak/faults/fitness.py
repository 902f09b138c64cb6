"""When must a cluster serve?  While a majority and one fit NameNode can all reach each other.

A majority is two of three ZooKeepers and two of three JournalNodes.  A NameNode is fit if its
process and its ZKFC run, and if both ways between its host and the majorities and the clients are
open.  Two exceptions, in which HDFS promises nothing: while a NameNode that clients cannot reach
has the majorities, it may be the active and remain so; and a link or disk that is merely bad leaves
an active slow, but alive.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Final

from tests.campaigns.soak.faults import hosts

MAJORITY: Final = 2


@dataclass(frozen=True, slots=True)
class Condition:
    """What is the matter from one instant on; times are monotonic seconds."""

    at: float
    down: frozenset[str] = frozenset()
    """Processes that are killed or frozen."""
    cut: frozenset[tuple[str, str]] = frozenset()
    bad: frozenset[str] = field(default=frozenset())
    """Hosts whose link or disk is bad."""

    def joined(self, one: str, other: str) -> bool:
        return (one, other) not in self.cut and (other, one) not in self.cut

    def has_majorities(self, namenode: str) -> bool:
        if self.down & {namenode, hosts.zkfc_of(namenode)}:
            return False
        reached = [host for host in hosts.ZOOKEEPERS if self._reaches(namenode, host)]
        quorums = combinations(reached, MAJORITY)
        journals = sum(self._reaches(namenode, host) for host in hosts.JOURNALNODES)
        return journals >= MAJORITY and any(self.joined(*quorum) for quorum in quorums)

    def must_serve(self) -> bool:
        """Return whether clients may expect answers within the bound."""
        able = [name for name in hosts.NAMENODES if self.has_majorities(name)]
        good = [name for name in able if name not in self.bad and self.joined(name, hosts.CLIENTS)]
        return bool(good) and len(good) == len(able) and hosts.CLIENTS not in self.bad

    def _reaches(self, namenode: str, host: str) -> bool:
        return host not in self.down and host not in self.bad and self.joined(namenode, host)


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which the cluster had to serve and no client got an answer."""

    began: float
    seconds: float


def gaps(conditions: Sequence[Condition], answers: Iterable[float], end: float) -> list[Gap]:
    """Return the gaps between answers, each inside a stretch in which the cluster had to serve.

    ``conditions`` are in the order of time, ``answers`` the instants of all answers.
    """
    told = sorted(answers)
    found = []
    for began, ended in stretches(conditions, end):
        inside = [at for at in told if began < at < ended]
        edges = [began, *inside, ended]
        found += [Gap(a, b - a) for a, b in pairwise(edges)]
    return found


def stretches(conditions: Sequence[Condition], end: float) -> list[tuple[float, float]]:
    """Return the longest spans of time in which the cluster had to serve all the time."""
    found: list[tuple[float, float]] = []
    since: float | None = None
    for condition in conditions:
        serves = condition.must_serve()
        if serves and since is None:
            since = condition.at
        if not serves and since is not None:
            found.append((since, condition.at))
            since = None
    if since is not None:
        found.append((since, end))
    return found
