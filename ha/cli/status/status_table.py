"""One look at the cluster as text for people (docs/reference/operations.md#form-of-an-answer)."""

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from ha.cluster import remarks
from ha.cluster.absence import absence_of, is_silence
from ha.cluster.files_view import lines_of_files, size_text
from ha.cluster.problems import nobody_answered, problems, problems_of_roles
from ha.cluster.successors import readiness
from ha.cluster.view import ClusterView, JournalNodeRow, NameNodeRow, ZkfcRow
from ha.console.durations import since
from ha.console.grid import Column, Grid
from ha.console.output import plain
from ha.notices.model import time_text

_NOTHING = "-"
_GOOD = ("active", "in sync", "up", "healthy", "connected")


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
    if view.nobody_answers:
        return Group(*(Text(plain(line)) for line in _nothing_known(view)))
    parts: list[RenderableType] = [*_headlines(view, wide=wide)]
    parts.append(_namenodes(view, wide=wide).fitted(width))
    if view.zkfcs:
        parts.append(_zkfcs(view, wide=wide).fitted(width))
    if view.journalnodes:
        parts.append(_journal(view, wide=wide).fitted(width))
    if view.automatic_failover:
        parts.append(_zookeeper_line(view))
    if view.active is not None and view.active.files is not None:
        parts += [Text(plain(line)) for line in lines_of_files(view.active.files)]
    parts += [Text(f"* {plain(note)}", style="yellow") for note in remarks.notices(view)]
    parts += [Text(f"! {plain(problem)}", style="bold red") for problem in _problems(view)]
    return Group(*parts)


def _nothing_known(view: ClusterView) -> Iterator[str]:
    """Yield the lines of a look at which no process answered."""
    yield f"Cluster {view.nameservice}   UNKNOWN   {view.taken_at}"
    yield f"! {nobody_answered(view)}"
    yield from (f"* {line}" for line in remarks.own_lateness(view))


def _headlines(view: ClusterView, *, wide: bool) -> Iterator[Text]:
    actives = view.actives
    nobody = "UNKNOWN" if any(row.may_be_active for row in view.namenodes) else "NONE"
    active = " and ".join(actives) if actives else nobody
    epoch = _NOTHING if view.epoch is None else str(view.epoch)
    began, because = view.election
    lasting = "" if began is None else f" for {since(began, view.moment)}"
    if began is not None and wide:
        lasting += f" (since {time_text(began)})"
    yield Text.assemble(
        ("Cluster ", ""),
        (plain(view.nameservice), "bold"),
        (f"   epoch {epoch}   active ", ""),
        (plain(active), "bold" if len(actives) == 1 else "bold red"),
        (f"{lasting}   {_readiness(view)}", ""),
        (f"{_wellness(view)}   {view.taken_at}", ""),
        overflow="fold",
    )
    if because:
        yield Text(f"  because {plain(because)}", overflow="fold")


def _readiness(view: ClusterView) -> str:
    if not view.automatic_failover:
        return "failover: BY HAND   "
    return f"failover: {readiness(view).value}   "


def _wellness(view: ClusterView) -> str:
    count = len(problems(view))
    return "healthy" if count == 0 else f"{count} problem{'s' if count > 1 else ''}"


def _problems(view: ClusterView) -> Iterator[str]:
    """Yield the problems; those of roles refer to ``nnha explain``, which says what to do."""
    roles = tuple(problems_of_roles(view))
    for problem in problems(view):
        yield f"{problem}  → nnha explain" if problem in roles else problem


def _namenodes(view: ClusterView, *, wide: bool) -> Grid:
    columns = [
        Column("NODE"), Column("HOST", need=1), Column("STATE"), Column("WANTED", need=4),
        Column("EPOCH", right=True, need=5), Column("LAST TXID", right=True, need=2),
        Column("LAG", right=True, need=3), Column("NOTE"),
    ]  # fmt: skip
    rows: list[tuple[str | Text, ...]] = []
    for row in view.namenodes:
        cells: list[str | Text] = [
            row.namenode,
            plain(row.address),
            _state(row.state if row.error is None else absence_of(row.error).value),
            _wanted(view, row),
            _number(row.epoch),
            _number(row.last_txid),
            _lag(view.lag(row)),
            plain("; ".join(remarks.namenode_remarks(row))),
        ]
        if wide:
            cells.insert(-1, _NOTHING if row.ready is None else "yes" if row.ready else "NO")
        rows.append(tuple(cells))
    if wide:
        columns.insert(-1, Column("READY", need=6))
    return Grid(tuple(columns), tuple(rows))


def _wanted(view: ClusterView, row: NameNodeRow) -> Text:
    wanted = view.wanted(row) or _NOTHING
    differs = row.state is not None and wanted not in (_NOTHING, row.state)
    return Text(wanted, style="bold red" if differs else "")


def _zkfcs(view: ClusterView, *, wide: bool) -> Grid:
    columns = [
        Column("ZKFC"), Column("HOST", need=1), Column("SEES ITS NODE"), Column("ELECTION"),
        Column("PRIO", right=True, need=4), Column("ZOOKEEPER", need=3), Column("NOTE"),
    ]  # fmt: skip
    rows: list[tuple[str | Text, ...]] = []
    for row in view.zkfcs:
        member = view.notices.members.get(row.namenode)
        cells: list[str | Text] = [
            row.namenode,
            plain(row.address),
            _state(row.health if row.error is None else absence_of(row.error).value),
            plain(_election(row)),
            _number(None if member is None else member.priority),
            plain(_session(row)),
            plain("; ".join(remarks.zkfc_remarks(row))),
        ]
        if wide:
            known = ("", "", "") if member is None else (
                str(member.pid), member.version, time_text(member.started)
            )  # fmt: skip
            cells[-1:-1] = [plain(one) or _NOTHING for one in known]
        rows.append(tuple(cells))
    if wide:
        columns[-1:-1] = [
            Column("PID", right=True, need=6), Column("VERSION", need=7), Column("STARTED", need=8)
        ]  # fmt: skip
    return Grid(tuple(columns), tuple(rows))


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


def _journal(view: ClusterView, *, wide: bool) -> Grid:
    columns = [
        Column("JN"), Column("HOST", need=1), Column("STATE"),
        Column("EPOCH", right=True, need=4), Column("LAST TXID", right=True, need=2),
        Column("BEHIND", right=True, need=5), Column("DISK FREE", right=True, need=3),
        Column("NOTE"),
    ]  # fmt: skip
    rows: list[tuple[str | Text, ...]] = []
    # A JournalNode has no id in Hadoop's configuration: it is numbered as its URI lists it.
    for number, row in enumerate(view.journalnodes, start=1):
        cells: list[str | Text] = [
            f"jn{number}",
            plain(row.node),
            _state(view.state_of(row) if row.error is None else absence_of(row.error).value),
            _number(row.promised_epoch),
            _number(row.last_txid),
            _number(view.behind(row)),
            _disk(row),
            plain("; ".join(remarks.journalnode_remarks(view, row))),
        ]
        if wide:
            cells[-1:-1] = [_number(row.writer_epoch), _number(row.committed_txid)]
        rows.append(tuple(cells))
    if wide:
        columns[-1:-1] = [
            Column("WRITER EPOCH", right=True, need=6), Column("COMMITTED", right=True, need=7)
        ]  # fmt: skip
    return Grid(tuple(columns), tuple(rows))


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


def _state(state: str | None) -> Text:
    if state is None:
        return Text(_NOTHING)
    word = plain(state)
    if word.lower() in _GOOD:
        return Text(word, style="green")
    return Text(word, style="bold red" if word.isupper() else "")


def _number(value: int | None) -> str:
    return _NOTHING if value is None else f"{value:,}"


def _lag(value: int | None) -> str:
    return _NOTHING if value is None else f"{value:,} tx"


def _disk(row: JournalNodeRow) -> str:
    if not row.disk_total_bytes or row.disk_free_bytes is None:
        return _NOTHING
    share = 100 * row.disk_free_bytes // row.disk_total_bytes
    return f"{share}% {size_text(row.disk_free_bytes)}"
