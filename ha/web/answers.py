"""What an operator wants to know first: the active, whether a failover may follow, risks of data.

Pure.  What is not known is neither well nor bad.
"""

from collections.abc import Iterator

from ha.cluster.candidates import Readiness, failover_blockers, ranked, readiness
from ha.cluster.files_view import blocks_text
from ha.cluster.marks import Kind, Mark
from ha.cluster.verdict import taking_over
from ha.cluster.view import ClusterView
from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """One question with its answer in a few words, and what is to be added."""

    question: str
    mark: Mark
    more: str = ""


def answers(view: ClusterView) -> tuple[Answer, ...]:
    """Return the three of them."""
    return _active(view), _failover(view), _data(view)


def _active(view: ClusterView) -> Answer:
    moving, since, more = taking_over(view), view.election[0], ""
    if len(view.actives) > 1:
        mark = Mark(Kind.BAD, f"{' and '.join(view.actives)} both")
    elif view.active is not None:
        mark = Mark(Kind.GOOD, view.active.namenode)
        more = f"since {since:%d %b %H:%M} UTC" if since else ""
        if view.active.read_lease_valid is False:
            more = "but its reads wait: its lease has ended"
    elif moving is not None:
        mark = Mark(Kind.WARNING, f"none yet: {moving.namenode} takes over")
    elif any(row.may_be_active for row in view.namenodes):
        mark = Mark(Kind.UNKNOWN, "not known")
    else:
        mark = Mark(Kind.BAD, "none")
    return Answer("Active", mark, more)


def _failover(view: ClusterView) -> Answer:
    ready, more = readiness(view), "; ".join(failover_blockers(view)[:1])
    if not view.automatic_failover:
        mark, more = Mark(Kind.IDLE, "by hand"), "nnha haadmin -failover"
    elif view.active is None and taking_over(view) is not None:
        mark, more = Mark(Kind.WARNING, "under way"), ""
    elif ready is Readiness.READY:
        mark, more = Mark(Kind.GOOD, "possible"), f"{ranked(view)[0].namenode} would be next"
    elif ready is Readiness.BLOCKED:
        mark = Mark(Kind.WARNING, "not possible")
    else:
        mark = Mark(Kind.UNKNOWN, "not known")
    return Answer("Failover", mark, more)


def _data(view: ClusterView) -> Answer:
    found = list(_risks(view))
    if not found:
        return Answer("Data", Mark(Kind.GOOD, "not at risk"), "all blocks have their replicas")
    kinds = [kind for kind, _ in found]
    worst = next(kind for kind in (Kind.BAD, Kind.WARNING, Kind.UNKNOWN) if kind in kinds)
    word = {Kind.BAD: "cannot be read whole", Kind.WARNING: "at risk", Kind.UNKNOWN: "not known"}
    if worst is Kind.BAD and view.journal_lost:
        word[Kind.BAD] = "cannot be written"
    said = [text for kind, text in found if kind is worst]
    return Answer("Data", Mark(worst, word[worst]), "; ".join(said[:2]))


def _risks(view: ClusterView) -> Iterator[tuple[Kind, str]]:
    """Yield what endangers edits and blocks, and what of it is not known."""
    if view.journal_lost:
        yield Kind.BAD, "the journal has no quorum"
    elif view.journal_unknown:
        yield Kind.UNKNOWN, "whether the journal has a quorum"
    elif view.spare_journalnodes == 0 and len(view.journalnodes) > 1:
        yield Kind.WARNING, "the journal can lose no more nodes"
    files = None if view.active is None else view.active.files
    if files is None:
        why = "the active does not report them" if view.active else "no NameNode is active"
        yield Kind.UNKNOWN, why
        return
    if files.missing:
        yield Kind.BAD, f"{blocks_text(files.missing)} no usable replica"
    elif files.unreadable:
        yield Kind.BAD, "no DataNode is heard"
    if files.under_replicated:
        yield Kind.WARNING, f"{blocks_text(files.under_replicated)} too few replicas"
    silent, failed = files.stale_datanodes, files.failed_volumes
    counts = ((silent, "silent DataNodes"), (failed, "failed volumes"))
    if said := ", ".join(f"{number:,} {what}" for number, what in counts if number):
        yield Kind.WARNING, said
