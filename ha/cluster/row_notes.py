"""What a person should read next to each row of a look, and above all of them.  Pure."""

from collections.abc import Iterator

from fencing.model import BadSpec
from fencing.spec import parse_methods
from ha.cluster import agreement
from ha.cluster.candidates import Readiness, failover_blockers, readiness, until
from ha.cluster.view import ClusterView, JournalNodeRow, NameNodeRow, ZkfcRow

LATE_START_SECONDS = 2.0
LATE_LOOP_SECONDS = 0.5


def notices(view: ClusterView) -> Iterator[str]:
    """Yield pauses, drains, what blocks a failover, what is not obeyed; each with what to do."""
    yield from in_force(view)
    yield from _blocker_notes(view)
    yield from warnings(view)


def in_force(view: ClusterView) -> Iterator[str]:
    """Yield what operators have noted: the pause and the drains."""
    if view.pause is not None:
        yield f"automatic failover is paused {until(view.pause)}  → nnha resume"
    for name, one in view.drains.items():
        yield f"{name} is drained {until(one)}  → nnha drain {name} --end"


def _blocker_notes(view: ClusterView) -> Iterator[str]:
    if view.automatic_failover and view.active is not None and view.pause is None:
        known = readiness(view) is Readiness.BLOCKED
        what = "failover is blocked" if known else "whether a failover is possible is not known"
        for reason in failover_blockers(view):
            yield f"{what}: {reason}  → nnha explain"


def warnings(view: ClusterView) -> Iterator[str]:
    """Yield what is not necessarily wrong, but should be known."""
    if trusting := [row.namenode for row in view.zkfcs if _fences_edits_only(row)]:
        hadoops = any(row.of_hadoop for row in view.namenodes)
        end = "it learns of its successor (Hadoop's has no lease)" if hadoops else "its lease ends"
        yield (
            f"the ZKFC of {' and '.join(trusting)} fences edits only: a former active that "
            f"does not answer may serve reads until {end}  → nnha fence test"
        )
    yield from view.notices.unreadable
    for fault in agreement.clock_faults(agreement.skews((*view.namenodes, *view.zkfcs))):
        yield f"{fault}  → {agreement.CLOCK_ADVICE}"
    if drift := agreement.configuration_drift(view):
        yield f"{drift}  → {agreement.DRIFT_ADVICE}"
    yield from own_lateness(view)


def own_lateness(view: ClusterView) -> Iterator[str]:
    """Report this command's own delays that are long enough to matter."""
    if view.own_start_seconds > LATE_START_SECONDS:
        yield f"this command itself took {view.own_start_seconds:.1f} s to start"
    if view.own_delay_seconds > LATE_LOOP_SECONDS:
        yield (
            f"this command itself stood still for {view.own_delay_seconds:.1f} s while it asked, "
            "and gave everybody that much longer: this machine is busy"
        )


def namenode_remarks(row: NameNodeRow) -> Iterator[str]:
    """Yield why a NameNode did not answer, or cannot be promoted."""
    if row.error is not None:
        yield row.error
    if row.note is not None:
        yield row.note
    if row.ready is False and row.state != "active":
        yield f"cannot be promoted: {row.not_ready_reason or 'no reason given'}"


def zkfc_remarks(row: ZkfcRow) -> Iterator[str]:
    """Yield why a ZKFC did not answer, finds its NameNode unhealthy, or is out of the election."""
    # Why it is out often is its health, in the same words.
    told = f"{row.out_because} {row.note}"
    health = None if row.health_reason and row.health_reason in told else row.health_reason
    for one in (row.error, health, row.out_because, row.note):
        if one:
            yield one
    if row.last_failure:
        yield f"its last takeover failed: {row.last_failure}"


def journalnode_remarks(view: ClusterView, row: JournalNodeRow) -> Iterator[str]:
    """Yield why a JournalNode did not answer or failed, and what the active reports of it."""
    if row.error is not None:
        yield row.error
    if row.failed_because is not None:
        yield row.failed_because
    if row.stranger is not None:
        yield row.stranger
    if row.disk_warning is not None:
        yield row.disk_warning
    if row.damaged_segments:
        firsts = ", ".join(f"{first:,}" for first in row.damaged_segments[:3])
        yield f"damaged segments: {len(row.damaged_segments)}, from transaction {firsts}"
    for seen in view.active.journal if view.active is not None else ():
        if seen.node == row.node and not seen.in_sync and seen.last_error is not None:
            yield f"the active says: {seen.last_error}"


def _fences_edits_only(row: ZkfcRow) -> bool:
    """Return whether no configured method proves that the old active is gone (e.g. true)."""
    try:
        methods = parse_methods("\n".join(row.fencing_methods))
    except BadSpec:
        return False
    return bool(methods) and not any(method.proves_gone for method in methods)
