"""Which NameNodes could become active now, in which order, and why the others could not.  Pure.

The rules are those by which ZKFCs decide whether to stand for election, seen from outside: what
is read here may have changed by the time that they do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ha.cli.cluster.view import ClusterView, NameNodeRow, is_silence
from ha.notices.model import Member, Pause, time_text

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


@dataclass(frozen=True, slots=True)
class Prospect:
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
    def switchable(self) -> bool:
        """A switchover may make it active."""
        return all(one.bars is not Bars.EVERYTHING for one in self.obstacles)

    @property
    def callable(self) -> bool:
        """Whether a call makes it active where no NameNode is."""
        return all(one.bars is Bars.FOR_NOW for one in self.obstacles)

    def why_not(self) -> str:
        """All obstacles of the candidate, in words."""
        return "; ".join(one.text for one in self.obstacles)

    def what_helps(self) -> str:
        """What removes the first obstacle; that may remove the others, too."""
        return next((one.next for one in self.obstacles if one.next), "")

    def in_words(self) -> str:
        """A fit candidate's merits, or its obstacles."""
        if not self.fit:
            return self.why_not()
        return f"fit: {_behind(self.lag)}, priority {self.priority}"


def prospects(view: ClusterView) -> tuple[Prospect, ...]:
    """Every NameNode, in the configured order."""
    return tuple(_prospect(view, row) for row in view.namenodes)


def ranked(view: ClusterView) -> tuple[Prospect, ...]:
    """The fit NameNodes that are not active, the most likely first.

    The order is by priority, which ZKFCs obey, and then by lag, which decides nothing: among
    equals the one whose request reaches ZooKeeper first wins.
    """
    fit = [one for one in prospects(view) if one.fit and not one.active]
    far = max((one.lag or 0 for one in fit), default=0) + 1
    return tuple(sorted(fit, key=lambda one: (-one.priority, far if one.lag is None else one.lag)))


def what_blocks(view: ClusterView) -> tuple[str, ...]:
    """Why no NameNode would take over if the active failed now; empty: one would."""
    if not view.automatic_failover:
        return ("dfs.ha.automatic-failover.enabled is not set",)
    found = []
    if view.pause is not None:
        found.append(f"paused {until(view.pause)}")
    if view.lock.error is not None:
        found.append(f"ZooKeeper: {view.lock.error}")
    if view.journalnodes and view.spare_journalnodes < 0:
        found.append("the journal has no quorum")
    if not ranked(view):
        others = [one for one in prospects(view) if not one.active]
        found += [f"{one.namenode}: {one.why_not()}" for one in others if not one.fit]
        if not others:
            found.append("there is no other NameNode")
    return tuple(found)


def until(notice: Pause) -> str:
    """Who asked for it, until when, and why."""
    end = "until it is ended" if notice.until is None else f"until {time_text(notice.until)}"
    return f"by {notice.owner} {end}: {notice.reason}"


def _prospect(view: ClusterView, row: NameNodeRow) -> Prospect:
    member = view.notices.members.get(row.namenode)
    return Prospect(
        namenode=row.namenode,
        active=row.state == "active",
        obstacles=tuple(_obstacles(view, row, member)),
        priority=DEFAULT_PRIORITY if member is None else member.priority,
        lag=view.lag(row),
    )


def _obstacles(view: ClusterView, row: NameNodeRow, member: Member | None) -> Iterator[Obstacle]:
    name = row.namenode
    yield from _of_the_namenode(row)
    if member is not None and member.nofailover:
        yield Obstacle(
            "it never becomes active automatically (nnha.candidate.nofailover)",
            f"nnha switchover {name}",
            Bars.ELECTION,
        )
    drain = view.drains.get(name)
    if drain is not None:
        yield Obstacle(f"drained {until(drain)}", f"nnha drain {name} --end")
    if view.automatic_failover:
        yield from _of_the_zkfc(view, row, drained=drain is not None)


def _of_the_namenode(row: NameNodeRow) -> Iterator[Obstacle]:
    if row.silent:
        yield Obstacle(f"NameNode: {row.error}", _look_at(row))
    elif row.error is not None:
        yield Obstacle(
            f"NameNode: {row.error}",
            f"start it on {_host(row)}: nnha namenode -D dfs.ha.namenode.id={row.namenode}",
        )
    elif row.state == "observer":
        yield Obstacle("it is an observer, and observers are never candidates", "")
    elif row.state == "initializing":
        yield Obstacle("NameNode: it is still starting", "wait, and look again: nnha status -w")
    elif row.ready is False and row.state != "active":
        yield Obstacle(
            f"NameNode: not ready: {row.not_ready_reason or 'it gives no reason'}",
            "wait, and look again: nnha status -w",
        )


def _of_the_zkfc(view: ClusterView, row: NameNodeRow, *, drained: bool) -> Iterator[Obstacle]:
    zkfc = view.zkfc(row.namenode)
    if zkfc is None:
        return
    if is_silence(zkfc.error):
        yield Obstacle(f"ZKFC: {zkfc.error}", _look_at(row))
    elif zkfc.error is not None:
        yield Obstacle(
            f"ZKFC: {zkfc.error}",
            f"start it on {_host(row)}: nnha zkfc -D dfs.ha.namenode.id={row.namenode}",
        )
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


def _look_at(row: NameNodeRow) -> str:
    host = _host(row)
    return f"look on {host}: its process hangs (kill and restart it) or the network is broken"


def _is_told_already(because: str) -> bool:
    """Reasons of ``candidacy.eligibility`` that are no obstacle, or that others contain."""
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
