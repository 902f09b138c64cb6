"""One look at the cluster as text for people (docs/reference/operations.md#form-of-an-answer)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from ha.cluster import marks, row_notes
from ha.cluster.candidates import readiness
from ha.cluster.files_view import lines_of_files, size_text
from ha.cluster.marks import Kind, Mark
from ha.cluster.problems import no_answer_message, problems, problems_of_roles
from ha.cluster.unreachable import absence_of, is_silence
from ha.cluster.view import ClusterView, JournalNodeRow, NameNodeRow, ZkfcRow
from ha.console.durations import since
from ha.console.grid import Column, Grid
from ha.console.output import plain
from ha.notices.model import Member, time_text

_NOTHING = "-"
_YES_NO: Final = {None: _NOTHING, True: "yes", False: "NO"}
_STYLES: Final = {
    Kind.GOOD: "green",
    Kind.IDLE: "",
    Kind.WARNING: "yellow",
    Kind.BAD: "bold red",
    Kind.LEARNER: "yellow",
    Kind.UNKNOWN: "bold red",
}


class Screen:
    """A look as it fits the console that shows it; ``wide`` adds columns and absolute times."""

    def __init__(self, view: ClusterView, *, wide: bool = False) -> None:
        self._view = view
        self._wide = wide

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Implement rich's hook."""
        yield as_text(self._view, width=options.max_width, wide=self._wide)


def as_text(view: ClusterView, *, width: int = 160, wide: bool = False) -> RenderableType:
    """Render the whole screen for ``width`` columns."""
    if view.is_silent:
        return Group(*(Text(plain(line)) for line in _no_answer_lines(view)))
    parts: list[RenderableType] = [*_headlines(view, wide=wide)]
    parts += [Text(f"! {plain(problem)}", style="bold red") for problem in _problems(view)]
    parts += [Text(f"* {plain(note)}", style="yellow") for note in row_notes.notices(view)]
    parts.append(Grid(_namenode_columns(view), view.namenodes, wide=wide).fitted(width))
    if view.zkfcs:
        parts.append(Grid(_zkfc_columns(view), view.zkfcs, wide=wide).fitted(width))
    if view.journalnodes:
        journal = Grid(_journalnode_columns(view), view.journalnodes, wide=wide)
        parts.append(journal.fitted(width))
    if view.automatic_failover:
        parts.append(_zookeeper_line(view))
    if view.active is not None and view.active.files is not None:
        parts += [Text(plain(line)) for line in lines_of_files(view.active.files)]
    return Group(*parts)


def _no_answer_lines(view: ClusterView) -> Iterator[str]:
    """Yield the lines of a look at which no process answered."""
    yield f"Cluster {view.nameservice}   UNKNOWN   {view.taken_at}"
    yield f"! {no_answer_message(view)}"
    yield from (f"* {line}" for line in row_notes.own_lateness(view))


def _headlines(view: ClusterView, *, wide: bool) -> Iterator[Text]:
    actives = view.actives
    nobody = "UNKNOWN" if any(row.may_be_active for row in view.namenodes) else "NONE"
    active = " and ".join(actives) if actives else nobody
    epoch = _NOTHING if view.epoch is None else str(view.epoch)
    began, because = view.election
    lasting = "" if began is None else f" for {since(began, view.moment)}"
    if began is not None and wide:
        lasting += f" (since {time_text(began)})"
    failover = readiness(view).value if view.automatic_failover else "BY HAND"
    count = len(problems(view))
    well = "healthy" if count == 0 else f"{count} problem{'s' if count > 1 else ''}"
    yield Text.assemble(
        ("Cluster ", ""),
        (plain(view.nameservice), "bold"),
        (f"   epoch {epoch}   active ", ""),
        (plain(active), "bold" if len(actives) == 1 else "bold red"),
        (f"{lasting}   failover: {failover}   {well}   {view.taken_at}", ""),
        overflow="fold",
    )
    if because:
        yield Text(f"  because {plain(because)}", overflow="fold")


def _problems(view: ClusterView) -> Iterator[str]:
    """Yield the problems, each with the command that says what to do."""
    roles = tuple(problems_of_roles(view))
    for problem in problems(view):
        helps = "explain" if problem in roles else "doctor"
        yield problem if "→" in problem else f"{problem}  → nnha {helps}"


def _namenode_columns(view: ClusterView) -> Sequence[Column[NameNodeRow]]:
    return (
        Column("NODE", lambda row: row.namenode),
        Column("HOST", lambda row: plain(row.address), need=1),
        Column("STATE", lambda row: _state(row.error, row.state, marks.of_namenode(row))),
        Column("WANTED", lambda row: _format_wanted(view, row), need=4),
        Column("EPOCH", lambda row: _number(row.epoch), right=True, need=5),
        Column("LAST TXID", lambda row: _number(row.last_txid), right=True, need=2),
        Column("LAG", lambda row: _lag(view.lag(row)), right=True, need=3),
        Column("READY", lambda row: _YES_NO[row.ready], need=6, wide=True),
        Column("NOTE", lambda row: plain("; ".join(row_notes.namenode_remarks(row)))),
    )


def _format_wanted(view: ClusterView, row: NameNodeRow) -> Text:
    wanted = view.wanted(row) or _NOTHING
    differs = row.state is not None and wanted not in (_NOTHING, row.state)
    return Text(wanted, style="bold red" if differs else "")


def _zkfc_columns(view: ClusterView) -> Sequence[Column[ZkfcRow]]:
    def of_member(shown: Callable[[Member], str]) -> Callable[[ZkfcRow], str]:
        def value(row: ZkfcRow) -> str:
            member = view.notices.members.get(row.namenode)
            return _NOTHING if member is None else plain(shown(member)) or _NOTHING

        return value

    return (
        Column("ZKFC", lambda row: row.namenode),
        Column("HOST", lambda row: plain(row.address), need=1),
        Column("SEES ITS NODE", lambda row: _state(row.error, row.health, marks.of_zkfc(row))),
        Column("ELECTION", lambda row: plain(_election(row))),
        Column("PRIO", of_member(lambda member: _number(member.priority)), right=True, need=4),
        Column("ZOOKEEPER", lambda row: plain(_session(row)), need=3),
        Column("PID", of_member(lambda member: str(member.pid)), right=True, need=6, wide=True),
        Column("VERSION", of_member(lambda member: member.version), need=7, wide=True),
        Column("STARTED", of_member(lambda one: time_text(one.started)), need=8, wide=True),
        Column("NOTE", lambda row: plain("; ".join(row_notes.zkfc_remarks(row)))),
    )


def _election(row: ZkfcRow) -> str:
    if row.in_election is False:
        return "out"
    return row.elector or _NOTHING


def _session(row: ZkfcRow) -> str:
    if row.zookeeper is None:
        return _NOTHING
    if row.session_timeout_seconds is None:
        return row.zookeeper
    return f"{row.zookeeper}, session {row.session_timeout_seconds:g} s"


def _journalnode_columns(view: ClusterView) -> Sequence[Column[JournalNodeRow]]:
    def state(row: JournalNodeRow) -> Text:
        return _state(row.error, view.state_of(row), marks.of_journalnode(view, row))

    return (
        # A JournalNode has no id in Hadoop's configuration: it is numbered as its URI lists it.
        Column("JN", lambda row: f"jn{view.journalnodes.index(row) + 1}"),
        Column("HOST", lambda row: plain(row.node), need=1),
        Column("STATE", state),
        Column("EPOCH", lambda row: _number(row.promised_epoch), right=True, need=4),
        Column("LAST TXID", lambda row: _number(row.last_txid), right=True, need=2),
        Column("BEHIND", lambda row: _number(view.behind(row)), right=True, need=5),
        Column("DISK FREE", _disk, right=True, need=3),
        Column(
            "WRITER EPOCH", lambda row: _number(row.writer_epoch), right=True, need=6, wide=True
        ),
        Column("COMMITTED", lambda row: _number(row.committed_txid), right=True, need=7, wide=True),
        Column("NOTE", lambda row: plain("; ".join(row_notes.journalnode_remarks(view, row)))),
    )


def _zookeeper_line(view: ClusterView) -> Text:
    serving = [row for row in view.zookeepers if row.error is None]
    leaders = [row.server for row in serving if row.mode == "leader"]
    leader = f", leader {leaders[0]}" if leaders else ""
    seconds = view.lock.session_timeout_seconds
    session = "" if seconds is None else f", our session {seconds:g} s (negotiated)"
    if view.lock.error is not None:
        lock = f"lock holder unknown ({view.lock.error})"
    else:
        lock = f"lock held by {view.lock.holder or 'NOBODY'}"
    unknown = sum(is_silence(row.error) for row in view.zookeepers)
    silent = f" ({unknown} gave no answer)" if unknown else ""
    text = f"ZooKeeper {len(serving)}/{len(view.zookeepers)} up{silent}{leader}{session}, {lock}"
    down = [f"{row.server}: {row.error}" for row in view.zookeepers if row.error is not None]
    return Text(plain("\n  ".join([text, *down]), keep="\n"))


def _state(error: str | None, state: str | None, mark: Mark) -> Text:
    """Return the word of a state, or of the absence that ``error`` describes, in its colour."""
    if error is not None:
        state = absence_of(error).value
    return Text(_NOTHING) if state is None else Text(plain(state), style=_STYLES[mark.kind])


def _number(value: int | None) -> str:
    return _NOTHING if value is None else f"{value:,}"


def _lag(value: int | None) -> str:
    return _NOTHING if value is None else f"{value:,} tx"


def _disk(row: JournalNodeRow) -> str:
    if not row.disk_total_bytes or row.disk_free_bytes is None:
        return _NOTHING
    share = 100 * row.disk_free_bytes // row.disk_total_bytes
    return f"{share}% {size_text(row.disk_free_bytes)}"
