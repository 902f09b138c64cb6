"""One look at the cluster as text for people, and as JSON with fixed keys for programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ha.cli.cluster_view import ClusterView, JournalNodeRow, NameNodeRow, ZkfcRow
from ha.cli.output import API_VERSION, plain

_NOTHING = "-"
_KIB = 1024
_GOOD = ("active", "in sync", "up", "healthy", "connected")


def as_json(view: ClusterView) -> Mapping[str, object]:
    """The fixed keys: none ever disappears, an unknown value is null; txids are plain numbers."""
    return {
        "apiVersion": API_VERSION,
        "nameservice": view.nameservice,
        "taken_at": view.taken_at,
        "seconds": view.seconds,
        "active": view.active.namenode if view.active is not None else None,
        "epoch": view.epoch,
        "automatic_failover": view.automatic_failover,
        "healthy": not view.problems(),
        "problems": list(view.problems()),
        "spare_journalnodes": view.spare_journalnodes if view.journalnodes else None,
        "namenodes": [
            _without(asdict(row), "journal") | {"lag_transactions": view.lag(row)}
            for row in view.namenodes
        ],
        "zkfcs": [asdict(row) for row in view.zkfcs],
        "journalnodes": [
            asdict(row) | {"state": view.state_of(row), "behind_transactions": view.behind(row)}
            for row in view.journalnodes
        ],
        "zookeeper": {
            "servers": [asdict(row) for row in view.zookeepers],
            "lock_holder": view.lock.holder,
            "lock_error": view.lock.error,
        },
    }


def as_text(view: ClusterView) -> RenderableType:
    """The screen of operators.md B.5, as far as the daemons tell what is needed for it."""
    parts: list[RenderableType] = [_headline(view), _namenode_table(view)]
    if view.zkfcs:
        parts.append(_zkfc_table(view))
    if view.journalnodes:
        parts.append(_journal_table(view))
    if view.automatic_failover:
        parts.append(_zookeeper_line(view))
    parts += [Text(f"! {plain(problem)}", style="bold red") for problem in view.problems()]
    return Group(*parts)


def _headline(view: ClusterView) -> Text:
    actives = [row.namenode for row in view.namenodes if row.state == "active"]
    active = " and ".join(actives) if actives else "NONE"
    epoch = _NOTHING if view.epoch is None else str(view.epoch)
    ready = "healthy" if not view.problems() else f"{len(view.problems())} problem(s)"
    style = "bold" if len(actives) == 1 else "bold red"
    text = Text.assemble(
        ("Cluster ", ""),
        (plain(view.nameservice), "bold"),
        (f"   epoch {epoch}   active ", ""),
        (plain(active), style),
        (f"   {ready}   {view.taken_at}", ""),
    )
    text.no_wrap = True
    return text


def _namenode_table(view: ClusterView) -> Table:
    table = _table("NODE", "HOST", "STATE", right=("EPOCH", "LAST TXID", "LAG"), last=("NOTE",))
    for row in view.namenodes:
        table.add_row(
            row.namenode,
            plain(row.address),
            _state(row.state if row.error is None else "DOWN"),
            _number(row.epoch),
            _number(row.last_txid),
            _lag(view.lag(row)),
            Text(plain("; ".join(_namenode_notes(row)))),
        )
    return table


def _namenode_notes(row: NameNodeRow) -> Iterator[str]:
    if row.error is not None:
        yield row.error
    if row.note is not None:
        yield row.note
    if row.ready is False and row.state != "active":
        yield f"cannot be promoted: {row.not_ready_reason or 'no reason given'}"


def _zkfc_table(view: ClusterView) -> Table:
    table = _table("ZKFC", "HOST", "SEES ITS NODE", "ELECTION", "ZOOKEEPER", last=("NOTE",))
    for row in view.zkfcs:
        table.add_row(
            row.namenode,
            plain(row.address),
            _state(row.health),
            plain(row.elector or _NOTHING),
            plain(_session(row)),
            Text(plain(row.error or row.health_reason or "")),
        )
    return table


def _session(row: ZkfcRow) -> str:
    if row.zookeeper is None:
        return _NOTHING
    if row.session_timeout_seconds is None:
        return row.zookeeper
    return f"{row.zookeeper}, session {row.session_timeout_seconds:g} s"


def _journal_table(view: ClusterView) -> Table:
    numbers = ("EPOCH", "LAST TXID", "BEHIND", "DISK FREE")
    table = _table("JN", "HOST", "STATE", right=numbers, last=("NOTE",))
    # A JournalNode has no id in Hadoop's configuration: it is numbered as its URI lists it.
    for number, row in enumerate(view.journalnodes, start=1):
        table.add_row(
            f"jn{number}",
            plain(row.node),
            _state(view.state_of(row) if row.error is None else "DOWN"),
            _number(row.promised_epoch),
            _number(row.last_txid),
            _number(view.behind(row)),
            _disk(row),
            Text(plain("; ".join(_journal_notes(view, row)))),
        )
    return table


def _journal_notes(view: ClusterView, row: JournalNodeRow) -> Iterator[str]:
    if row.error is not None:
        yield row.error
    if row.failed_because is not None:
        yield row.failed_because
    for seen in view.active.journal if view.active is not None else ():
        if seen.node == row.node and not seen.in_sync and seen.last_error is not None:
            yield f"the active says: {seen.last_error}"


def _zookeeper_line(view: ClusterView) -> Text:
    serving = [row for row in view.zookeepers if row.error is None]
    leaders = [row.server for row in serving if row.mode == "leader"]
    leader = f", leader {leaders[0]}" if leaders else ""
    if view.lock.error is not None:
        lock = f"lock holder unknown ({view.lock.error})"
    else:
        lock = f"lock held by {view.lock.holder or 'NOBODY'}"
    text = f"ZooKeeper {len(serving)}/{len(view.zookeepers)} up{leader}, {lock}"
    down = [f"{row.server}: {row.error}" for row in view.zookeepers if row.error is not None]
    return Text(plain("\n  ".join([text, *down]), keep="\n"))


def _table(*left: str, right: Sequence[str] = (), last: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in left:
        table.add_column(name, no_wrap=True)
    for name in right:
        table.add_column(name, no_wrap=True, justify="right")
    for name in last:
        table.add_column(name, overflow="fold")
    return table


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
    return f"{100 * row.disk_free_bytes // row.disk_total_bytes}% {_bytes(row.disk_free_bytes)}"


def _bytes(number: int) -> str:
    size = float(number)
    for unit in ("B", "K", "M", "G", "T"):
        if size < _KIB:
            return f"{size:.0f}{unit}"
        size /= _KIB
    return f"{size:.0f}P"


def _without(entries: dict[str, object], key: str) -> dict[str, object]:
    return {name: value for name, value in entries.items() if name != key}
