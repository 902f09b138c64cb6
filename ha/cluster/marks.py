"""How states look: a shape, a word, and a kind for the colour; the words suffice.  Pure."""

from enum import StrEnum
from typing import Final

from ha.cluster.candidates import Readiness
from ha.cluster.files_view import DatanodeView
from ha.cluster.unreachable import Absence, absence_of
from ha.cluster.verdict import Condition, Verdict
from ha.cluster.view import ClusterView, JournalNodeRow, NameNodeRow, ZkfcRow
from ha.cluster.zookeeper_view import ZooKeeperRow
from ha.notices.model import FailoverRecord, FailoverResult
from ha.record import dataclass


class Kind(StrEnum):
    """What a state means; also the class of its colour."""

    GOOD = "good"
    IDLE = "idle"
    WARNING = "warning"
    BAD = "bad"
    LEARNER = "learner"
    UNKNOWN = "unknown"


_SHAPES: Final = {
    Kind.GOOD: "●",
    Kind.IDLE: "○",
    Kind.WARNING: "▲",
    Kind.BAD: "✖",
    Kind.LEARNER: "◆",
    Kind.UNKNOWN: "?",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """One state as it is shown."""

    kind: Kind
    word: str

    @property
    def shape(self) -> str:
        """A letter that shows the kind without colour."""
        return _SHAPES[self.kind]


def of_verdict(found: Verdict) -> Mark:
    """Return the first line's mark."""
    match found.condition:
        case Condition.SERVING:
            well = found.failover in (None, Readiness.READY)
            return Mark(Kind.GOOD if well else Kind.WARNING, found.text)
        case Condition.READ_ONLY | Condition.TAKING_OVER:
            return Mark(Kind.WARNING, found.text)
        case Condition.UNKNOWN:
            return Mark(Kind.UNKNOWN, found.text)
        case Condition.NOT_SERVING | Condition.TWO_ACTIVE | Condition.UNREADABLE:
            return Mark(Kind.BAD, found.text)


def of_namenode(row: NameNodeRow) -> Mark:
    """Return the role's mark, or why it is not known."""
    if row.error is not None:
        return of_absence(row.error)
    if row.activity == "loading":
        share = "" if row.progress is None else f" {row.progress:.0%}"
        return Mark(Kind.WARNING, f"loading{share}")
    match row.state:
        case "active":
            return Mark(Kind.GOOD, "active")
        case "standby" | "observer":
            return Mark(Kind.IDLE, row.state)
        case None:
            return Mark(Kind.UNKNOWN, "not told")
        case other:
            return Mark(Kind.WARNING, other)


def of_datanode(row: DatanodeView) -> Mark:
    """Return the mark of a DataNode: a stale one is silent, and a dead one is given up."""
    match row.state:
        case "live" if row.failed_volumes:
            return Mark(Kind.WARNING, "live, volume failed")
        case "live" if row.service != "in service":
            return Mark(Kind.IDLE, row.service)
        case "live":
            return Mark(Kind.GOOD, row.state)
        case "dead" if row.service in ("decommissioned", "in maintenance"):
            return Mark(Kind.IDLE, f"dead, {row.service}")
        case "stale":
            return Mark(Kind.WARNING, row.state)
        case other:
            return Mark(Kind.BAD, other)


def of_zkfc(row: ZkfcRow) -> Mark:
    """Return the mark of the controller's judgement of its NameNode."""
    if row.error is not None:
        return of_absence(row.error)
    return of_health(row.health)


def of_health(health: str | None) -> Mark:
    """Return the mark of a judgement of a NameNode's health."""
    if health is None:
        return Mark(Kind.UNKNOWN, "not told")
    word = health.replace("_", " ")
    kinds = {"healthy": Kind.GOOD, "initializing": Kind.IDLE}
    return Mark(kinds.get(health.lower(), Kind.BAD), word)


def of_journalnode(view: ClusterView, row: JournalNodeRow) -> Mark:
    """Return the mark that shows whether it takes part."""
    if row.error is not None:
        return of_absence(row.error)
    state = view.state_of(row)
    kinds = {
        "in sync": Kind.GOOD,
        "up": Kind.GOOD,
        "LEARNER": Kind.LEARNER,
        "OUT OF SYNC": Kind.WARNING,
    }
    return Mark(kinds.get(state, Kind.BAD), state.lower())


def of_zookeeper(row: ZooKeeperRow) -> Mark:
    """Return the mark of a server of the ensemble."""
    if row.error is not None:
        return of_absence(row.error)
    return Mark(Kind.GOOD, row.mode or "serving")


def of_record(record: FailoverRecord) -> Mark:
    """Return the mark that shows how a failover ended."""
    if record.result is FailoverResult.SUCCEEDED:
        return Mark(Kind.GOOD, "succeeded")
    return Mark(Kind.BAD, "failed")


def of_absence(error: str) -> Mark:
    """Return the mark of a process without a usable answer: down, with an error, or unknown."""
    match absence_of(error):
        case Absence.DOWN:
            return Mark(Kind.BAD, "down")
        case Absence.ERROR:
            return Mark(Kind.BAD, "error")
        case Absence.UNKNOWN:
            return Mark(Kind.UNKNOWN, "unknown")
