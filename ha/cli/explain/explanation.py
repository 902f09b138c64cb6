"""Why the active is active, or why there is none, and which NameNode would be next.  Pure.

Made of one look at the cluster: what holds is seen, why it holds is in the history.
"""

from collections.abc import Iterator, Mapping, Sequence

from ha.cluster.candidates import Candidate, Obstacle, candidates_of, ranked, until
from ha.cluster.problems import formatting, no_answer_message
from ha.cluster.unreachable import is_silence
from ha.cluster.view import ClusterView, NameNodeRow
from ha.console.durations import since, span
from ha.console.result import API_VERSION
from ha.notices.model import FailoverRecord, HistoryEntry, time_text
from ha.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentHolder:
    """A NameNode that holds the lock and gives no answer."""

    namenode: str
    error: str
    silent: bool
    paused: bool
    zkfc_error: str | None
    """Why its ZKFC does not answer either; None: it does, and can hand over."""

    def in_words(self) -> Iterator[str]:
        """Yield the NameNode's state in words, and how long its ZKFC keeps the lock."""
        name = self.namenode
        if self.silent:
            yield (
                f"{name} holds the lock and gives no answer: it is slow or hangs, or the network "
                "is broken"
            )
        else:
            yield f"{name} holds the lock, but its NameNode gives no usable answer: {self.error}"
        if self.zkfc_error is not None:
            yield f"its ZKFC: {self.zkfc_error}; the lock ends with its session in ZooKeeper"
        elif self.paused:
            yield "its ZKFC keeps the lock during a pause, even if the NameNode fails"
        elif self.silent:
            yield (
                f"its ZKFC keeps the lock until {name} has not answered it for "
                "ha.health-monitor.rpc-timeout.ms; then the next one fences it and takes over"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer to one ``nnha explain``."""

    nameservice: str
    taken_at: str
    active: str | None
    epoch: int | None
    why: tuple[str, ...]
    """Why the active is active, or why there is none; the main reason first."""
    elected_by: int | None
    """The record of the history that says how the active became active."""
    unheard: SilentHolder | None
    """The NameNode that holds the lock and gives no answer."""
    next_active: str | None
    """The NameNode that would become active if the present one failed now."""
    next_unknown: bool
    """Whether any would is not known: one that is not active gave no answer."""
    in_general: tuple[Obstacle, ...]
    """What prevents every automatic failover."""
    candidates_of: tuple[Candidate, ...]
    ranking: tuple[str, ...]
    """The fit ones that are not active, the most likely first."""
    headline: str
    """Which NameNode is active, in words."""
    no_answer_message: str
    """All that can be said where no process answered; else empty."""

    def as_json(self) -> Mapping[str, object]:
        """Return the explanation as JSON, whose keys are fixed."""
        return {
            "apiVersion": API_VERSION,
            "command": "explain",
            "nameservice": self.nameservice,
            "taken_at": self.taken_at,
            "active": self.active,
            "epoch": self.epoch,
            "why": list(self.why),
            "elected_by": self.elected_by,
            "next_active": self.next_active,
            "in_general": [_obstacle(one) for one in self.in_general],
            "namenodes": [
                {
                    "namenode": one.namenode,
                    "active": one.active,
                    "fit": one.fit,
                    "rank": self._rank(one),
                    "priority": one.priority,
                    "lag_transactions": one.lag,
                    "obstacles": [_obstacle(each) for each in one.obstacles],
                }
                for one in self.candidates_of
            ],
        }

    def as_lines(self) -> Iterator[str]:
        """Format for people: the present, the future, each candidate, and what blocks them all."""
        if self.no_answer_message:
            yield self.no_answer_message
            return
        yield self.headline
        for reason in self.why:
            yield f"  because {reason}"
        for obstacle in self.in_general:
            yield f"! {_in_words(obstacle)}"
        yield self._future()
        width = max((len(one.namenode) for one in self.candidates_of), default=0)
        for one in self.candidates_of:
            yield from self._lines_of(one, width)

    def _future(self) -> str:
        went = "if it failed now" if self.active else "now"
        if self.next_unknown:
            return f"Whether a NameNode could become active {went} is not known:"
        if self.next_active is None:
            return f"No NameNode could become active {went}:"
        arrow = ""
        if self.unheard is not None:
            went = f"once {self.unheard.namenode} has lost the lock"
            if self.unheard.zkfc_error is None and len(self.in_general) == self.unheard.paused:
                arrow = f"  → at once: nnha switchover {self.next_active}"
        if self.in_general:
            went = f"{went}, if nothing above prevented it"
        return f"{self.next_active} would become active {went}:{arrow}"

    def _lines_of(self, one: Candidate, width: int) -> Iterator[str]:
        name = f"{one.namenode:<{width}}"
        if one.active and one.fit:
            yield f"  {name}  active"
        elif one.active:
            yield f"  {name}  active, but: {one.why_not()}  → {one.what_helps()}"
        elif one.fit:
            yield f"  {name}  {self._rank(one)}. {one.in_words()}"
        else:
            for each in one.obstacles:
                yield f"  {name}  {'no' if each.known else 'not known'}: {_in_words(each)}"

    def _rank(self, one: Candidate) -> int | None:
        return self.ranking.index(one.namenode) + 1 if one.namenode in self.ranking else None


def explain(view: ClusterView, *, only: str | None = None) -> Explanation:
    """Put it together; ``only``: of the NameNodes just this one."""
    ranking = tuple(one.namenode for one in ranked(view))
    active, elected, candidates = view.active, view.elected_by, candidates_of(view)
    return Explanation(
        nameservice=view.nameservice,
        taken_at=view.taken_at,
        active=None if active is None else active.namenode,
        epoch=view.epoch,
        why=tuple(_why_nobody(view, ranking) if active is None else _why(view, active, elected)),
        elected_by=None if elected is None else elected.number,
        unheard=_unheard(view),
        next_active=ranking[0] if ranking else None,
        next_unknown=not ranking and any(one.unknown for one in candidates if not one.active),
        in_general=tuple(_in_general(view)),
        candidates_of=tuple(one for one in candidates if only in (None, one.namenode)),
        ranking=ranking,
        headline=_headline(view),
        no_answer_message=no_answer_message(view) if view.is_silent else "",
    )


def _headline(view: ClusterView) -> str:
    if view.active is not None:
        epoch = "" if view.epoch is None else f" (epoch {view.epoch})"
        return f"{view.active.namenode} is active{epoch}"
    if view.actives:
        return "MORE than one NameNode says that it is active"
    if any(row.may_be_active for row in view.namenodes):
        return "NO NameNode says that it is active"
    return "NO NameNode is active"


def _why(view: ClusterView, active: NameNodeRow, elected: HistoryEntry | None) -> Iterator[str]:
    if not view.automatic_failover:
        yield "an operator has made it so: dfs.ha.automatic-failover.enabled is not set"
    elif view.lock.error is not None:
        yield "it says so itself; how it became so stands in ZooKeeper, which cannot be read now"
    elif elected is None or elected.record is None:
        yield "it won the election; the history does not tell how"
    else:
        yield _describe_failover(view, elected.number, elected.record)
    zkfc = view.zkfc(active.namenode)
    if view.lock.holder not in (None, active.namenode):
        yield f"it says so itself, although {view.lock.holder} holds the lock in ZooKeeper"
    elif view.lock.holder is not None and zkfc is not None and zkfc.error:
        yield f"its ZKFC: {zkfc.error}; the lock is still there, and ends with its session"
    elif view.lock.holder is not None:
        yield "its ZKFC holds the lock in ZooKeeper"


def _describe_failover(view: ClusterView, number: int, record: FailoverRecord) -> str:
    after = f" after {record.previous}" if record.previous else ""
    return (
        f"{record.cause} (history {number}: {record.kind.value}{after}, in {span(record.seconds)}, "
        f"{since(record.at, view.moment)} ago at {time_text(record.at)})"
    )


def _why_nobody(view: ClusterView, ranking: Sequence[str]) -> Iterator[str]:
    actives = view.actives
    if actives:
        yield f"{' and '.join(actives)} both say that they are"
        return
    if not view.automatic_failover:
        yield "dfs.ha.automatic-failover.enabled is not set: an operator makes one active by hand"
        return
    yield from _of_the_lock(view)
    for zkfc in view.zkfcs:
        if zkfc.last_failure is not None:
            yield f"the last takeover by {zkfc.namenode} failed: {zkfc.last_failure}"
    if view.journal_lost:
        yield "the journal has no quorum, and without one nobody can serve"
    if not ranking and not any(one.unknown for one in candidates_of(view)):
        yield "no NameNode is fit, each for the reason below"


def _of_the_lock(view: ClusterView) -> Iterator[str]:
    """Report the lock's holder while no NameNode is active, as far as it is known."""
    if is_silence(view.lock.error):
        yield f"who holds the lock is not known: {view.lock.error}"
    elif view.lock.error is not None:
        yield f"the election cannot be held: {view.lock.error}"
    elif (unheard := _unheard(view)) is not None:
        yield from unheard.in_words()
    elif view.lock.holder is not None:
        yield f"{view.lock.holder} holds the lock and is taking over, or tries to"
    else:
        for row in view.namenodes:
            if row.may_be_active:
                yield f"{row.namenode} may be active: {row.error}"


def _unheard(view: ClusterView) -> SilentHolder | None:
    row = view.silent_lock_holder
    if row is None or row.error is None:
        return None
    zkfc = view.zkfc(row.namenode)
    return SilentHolder(
        namenode=row.namenode,
        error=row.error,
        silent=row.silent,
        paused=view.pause is not None,
        zkfc_error=None if zkfc is None else zkfc.error,
    )


def _in_general(view: ClusterView) -> Iterator[Obstacle]:
    if view.pause is not None:
        yield Obstacle(f"automatic failover is paused {until(view.pause)}", "nnha resume")
    if not view.automatic_failover:
        remedy = "set it to true and run a ZKFC beside each NameNode"
        yield Obstacle("dfs.ha.automatic-failover.enabled is not set", remedy)
    elif view.lock.error is not None:
        yield Obstacle(f"ZooKeeper: {view.lock.error}", _mend_zookeeper(view.lock.error))
    if view.journal_lost:
        yield Obstacle("the journal has no quorum", _mend_journal(view))
    elif view.journal_unknown:
        what = "whether the journal has a quorum is not known: too few JournalNodes answered"
        yield Obstacle(what, "nnha journal status --timeout 10", known=False)
    for problem in view.notices.unreadable:
        yield Obstacle(problem, "read that znode, and delete it if it is of no use")


def _mend_zookeeper(error: str) -> str:
    if is_silence(error):
        return "ask again with more time: nnha explain --timeout 10"
    if "not formatted" in error:
        return "nnha zkfc --format-zk, once for each nameservice"
    return "start its servers; nnha config explain ha.zookeeper.quorum says where we look for them"


def _mend_journal(view: ClusterView) -> str:
    return formatting(view) or "start the JournalNodes, or see why they failed: nnha journal status"


def _in_words(one: Obstacle) -> str:
    return f"{one.text}  → {one.next}" if one.next else one.text


def _obstacle(one: Obstacle) -> Mapping[str, object]:
    return {"text": one.text, "next": one.next or None}
