"""The first line about a cluster: is it served, and could a failover follow?  Pure."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import assert_never

from ha.cluster.candidates import Readiness, failover_blockers, readiness
from ha.cluster.files_view import blocks_text
from ha.cluster.problems import no_answer_message, problems_of_roles
from ha.cluster.view import ClusterView, ZkfcRow
from ha.record import dataclass


class Condition(StrEnum):
    """What holds for clients at the moment."""

    SERVING = "serving"
    """One NameNode is active, and edits can be written as far as is known."""
    READ_ONLY = "read only"
    """One NameNode is active and in safe mode."""
    UNREADABLE = "data unreadable"
    """One NameNode is active, and blocks have no replica that can be read."""
    TAKING_OVER = "taking over"
    NOT_SERVING = "not serving"
    """No NameNode is active, or no edit can be written."""
    TWO_ACTIVE = "two active"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The condition; ``text`` is its sentence, ``reasons`` are why it is no better one."""

    condition: Condition
    failover: Readiness | None
    """Whether a failover could follow; None: it is by hand."""
    text: str
    reasons: tuple[str, ...]

    def as_json(self) -> Mapping[str, object]:
        """Return the verdict as JSON, whose keys are fixed."""
        return {
            "condition": self.condition.value,
            "text": self.text,
            "reasons": list(self.reasons),
        }


def taking_over(view: ClusterView) -> ZkfcRow | None:
    """Return the controller that has the lock and has not finished its takeover."""
    return next((row for row in view.zkfcs if row.takeover is not None), None)


def verdict(view: ClusterView) -> Verdict:
    """Judge the whole cluster from one look."""
    condition = _condition(view)
    failover = readiness(view) if view.automatic_failover else None
    return Verdict(condition, failover, _text(view, condition), tuple(_reasons(view, condition)))


def _condition(view: ClusterView) -> Condition:
    if len(view.actives) > 1:
        return Condition.TWO_ACTIVE
    if view.active is None:
        return _without_active(view)
    if view.journal_lost:
        return Condition.NOT_SERVING
    files = view.active.files
    if files is not None and files.unreadable:
        return Condition.UNREADABLE
    if files is not None and files.safe_mode is not None:
        return Condition.READ_ONLY
    return Condition.SERVING


def _without_active(view: ClusterView) -> Condition:
    if taking_over(view) is not None:
        return Condition.TAKING_OVER
    unknown = any(row.may_be_active for row in view.namenodes)
    return Condition.UNKNOWN if unknown else Condition.NOT_SERVING


def _text(view: ClusterView, condition: Condition) -> str:
    match condition:
        case Condition.SERVING:
            return f"SERVING{_failover(view)}"
        case Condition.READ_ONLY:
            return f"READ ONLY, in safe mode{_failover(view)}"
        case Condition.UNREADABLE:
            return f"FILES CANNOT BE READ: {_unreadable(view)}{_failover(view)}"
        case Condition.TAKING_OVER:
            return _takeover(view)
        case Condition.NOT_SERVING if view.active is not None:
            return "NOTHING CAN BE WRITTEN: the journal has no quorum"
        case Condition.NOT_SERVING:
            return "NOT SERVING: no NameNode is active"
        case Condition.TWO_ACTIVE:
            return "TWO NameNodes say that they are active"
        case Condition.UNKNOWN if view.is_silent:
            return "NOTHING IS KNOWN: no process has answered"
        case Condition.UNKNOWN:
            return (
                "UNKNOWN: no NameNode says that it is active, and one that gives no answer may be"
            )
    assert_never(condition)


def _failover(view: ClusterView) -> str:
    if not view.automatic_failover:
        return "; a failover is made by hand"
    match readiness(view):
        case Readiness.READY:
            return ", and a failover could follow"
        case Readiness.BLOCKED:
            return ", but no failover could follow"
        case Readiness.UNKNOWN:
            return "; whether a failover could follow is not known"


def _unreadable(view: ClusterView) -> str:
    files = view.active.files if view.active is not None else None
    if files is None or not files.heard_datanodes:
        return "no DataNode is heard"
    return f"{blocks_text(files.missing)} no usable replica"


def _takeover(view: ClusterView) -> str:
    row = taking_over(view)
    assert row is not None  # it is what makes the condition
    source = f" from {row.handing_over_from}" if row.handing_over_from else ""
    return f"TAKING OVER: {row.namenode} becomes active{source}"


def _reasons(view: ClusterView, condition: Condition) -> Iterator[str]:
    if view.is_silent:
        yield no_answer_message(view)
        return
    match condition:
        case Condition.SERVING | Condition.READ_ONLY | Condition.UNREADABLE:
            yield from failover_blockers(view) if view.automatic_failover else ()
        case Condition.TAKING_OVER | Condition.NOT_SERVING:
            return
        case Condition.TWO_ACTIVE | Condition.UNKNOWN:
            yield from problems_of_roles(view)
