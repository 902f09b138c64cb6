"""``nnha history``: lists the failovers recorded in ZooKeeper, or shows one with all details."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial

import click
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from ha.cli.zookeeper_session import visit
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.durations import since, span
from ha.console.output import plain, show
from ha.console.result import API_VERSION, Code, CommandOutcome, Ending
from ha.daemon import event_loop
from ha.notices import model
from ha.notices.store import KEPT_RECORDS, read_history

DEADLINE_SECONDS = 5.0
SHOWN = 20
TABLE_COLUMNS = 120
"""From this width on there is room for the cause next to the other columns."""


@click.command()
@about_a_cluster("history", timeout_seconds=DEADLINE_SECONDS)
@click.option(
    "-n", "count", type=click.IntRange(1, KEPT_RECORDS), default=SHOWN, show_default=True,
    help="How many of the newest.",
)  # fmt: skip
@click.option(
    "--show", "number", type=int, default=None, help="Show only this record, with all its details."
)
def history(*, place: ClusterCommand, count: int, number: int | None) -> None:
    """List failovers and attempts at them, the newest first: cause, actor, phases, result.

    ZooKeeper keeps the newest 100.  A ZKFC writes a record after the failover, so the newest one
    may be a second late.  Exits 6 if ZooKeeper does not answer.
    """
    wanted = KEPT_RECORDS if number is not None else count
    entries = event_loop.run(
        visit(place, "history", partial(read_history, count=wanted), seconds=place.timeout_seconds)
    )
    if number is not None:
        entries = tuple(one for one in entries if one.number == number)
        if not entries:
            place.end(_no_such(number))
    now = datetime.now(UTC)
    text = _in_full(entries[0], now) if number is not None else Listing(entries, now)
    show(place.output, as_json(place.nameservice, entries), text)


def as_json(nameservice: str, entries: tuple[model.HistoryEntry, ...]) -> Mapping[str, object]:
    """Return the records with fixed keys; an unreadable one has only its id and the reason."""
    return {
        "apiVersion": API_VERSION,
        "command": "history",
        "nameservice": nameservice,
        "records": [
            {
                "id": one.number,
                "unreadable": one.unreadable or None,
                "seconds": None if one.record is None else round(one.record.seconds, 6),
                "record": None if one.record is None else model.record_json(one.record),
            }
            for one in entries
        ],
    }


def _no_such(number: int) -> Ending:
    return Ending(
        "history",
        CommandOutcome.REFUSED,
        Code.NO_SUCH_RECORD,
        f"there is no record {number}; only the newest {KEPT_RECORDS} are kept",
        hint="nnha history",
    )


class Listing:
    """The records as a table, or on a narrow screen with the cause below each: it must be read."""

    def __init__(self, entries: tuple[model.HistoryEntry, ...], now: datetime) -> None:
        self._entries = entries
        self._now = now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Implement rich's hook."""
        if not self._entries:
            yield Text("No failover is recorded yet.")
        elif options.max_width >= TABLE_COLUMNS:
            yield _table(self._entries, self._now)
        else:
            for one in self._entries:
                yield from (Text(line, overflow="fold") for line in _brief(one, self._now))


def _brief(entry: model.HistoryEntry, now: datetime) -> Iterator[str]:
    if entry.record is None:
        yield plain(f"{entry.number}  UNREADABLE: {entry.unreadable}")
        return
    at, ago, former, new, kind, result, took, epoch, cause = map(str, _row(entry.record, now))
    yield f"{entry.number}  {at} ({ago} ago)  {former} -> {new}  {kind}, {result} in {took}"
    yield f"    epoch {epoch}: {cause}"


def _table(entries: tuple[model.HistoryEntry, ...], now: datetime) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name, right in (
        ("ID", True), ("AT (UTC)", False), ("AGO", True), ("FROM", False), ("TO", False),
        ("KIND", False), ("RESULT", False), ("TOOK", True), ("EPOCH", True),
    ):  # fmt: skip
        table.add_column(name, no_wrap=True, justify="right" if right else "left")
    table.add_column("CAUSE", overflow="fold")
    for one in entries:
        if one.record is None:
            table.add_row(str(one.number), "", "", "", "", "", "UNREADABLE", "", "", one.unreadable)
        else:
            table.add_row(str(one.number), *_row(one.record, now))
    return table


def _row(record: model.FailoverRecord, now: datetime) -> Iterator[str | Text]:
    yield model.time_text(record.at)[:19].replace("T", " ")
    yield since(record.at, now)
    yield plain(record.previous or "-")
    yield plain(record.namenode)
    yield record.kind.value
    failed = record.result is model.FailoverResult.FAILED
    yield Text(record.result.value.upper() if failed else "ok", style="bold red" if failed else "")
    yield span(record.seconds)
    yield "-" if record.epoch is None else f"{record.epoch:,}"
    cause = f"{record.cause}; {record.failure}" if record.failure else record.cause
    yield Text(plain(cause))


def _in_full(entry: model.HistoryEntry, now: datetime) -> RenderableType:
    if entry.record is None:
        return Text(plain(f"record {entry.number} cannot be read: {entry.unreadable}"))
    return Group(*(Text(plain(line)) for line in _lines(entry.number, entry.record, now)))


def _lines(number: int, record: model.FailoverRecord, now: datetime) -> Iterator[str]:
    way = f"{record.previous or 'unknown'} -> {record.namenode}"
    yield f"{number}  {way}  {record.result.value} in {span(record.seconds)}"
    yield f"  at        {model.time_text(record.at)}, {since(record.at, now)} ago"
    yield f"  kind      {record.kind.value}"
    yield f"  cause     {record.cause}"
    if record.actor is not None:
        yield f"  actor     {record.actor}"
    if record.failure is not None:
        yield f"  failure   {record.failure}"
    yield f"  epoch     {_or_unknown(record.epoch)}"
    yield f"  last txid {_or_unknown(record.last_txid)}"
    for phase in record.phases:
        yield f"  phase     {phase.name:<12} {phase.seconds * 1000:>10,.1f} ms"
    for one in record.fencing:
        took = "" if one.seconds is None else f" in {span(one.seconds)}"
        yield f"  fencing   {one.target}: {one.method}: {one.result}{took}: {one.detail}"
    if not record.fencing:
        yield "  fencing   none was needed"
    lock = _or_unknown(record.lock_czxid)
    yield f"  lock      session {record.session or 'unknown'}, created by transaction {lock}"


def _or_unknown(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"
