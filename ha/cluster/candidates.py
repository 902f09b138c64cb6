"""Which NameNodes could become active now, in which order, and why the others could not.  Pure.

The rules are those by which ZKFCs decide whether to stand for election, seen from outside: what
is read here may have changed by the time that they do.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from math import inf
from typing import assert_never

from ha.cluster.unreachable import Absence, absence_of, ask_again, is_silence
from ha.cluster.view import ClusterView, NameNodeRow
from ha.notices.model import Member, Pause, time_text
from ha.record import dataclass

DEFAULT_PRIORITY = 100


class Bars(StrEnum):
    """What an obstacle prevents."""

    EVERYTHING = "everything"
    ELECTION = "election"
    """A switchover passes it: an operator's word is above it."""
    FOR_NOW = "for now"
    """A failover passes it, too: the ZKFC comes back when it is called."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One reason why a candidate cannot take over, and what to do about it."""

    text: str
    next: str
    bars: Bars = Bars.EVERYTHING
    known: bool = True
    """False: a process gave no answer, so whether there is an obstacle is not known."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One NameNode as a candidate."""

    namenode: str
    active: bool
    obstacles: tuple[Obstacle, ...]
    priority: int
    lag: int | None
    """Transactions behind the newest known; None where that is not known."""

    @property
    def fit(self) -> bool:
        """Nothing is in its way."""
        return not self.obstacles

    @property
    def unfit(self) -> bool:
        """Something is surely in its way."""
        return any(one.known for one in self.obstacles)

    @property
    def unknown(self) -> bool:
        """Whether it is fit is not known: nothing is in its way but silence."""
        return not self.fit and not self.unfit

    @property
    def switchable(self) -> bool:
        """A switchover may make it active."""
        return all(one.bars is not Bars.EVERYTHING for one in self.obstacles)

    @property
    def callable(self) -> bool:
        """Whether a call makes it active where no NameNode is."""
        return all(one.bars is Bars.FOR_NOW for one in self.obstacles)

    def why_not(self) -> str:
        """Return all obstacles of the candidate, in words."""
        return "; ".join(one.text for one in self.obstacles)

    def what_helps(self) -> str:
        """Return what removes the first obstacle; it may remove the others, too."""
        return next((one.next for one in self.obstacles if one.next), "")

    def in_words(self) -> str:
        """Return a fit candidate's merits, or the obstacles of one that is not fit."""
        if not self.fit:
            return self.why_not()
        return f"fit: {_behind(self.lag)}, priority {self.priority}"


def candidates_of(view: ClusterView) -> tuple[Candidate, ...]:
    """Judge every NameNode, in the configured order."""
    return tuple(_prospect(view, row) for row in view.namenodes)


def ranked(view: ClusterView) -> tuple[Candidate, ...]:
    """Return the fit NameNodes that are not active, the most likely first.

    The order is by priority, which ZKFCs obey, and then by lag, which decides nothing: among equals
    the one whose request reaches ZooKeeper first wins.
    """
    fit = [one for one in candidates_of(view) if one.fit and not one.active]
    return tuple(sorted(fit, key=lambda one: (-one.priority, inf if one.lag is None else one.lag)))


class Readiness(StrEnum):
    """Whether a failover could follow now."""

    READY = "READY"
    BLOCKED = "BLOCKED"
    UNKNOWN = "UNKNOWN"


def failover_blockers(view: ClusterView) -> tuple[str, ...]:
    """Return why a takeover would not be certain if the active failed now; empty if it would."""
    return tuple(text for text, _ in _blockers(view))


def readiness(view: ClusterView) -> Readiness:
    """Return whether a NameNode would take over; silence neither blocks nor promises it."""
    blockers = _blockers(view)
    if any(known for _, known in blockers):
        return Readiness.BLOCKED
    return Readiness.UNKNOWN if blockers else Readiness.READY


def _blockers(view: ClusterView) -> tuple[tuple[str, bool], ...]:
    """Return each reason in words, and whether it is certain to prevent a failover."""
    if not view.automatic_failover:
        return (("dfs.ha.automatic-failover.enabled is not set", True),)
    found = []
    if view.pause is not None:
        found.append((f"paused {until(view.pause)}", True))
    if view.lock.error is not None:
        found.append((f"ZooKeeper: {view.lock.error}", not is_silence(view.lock.error)))
    if view.journal_lost:
        found.append(("the journal has no quorum", True))
    elif view.journal_unknown:
        found.append(("whether the journal has a quorum is not known", False))
    if not ranked(view):
        others = [one for one in candidates_of(view) if not one.active]
        hopeless = not any(one.unknown for one in others)
        found += [(f"{one.namenode}: {one.why_not()}", hopeless) for one in others]
        if not others:
            found.append(("there is no other NameNode", True))
    return tuple(found)


def until(notice: Pause) -> str:
    """Return by which owner a pause or drain was requested, until when, and why."""
    end = "until it is ended" if notice.until is None else f"until {time_text(notice.until)}"
    return f"by {notice.owner} {end}: {notice.reason}"


def _prospect(view: ClusterView, row: NameNodeRow) -> Candidate:
    member = view.notices.members.get(row.namenode)
    return Candidate(
        namenode=row.namenode,
        active=row.state == "active",
        obstacles=tuple(_obstacles(view, row, member)),
        priority=DEFAULT_PRIORITY if member is None else member.priority,
        lag=view.lag(row),
    )


def _obstacles(view: ClusterView, row: NameNodeRow, member: Member | None) -> Iterator[Obstacle]:
    name = row.namenode
    yield from _of_the_namenode(view, row)
    if member is not None and member.nofailover:
        yield Obstacle(
            "it never becomes active automatically (nnha.candidate.nofailover)",
            f"nnha switchover {name}",
            Bars.ELECTION,
        )
    drain = view.drains.get(name)
    if drain is not None:
        yield Obstacle(f"drained {until(drain)}", f"nnha drain {name} --end")
    yield from _of_the_zkfc(view, row, drained=drain is not None)


def _of_the_namenode(view: ClusterView, row: NameNodeRow) -> Iterator[Obstacle]:
    if row.error is not None:
        yield _absent("NameNode", row.error, row, start_namenode(view, row))
    elif row.state == "observer":
        yield Obstacle("it is an observer, and observers are never candidates", "")
    elif row.state == "initializing":
        yield Obstacle("NameNode: it is still starting", "wait, and look again: nnha status -w")
    elif row.ready is False and row.state != "active":
        reason = row.not_ready_reason or "it gives no reason"
        if "safe mode" in reason.lower():
            yield _safe_mode(row.namenode, reason)
        else:
            yield Obstacle(f"NameNode: not ready: {reason}", "wait, and look again: nnha status -w")


def _safe_mode(namenode: str, tip: str) -> Obstacle:
    """Cut Hadoop's three lines about safe mode down to what matters."""
    left, by_hand = re.search(r"automatically in (\d+) seconds", tip), "turned on manually" in tip
    short = tip.partition(" Use " if by_hand else "\n")[0]
    short = f"it ends by itself in {left[1]} s" if left else short
    return Obstacle(
        f"NameNode: in safe mode: {short}",
        f"nnha safemode {'leave' if by_hand else 'wait'} {namenode}",
    )


def _of_the_zkfc(view: ClusterView, row: NameNodeRow, *, drained: bool) -> Iterator[Obstacle]:
    zkfc = view.zkfc(row.namenode)
    if zkfc is None:
        return
    if zkfc.error is not None:
        start = f"start it on {_host(row)}: nnha zkfc -D dfs.ha.namenode.id={row.namenode}"
        yield _absent("ZKFC", zkfc.error, row, start)
    elif zkfc.health is not None and zkfc.health.lower() != "healthy":
        because = f" ({zkfc.health_reason})" if zkfc.health_reason else ""
        if row.error is None:
            yield Obstacle(
                f"ZKFC: judges the NameNode {zkfc.health}{because}",
                f"see its log on {_host(row)}; nnha haadmin -checkHealth {row.namenode}",
            )
    elif zkfc.in_election is False and not drained and view.pause is None:
        because = zkfc.out_because or "it gives no reason"
        if not _is_told_already(because):
            text = f"ZKFC: not in the election: {because}"
            if "another zkfc" in because:
                yield Obstacle(text, "send the request to the other one, or stop it: nnha doctor")
            else:
                yield Obstacle(text, "wait: it rejoins the election automatically", Bars.FOR_NOW)


def start_namenode(view: ClusterView, row: NameNodeRow) -> str:
    """Return how to start a NameNode that does not run, with the software that wrote its directory.

    Starting one software on the other's name directory must never be advised.
    """
    ours = f"nnha namenode -D dfs.ha.namenode.id={row.namenode}"
    running = [one for one in view.namenodes if one.error is None]
    if any(one.of_hadoop for one in running):
        return (
            f"start it on {_host(row)} with the software that wrote its name directory, Hadoop's "
            "if it is a NameNode like the other one: hdfs --daemon start namenode"
        )
    if not running:
        return (
            f"start it on {_host(row)} with the software that wrote its name directory: {ours}, or "
            "Hadoop's hdfs --daemon start namenode"
        )
    return f"start it on {_host(row)}: {ours}"


def _absent(what: str, error: str, row: NameNodeRow, start: str) -> Obstacle:
    """Describe a process without a usable answer; advise to start only one that is surely gone."""
    host = _host(row)
    match absence_of(error):
        case Absence.DOWN:
            return Obstacle(f"{what}: {error}", start)
        case Absence.ERROR:
            return Obstacle(f"{what}: {error}", f"see its log on {host}")
        case Absence.UNKNOWN:
            if is_silence(error):
                return Obstacle(f"{what}: {error}", ask_again(host), known=False)
            then = f"see whether {host} is up, and the way to it open"
            return Obstacle(f"{what}: {error}", then, known=False)
    assert_never(absence_of(error))


def _is_told_already(because: str) -> bool:
    """Return whether a reason of ``candidacy.eligibility`` is no obstacle, or part of another."""
    return any(one in because for one in ("higher rank", "nofailover", "not ready"))


def _behind(lag: int | None) -> str:
    match lag:
        case None:
            return "lag unknown"
        case 0:
            return "up to date"
        case 1:
            return "1 transaction behind"
        case _:
            return f"{lag:,} transactions behind"


def _host(row: NameNodeRow) -> str:
    return row.address.rsplit(":", 1)[0]
